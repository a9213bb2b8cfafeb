//! `jobq logs ID`: what the attempts of a job have written.

use std::time::Duration;

use super::context::{Context, job_id, no_such_job};
use super::exit::{Code, Failure};
use super::output::{self, Format, cell, talk};
use super::render;
use crate::queue::{ChangeCursor, Id, Job, LogLine, OpenMode, Status, Store, StoreError, Timestamp};

/// How often `--follow` looks for new lines.
const LOOK: Duration = Duration::from_millis(200);

/// The same where the system tells of writes.
const NET: Duration = Duration::from_secs(1);

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Examples:
  jobq logs 0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10
  jobq logs -f ID                          go on until the job has ended
  jobq logs ID -o ndjson | jq 'select(.level == \"error\")'";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The id of the job, or its beginning where no other id has the same
    #[arg(value_parser = Id::parse)]
    id: Id,
    /// Go on until the job has ended, through all of its attempts
    #[arg(short, long)]
    follow: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let format = context.format();
    if args.follow && format == Format::Json {
        let failure = Failure::usage("`--follow` does not end in one JSON document");
        return Err(failure.hint("`-o ndjson` prints an object a line").into());
    }
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    context.block_on(async {
        let id = job_id(&*store, &args.id).await?;
        // The job first: what it logged before it ended is there once it has.
        let mut job = store.find(&id).await?.ok_or_else(|| no_such_job(&id))?;
        let mut reader = Reader::default();
        let lines = reader.next(&*store, &id).await?;
        if lines.is_empty() && !args.follow && format == Format::Table {
            talk(format!("job {} is {} and has logged nothing", job.id, job.status));
        }
        print(&lines, format, args.follow)?;
        if lines.is_empty() && args.follow && format == Format::Table {
            talk(format!("-- the job is {}", job.status));
        }
        let mut seen = ChangeCursor::default();
        while args.follow && !job.status.is_terminal() {
            seen = store.change(seen, LOOK, NET).await?;
            let now = store.find(&id).await?.ok_or_else(|| no_such_job(&id))?;
            print(&reader.next(&*store, &id).await?, format, true)?;
            if format == Format::Table {
                tell_change(&job, &now);
            }
            job = now;
        }
        Ok(Code::Ok)
    })
}

fn print(lines: &[LogLine], format: Format, follow: bool) -> anyhow::Result<()> {
    if lines.is_empty() && (follow || format != Format::Json) {
        return Ok(());
    }
    let objects: Vec<_> = lines.iter().map(render::log_line).collect();
    output::many(format, &objects, || lines.iter().map(render::log_text).collect::<Vec<_>>().join("\n"))
}

/// Says between the lines what has become of the job.
fn tell_change(before: &Job, job: &Job) {
    if (before.status, before.lease) == (job.status, job.lease) {
        return;
    }
    let error = job.error.as_deref().map_or(String::new(), |error| format!(": {}", cell(error, 200)));
    let delay = humantime::format_duration(Duration::from_secs(job.scheduled_at.since(Timestamp::now()).as_secs()));
    match job.status {
        Status::Running => talk(format!("-- attempt {} is running", job.attempts.saturating_add(1))),
        Status::Failed => talk(format!("-- attempt {} failed{error}; the next one is due in {delay}", job.attempts)),
        Status::Pending => talk(format!("-- the job waits again and is due in {delay}")),
        Status::Dead => talk(format!("-- the job is dead{error}")),
        Status::Completed | Status::Cancelled => talk(format!("-- the job is {}", job.status)),
    }
}

/// Reads on where it has stopped. The store forgets the oldest attempts of a job with many, whole attempts at a time, so a
/// mere number of lines is no place to come back to.
#[derive(Debug, Default)]
struct Reader {
    /// Lines that were read and are still kept.
    seen: usize,
    last: Option<LogLine>,
    /// Lines read of the attempt of the last one.
    of_last: usize,
}

impl Reader {
    async fn next(&mut self, store: &dyn Store, id: &Id) -> Result<Vec<LogLine>, StoreError> {
        let mut lines = store.logs(id, self.seen.saturating_sub(1)).await?;
        if lines.first() == self.last.as_ref() || self.last.is_none() {
            lines.drain(..self.seen.min(1));
        } else {
            lines = store.logs(id, 0).await?;
            self.seen = self.forget_known(&mut lines);
        }
        self.take(&lines);
        Ok(lines)
    }

    /// Drops the lines that were read before, and tells how many those are.
    fn forget_known(&self, lines: &mut Vec<LogLine>) -> usize {
        let lease = self.last.as_ref().map_or(i64::MIN, |line| line.lease);
        let older = lines.iter().take_while(|line| line.lease < lease).count();
        let same = lines[older..].iter().take_while(|line| line.lease == lease).count();
        let known = older + same.min(self.of_last);
        lines.drain(..known);
        known
    }

    fn take(&mut self, lines: &[LogLine]) {
        self.seen += lines.len();
        let Some(last) = lines.last() else { return };
        let of_last = lines.iter().filter(|line| line.lease == last.lease).count();
        let goes_on = self.last.as_ref().is_some_and(|before| before.lease == last.lease);
        self.of_last = if goes_on { self.of_last + of_last } else { of_last };
        self.last = Some(last.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::LogSource;

    fn line(lease: i64, message: &str) -> LogLine {
        let (time, message) = (Timestamp::from_millis(0), message.to_owned());
        LogLine { attempt: 1, lease, time, source: LogSource::Log, level: None, message }
    }

    #[test]
    fn a_reader_finds_its_place_again_when_attempts_were_forgotten() {
        let mut reader = Reader::default();
        reader.take(&[line(1, "a"), line(2, "b"), line(2, "b")]);
        let mut kept = vec![line(2, "b"), line(2, "b"), line(2, "b"), line(3, "c")];
        assert_eq!(reader.forget_known(&mut kept), 2);
        assert_eq!(kept, [line(2, "b"), line(3, "c")]);
        let mut kept = vec![line(3, "c")];
        assert_eq!(reader.forget_known(&mut kept), 0);
        assert_eq!(kept, [line(3, "c")]);
    }

    #[test]
    fn a_reader_counts_the_lines_of_its_last_attempt() {
        let mut reader = Reader::default();
        reader.take(&[line(1, "a"), line(1, "b")]);
        reader.take(&[line(1, "c")]);
        assert_eq!((reader.seen, reader.of_last), (3, 3));
        reader.take(&[line(2, "d")]);
        assert_eq!((reader.seen, reader.of_last), (4, 1));
    }
}
