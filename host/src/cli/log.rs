//! The log on stderr, as text or as JSON. The daemon's log never blocks: lines go into a buffer, a thread writes it out, and
//! lines that find the buffer full are dropped and counted.
//!
//! tracing-appender's writer is made for this, but it reports drops only when asked, waits up to a second at the end, and
//! then prints its errors to stdout, which is for data and may be the pipe that nobody reads.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Display;
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::ValueEnum;
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde_json::json;
use tracing::Level;
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, Targets};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::terminal;
use crate::queue::Timestamp;
use crate::sandbox::LOG_BOUNDS;

/// Bytes that may wait to be written.
const CAPACITY: usize = 1 << 20;

/// How long the process waits at its end for lines that aren't written yet.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(200);

/// The pause before the next write to a non-blocking stderr that would block.
const PAUSE: Duration = Duration::from_millis(20);

/// The buffer in front of stderr. Only the daemon has one.
static BUFFER: OnceLock<Buffer> = OnceLock::new();

/// How the lines on stderr look. Text if not set.
static FORMAT: OnceLock<LogFormat> = OnceLock::new();

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The flag of the commands that run jobs.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct LogArgs {
    /// How the log on stderr is written: text for people, or json, one object a line
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "FORMAT",
        env = "JOBQ_LOG_FORMAT",
        hide_env_values = true
    )]
    pub(super) log_format: LogFormat,
}

/// Starts the log of a command: warnings, written to stderr directly. `JOBQ_LOG` sets another level, or `target=level` pairs
/// separated by commas.
pub(super) fn start() {
    init("warn", LogFormat::Text, io::stderr);
}

/// Starts the log of the demo, whose jobs fail on purpose: errors only.
pub(super) fn start_for_demo(format: LogFormat) {
    init("error", format, io::stderr);
}

/// Starts the log of the daemon, which never blocks. Texts of [`say`] and panics go there too.
pub(super) fn start_for_daemon(format: LogFormat) {
    let buffer = match Buffer::start(io::stderr()) {
        Ok(buffer) => BUFFER.get_or_init(|| buffer),
        Err(error) => {
            init("jobq=info,warn", format, io::stderr);
            return tracing::warn!(
                "cannot start the thread that writes the log; a slow reader of it blocks the daemon: {error}"
            );
        }
    };
    // The hook of the standard library would block on stderr, in whichever thread panics.
    panic::set_hook(Box::new(log_panic));
    init("jobq=info,warn", format, move || buffer);
}

/// Writes a text to stderr. A closed stderr is no error.
pub(super) fn say(text: impl Display) {
    write(&line(Level::INFO, &text.to_string()));
}

/// The same for an error.
pub(super) fn say_error(text: impl Display) {
    write(&line(Level::ERROR, &text.to_string()));
}

/// Whether stderr gets JSON.
pub(super) fn is_json() -> bool {
    FORMAT.get() == Some(&LogFormat::Json)
}

/// Waits until everything is written, but not long if nobody reads it.
pub(super) fn finish() {
    if let Some(buffer) = BUFFER.get() {
        buffer.await_written(FLUSH_TIMEOUT);
    }
}

fn write(line: &str) {
    _ = match BUFFER.get() {
        Some(mut buffer) => buffer.write_all(line.as_bytes()),
        None => io::stderr().lock().write_all(line.as_bytes()),
    };
}

fn line(level: Level, text: &str) -> String {
    if is_json() {
        let timestamp = Timestamp::now().to_string();
        format!("{}\n", json!({ "timestamp": timestamp, "level": level.as_str(), "message": text }))
    } else {
        format!("{text}\n")
    }
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let (thread, backtrace) = (std::thread::current(), Backtrace::capture());
    let thread = thread.name().unwrap_or("without a name");
    match backtrace.status() {
        BacktraceStatus::Captured => say_error(format_args!("thread `{thread}` {panic}\n{backtrace}")),
        _ => say_error(format_args!("thread `{thread}` {panic}")),
    }
}

fn init<W>(default_level: &str, format: LogFormat, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    FORMAT.get_or_init(|| format);
    let asked = std::env::var("JOBQ_LOG").ok();
    let default = || default_level.parse::<Targets>().unwrap_or_default();
    let filter = match asked.as_deref().map(str::parse::<Targets>) {
        Some(Ok(filter)) => filter,
        Some(Err(error)) => {
            say(format!("warning: JOBQ_LOG is ignored: {error}; expected a filter such as `debug` or `jobq=debug`"));
            default()
        }
        None => default(),
    };
    // An event must pass both, so that no target in the filter overrides the bounds.
    let bounds = LOG_BOUNDS.join(",").parse::<Targets>().unwrap_or_default().with_default(LevelFilter::TRACE);
    let filter = filter.and(bounds);
    // A closed stderr must not end the daemon: tracing would report it on the same stderr, and panic.
    let log = fmt::layer().with_writer(writer).log_internal_errors(false);
    let registry = tracing_subscriber::registry();
    match format {
        LogFormat::Text => registry.with(log.with_ansi(terminal::has_colour(&io::stderr())).with_filter(filter)).init(),
        LogFormat::Json => {
            let json = log.json().flatten_event(true).with_current_span(false).with_span_list(false);
            registry.with(json.with_filter(filter)).init();
        }
    }
}

/// Lines that a thread writes out.
struct Buffer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines after those that wait, which found the buffer full.
    dropped: u64,
    writing: bool,
}

impl Buffer {
    fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Arc::clone(&shared);
        std::thread::Builder::new().name("log".into()).spawn(move || writer.write_out(out))?;
        Ok(Self(shared))
    }

    /// Returns when everything is written, or after `timeout`.
    fn await_written(&self, timeout: Duration) {
        let is_behind = |state: &mut State| state.writing || !state.waiting.is_empty();
        _ = self.0.changed.wait_while_for(&mut self.0.state(), is_behind, timeout);
    }
}

/// Takes one or more lines, as a whole or not at all. Never blocks.
impl Write for &Buffer {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let mut state = self.0.state();
        if state.dropped > 0 || state.waiting.len() + lines.len() > CAPACITY {
            state.dropped += 1;
        } else {
            state.waiting.extend_from_slice(lines);
        }
        self.0.changed.notify_all();
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Writes lines for as long as the process lives.
    fn write_out(&self, mut out: impl Write) {
        loop {
            let lines = self.next();
            write_all(&mut out, &lines);
            self.state().writing = false;
            self.changed.notify_all();
        }
    }

    /// Waits for lines and takes all of them. If lines were dropped after them, the last one is their count.
    fn next(&self) -> Vec<u8> {
        let nothing = |state: &mut State| state.waiting.is_empty() && state.dropped == 0;
        let mut state = self.state();
        self.changed.wait_while(&mut state, nothing);
        state.writing = true;
        let mut lines = std::mem::take(&mut state.waiting);
        if state.dropped > 0 {
            let dropped = std::mem::take(&mut state.dropped);
            let text = format!("{dropped} lines of the log were dropped: nobody read them in time");
            lines.extend(line(Level::WARN, &text).into_bytes());
        }
        lines
    }
}

/// Writes `bytes`. Gives up if the reader is gone.
fn write_all(out: &mut impl Write, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(written) if written > 0 => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            Ok(_) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
    use std::time::Instant;

    use super::*;

    /// A writer that blocks until the reader takes what was written.
    struct Slow(SyncSender<Vec<u8>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map(|()| bytes.len()).map_err(io::Error::other)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (Buffer, Receiver<Vec<u8>>) {
        let (written, reader) = sync_channel(0);
        (Buffer::start(Slow(written)).unwrap(), reader)
    }

    fn is_writing(buffer: &Buffer) -> bool {
        buffer.0.state().writing
    }

    #[test]
    fn lines_that_find_the_buffer_full_are_dropped_and_counted_in_their_place() {
        let (buffer, reader) = slow();
        let mut log = &buffer;
        log.write_all(b"first\n").unwrap();
        while !is_writing(&buffer) {
            std::thread::yield_now();
        }
        let line = [b'x'; 1_000];
        (0..2_000).for_each(|_| log.write_all(&line).unwrap());
        log.write_all(b"short\n").unwrap();
        assert_eq!(reader.recv().unwrap(), b"first\n");
        let kept = reader.recv().unwrap();
        let count = kept.strip_prefix(vec![b'x'; 1_048_000].as_slice()).expect("as much as fits");
        assert_eq!(str::from_utf8(count).unwrap(), "953 lines of the log were dropped: nobody read them in time\n");
        log.write_all(b"last\n").unwrap();
        assert_eq!(reader.recv().unwrap(), b"last\n");
    }

    #[test]
    fn the_end_waits_for_a_reader_and_not_for_one_that_does_not_read() {
        let (buffer, reader) = slow();
        let mut log = &buffer;
        log.write_all(b"line\n").unwrap();
        buffer.await_written(Duration::from_millis(20));
        assert!(is_writing(&buffer), "nobody has read it");
        let reading = std::thread::spawn(move || reader.recv().unwrap());
        let started = Instant::now();
        buffer.await_written(Duration::from_secs(100));
        assert!(started.elapsed() < Duration::from_secs(90) && !is_writing(&buffer));
        assert_eq!(reading.join().unwrap(), b"line\n");
    }

    #[test]
    fn a_closed_reader_ends_nothing() {
        let (buffer, reader) = slow();
        drop(reader);
        let mut log = &buffer;
        for _ in 0..3 {
            log.write_all(b"line\n").unwrap();
            buffer.await_written(Duration::from_secs(100));
            assert!(!is_writing(&buffer));
        }
    }
}
