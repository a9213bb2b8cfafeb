//! What running attempts have to say: log lines and progress.

use rusqlite::{Result, params};

use super::session::Session;
use super::{logs, row};
use crate::queue::Progress;

const ATTEMPTS: &str = r#"SELECT attempts FROM "jobs" WHERE seq = ?1 AND lease = ?2 AND status = 'running'"#;

const PROGRESS: &str = r#"
UPDATE "jobs" SET progress_percent = ?3, progress_message = ?4
WHERE seq = ?1 AND lease = ?2 AND status = 'running'"#;

pub(super) fn record(db: &Session<'_>, entries: &[Progress]) -> Result<()> {
    for entry in entries {
        let lease = entry.lease;
        let attempts = db.first(ATTEMPTS, [lease.seq, lease.token], |row| row::small(row, 0))?;
        let Some(attempts) = attempts else { continue };
        logs::append(db, lease, attempts.saturating_add(1), &entry.lines)?;
        if let Some((percent, message)) = &entry.progress {
            db.execute(PROGRESS, params![lease.seq, lease.token, percent, message])?;
        }
    }
    Ok(())
}
