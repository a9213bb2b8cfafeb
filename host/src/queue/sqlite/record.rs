//! What running attempts have to say: log lines and progress.

use rusqlite::{Result, params};

use super::session::Session;
use super::{logs, row};
use crate::queue::Progress;

const ATTEMPTS: &str =
    r#"SELECT attempts FROM "jobs" WHERE seq = ?1 AND lease = ?2 AND worker = ?3 AND status = 'running'"#;

const PROGRESS: &str = r#"
UPDATE "jobs" SET progress_percent = ?4, progress_message = ?5
WHERE seq = ?1 AND lease = ?2 AND worker = ?3 AND status = 'running'"#;

pub(super) fn record(db: &Session<'_>, entries: &[Progress]) -> Result<()> {
    for entry in entries {
        let lease = &entry.lease;
        let (seq, token, worker) = row::fence(lease);
        let attempts = db.first(ATTEMPTS, (seq, token, worker), |row| row::small(row, 0))?;
        let Some(attempts) = attempts else { continue };
        logs::append(db, lease, attempts.saturating_add(1), &entry.lines)?;
        if let Some((percent, message)) = &entry.progress {
            db.execute(PROGRESS, params![seq, token, worker, percent, message])?;
        }
    }
    Ok(())
}
