//! Which leased jobs have not started, by the start notes in the files of their workers: they were claimed ahead of a free slot.

use std::cell::RefCell;
use std::collections::HashMap;

use super::worker_file::{Attempt, Notes};
use super::workers::Workers;
use crate::queue::Status;
use crate::queue::rows::Leased;

/// The start notes of workers. Each file is read once.
///
/// Read the rows first, so that a job that starts in between counts as started. One that starts and ends in between may
/// count as not started.
pub(super) struct StartNotes<'w> {
    workers: &'w Workers,
    read: RefCell<HashMap<String, Option<Notes>>>,
}

impl<'w> StartNotes<'w> {
    pub(super) fn of(workers: &'w Workers) -> Self {
        Self { workers, read: RefCell::default() }
    }

    /// Whether this attempt is proved not to have started.
    pub(super) fn exclude(&self, worker: Option<&str>, attempt: Attempt) -> bool {
        let Some(worker) = worker else { return false };
        let mut read = self.read.borrow_mut();
        let notes = read.entry(worker.to_owned()).or_insert_with(|| self.workers.notes_of(worker));
        notes.as_ref().is_some_and(|notes| !notes.has(attempt))
    }

    /// Shows a job as pending where it is leased and not started.
    pub(super) fn show<J: Leased>(&self, mut job: J) -> J {
        let (row, token) = job.attempt();
        if job.status() == Status::Running && self.exclude(job.worker(), (row.seq(), token)) {
            job.show_as_pending();
        }
        job
    }
}
