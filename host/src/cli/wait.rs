//! `enqueue --wait`: until the job has ended, with a line on the terminal that tells how far it is.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::daemons::{self, Service};
use super::exit::{Code, tell};
use super::output;
use super::terminal::LiveLine;
use super::when;
use crate::queue::{ChangeCursor, Id, Job, Status, Store, Timestamp};

/// How often a wait looks whether somebody has written.
const LOOK: Duration = Duration::from_millis(20);

/// The same where the system tells of writes.
const NET: Duration = Duration::from_secs(1);

/// How often the line on the terminal is drawn anew.
const DRAW: Duration = Duration::from_millis(100);

/// Waits until the job has ended; the exit code tells how.
pub(super) async fn await_end(store: &dyn Store, id: &Id, limit: Option<Duration>) -> anyhow::Result<Code> {
    let terminal = LiveLine::on_stderr().map(|line| signal(SignalKind::interrupt()).map(|ctrl_c| (line, ctrl_c)));
    let terminal = terminal.transpose().context("cannot listen to signals")?;
    let mut watch =
        Watch { started: Instant::now(), limit, terminal, service: Service::Served, seen: ChangeCursor::default() };
    let mut over = None;
    loop {
        let job = store.find(id).await?.with_context(|| format!("job {id} was deleted while it was awaited"))?;
        if job.status.is_terminal() {
            drop(watch);
            return end_of(&job);
        }
        if job.status == Status::Pending {
            watch.service = Service::of(&job.job_type, &daemons::running(store).await?);
        }
        // The last look came after the limit: what ended before it is not told as going on.
        if let Some(over) = over {
            return Ok(watch.give_up(over, &job));
        }
        over = watch.until_change(store, &job).await?;
    }
}

fn end_of(job: &Job) -> anyhow::Result<Code> {
    let id = &job.id;
    match job.status {
        Status::Dead => {
            let reason = job.error.as_deref().unwrap_or("no reason given");
            tell(&format!("job {id} is dead: {reason}"), None);
            Ok(Code::Died)
        }
        Status::Cancelled => {
            tell(&format!("job {id} was cancelled"), None);
            Ok(Code::Cancelled)
        }
        _ => output::print(job.result.as_deref().unwrap_or("")).map(|()| Code::Ok),
    }
}

/// Why nobody waits any longer.
#[derive(Clone, Copy, Debug)]
enum Over {
    TimedOut,
    Interrupted,
}

struct Watch {
    started: Instant,
    limit: Option<Duration>,
    /// The line that tells how far the job is, and Ctrl-C, which has to take it away. Elsewhere a signal ends the command at once.
    terminal: Option<(LiveLine, Signal)>,
    /// Whether a daemon is there to run the job while it is pending.
    service: Service,
    /// The last change of the queue that was looked at.
    seen: ChangeCursor,
}

impl Watch {
    /// Returns when somebody has written to the queue, or when the wait is over before.
    async fn until_change(&mut self, store: &dyn Store, job: &Job) -> anyhow::Result<Option<Over>> {
        let mut drawn: Option<Instant> = None;
        loop {
            let left = self.limit.map(|limit| limit.saturating_sub(self.started.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(Some(Over::TimedOut));
            }
            if drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW) {
                self.draw(job);
                drawn = Some(Instant::now());
            }
            let pause = left.map_or(DRAW, |left| left.min(DRAW));
            tokio::select! {
                change = store.change(self.seen, LOOK, NET) => {
                    self.seen = change?;
                    return Ok(None);
                }
                () = tokio::time::sleep(pause) => {}
                () = interrupt(&mut self.terminal) => return Ok(Some(Over::Interrupted)),
            }
        }
    }

    fn give_up(&mut self, over: Over, job: &Job) -> Code {
        self.terminal = None;
        let (id, status) = (&job.id, job.status);
        let (told, code) = match over {
            Over::TimedOut => {
                (format!("job {id} is still {status} after {:.1?}", self.started.elapsed()), Code::TimedOut)
            }
            Over::Interrupted => (format!("interrupted; job {id} is {status}"), Code::Interrupted),
        };
        let pending = (job.status == Status::Pending).then_some(&self.service);
        let advice = pending.and_then(|service| service.advice(&job.job_type));
        let goes_on = advice.unwrap_or_else(|| "it goes on".to_owned());
        tell(&told, Some(&format!("{goes_on}; `jobq show {id}` tells what became of it")));
        code
    }

    fn draw(&mut self, job: &Job) {
        let waited = when::coarse(self.started.elapsed());
        if let Some((line, _)) = &mut self.terminal {
            line.draw(&format!("{} {waited}: {}", job.job_type, doing(job, &self.service)));
        }
    }
}

/// Returns at a Ctrl-C that is listened to.
async fn interrupt(terminal: &mut Option<(LiveLine, Signal)>) {
    match terminal {
        Some((_, ctrl_c)) => _ = ctrl_c.recv().await,
        None => std::future::pending().await,
    }
}

/// What the job is doing, in a few words.
fn doing(job: &Job, service: &Service) -> String {
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
