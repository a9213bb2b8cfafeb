//! The epoch ticker that interrupts guests. It has its own thread, so that no guest can block it, and sleeps while no guest runs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use parking_lot::Mutex;
use wasmtime::{Engine, EngineWeak};

/// How often each running guest calls its epoch callback.
const TICK: Duration = Duration::from_millis(5);

/// After this many ticks without a running guest, the thread sleeps until one starts.
const IDLE_TICKS: u32 = 100;

/// Increments the epochs of its engines while guests run.
pub(super) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

#[derive(Default)]
struct Shared {
    engines: Mutex<Vec<EngineWeak>>,
    running: AtomicUsize,
    asleep: AtomicBool,
    closed: AtomicBool,
}

/// Keeps the ticker running until it is dropped.
pub(super) struct Ticking<'a>(&'a Shared);

impl Ticker {
    pub(super) fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = thread::Builder::new().name("epoch".into()).spawn({
            let shared = Arc::clone(&shared);
            move || tick(&shared)
        })?;
        Ok(Self { shared, thread: thread.thread().clone() })
    }

    pub(super) fn add(&self, engine: &Engine) {
        self.shared.engines.lock().push(engine.weak());
    }

    /// Keeps the ticker running until the returned guard is dropped.
    pub(super) fn wake(&self) -> Ticking<'_> {
        // These operations and those of `sleep` have one total order: either the thread sees a guest, or we see it asleep.
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Ticking(&self.shared)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

fn tick(shared: &Shared) {
    let mut idle = 0;
    while !shared.closed.load(Ordering::SeqCst) {
        thread::sleep(TICK);
        for engine in shared.engines.lock().iter() {
            if let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
            }
        }
        idle = if shared.running.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
        if idle == IDLE_TICKS {
            sleep(shared);
            idle = 0;
        }
    }
}

fn sleep(shared: &Shared) {
    shared.asleep.store(true, Ordering::SeqCst);
    while shared.running.load(Ordering::SeqCst) == 0 && !shared.closed.load(Ordering::SeqCst) {
        thread::park();
    }
    shared.asleep.store(false, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sleeps_while_nothing_runs_and_wakes_for_the_next_guest() {
        let ticker = Ticker::start().expect("a thread");
        let until_asleep = |wanted| {
            while ticker.shared.asleep.load(Ordering::SeqCst) != wanted {
                thread::sleep(Duration::from_millis(1));
            }
        };
        for _ in 0..2 {
            until_asleep(true);
            let _ticking = ticker.wake();
            until_asleep(false);
        }
    }
}
