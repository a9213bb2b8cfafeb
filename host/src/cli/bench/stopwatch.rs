//! When a handler's first instruction ran: a guest that logs before anything else, and handlers that note the time of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::sync::watch;

use super::subject::Subject;
use crate::queue::{Digest, JobType, NewJob, Payload, PluginReport};
use crate::sandbox::{Call, FollowUps, Grants, Limits, Report, Tap};
use crate::worker::{Handler, Handlers};

/// A component that logs a word and returns (source: `tests/guests/wat/first_word.wat`).
const FIRST_WORD: &[u8] = include_bytes!("../../../../tests/guests/first_word.wasm");

/// The type of the jobs that are timed.
const TYPE: &str = "first-word";

/// The subject whose jobs are timed.
pub(super) fn subject() -> anyhow::Result<Subject> {
    let payload = Payload::parse("0".to_owned(), 1)?;
    Ok(Subject { job_type: JobType::parse(TYPE)?, wasm: FIRST_WORD.to_vec(), payload })
}

/// A job that carries the instant of its making, by the clock that all processes share.
pub(super) fn job() -> anyhow::Result<NewJob> {
    let subject = subject()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos().to_string();
    let payload = Payload::parse(now, 64)?;
    Ok(Subject { payload, ..subject }.job())
}

/// Handlers that note, for each timed job, how long after its making its first word was heard.
pub(super) struct Stopwatch {
    handlers: Arc<dyn Handlers>,
    times: Arc<Mutex<Vec<Duration>>>,
}

impl Stopwatch {
    pub(super) fn around(handlers: Arc<dyn Handlers>) -> Self {
        Self { handlers, times: Arc::default() }
    }

    /// How many jobs were timed since the last [`take`](Self::take).
    pub(super) fn count(&self) -> usize {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(super) fn take(&self) -> Vec<Duration> {
        std::mem::take(&mut self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Handlers for Stopwatch {
    fn serving(&self) -> Vec<String> {
        self.handlers.serving()
    }

    fn current(&self, job_type: &str) -> Option<Arc<dyn Handler>> {
        let handler = self.handlers.current(job_type)?;
        if job_type != TYPE {
            return Some(handler);
        }
        Some(Arc::new(Timed { handler, times: self.times.clone() }))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.handlers.changes()
    }

    fn report(&self) -> Vec<PluginReport> {
        self.handlers.report()
    }
}

struct Timed {
    handler: Arc<dyn Handler>,
    times: Arc<Mutex<Vec<Duration>>>,
}

#[async_trait]
impl Handler for Timed {
    async fn run(
        &self,
        call: Call,
        limits: &Limits,
        grants: &Grants,
        tap: Arc<Tap>,
        follow_ups: Arc<dyn FollowUps>,
    ) -> Report {
        let made = call.payload.parse().map(Duration::from_nanos);
        let report = self.handler.run(call, limits, grants, tap.clone(), follow_ups).await;
        let lines = tap.take_lines();
        if let (Ok(made), Some(first)) = (made, lines.first()) {
            let heard = first.time.duration_since(UNIX_EPOCH).unwrap_or_default();
            self.times.lock().unwrap_or_else(PoisonError::into_inner).push(heard.saturating_sub(made));
        }
        lines.into_iter().for_each(|line| tap.push(line));
        report
    }

    fn digest(&self) -> Option<Digest> {
        self.handler.digest()
    }
}
