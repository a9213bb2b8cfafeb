//! One attempt without a queue: the sandbox, the limits and the grants of the daemon, its follow-ups listed instead of made.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use bytesize::ByteSize;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::exit::Code;
use crate::cli::output::{cell, talk};
use crate::cli::render;
use crate::plugins::Version;
use crate::queue::{Due, Id, JobType, NewJob, Next, Outcome, Payload, Timestamp};
use crate::sandbox::{self, Call, FollowUp, FollowUpError, FollowUps, Limits, Line, Report, Sandbox, Source, Tap};
use crate::worker::{JobTypeOptions, JobTypes, Verdict, decide};

/// How often a running guest is listened to.
const LISTEN: Duration = Duration::from_millis(20);

/// Characters of a follow-up's payload that people are shown.
const SHOWN: usize = 200;

/// What all attempts of a command have in common.
pub(super) struct Setup<'a> {
    pub(super) sandbox: &'a Sandbox,
    pub(super) version: &'a Version,
    pub(super) job_type: &'a JobType,
    pub(super) rules: Arc<JobTypes>,
    pub(super) limits: Limits,
    /// Attempts a job has, unless the settings of the type are to say.
    pub(super) max_attempts: Option<u32>,
}

/// What became of one attempt, for programs. The words are those of `jobq show`.
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
    pub(super) duration_ms: f64,
    fuel: Option<u64>,
    peak_memory_bytes: u64,
    digest: String,
    progress: Option<Progress>,
    log: Vec<Said>,
    follow_ups: Vec<Wanted>,
    #[serde(skip)]
    verdict: Verdict,
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
struct Said {
    time: String,
    source: &'static str,
    level: Option<&'static str>,
    message: String,
}

/// A job that the guest asked for. It would be made only if the attempt completes.
#[derive(Debug, Serialize)]
struct Wanted {
    r#type: String,
    payload: String,
    priority: i16,
    delay_ms: u64,
    max_attempts: Option<u32>,
    key: Option<String>,
}

impl Setup<'_> {
    /// Attempts a job has.
    pub(super) fn max_attempts(&self) -> u32 {
        self.max_attempts.unwrap_or(self.rule().policy.max_attempts)
    }

    fn rule(&self) -> &JobTypeOptions {
        self.rules.of(self.job_type.as_str())
    }

    /// Runs one attempt; Ctrl-C stops it. `hear` is given what the guest writes, as it comes.
    pub(super) async fn attempt(
        &self,
        payload: &Payload,
        number: u32,
        hear: impl Fn(&Line),
    ) -> anyhow::Result<Attempt> {
        let max_attempts = self.max_attempts().max(number);
        let call = Call {
            id: Id::generate().to_string(),
            job_type: self.job_type.to_string(),
            payload: payload.as_str().to_owned(),
            attempt: number,
            max_attempts,
        };
        let tap = Arc::new(Tap::default());
        let collected = Arc::new(Collected { rules: Arc::clone(&self.rules), jobs: Mutex::default() });
        let (plugin, grants) = (self.version.plugin(), &self.rule().grants);
        let run = self.sandbox.run(plugin, call, &self.limits, grants, Arc::clone(&tap), collected.clone());
        let mut ctrl_c = signal(SignalKind::interrupt()).context("cannot listen to signals")?;
        let mut turns = tokio::time::interval(LISTEN);
        let (mut lines, mut progress) = (Vec::new(), None);
        let mut listen = || {
            let heard = tap.take_lines();
            heard.iter().for_each(&hear);
            lines.extend(heard);
            progress = tap.take_progress().or(progress.take());
        };
        tokio::pin!(run);
        let report = loop {
            tokio::select! {
                report = &mut run => break report,
                _ = turns.tick() => listen(),
                _ = ctrl_c.recv() => tap.stop(),
            }
        };
        listen();
        let follow_ups = collected.take();
        let said = lines.into_iter().map(Said::from).collect();
        Ok(self.told(number, max_attempts, report, said, progress, follow_ups))
    }

    fn told(
        &self,
        attempt: u32,
        max_attempts: u32,
        report: Report,
        log: Vec<Said>,
        progress: Option<(u8, String)>,
        follow_ups: Vec<Wanted>,
    ) -> Attempt {
        let Report { outcome, duration, fuel, peak_memory } = report;
        let verdict = decide(outcome.clone(), attempt, Some(max_attempts), self.rule(), 0.5);
        let fatal = matches!(outcome, sandbox::GuestOutcome::Fatal(_));
        let End { outcome, after, result, error } = End::from(outcome);
        Attempt {
            r#type: self.job_type.to_string(),
            attempt,
            max_attempts,
            outcome,
            fatal,
            after_ms: after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
            result,
            error,
            duration_ms: duration.as_micros() as f64 / 1000.0,
            fuel,
            peak_memory_bytes: peak_memory,
            digest: hex::encode(self.version.digest()),
            progress: progress.map(|(percent, message)| Progress { percent, message }),
            log,
            follow_ups,
            verdict,
            limits: self.limits.clone(),
        }
    }
}

fn as_word<S: serde::Serializer>(outcome: &Outcome, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(outcome.as_str())
}

/// An outcome taken apart.
struct End {
    outcome: Outcome,
    after: Option<Duration>,
    result: Option<String>,
    error: Option<String>,
}

impl From<sandbox::GuestOutcome> for End {
    fn from(outcome: sandbox::GuestOutcome) -> Self {
        use sandbox::GuestOutcome as Ended;
        let failed = |outcome, after, error| Self { outcome, after, result: None, error: Some(error) };
        let mute = |outcome, after| Self { outcome, after, result: None, error: None };
        match outcome {
            Ended::Completed(result) => Self { result: Some(result), ..mute(Outcome::Completed, None) },
            Ended::Failed { message, after } => failed(Outcome::Failed, after, message),
            Ended::Fatal(message) => failed(Outcome::Failed, None, message),
            Ended::Snoozed(delay) => mute(Outcome::Snoozed, Some(delay)),
            Ended::Trapped(error) => failed(Outcome::Trapped, None, error),
            Ended::TimedOut(error) => failed(Outcome::TimedOut, None, error),
            Ended::OutOfFuel(error) => failed(Outcome::OutOfFuel, None, error),
            Ended::OutOfMemory(error) => failed(Outcome::OutOfMemory, None, error),
            Ended::Stopped => mute(Outcome::Cancelled, None),
        }
    }
}

impl Attempt {
    /// The exit code that tells how it ended.
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
        let outcome = if self.fatal { "failed for good" } else { self.outcome.as_str() };
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
        format!("{:.1}ms", self.duration_ms)
    }

    /// What the daemon would do next; `None` where that goes without saying.
    pub(super) fn next(&self) -> Option<String> {
        let delay = |delay: Duration| humantime::format_duration(delay).to_string();
        let so_far = format!("attempt {} of {}", self.attempt, self.max_attempts);
        match &self.verdict {
            Verdict::Complete(_) | Verdict::GiveBack => None,
            Verdict::Snooze(after) => Some(format!("the daemon would run it again in {}", delay(*after))),
            Verdict::Fail(failure) => Some(match failure.next {
                Next::Retry(after) => format!("the daemon would try again in {} ({so_far})", delay(after)),
                Next::Dead if self.fatal => "the job would be dead".to_owned(),
                Next::Dead => format!("the job would be dead ({so_far})"),
            }),
        }
    }

    /// Says on stderr which jobs the guest asked for.
    pub(super) fn tell_follow_ups(&self) {
        let made = if self.outcome == Outcome::Completed {
            "would enqueue"
        } else {
            "would not enqueue, for the attempt did not complete:"
        };
        for job in &self.follow_ups {
            talk(format!("{made} {}", job.text()));
        }
    }

    /// Says on stderr what the guest wrote.
    pub(super) fn tell_log(&self, indent: &str) {
        self.log.iter().for_each(|said| talk(format!("{indent}{}", said.text())));
    }
}

impl Wanted {
    fn text(&self) -> String {
        let mut text = format!("{} {}", self.r#type, cell(&self.payload, SHOWN));
        if self.delay_ms > 0 {
            text += &format!(" in {}", humantime::format_duration(Duration::from_millis(self.delay_ms)));
        }
        if self.priority != 0 {
            text += &format!(" priority {}", self.priority);
        }
        if let Some(most) = self.max_attempts {
            text += &format!(" max-attempts {most}");
        }
        if let Some(key) = &self.key {
            text += &format!(" key `{}`", cell(key, SHOWN));
        }
        text
    }
}

impl From<NewJob> for Wanted {
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

impl From<Line> for Said {
    fn from(line: Line) -> Self {
        let since_epoch = line.time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let time = Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX));
        Self { time: time.to_string(), source: source(line.source), level: line.level, message: line.message }
    }
}

impl Said {
    fn text(&self) -> String {
        said(self.level.unwrap_or(self.source), &self.message)
    }
}

/// A line of a guest for people.
pub(super) fn line(line: &Line) -> String {
    said(line.level.unwrap_or_else(|| source(line.source)), &line.message)
}

fn said(kind: &str, message: &str) -> String {
    format!("{kind:<6} {}", cell(message, usize::MAX))
}

const fn source(source: Source) -> &'static str {
    match source {
        Source::Log => "log",
        Source::Stdout => "stdout",
        Source::Stderr => "stderr",
    }
}

/// Takes follow-ups by the rules of the daemon and keeps them.
struct Collected {
    rules: Arc<JobTypes>,
    jobs: Mutex<Vec<NewJob>>,
}

impl Collected {
    fn take(&self) -> Vec<Wanted> {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        jobs.into_iter().map(Wanted::from).collect()
    }
}

#[async_trait]
impl FollowUps for Collected {
    async fn enqueue(&self, job: FollowUp) -> Result<String, FollowUpError> {
        let job = self.rules.follow_up(job)?;
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holder) = jobs.iter().find(|other| job.key.is_some() && other.key == job.key) {
            return Ok(holder.id.to_string());
        }
        let id = job.id.to_string();
        jobs.push(job);
        Ok(id)
    }
}
