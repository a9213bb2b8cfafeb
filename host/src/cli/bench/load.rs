//! Clients that enqueue, in the process of the pool.

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

/// How much is enqueued, and how.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Load {
    /// How many jobs
    #[arg(long, default_value = "50000", value_parser = positive::<NonZeroUsize>)]
    pub(super) jobs: NonZeroUsize,
    /// How many enqueues are under way at once
    #[arg(long, default_value = "256", value_parser = positive::<NonZeroUsize>)]
    pub(super) outstanding: NonZeroUsize,
    /// Jobs in one enqueue
    #[arg(long, default_value = "1", value_parser = positive::<NonZeroUsize>)]
    pub(super) batch: NonZeroUsize,
}

/// How long it took.
pub(super) struct LoadResult {
    /// Until the last job was acknowledged.
    pub(super) enqueued: Duration,
    /// Until the last job was on record as ended.
    pub(super) total: Duration,
    /// Transactions in the meantime.
    pub(super) commits: u64,
}

impl Load {
    /// Enqueues all jobs and waits until each has ended, for better or worse.
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
                Err(Failure::new(Code::Unexpected, "the queue was deleted while it was measured").into())
            }
        }
    }

    /// Enqueues all jobs; without a `waker` the pool is in another process and finds them by itself.
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

/// Up to `most` of what is left; `None` when nothing is.
fn take(left: &AtomicUsize, most: usize) -> Option<usize> {
    let rest = |left: usize| (left > 0).then(|| left.saturating_sub(most));
    let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).ok()?;
    Some(before.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_batch_is_what_is_left() {
        let left = AtomicUsize::new(7);
        assert_eq!([take(&left, 3), take(&left, 3), take(&left, 3), take(&left, 3)], [Some(3), Some(3), Some(1), None]);
    }
}
