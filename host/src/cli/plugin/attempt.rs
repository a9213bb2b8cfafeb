//! One attempt without a queue: the same sandbox, limits and grants as in the daemon. Follow-ups are listed, not enqueued.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use bytesize::ByteSize;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::exit::{Code, Failure};
use crate::cli::output::{cell, talk};
use crate::cli::render;
use crate::plugins::Version;
use crate::queue::{Due, Id, JobType, NewJob, Next, Outcome, Payload, Timestamp};
use crate::sandbox::{
    AttemptHandle, AttemptReport, Call, FollowUp, FollowUpError, FollowUps, GuestOutcome, Limits, Line, Sandbox, Source,
};
use crate::worker::{AttemptEnd, JobTypeOptions, JobTypes, decide};

/// How often the output of a running guest is collected.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Characters of a follow-up's payload that are shown.
const SHOWN: usize = 200;

/// What all attempts of a command have in common.
pub(super) struct Setup<'a> {
    pub(super) sandbox: &'a Sandbox,
    pub(super) version: &'a Version,
    pub(super) job_type: &'a JobType,
    pub(super) rules: Arc<JobTypes>,
    pub(super) limits: Limits,
    /// The maximum number of attempts; `None` means that of the type.
    pub(super) max_attempts: Option<u32>,
}

/// The report on one attempt, for programs. It uses the same words as `jobq show`.
#[derive(Debug, Serialize)]
pub(super) struct Attempt {
    r#type: String,
    attempt: u32,
    max_attempts: u32,
    #[serde(serialize_with = "as_word")]
    pub(super) outcome: Outcome,
    /// Whether the handler said that no further attempt can help.
    pub(super) fatal: bool,
    /// The delay that the handler asked for.
    pub(super) after_ms: Option<u64>,
    pub(super) result: Option<String>,
    pub(super) error: Option<String>,
    duration_ms: u64,
    #[serde(skip)]
    duration: Duration,
    fuel: Option<u64>,
    peak_memory_bytes: u64,
    digest: String,
    progress: Option<Progress>,
    log: Vec<LogLine>,
    follow_ups: Vec<RequestedJob>,
    #[serde(skip)]
    end: AttemptEnd,
    #[serde(skip)]
    limits: Limits,
}

#[derive(Debug, Serialize)]
struct Progress {
    percent: u8,
    message: String,
}

/// A line that the guest wrote.
#[derive(Debug, Serialize)]
struct LogLine {
    time: String,
    source: &'static str,
    level: Option<&'static str>,
    message: String,
}

/// A job that the guest asked for. It is only created if the attempt completes.
#[derive(Debug, Serialize)]
struct RequestedJob {
    r#type: String,
    payload: String,
    priority: i16,
    delay_ms: u64,
    max_attempts: Option<u32>,
    key: Option<String>,
}

impl Setup<'_> {
    /// The maximum number of attempts.
    pub(super) fn max_attempts(&self) -> u32 {
        self.max_attempts.unwrap_or(self.rule().policy.max_attempts)
    }

    fn rule(&self) -> &JobTypeOptions {
        self.rules.of(self.job_type.as_str())
    }

    /// Runs one attempt; Ctrl-C stops it. `on_line` is called for each line while the guest runs.
    ///
    /// # Errors
    /// When the host has no room for the guest.
    pub(super) async fn attempt(
        &self,
        payload: &Payload,
        number: u32,
        on_line: impl Fn(&Line),
    ) -> anyhow::Result<Attempt> {
        let max_attempts = self.max_attempts().max(number);
        let call = Call {
            id: Id::generate().to_string(),
            job_type: self.job_type.to_string(),
            payload: payload.as_str().to_owned(),
            attempt: number,
            max_attempts,
        };
        let handle = Arc::new(AttemptHandle::default());
        let collected = Arc::new(Collected { rules: Arc::clone(&self.rules), jobs: Mutex::default() });
        let (plugin, grants) = (self.version.plugin(), &self.rule().grants);
        let run = self.sandbox.run(plugin, call, &self.limits, grants, Arc::clone(&handle), collected.clone());
        let mut ctrl_c = signal(SignalKind::interrupt()).context("cannot listen to signals")?;
        let mut polls = tokio::time::interval(POLL_INTERVAL);
        let (mut lines, mut progress) = (Vec::new(), None);
        let mut collect = || {
            let new = handle.take_lines();
            new.iter().for_each(&on_line);
            lines.extend(new);
            progress = handle.take_progress().or(progress.take());
        };
        tokio::pin!(run);
        let report = loop {
            tokio::select! {
                report = &mut run => break report,
                _ = polls.tick() => collect(),
                _ = ctrl_c.recv() => handle.stop(),
            }
        };
        collect();
        if let GuestOutcome::HostShortage(reason) = report.outcome {
            return Err(Failure::new(Code::TryLater, reason).into());
        }
        let follow_ups = collected.take();
        let log = lines.into_iter().map(LogLine::from).collect();
        Ok(self.finished(number, max_attempts, report, log, progress, follow_ups))
    }

    fn finished(
        &self,
        attempt: u32,
        max_attempts: u32,
        report: AttemptReport,
        log: Vec<LogLine>,
        progress: Option<(u8, String)>,
        follow_ups: Vec<RequestedJob>,
    ) -> Attempt {
        let AttemptReport { outcome, duration, fuel, peak_memory } = report;
        let was_stopped = outcome == GuestOutcome::Stopped;
        let (fatal, delay) = (outcome.is_fatal(), outcome.requested_delay());
        let end = decide(outcome, attempt, Some(max_attempts), self.rule(), 0.5);
        Attempt {
            r#type: self.job_type.to_string(),
            attempt,
            max_attempts,
            // Ctrl-C stops it here, as `jobq cancel` does in the daemon.
            outcome: if was_stopped { Outcome::Cancelled } else { end.outcome() },
            fatal,
            after_ms: delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            result: end.result().map(str::to_owned),
            error: end.error().map(str::to_owned),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            duration,
            fuel,
            peak_memory_bytes: peak_memory,
            digest: hex::encode(self.version.digest()),
            progress: progress.map(|(percent, message)| Progress { percent, message }),
            log,
            follow_ups,
            end,
            limits: self.limits.clone(),
        }
    }
}

fn as_word<S: serde::Serializer>(outcome: &Outcome, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(outcome.as_str())
}

impl Attempt {
    /// The exit code for its outcome.
    pub(super) fn code(&self) -> Code {
        match self.outcome {
            Outcome::Completed => Code::Ok,
            Outcome::Snoozed => Code::TryLater,
            Outcome::Failed if !self.fatal => Code::TryLater,
            Outcome::Cancelled => Code::Interrupted,
            _ => Code::Died,
        }
    }

    /// Whether Ctrl-C stopped it.
    pub(super) fn was_stopped(&self) -> bool {
        self.outcome == Outcome::Cancelled
    }

    /// Outcome, time, fuel and memory in one line.
    pub(super) fn summary(&self) -> String {
        let memory = |bytes: u64| ByteSize::b(bytes).display().iec().to_string();
        let outcome = if self.fatal { "failed permanently" } else { self.outcome.as_str() };
        let fuel = match (self.fuel, self.limits.fuel) {
            (Some(fuel), Some(limit)) => {
                format!(", fuel {} of {}", render::count(fuel), render::count(limit))
            }
            (None, Some(_)) => ", fuel unknown".to_owned(),
            (_, None) => String::new(),
        };
        format!(
            "{outcome} after {}{fuel}, memory {} of {}",
            self.took(),
            memory(self.peak_memory_bytes),
            memory(self.limits.memory as u64)
        )
    }

    /// How long it took, in milliseconds.
    pub(super) fn took(&self) -> String {
        format!("{:.1}ms", self.duration.as_micros() as f64 / 1000.0)
    }

    /// What the daemon would do next; `None` if that is obvious.
    pub(super) fn next(&self) -> Option<String> {
        let delay = |delay: Duration| humantime::format_duration(delay).to_string();
        let so_far = format!("attempt {} of {}", self.attempt, self.max_attempts);
        match &self.end {
            AttemptEnd::Complete(_) | AttemptEnd::GiveBack => None,
            AttemptEnd::Snooze(after) => Some(format!("the daemon would run it again in {}", delay(*after))),
            AttemptEnd::Fail(failure) => Some(match failure.next {
                Next::Retry(after) => format!("the daemon would try again in {} ({so_far})", delay(after)),
                Next::Dead if self.fatal => "the job would be dead".to_owned(),
                Next::Dead => format!("the job would be dead ({so_far})"),
            }),
        }
    }

    /// Prints the jobs that the guest asked for to stderr.
    pub(super) fn print_follow_ups(&self) {
        let prefix = if self.outcome == Outcome::Completed {
            "would enqueue"
        } else {
            "would not enqueue, because the attempt did not complete:"
        };
        for job in &self.follow_ups {
            talk(format!("{prefix} {}", job.text()));
        }
    }

    /// Prints the guest's log to stderr.
    pub(super) fn print_log(&self, indent: &str) {
        self.log.iter().for_each(|line| talk(format!("{indent}{}", line.text())));
    }
}

impl RequestedJob {
    fn text(&self) -> String {
        let mut text = format!("{} {}", self.r#type, cell(&self.payload, SHOWN));
        if self.delay_ms > 0 {
            text += &format!(" in {}", humantime::format_duration(Duration::from_millis(self.delay_ms)));
        }
        if self.priority != 0 {
            text += &format!(" priority {}", self.priority);
        }
        if let Some(max) = self.max_attempts {
            text += &format!(" max-attempts {max}");
        }
        if let Some(key) = &self.key {
            text += &format!(" key `{}`", cell(key, SHOWN));
        }
        text
    }
}

impl From<NewJob> for RequestedJob {
    fn from(job: NewJob) -> Self {
        let delay = match job.due {
            Due::In(delay) => delay,
            Due::At(_) => Duration::ZERO,
        };
        Self {
            r#type: job.job_type.to_string(),
            payload: job.payload.as_str().to_owned(),
            priority: job.priority,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            max_attempts: job.max_attempts,
            key: job.key.map(|key| key.to_string()),
        }
    }
}

impl From<Line> for LogLine {
    fn from(line: Line) -> Self {
        let since_epoch = line.time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let time = Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX));
        Self { time: time.to_string(), source: source(line.source), level: line.level, message: line.message }
    }
}

impl LogLine {
    fn text(&self) -> String {
        labelled(self.level.unwrap_or(self.source), &self.message)
    }
}

/// A line of a guest for people.
pub(super) fn line(line: &Line) -> String {
    labelled(line.level.unwrap_or_else(|| source(line.source)), &line.message)
}

fn labelled(kind: &str, message: &str) -> String {
    format!("{kind:<6} {}", cell(message, usize::MAX))
}

const fn source(source: Source) -> &'static str {
    match source {
        Source::Log => "log",
        Source::Stdout => "stdout",
        Source::Stderr => "stderr",
    }
}

/// Checks follow-ups by the daemon's rules and collects them.
struct Collected {
    rules: Arc<JobTypes>,
    jobs: Mutex<Vec<NewJob>>,
}

impl Collected {
    fn take(&self) -> Vec<RequestedJob> {
        let jobs = std::mem::take(&mut *self.jobs.lock());
        jobs.into_iter().map(RequestedJob::from).collect()
    }
}

#[async_trait]
impl FollowUps for Collected {
    async fn enqueue(&self, job: FollowUp) -> Result<String, FollowUpError> {
        let job = self.rules.follow_up(job)?;
        let mut jobs = self.jobs.lock();
        if let Some(holder) = jobs.iter().find(|other| job.key.is_some() && other.key == job.key) {
            return Ok(holder.id.to_string());
        }
        let id = job.id.to_string();
        jobs.push(job);
        Ok(id)
    }
}
