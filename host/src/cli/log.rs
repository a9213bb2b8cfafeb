//! The log on stderr. That of the daemon blocks nobody: lines go into a buffer that a thread of its own writes out, and
//! what finds it full is dropped and counted.
//!
//! tracing-appender's writer is made for this, but tells of drops only to who asks, waits up to a second at the end,
//! and then complains on stdout, which is for data and may be the very pipe that nobody reads.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Display;
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tracing_subscriber::filter::{FilterExt as _, LevelFilter, Targets};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::terminal;
use crate::sandbox::LOG_BOUNDS;

/// Bytes that may wait to be written.
const CAPACITY: usize = 1 << 20;

/// How long the end of the process waits for what is not written yet.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How long a stderr that would block, where it is set not to, is left alone before the next try.
const PAUSE: Duration = Duration::from_millis(20);

/// The buffer in front of stderr; none where whoever speaks can wait.
static BUFFER: OnceLock<Buffer> = OnceLock::new();

/// Starts the log of a command: warnings, straight to stderr. `JOBQ_LOG` sets what of it, as a level or as `target=level`, separated by commas.
pub(super) fn start() {
    init("warn", io::stderr);
}

/// Starts the log of the daemon, which blocks nobody; all that [`say`] is given goes there too, and so do panics.
pub(super) fn start_for_daemon() {
    let buffer = match Buffer::start(io::stderr()) {
        Ok(buffer) => BUFFER.get_or_init(|| buffer),
        Err(error) => {
            start();
            return tracing::warn!(
                "whoever does not read this log holds up the daemon: no thread to write it: {error}"
            );
        }
    };
    // The hook of the standard library would wait for stderr, on whichever thread it is.
    panic::set_hook(Box::new(tell_panic));
    init("jobq=info,warn", move || buffer);
}

/// Says something to whoever is at the other end of stderr; nobody there is no error.
pub(super) fn say(text: impl Display) {
    _ = match BUFFER.get() {
        Some(mut buffer) => buffer.write_all(format!("{text}\n").as_bytes()),
        None => writeln!(io::stderr().lock(), "{text}"),
    };
}

/// Waits for what is not written yet, as long as somebody reads it.
pub(super) fn finish() {
    if let Some(buffer) = BUFFER.get() {
        buffer.await_written(LAST_WORDS);
    }
}

fn tell_panic(panic: &PanicHookInfo<'_>) {
    let (thread, backtrace) = (std::thread::current(), Backtrace::capture());
    let thread = thread.name().unwrap_or("without a name");
    match backtrace.status() {
        BacktraceStatus::Captured => say(format_args!("thread `{thread}` {panic}\n{backtrace}")),
        _ => say(format_args!("thread `{thread}` {panic}")),
    }
}

fn init<W>(default_level: &str, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let asked = std::env::var("JOBQ_LOG").ok();
    let default = || default_level.parse::<Targets>().unwrap_or_default();
    let filter = match asked.as_deref().map(str::parse::<Targets>) {
        Some(Ok(filter)) => filter,
        Some(Err(error)) => {
            let advice = "expected a filter such as `debug` or `jobq=debug`";
            say(format!("warning: JOBQ_LOG is ignored: {error}; {advice}"));
            default()
        }
        None => default(),
    };
    // Both must agree, so that no more specific target in the filter gets around the bounds.
    let bounds = LOG_BOUNDS.join(",").parse::<Targets>().unwrap_or_default().with_default(LevelFilter::TRACE);
    let colour = terminal::has_colour(&io::stderr());
    // A log that nobody reads any more must not end the daemon: tracing would say so on the same stderr, and panic.
    let log = fmt::layer().with_writer(writer).with_ansi(colour).log_internal_errors(false);
    tracing_subscriber::registry().with(log.with_filter(filter.and(bounds))).init();
}

/// Lines on their way to a thread that writes them.
struct Buffer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines that came after those that wait, and found no room.
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

    /// Returns when all is written, or after `patience`.
    fn await_written(&self, patience: Duration) {
        let is_behind = |state: &mut State| state.writing || !state.waiting.is_empty();
        _ = self.0.changed.wait_timeout_while(self.0.state(), patience, is_behind);
    }
}

/// Takes one line, or several, whole or not at all; never waits for whoever reads them.
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what comes, for as long as the process lives.
    fn write_out(&self, mut out: impl Write) {
        loop {
            let lines = self.next();
            patiently(&mut out, &lines);
            self.state().writing = false;
            self.changed.notify_all();
        }
    }

    /// All lines that wait, as soon as there are any; those that were dropped behind them are counted in the last.
    fn next(&self) -> Vec<u8> {
        let nothing = |state: &mut State| state.waiting.is_empty() && state.dropped == 0;
        let mut state = self.changed.wait_while(self.state(), nothing).unwrap_or_else(PoisonError::into_inner);
        state.writing = true;
        let mut lines = std::mem::take(&mut state.waiting);
        if state.dropped > 0 {
            let dropped = std::mem::take(&mut state.dropped);
            lines.extend(format!("{dropped} lines of the log were dropped: nobody read them in time\n").into_bytes());
        }
        lines
    }
}

/// Writes `bytes`, unless nobody is there to read them any more.
fn patiently(out: &mut impl Write, mut bytes: &[u8]) {
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

    /// A reader that takes nothing until it is asked.
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
    fn what_finds_no_room_is_dropped_and_counted_where_it_would_have_stood() {
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
        let told = kept.strip_prefix(vec![b'x'; 1_048_000].as_slice()).expect("as much as there is room for");
        assert_eq!(str::from_utf8(told).unwrap(), "953 lines of the log were dropped: nobody read them in time\n");
        log.write_all(b"last\n").unwrap();
        assert_eq!(reader.recv().unwrap(), b"last\n");
    }

    #[test]
    fn the_end_waits_for_what_is_read_and_not_for_what_is_not() {
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
    fn a_reader_that_is_gone_ends_nothing() {
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
