//! Where attempts run. All start on the runtime of the pool; one whose guest computes for long moves to threads of its own.
//!
//! A guest gives way at every tick, but to each ready task once: with a long computation or two on every thread of the runtime,
//! a job of microseconds would wait for all their ticks at each of its steps, and so would timers and signals.
//! Between threads the system sees to it that both get on, and the runtime's come first.

use std::future::poll_fn;
use std::io;
use std::sync::OnceLock;
use std::task::Poll;

use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

use crate::sandbox::AttemptHandle;

/// How far long computations stand back: where all want the cores, a thread of theirs gets a third of what another gets.
const NICE: i32 = 5;

/// The runtime of the long computations, made when the first one comes.
#[derive(Default)]
pub(super) struct Lanes {
    /// `None` within where it cannot be made: then all stay together.
    long: OnceLock<Option<Runtime>>,
}

impl Lanes {
    /// Runs `attempt`, whose guest is heard through `tap`, to its end.
    pub(super) async fn run(&self, handle: &AttemptHandle, attempt: impl Future<Output = ()> + Send + 'static) {
        let mut attempt = Box::pin(attempt);
        let has_ended = poll_fn(|context| match attempt.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending if handle.has_computed_long() => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        });
        if has_ended.await {
            return;
        }
        match self.long() {
            // A panic has been dealt with by what the attempt leaves behind. Whoever drops this drops the attempt.
            Some(long) => _ = AbortOnDropHandle::new(long.spawn(attempt)).await,
            None => attempt.await,
        }
    }

    fn long(&self) -> Option<&Runtime> {
        let make = || start().inspect_err(|error| tracing::warn!("no threads for long computations: {error}")).ok();
        self.long.get_or_init(make).as_ref()
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        if let Some(Some(runtime)) = self.long.take() {
            runtime.shutdown_background();
        }
    }
}

fn start() -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .thread_name("jobq-long")
        .on_thread_start(|| {
            // Without it they are on a level with the others.
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

    async fn threads_of(ticks: usize) -> (ThreadId, ThreadId) {
        let (lanes, handle, (told, heard)) = (Lanes::default(), Arc::new(AttemptHandle::default()), mpsc::channel());
        let guest = handle.clone();
        let attempt = async move {
            told.send(std::thread::current().id()).unwrap();
            (0..ticks).for_each(|_| guest.tick());
            tokio::task::yield_now().await;
            told.send(std::thread::current().id()).unwrap();
        };
        lanes.run(&handle, attempt).await;
        (heard.recv().unwrap(), heard.recv().unwrap())
    }

    #[tokio::test]
    async fn a_short_attempt_stays_where_it_began() {
        let (first, last) = threads_of(1).await;
        assert_eq!(first, last);
    }

    #[tokio::test]
    async fn a_long_computation_moves_to_a_thread_of_its_own() {
        let (first, last) = threads_of(2).await;
        assert_ne!(first, last);
    }
}
