//! After the measuring: whether each job was done exactly once, by its row and by the ledger of attempts.

use super::subject::Subject;
use crate::cli::exit::{Code, Failure};
use crate::queue::sqlite::SqliteStore;
use crate::queue::{Filter, Status, Store};

/// What became of the jobs of a run.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    /// What is wrong; `None` where each job was done once.
    problem: Option<String>,
}

impl Delivery {
    /// Compares the queue with the `jobs` that were enqueued for `subject`, all of which must be done.
    pub(super) async fn check(store: &SqliteStore, subject: &Subject, jobs: usize) -> anyhow::Result<Self> {
        Self::check_some(store, subject, jobs, jobs).await
    }

    /// Compares the queue with the `jobs` that were enqueued for `subject`, of which at least `done` must be done.
    pub(super) async fn check_some(
        store: &SqliteStore,
        subject: &Subject,
        jobs: usize,
        done: usize,
    ) -> anyhow::Result<Self> {
        let audit = store.audit(&subject.job_type).await?;
        if audit.jobs == jobs as u64 && audit.completed >= done as u64 && audit.once == audit.completed {
            return Ok(Self { problem: None });
        }
        let mut problem = format!(
            "of {jobs} jobs {} are in the queue, {} completed, {} of these in one attempt",
            audit.jobs, audit.completed, audit.once
        );
        let dead = Filter { status: Some(Status::Dead), job_type: Some(subject.job_type.to_string()), limit: 1 };
        if let Some(job) = store.list(dead).await?.pop() {
            problem += &format!("; one died: {}", job.error.unwrap_or_default());
        }
        Ok(Self { problem: Some(problem) })
    }

    /// Whether each job was done once.
    pub(super) const fn once(&self) -> bool {
        self.problem.is_none()
    }

    /// Whether each job of all these was.
    pub(super) fn all_once(deliveries: &[Self]) -> bool {
        deliveries.iter().all(Self::once)
    }

    /// For the end, when the figures are printed.
    ///
    /// # Errors
    /// When a job was not done exactly once.
    pub(super) fn require(deliveries: impl IntoIterator<Item = Self>) -> anyhow::Result<()> {
        match deliveries.into_iter().find_map(|delivery| delivery.problem) {
            None => Ok(()),
            Some(problem) => {
                let message = format!("not every job was done exactly once, so the figures mean nothing: {problem}");
                Err(Failure::new(Code::Unexpected, message).into())
            }
        }
    }
}
