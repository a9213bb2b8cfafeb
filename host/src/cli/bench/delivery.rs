//! After the measuring: whether each job was done exactly once, by its row and by the ledger of attempts.

use super::workload::Workload;
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
    /// Compares the queue with the `jobs` that were enqueued for `workload`, all of which must be done.
    pub(super) async fn check(store: &SqliteStore, workload: &Workload, jobs: usize) -> anyhow::Result<Self> {
        Self::check_some(store, workload, jobs, jobs).await
    }

    /// Compares the queue with the `jobs` that were enqueued for `workload`, of which at least `done` must be done.
    pub(super) async fn check_some(
        store: &SqliteStore,
        workload: &Workload,
        jobs: usize,
        done: usize,
    ) -> anyhow::Result<Self> {
        let audit = store.audit(&workload.job_type).await?;
        if audit.jobs == jobs as u64 && audit.completed >= done as u64 && audit.once == audit.completed {
            return Ok(Self { problem: None });
        }
        let mut problem = format!(
            "of {jobs} jobs {} are in the queue, {} completed, {} of these in one attempt",
            audit.jobs, audit.completed, audit.once
        );
        let dead = Filter { status: Some(Status::Dead), job_type: Some(workload.job_type.to_string()), limit: 1 };
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::pool::{self, Durability};
    use super::super::workload::filler;
    use super::*;
    use crate::queue::{self, Claim, Next, Outcome, Receipt, Want, WorkerName};

    #[tokio::test]
    async fn a_job_that_is_missing_or_not_done_once_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let store = pool::open(dir.path(), Durability::Normal).unwrap();
        let workload = Workload::noop(filler(2).unwrap()).unwrap();
        store.enqueue((0..3).map(|_| workload.job()).collect()).await.unwrap();
        let wants = vec![Want { job_type: workload.job_type.clone(), slots: 3, ahead: 0 }];
        let claim = Claim { wants, slots: 3, lease: Duration::from_secs(60), worker: WorkerName::new("test") };
        let jobs = store.claim(claim).await.unwrap().jobs;
        for job in &jobs[..2] {
            store.complete(Receipt::of(job, Duration::ZERO), String::new(), Vec::new()).await.unwrap();
        }
        let check = async |jobs, done| Delivery::check_some(&store, &workload, jobs, done).await.unwrap();
        assert!(check(3, 2).await.once());
        assert!(!check(3, 3).await.once(), "one has not ended");
        assert!(!check(4, 2).await.once(), "one is missing");

        let failure = queue::AttemptFailure { outcome: Outcome::Failed, error: "no paper".into(), next: Next::Dead };
        store.fail(Receipt::of(&jobs[2], Duration::ZERO), failure).await.unwrap();
        let problem = Delivery::require([check(3, 2).await, check(3, 3).await]).unwrap_err().to_string();
        assert!(
            problem.contains("of 3 jobs 3 are in the queue, 2 completed") && problem.contains("no paper"),
            "{problem}"
        );
        store.close().await;
    }
}
