//! The number of jobs in each state and of each type, counted in indexes that contain the state.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Result, Row};

use super::row;
use super::session::Session;
use super::started::StartNotes;
use super::workers::Workers;
use crate::queue::{Counts, Overview, Status, Timestamp, TypeOverview};

/// The waiting jobs in one of the two indexes that can have them.
macro_rules! waiting {
    ($index:literal, $deferred:literal) => {
        concat!(
            "SELECT count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'failed')",
            r#" FROM "jobs" INDEXED BY "jobs__"#,
            $index,
            r#"" WHERE status IN ('pending', 'failed') AND deferred = "#,
            $deferred
        )
    };
}

const WAITING: [&str; 2] = [waiting!("claim", "0"), waiting!("deferred", "1")];

const RUNNING: &str = r#"SELECT count(*) FROM "jobs" INDEXED BY "jobs__lease" WHERE status = 'running'"#;

const HAS_RUNNING: &str = r#"SELECT EXISTS (SELECT 1 FROM "jobs" INDEXED BY "jobs__lease" WHERE status = 'running')"#;

const DONE: &str = r#"
SELECT status, count(*) FROM "jobs" INDEXED BY "jobs__done"
WHERE status = 'completed' OR status = 'dead' OR status = 'cancelled'
GROUP BY status"#;

/// The waiting jobs that become due between two instants, in one of the two indexes.
macro_rules! due {
    ($index:literal, $deferred:literal) => {
        concat!(
            r#"SELECT count(*) FROM "jobs" INDEXED BY "jobs__"#,
            $index,
            r#"" WHERE status IN ('pending', 'failed') AND deferred = "#,
            $deferred,
            " AND scheduled_at > ?1 AND scheduled_at <= ?2"
        )
    };
}

const DUE: [&str; 2] = [due!("claim", "0"), due!("deferred", "1")];

pub(super) fn due_within(db: &Session<'_>, within: Duration) -> Result<u64> {
    let between = [db.now().as_millis(), db.now().after(within).as_millis()];
    DUE.iter().try_fold(0, |sum, due| Ok(sum + db.first(due, between, |row| row::big(row, 0))?.unwrap_or_default()))
}

pub(super) fn has_running(db: &Session<'_>) -> Result<bool> {
    Ok(db.first(HAS_RUNNING, [], |row| row.get(0))?.unwrap_or(false))
}

/// The same by type.
macro_rules! waiting_by_type {
    ($index:literal, $deferred:literal) => {
        concat!(
            "SELECT type, count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'failed'), ",
            r#"min(scheduled_at) FILTER (WHERE scheduled_at <= ?1) FROM "jobs" INDEXED BY "jobs__"#,
            $index,
            r#"" WHERE status IN ('pending', 'failed') AND deferred = "#,
            $deferred,
            " GROUP BY type"
        )
    };
}

const WAITING_BY_TYPE: [&str; 2] = [waiting_by_type!("claim", "0"), waiting_by_type!("deferred", "1")];

const LEASED: &str = r#"
SELECT type, worker, seq, lease, scheduled_at FROM "jobs" INDEXED BY "jobs__lease" WHERE status = 'running'"#;

const DEAD_BY_TYPE: &str = r#"
SELECT type, count(*) FROM "jobs" INDEXED BY "jobs__done"
WHERE (status = 'completed' OR status = 'dead' OR status = 'cancelled') AND status = 'dead'
GROUP BY type"#;

pub(super) fn overview(db: &Session<'_>, workers: &Workers) -> Result<Overview> {
    let mut types = Types::default();
    for waiting in WAITING_BY_TYPE {
        let read = |row: &Row<'_>| {
            Ok((row::text(row, 0)?, row::big(row, 1)?, row::big(row, 2)?, row::optional_instant(row, 3)?))
        };
        for (job_type, pending, failed, due) in db.all(waiting, [db.now().as_millis()], read)? {
            types.add(&job_type, Status::Pending, pending, due);
            types.add(&job_type, Status::Failed, failed, None);
        }
    }
    for (job_type, dead) in db.all(DEAD_BY_TYPE, [], |row| Ok((row::text(row, 0)?, row::big(row, 1)?)))? {
        types.add(&job_type, Status::Dead, dead, None);
    }
    let leased = db.all(LEASED, [], |row| {
        let worker = row::optional_text(row, 1)?;
        Ok((row::text(row, 0)?, worker, (row.get(2)?, row.get(3)?), row::instant(row, 4)?))
    })?;
    let ended = db.all(DONE, [], |row| Ok((row::status(row, 0)?, row::big(row, 1)?)))?;
    let notes = StartNotes::of(workers);
    for (job_type, worker, attempt, due) in leased {
        if notes.exclude(worker.as_deref(), attempt) {
            types.add(&job_type, Status::Pending, 1, Some(due));
        } else {
            types.add(&job_type, Status::Running, 1, None);
        }
    }
    Ok(types.overview(ended))
}

/// The counts of each type.
#[derive(Default)]
struct Types(BTreeMap<String, TypeOverview>);

impl Types {
    fn add(&mut self, job_type: &str, status: Status, count: u64, due: Option<Timestamp>) {
        let entry = self.0.entry(job_type.to_owned()).or_default();
        if count > 0 {
            *entry.counts.entry(status).or_default() += count;
        }
        entry.oldest_due = entry.oldest_due.into_iter().chain(due).min();
    }

    fn overview(self, ended: Vec<(Status, u64)>) -> Overview {
        let types: Vec<_> = self.0.into_iter().map(|(job_type, found)| TypeOverview { job_type, ..found }).collect();
        let mut counts: Counts = ended.into_iter().collect();
        for status in [Status::Pending, Status::Running, Status::Failed] {
            let sum: u64 = types.iter().filter_map(|found| found.counts.get(&status)).sum();
            if sum > 0 {
                counts.insert(status, sum);
            }
        }
        Overview { counts, types }
    }
}

pub(super) fn counts(db: &Session<'_>) -> Result<Counts> {
    let done = db.all(DONE, [], |row| Ok((row::status(row, 0)?, row::big(row, 1)?)))?;
    let (mut pending, mut failed) = (0, 0);
    for waiting in WAITING {
        let counted = db.first(waiting, [], |row| Ok((row::big(row, 0)?, row::big(row, 1)?)))?;
        let (more_pending, more_failed) = counted.unwrap_or_default();
        (pending, failed) = (pending + more_pending, failed + more_failed);
    }
    let running = db.first(RUNNING, [], |row| row::big(row, 0))?.unwrap_or_default();
    let mut counts: Counts = done.into_iter().collect();
    counts.extend([(Status::Pending, pending), (Status::Failed, failed), (Status::Running, running)]);
    counts.retain(|_, count| *count > 0);
    Ok(counts)
}
