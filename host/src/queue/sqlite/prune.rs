//! Finished jobs that are old enough are deleted, and with them, by a trigger, their ledger and logs.

use rusqlite::{Result, params};

use super::session::Session;
use crate::queue::{Pruned, Retention};

/// The oldest of one finished state.
macro_rules! old {
    ($status:literal) => {
        concat!(
            r#"SELECT seq FROM "jobs" INDEXED BY "jobs__"#,
            $status,
            r#"" WHERE status = '"#,
            $status,
            "' AND completed_at <= ?1 ORDER BY completed_at LIMIT ?2"
        )
    };
}

const OLD_COMPLETED: &str = old!("completed");
const OLD_CANCELLED: &str = old!("cancelled");
const OLD_DEAD: &str = old!("dead");

const DELETE: &str = r#"DELETE FROM "jobs" WHERE seq = ?1"#;

pub(super) fn prune(db: &Session<'_>, retention: &Retention, limit: usize) -> Result<Pruned> {
    let old = old(db, retention, limit)?;
    for seq in &old {
        db.execute(DELETE, [seq])?;
    }
    Ok(Pruned { deleted: old.len(), more: old.len() == limit })
}

/// The answer where nothing is old enough.
pub(super) fn look(db: &Session<'_>, retention: &Retention) -> Result<Option<Pruned>> {
    Ok(old(db, retention, 1)?.is_empty().then_some(Pruned { deleted: 0, more: false }))
}

fn old(db: &Session<'_>, retention: &Retention, limit: usize) -> Result<Vec<i64>> {
    let states =
        [(OLD_COMPLETED, retention.completed), (OLD_CANCELLED, retention.cancelled), (OLD_DEAD, retention.dead)];
    let mut old = Vec::new();
    for (sql, retention) in states {
        let Some(retention) = retention else { continue };
        let horizon = db.now().before(retention).as_millis();
        let room = i64::try_from(limit - old.len()).unwrap_or(i64::MAX);
        old.extend(db.all(sql, params![horizon, room], |row| row.get::<_, i64>(0))?);
    }
    Ok(old)
}
