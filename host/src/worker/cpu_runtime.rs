//! A second tokio runtime, with low-priority threads, for guests that compute for long.
//!
//! Every attempt starts on the pool's runtime. A guest yields at each tick, but only to tasks that are ready then: with one
//! long computation on each thread, a short job would wait for a full tick at each of its steps, and so would timers and
//! signals. On threads of their own, the kernel's scheduler lets the others go first.

use std::future::poll_fn;
use std::io;
use std::sync::OnceLock;
use std::task::Poll;

use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

use crate::sandbox::Tap;

/// The nice value of its threads: when all cores are busy, such a thread gets a third of the time of a normal one.
const NICE: i32 = 5;

/// The runtime, started with the first long computation.
#[derive(Default)]
pub(super) struct CpuRuntime {
    /// Holds `None` if it could not be started: everything then stays on the pool's runtime.
    runtime: OnceLock<Option<Runtime>>,
}

impl CpuRuntime {
    /// Runs `attempt` to its end, and moves it to this runtime once `tap` says that its guest has computed for long.
    pub(super) async fn run(&self, tap: &Tap, attempt: impl Future<Output = ()> + Send + 'static) {
        let mut attempt = Box::pin(attempt);
        let has_ended = poll_fn(|context| match attempt.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending if tap.has_computed_long() => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        });
        if has_ended.await {
            return;
        }
        match self.runtime() {
            // The attempt's guards handle a panic. Dropping this future aborts the attempt.
            Some(runtime) => _ = AbortOnDropHandle::new(runtime.spawn(attempt)).await,
            None => attempt.await,
        }
    }

    fn runtime(&self) -> Option<&Runtime> {
        let start =
            || start().inspect_err(|error| tracing::warn!("cannot start threads for long computations: {error}")).ok();
        self.runtime.get_or_init(start).as_ref()
    }
}

impl Drop for CpuRuntime {
    fn drop(&mut self) {
        if let Some(Some(runtime)) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn start() -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .thread_name("jobq-cpu")
        .on_thread_start(|| {
            // If this fails, the thread has normal priority.
            let thread = Some(rustix::thread::gettid());
            _ = rustix::process::setpriority_process(thread, NICE);
        })
        .enable_all()
        .build()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread::ThreadId;

    use super::*;

    /// The threads that an attempt began and ended on, if its guest computes for this many ticks.
    async fn threads_of(ticks: usize) -> (ThreadId, ThreadId) {
        let (runtime, tap, (sender, receiver)) = (CpuRuntime::default(), Arc::new(Tap::default()), mpsc::channel());
        let guest = tap.clone();
        let attempt = async move {
            sender.send(std::thread::current().id()).unwrap();
            (0..ticks).for_each(|_| guest.tick());
            tokio::task::yield_now().await;
            sender.send(std::thread::current().id()).unwrap();
        };
        runtime.run(&tap, attempt).await;
        (receiver.recv().unwrap(), receiver.recv().unwrap())
    }

    #[tokio::test]
    async fn a_short_attempt_stays_on_its_thread() {
        let (first, last) = threads_of(1).await;
        assert_eq!(first, last);
    }

    #[tokio::test]
    async fn a_long_computation_moves_to_another_thread() {
        let (first, last) = threads_of(2).await;
        assert_ne!(first, last);
    }
}
