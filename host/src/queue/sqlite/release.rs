//! A worker hands back jobs whose guests never started: running → pending, as if it had not claimed them.

use rusqlite::Result;

use super::row;
use super::session::Session;
use crate::queue::Lease;

/// The latest attempt is again the one that the ledger knows.
const RELEASE: &str = r#"
UPDATE "jobs"
SET status = 'pending', lease_until = NULL, worker = NULL,
    started_at = (SELECT started_at FROM "jobs__attempts" WHERE seq = ?1 ORDER BY lease DESC LIMIT 1)
WHERE seq = ?1 AND lease = ?2 AND worker = ?3 AND status = 'running'"#;

pub(super) fn release(db: &Session<'_>, leases: &[Lease]) -> Result<()> {
    leases.iter().try_for_each(|lease| db.execute(RELEASE, row::fence(lease)).map(drop))
}
