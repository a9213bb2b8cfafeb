//! Another process of this program: a daemon that is watched, or a client that is not the daemon.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::mpsc;

use super::process_usage::ProcessUsage;
use crate::cli::exit::{Code, Failure};

/// How long it may take to say what is expected of it, or to end.
const TIMEOUT: Duration = Duration::from_secs(300);

/// How often it is looked whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A line that it said on stderr, and when.
type Line = (Instant, String);

/// A running process; killed when this is dropped.
pub(super) struct ChildProcess {
    process: Process,
    lines: mpsc::UnboundedReceiver<Line>,
    /// The last that was heard of it.
    last: String,
    started: Instant,
}

impl ChildProcess {
    /// Runs `jobq` with `args` in `dir`, with no settings but those of that directory.
    pub(super) fn start(dir: &Path, args: &[impl AsRef<OsStr>]) -> anyhow::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("jobq").args(args).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"JOBQ_")) {
            command.env_remove(name);
        }
        let started = Instant::now();
        let mut process = command.stderr(Stdio::piped()).spawn().context("cannot start another process of jobq")?;
        let stderr = process.stderr.take().context("a process without stderr")?;
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).all(|line| sender.send((Instant::now(), line)).is_ok())
        });
        Ok(Self { process, lines, last: String::new(), started })
    }

    /// Waits until it has said each of these texts so many times, and tells how long after its start each was complete.
    ///
    /// # Errors
    /// When it ends before.
    pub(super) async fn await_lines<const N: usize>(
        &mut self,
        wanted: [(&str, usize); N],
    ) -> anyhow::Result<[Duration; N]> {
        let (mut left, mut times) = (wanted, [Duration::ZERO; N]);
        let listen = async {
            while left.iter().any(|(_, count)| *count > 0) {
                let (at, line) = self.lines.recv().await?;
                for ((text, count), time) in left.iter_mut().zip(&mut times) {
                    if *count > 0 && line.contains(*text) {
                        *count -= 1;
                        *time = at - self.started;
                    }
                }
                self.last = line;
            }
            Some(())
        };
        match tokio::time::timeout(TIMEOUT, listen).await {
            Ok(Some(())) => Ok(times),
            _ => {
                let missing = left.iter().find(|(_, count)| *count > 0).map_or("", |(text, _)| text);
                Err(self.failure(&format!("did not say `{missing}`")))
            }
        }
    }

    /// What it has used so far.
    pub(super) fn usage(&self) -> anyhow::Result<ProcessUsage> {
        ProcessUsage::of(self.process.id()).context("cannot look at another process of jobq")
    }

    /// Asks it to stop and waits until it has.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        }
        self.end().await
    }

    /// Waits until it has ended well.
    pub(super) async fn end(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        while started.elapsed() < TIMEOUT {
            match self.process.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(self.failure(&format!("ended with {status}"))),
                None => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
        Err(self.failure("did not end"))
    }

    fn failure(&mut self, what: &str) -> anyhow::Error {
        while let Ok((_, line)) = self.lines.try_recv() {
            self.last = line;
        }
        let last = if self.last.is_empty() { "nothing" } else { &self.last };
        let message = format!("another process of jobq {what}; the last it said was: {last}");
        Failure::new(Code::Unexpected, message).into()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // One that has ended already is only collected.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
