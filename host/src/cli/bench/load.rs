//! Clients that enqueue jobs concurrently.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::pool::BenchPool;
use super::workload::Workload;
use crate::cli::exit::{Code, Failure};
use crate::cli::parse::positive;
use crate::queue::Store;
use crate::queue::sqlite::SqliteStore;
use crate::worker::Waker;

/// How many jobs to enqueue, and how.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Load {
    /// Number of jobs
    #[arg(long, default_value = "50000", value_parser = positive::<NonZeroUsize>)]
    pub(super) jobs: NonZeroUsize,
    /// Number of concurrent enqueue calls
    #[arg(long, default_value = "256", value_parser = positive::<NonZeroUsize>)]
    pub(super) outstanding: NonZeroUsize,
    /// Jobs per enqueue call
    #[arg(long, default_value = "1", value_parser = positive::<NonZeroUsize>)]
    pub(super) batch: NonZeroUsize,
}

/// The times of one load.
pub(super) struct LoadResult {
    /// Until the last enqueue was acknowledged.
    pub(super) enqueued: Duration,
    /// Until the last outcome was recorded.
    pub(super) total: Duration,
    /// Commits during that time.
    pub(super) commits: u64,
}

impl Load {
    /// Enqueues all jobs and waits until the outcome of each is recorded.
    pub(super) async fn drive(self, bench_pool: &BenchPool, workload: &Workload) -> anyhow::Result<LoadResult> {
        let (ended, commits) = (bench_pool.pool.recorded(), bench_pool.store.commits());
        let started = Instant::now();
        let work = async {
            self.enqueue(&bench_pool.store, Some(&bench_pool.pool.waker()), workload).await?;
            let enqueued = started.elapsed();
            bench_pool.await_ends(ended + self.jobs.get() as u64).await?;
            Ok(LoadResult { enqueued, total: started.elapsed(), commits: bench_pool.store.commits() - commits })
        };
        tokio::select! {
            result = work => result,
            () = bench_pool.pool.gone() => {
                Err(Failure::new(Code::Unexpected, "the queue was deleted during the measurement").into())
            }
        }
    }

    /// Enqueues all jobs. Without a `waker`, the pool is in another process and notices the writes by itself.
    pub(super) async fn enqueue(
        self,
        store: &Arc<SqliteStore>,
        waker: Option<&Waker>,
        workload: &Workload,
    ) -> anyhow::Result<()> {
        let left = Arc::new(AtomicUsize::new(self.jobs.get()));
        let workload = Arc::new(workload.clone());
        let mut clients = JoinSet::new();
        for _ in 0..self.outstanding.get() {
            let (store, waker) = (store.clone(), waker.cloned());
            let (left, workload) = (left.clone(), workload.clone());
            clients.spawn(async move {
                while let Some(count) = take(&left, self.batch.get()) {
                    store.enqueue((0..count).map(|_| workload.job()).collect()).await?;
                    waker.iter().for_each(Waker::wake);
                }
                anyhow::Ok(())
            });
        }
        while let Some(client) = clients.join_next().await {
            client??;
        }
        Ok(())
    }
}

/// Takes up to `most` from what is left; `None` if nothing is left.
fn take(left: &AtomicUsize, most: usize) -> Option<usize> {
    let rest = |left: usize| (left > 0).then(|| left.saturating_sub(most));
    let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).ok()?;
    Some(before.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_batch_takes_the_rest() {
        let left = AtomicUsize::new(7);
        assert_eq!([take(&left, 3), take(&left, 3), take(&left, 3), take(&left, 3)], [Some(3), Some(3), Some(1), None]);
    }
}
