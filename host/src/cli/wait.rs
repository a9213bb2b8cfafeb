//! `jobq wait` and `enqueue --wait`: wait until jobs have ended. On a terminal, a line shows how far they are.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::context::{Context, job_id};
use super::daemons::{self, Service};
use super::exit::{Code, report_error};
use super::output::{self, Format};
use super::terminal::LiveLine;
use super::{parse, render, when};
use crate::queue::{ChangeCursor, Id, Job, OpenMode, Status, Store, Timestamp};

/// How often to check for writes.
const POLL: Duration = Duration::from_millis(20);

/// The same if the system notifies of writes.
const MAX_POLL: Duration = Duration::from_secs(1);

/// How often the line on the terminal is drawn.
const DRAW: Duration = Duration::from_millis(100);

/// The most jobs listed when the wait is over.
const LISTED: usize = 10;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
With one id, prints the result of the job. With several, prints id and state of each as it ends.
With `-o`, prints the jobs as `jobq show -o json` does, but without their attempts.

Exit codes: 0 all completed · 100 one is dead · 101 one was cancelled · 124 the wait timed out
3 one was not found, or was deleted meanwhile

Examples:
  jobq wait 0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10 --timeout 30s
  jobq enqueue --bulk many.ndjson | xargs jobq wait -o ndjson";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The ids of the jobs, or their beginnings where no other id has the same
    #[arg(value_name = "ID", value_parser = Id::parse, required = true)]
    ids: Vec<Id>,
    /// Wait at most this long [default: until they have ended]
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    timeout: Option<Duration>,
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    context.block_on(async {
        let mut ids = Vec::new();
        for typed in &args.ids {
            let id = job_id(&*store, typed).await?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        await_end(&*store, ids, args.timeout, context.format()).await
    })
}

/// Waits until all of the jobs have ended and prints each; the exit code says how they ended.
pub(super) async fn await_end(
    store: &dyn Store,
    ids: Vec<Id>,
    limit: Option<Duration>,
    format: Format,
) -> anyhow::Result<Code> {
    let mut printer = Printer { format, is_one: ids.len() == 1, ended: Vec::new(), code: Code::Ok };
    let mut watch = Watch::start(limit, ids.len())?;
    let (mut left, mut over) = (ids, None);
    loop {
        let (mut unfinished, mut ended) = (Vec::new(), Vec::new());
        for id in left {
            match store.find(&id).await? {
                Some(job) if !job.status.is_terminal() => unfinished.push(job),
                found => ended.push((id, found)),
            }
        }
        watch.make_room(&unfinished, &ended);
        ended.iter().try_for_each(|(id, job)| printer.ended(id, job.as_ref()))?;
        let Some(first) = unfinished.first() else { return printer.finish() };
        if first.status == Status::Pending {
            watch.service = Service::of(&first.job_type, &daemons::running(store).await?);
        }
        // The jobs were read again after the end of the wait, so none is reported as unfinished that ended in time.
        if let Some(over) = over {
            printer.code = watch.give_up(over, &unfinished);
            return printer.finish();
        }
        over = watch.until_change(store, &unfinished).await?;
        left = unfinished.into_iter().map(|job| job.id).collect();
    }
}

/// Prints jobs as they end.
struct Printer {
    format: Format,
    is_one: bool,
    /// For one JSON document at the end.
    ended: Vec<Value>,
    /// The worst so far.
    code: Code,
}

impl Printer {
    /// `job` has ended; `None` if it was deleted.
    fn ended(&mut self, id: &Id, job: Option<&Job>) -> anyhow::Result<()> {
        let (message, code) = match job {
            None => (Some(format!("job {id} was deleted while it was awaited")), Code::NotFound),
            Some(Job { status: Status::Dead, error, .. }) => {
                let reason = error.as_deref().unwrap_or("no reason given");
                (Some(format!("job {id} is dead: {reason}")), Code::Died)
            }
            Some(Job { status: Status::Cancelled, .. }) => (Some(format!("job {id} was cancelled")), Code::Cancelled),
            Some(_) => (None, Code::Ok),
        };
        if severity(code) > severity(self.code) {
            self.code = code;
        }
        if let Some(message) = message {
            report_error(&message, None);
        }
        let Some(job) = job else { return Ok(()) };
        match self.format {
            Format::Table if !self.is_one => output::print(&format!("{id} {}", job.status)),
            Format::Table if job.status == Status::Completed => output::print(job.result.as_deref().unwrap_or("")),
            Format::Table => Ok(()),
            Format::Ndjson => output::one(self.format, &render::job(job), String::new),
            Format::Json => {
                self.ended.push(render::job(job));
                Ok(())
            }
        }
    }

    fn finish(self) -> anyhow::Result<Code> {
        match (self.format, self.is_one, self.ended.first()) {
            (Format::Json, true, Some(job)) => output::one(self.format, job, String::new)?,
            (Format::Json, false, _) => output::many(self.format, &self.ended, String::new)?,
            _ => {}
        }
        Ok(self.code)
    }
}

/// Which exit code wins if several jobs ended differently.
const fn severity(code: Code) -> u8 {
    match code {
        Code::Ok => 0,
        Code::Cancelled => 1,
        Code::Died => 2,
        _ => 3,
    }
}

/// Why the wait ended before the jobs did.
#[derive(Clone, Copy, Debug)]
enum Over {
    TimedOut,
    Interrupted,
}

struct Watch {
    started: Instant,
    limit: Option<Duration>,
    /// The jobs awaited at the start.
    count: usize,
    /// The line that shows the progress, and Ctrl-C, which has to remove it. Without a terminal, a signal ends the command.
    terminal: Option<(LiveLine, Signal)>,
    /// Whether a daemon will run the first unfinished job, if it is pending.
    service: Service,
    /// The last change of the queue that was seen.
    seen: ChangeCursor,
}

impl Watch {
    fn start(limit: Option<Duration>, count: usize) -> anyhow::Result<Self> {
        let terminal = LiveLine::on_stderr().map(|line| signal(SignalKind::interrupt()).map(|ctrl_c| (line, ctrl_c)));
        Ok(Self {
            started: Instant::now(),
            limit,
            count,
            terminal: terminal.transpose().context("cannot listen to signals")?,
            service: Service::Served,
            seen: ChangeCursor::default(),
        })
    }

    /// Returns when somebody has written to the queue, or why the wait is over.
    async fn until_change(&mut self, store: &dyn Store, unfinished: &[Job]) -> anyhow::Result<Option<Over>> {
        let mut drawn: Option<Instant> = None;
        loop {
            let left = self.limit.map(|limit| limit.saturating_sub(self.started.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(Some(Over::TimedOut));
            }
            if drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW) {
                self.draw(unfinished);
                drawn = Some(Instant::now());
            }
            let pause = left.map_or(DRAW, |left| left.min(DRAW));
            tokio::select! {
                change = store.change(self.seen, POLL, MAX_POLL) => {
                    self.seen = change?;
                    return Ok(None);
                }
                () = tokio::time::sleep(pause) => {}
                () = interrupt(&mut self.terminal) => return Ok(Some(Over::Interrupted)),
            }
        }
    }

    /// Reports the jobs that have not ended.
    fn give_up(&mut self, over: Over, unfinished: &[Job]) -> Code {
        self.terminal = None;
        for job in unfinished.iter().take(LISTED) {
            let (id, status) = (&job.id, job.status);
            let message = match over {
                Over::TimedOut => format!("job {id} is still {status} after {:.1?}", self.started.elapsed()),
                Over::Interrupted => format!("interrupted; job {id} is {status}"),
            };
            let is_first = unfinished.first().is_some_and(|first| first.id == *id);
            let pending = (is_first && status == Status::Pending).then_some(&self.service);
            let advice = pending.and_then(|service| service.advice(&job.job_type));
            let advice = advice.map_or(String::new(), |advice| format!("{advice}; "));
            report_error(&message, is_first.then_some(&*format!("{advice}`jobq show {id}` shows its state")));
        }
        let more = unfinished.len().saturating_sub(LISTED);
        if more > 0 {
            report_error(&format!("and {more} more jobs have not ended"), None);
        }
        match over {
            Over::TimedOut => Code::TimedOut,
            Over::Interrupted => Code::Interrupted,
        }
    }

    fn draw(&mut self, unfinished: &[Job]) {
        let (waited, Some(first)) = (when::coarse(self.started.elapsed()), unfinished.first()) else { return };
        if let Some((line, _)) = &mut self.terminal {
            let ended = self.count - unfinished.len();
            let count = if self.count > 1 { format!("{ended} of {} ended, ", self.count) } else { String::new() };
            line.draw(&format!("{count}{} {waited}: {}", first.job_type, activity(first, &self.service)));
        }
    }

    /// Removes the line before jobs are printed. It comes back while others are unfinished.
    fn make_room(&mut self, unfinished: &[Job], ended: &[(Id, Option<Job>)]) {
        if unfinished.is_empty() {
            self.terminal = None;
        } else if let (Some((line, _)), false) = (&mut self.terminal, ended.is_empty()) {
            line.clear();
        }
    }
}

/// Returns at a Ctrl-C, if there is a terminal.
async fn interrupt(terminal: &mut Option<(LiveLine, Signal)>) {
    match terminal {
        Some((_, ctrl_c)) => _ = ctrl_c.recv().await,
        None => std::future::pending().await,
    }
}

/// What the job is doing, in a few words.
fn activity(job: &Job, service: &Service) -> String {
    let due = when::of_job(job, Timestamp::now());
    match (job.status, &job.progress) {
        (Status::Running, Some((percent, message))) => format!("running, {percent}% {message}"),
        (Status::Failed, _) => {
            format!("attempt {} failed, again {due}: {}", job.attempts, job.error.as_deref().unwrap_or(""))
        }
        (Status::Pending, _) => match service.advice(&job.job_type) {
            Some(advice) => format!("pending, and {advice}"),
            None => format!("pending, {due}"),
        },
        (status, _) => status.to_string(),
    }
}
