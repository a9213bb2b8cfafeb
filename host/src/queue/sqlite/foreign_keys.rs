//! Tables of the application with a foreign key that forbids the deletion of jobs.
//!
//! They are checked before a job is deleted: a deferred key would fail the commit, and every other command in it.

use rusqlite::{OptionalExtension, Result};

use super::session::Session;
use crate::queue::JobRef;

const ARE_ENFORCED: &str = "PRAGMA foreign_keys";

/// One row for each column of a key; the rows of a key are adjacent.
const FOREIGN_KEYS: &str = r#"
SELECT child.name, fk.id, fk."from", coalesce(fk."to", 'seq')
FROM sqlite_schema AS child, pragma_foreign_key_list(child.name) AS fk
WHERE child.type = 'table' AND fk."table" = ?1 COLLATE NOCASE AND fk.on_delete IN ('NO ACTION', 'RESTRICT')"#;

/// All such tables.
pub(super) struct Referrers(Vec<Referrer>);

struct Referrer {
    table: String,
    key: i64,
    /// Pairs: a column of this table, a column of the jobs table.
    columns: Vec<(String, String)>,
}

impl Referrers {
    pub(super) fn find(db: &Session<'_>) -> Result<Self> {
        let mut found: Vec<Referrer> = Vec::new();
        let are_enforced: bool = db.first(ARE_ENFORCED, [], |row| row.get(0))?.unwrap_or_default();
        if !are_enforced {
            return Ok(Self(found));
        }
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, (row.get(2)?, row.get(3)?)));
        for (table, key, columns) in db.all(FOREIGN_KEYS, [db.table().as_str()], read)? {
            match found.last_mut().filter(|last| last.table == table && last.key == key) {
                Some(last) => last.columns.push(columns),
                None => found.push(Referrer { table, key, columns: vec![columns] }),
            }
        }
        Ok(Self(found))
    }

    /// The first table with a row that refers to this job.
    pub(super) fn refer_to(&self, db: &Session<'_>, job: JobRef) -> Result<Option<&str>> {
        for referrer in &self.0 {
            let mut query = db.connection().prepare_cached(&referrer.query(db.table().as_str()))?;
            if query.query_row([job.seq()], |_| Ok(())).optional()?.is_some() {
                return Ok(Some(&referrer.table));
            }
        }
        Ok(None)
    }
}

impl Referrer {
    fn query(&self, jobs: &str) -> String {
        let same = |(from, to): &(String, String)| format!("child.{} = job.{}", quoted(from), quoted(to));
        let on: Vec<String> = self.columns.iter().map(same).collect();
        let (jobs, child) = (quoted(jobs), quoted(&self.table));
        format!("SELECT 1 FROM {jobs} AS job JOIN {child} AS child ON {} WHERE job.seq = ?1 LIMIT 1", on.join(" AND "))
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
