//! The daemon's log about jobs: failed attempts, deaths, snoozes, jobs given back or rescued, deletions, and what a
//! shutdown waits for.
//!
//! Texts of handlers become one short line without control characters; secrets have already been replaced in them. A flood of
//! alike events is limited per type and second, see [`LogLimit`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tracing::Level;
use tracing::field::{DisplayValue, display};

use super::attempt::AttemptEnd;
use super::machine::log_limit::{Admission, LogLimit, WINDOW};
use crate::queue::{
    AttemptFailure, Claimed, Digest, Id, JobRef, JobType, Lease, Next, Outcome, Pruned, Rescued, Status, Timestamp,
    snooze_delay,
};

/// The longest text of a handler in a line, in characters.
const MAX_TEXT: usize = 300;

/// The most running attempts named in a line.
const LISTED: usize = 10;

/// Pause between two reports of what the shutdown waits for.
const WAITING_PAUSE: Duration = Duration::from_secs(5);

/// Deletions that are logged even while there are more to come.
const MANY_DELETED: usize = 10_000;

/// Logs what happens to the jobs of a pool.
#[derive(Default)]
pub(super) struct JobEvents {
    limit: Mutex<LogLimit<(Kind, JobType)>>,
    /// The limit has suppressed an event.
    suppressed: Notify,
    running: Mutex<BTreeMap<(JobRef, i64), Running>>,
    deleted: AtomicUsize,
}

/// Events that are limited together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Dead,
    Retry,
    Snoozed,
}

/// An attempt whose guest runs, or whose outcome is being recorded.
#[derive(Debug)]
struct Running {
    id: Id,
    job_type: JobType,
    since: Instant,
}

/// Lists an attempt as running until this is dropped.
pub(super) struct RunningGuard<'a> {
    events: &'a JobEvents,
    key: (JobRef, i64),
}

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.events.running().remove(&self.key);
    }
}

impl JobEvents {
    /// The guest of `job` starts now.
    pub(super) fn started(&self, job: &Claimed) -> RunningGuard<'_> {
        let key = key(&job.lease);
        let running = Running { id: job.id.clone(), job_type: job.job_type.clone(), since: Instant::now() };
        self.running().insert(key, running);
        RunningGuard { events: self, key }
    }

    /// The outcome of an attempt has been recorded.
    pub(super) fn recorded(&self, job: &Claimed, digest: Option<Digest>, end: &AttemptEnd) {
        let (id, job_type, attempt) = (|| one_line(job.id.as_str()), job.job_type.as_str(), job.attempt);
        match end {
            AttemptEnd::Complete(_) => tracing::trace!(job = %id(), "type" = %job_type, attempt, "job completed"),
            AttemptEnd::Fail(AttemptFailure { outcome, error, next: Next::Dead }) => {
                if self.admit(Kind::Dead, &job.job_type) {
                    let (outcome, digest, error) = (outcome.as_str(), short(digest), one_line(error));
                    tracing::warn!(job = %id(), "type" = %job_type, attempt, outcome = %outcome, digest, error, "job is dead");
                }
            }
            AttemptEnd::Fail(AttemptFailure { outcome, error, next: Next::Retry(delay) }) => {
                if tracing::enabled!(Level::INFO) && self.admit(Kind::Retry, &job.job_type) {
                    let retry_at = Timestamp::now().after(*delay);
                    let (outcome, digest, error) = (outcome.as_str(), short(digest), one_line(error));
                    tracing::info!(job = %id(), "type" = %job_type, attempt, outcome = %outcome, digest, %retry_at, error, "attempt failed, retry scheduled");
                }
            }
            AttemptEnd::Snooze(delay) => {
                if tracing::enabled!(Level::DEBUG) && self.admit(Kind::Snoozed, &job.job_type) {
                    let due_at = Timestamp::now().after(snooze_delay(*delay));
                    tracing::debug!(job = %id(), "type" = %job_type, attempt, %due_at, "job snoozed");
                }
            }
            AttemptEnd::GiveBack => {
                tracing::info!(job = %id(), "type" = %job_type, attempt, "running job stopped and given back");
            }
        }
    }

    /// A job was taken back from a daemon that died or stopped renewing its lease.
    pub(super) fn rescued(&self, rescued: &Rescued) {
        let Rescued { id, job_type, worker, status } = rescued;
        let (id, job_type) = (one_line(id.as_str()), one_line(job_type));
        let (worker, status) = (one_line(worker.as_deref().unwrap_or("unknown")), status.as_str());
        match rescued.status {
            Status::Pending => {
                tracing::info!(
                    job = %id, "type" = %job_type, %worker, status = %status,
                    "job rescued: its daemon is gone and never started it"
                );
            }
            _ => {
                let outcome = Outcome::Lost.as_str();
                tracing::warn!(
                    job = %id, "type" = %job_type, %worker, outcome = %outcome, status = %status,
                    "job rescued: its attempt was lost with its daemon"
                );
            }
        }
    }

    /// Claimed jobs were given back before their guests started.
    pub(super) fn released(&self, jobs: usize) {
        tracing::debug!(jobs, "claimed jobs given back before they started");
    }

    /// Old jobs were deleted.
    pub(super) fn pruned(&self, pruned: &Pruned) {
        let deleted = self.deleted.fetch_add(pruned.deleted, Ordering::Relaxed) + pruned.deleted;
        if deleted > 0 && (!pruned.more || deleted >= MANY_DELETED) {
            self.deleted.store(0, Ordering::Relaxed);
            tracing::info!(jobs = deleted, "finished jobs deleted after their retention time");
        }
    }

    /// The grace period is over: what still runs is stopped.
    pub(super) fn stopping_guests(&self) {
        if let Some(running) = self.list_running() {
            tracing::warn!("the shutdown grace period is over; stopping {running}");
        }
    }

    /// Logs the counts of suppressed events.
    pub(super) fn log_suppressed(&self) {
        let suppressed = self.limit.lock().take_suppressed();
        for ((kind, job_type), jobs) in suppressed {
            let job_type = job_type.as_str();
            match kind {
                Kind::Dead => {
                    tracing::warn!(jobs, "type" = %job_type, "{jobs} more jobs of `{job_type}` died in the last second");
                }
                Kind::Retry => {
                    tracing::info!(
                        jobs, "type" = %job_type,
                        "{jobs} more attempts of `{job_type}` failed in the last second"
                    );
                }
                Kind::Snoozed => {
                    tracing::debug!(
                        jobs, "type" = %job_type,
                        "{jobs} more jobs of `{job_type}` were snoozed in the last second"
                    );
                }
            }
        }
    }

    fn admit(&self, kind: Kind, job_type: &JobType) -> bool {
        let admission = self.limit.lock().admit((kind, job_type.clone()), Instant::now());
        if admission == Admission::Suppress {
            self.suppressed.notify_one();
        }
        admission == Admission::Log
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<(JobRef, i64), Running>> {
        self.running.lock()
    }

    /// The running attempts, the longest first: "2 running attempts: `spin` 0193… for 12s, …". `None` if there are none.
    fn list_running(&self) -> Option<String> {
        let running = self.running();
        let mut all: Vec<&Running> = running.values().collect();
        all.sort_by_key(|attempt| attempt.since);
        let one = |attempt: &&Running| {
            let seconds = Duration::from_secs(attempt.since.elapsed().as_secs());
            format!("`{}` {} for {seconds:?}", attempt.job_type, one_line(attempt.id.as_str()))
        };
        let mut listed: Vec<String> = all.iter().take(LISTED).map(one).collect();
        let more = all.len().saturating_sub(LISTED);
        listed.extend((more > 0).then(|| format!("and {more} more")));
        let attempts = if all.len() == 1 { "attempt" } else { "attempts" };
        (!all.is_empty()).then(|| format!("{} running {attempts}: {}", all.len(), listed.join(", ")))
    }
}

/// Logs the counts of suppressed events a second after the first of them, until it is cancelled.
pub(super) async fn report_suppressed(events: Arc<JobEvents>) {
    loop {
        events.suppressed.notified().await;
        tokio::time::sleep(WINDOW).await;
        events.log_suppressed();
    }
}

/// Logs what the shutdown waits for, now and every few seconds, until it is cancelled.
pub(super) async fn report_waiting(events: Arc<JobEvents>) {
    while let Some(running) = events.list_running() {
        tracing::info!("the shutdown waits for {running}");
        tokio::time::sleep(WAITING_PAUSE).await;
    }
}

fn key(lease: &Lease) -> (JobRef, i64) {
    (lease.job, lease.token)
}

/// The first characters of a digest, as `jobq plugin list` shows it.
fn short(digest: Option<Digest>) -> Option<DisplayValue<String>> {
    digest.map(|digest| display(digest.to_string().chars().take(12).collect()))
}

/// The first line with text, without characters that control a terminal, cut to [`MAX_TEXT`]. A line that ends in a colon, as
/// in the message of a Rust panic, is joined with the next.
fn one_line(text: &str) -> String {
    let is_blank = |c: char| c.is_whitespace() || c.is_control() || changes_direction(c);
    let mut lines = text.lines().map(|line| line.trim_matches(is_blank)).filter(|line| !line.is_empty());
    let mut line = lines.next().unwrap_or_default().to_owned();
    if line.ends_with(':') {
        line = [&line, lines.next().unwrap_or_default()].join(" ");
    }
    let mut short: String = line.chars().take(MAX_TEXT).map(|c| if is_blank(c) { ' ' } else { c }).collect();
    if line.chars().nth(MAX_TEXT).is_some() {
        short.push('…');
    }
    short
}

/// Characters that reorder the text around them.
const fn changes_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_one_short_line_that_controls_no_terminal() {
        assert_eq!(one_line("\n \n  \u{1b}[31mred\u{7}\u{202e}x \nsecond"), "[31mred  x");
        assert_eq!(one_line(&"é".repeat(1_000)), format!("{}…", "é".repeat(MAX_TEXT)));
        assert_eq!(one_line(""), "");
    }
}
