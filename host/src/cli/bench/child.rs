//! Another process of this program: a daemon that is watched, or a client that is not the daemon.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::mpsc;

use super::vitals::Vitals;
use crate::cli::exit::{Code, Failure};

/// How long it may take to say what is expected of it, or to end.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// A line that it said on stderr, and when.
type Line = (Instant, String);

/// A running process; killed when this is dropped.
pub(super) struct Child {
    process: Process,
    lines: mpsc::UnboundedReceiver<Line>,
    said: Vec<String>,
    started: Instant,
}

impl Child {
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
        Ok(Self { process, lines, said: Vec::new(), started })
    }

    /// Waits for a line with `text`, and tells how long after its start it came.
    ///
    /// # Errors
    /// When it ends without.
    pub(super) async fn await_line(&mut self, text: &str) -> anyhow::Result<Duration> {
        let search = async {
            while let Some((at, line)) = self.lines.recv().await {
                let found = line.contains(text);
                self.said.push(line);
                if found {
                    return Some(at);
                }
            }
            None
        };
        match tokio::time::timeout(PATIENCE, search).await {
            Ok(Some(at)) => Ok(at - self.started),
            _ => Err(self.complaint(&format!("did not say `{text}`"))),
        }
    }

    /// What it has used so far.
    pub(super) fn vitals(&self) -> anyhow::Result<Vitals> {
        Vitals::of(self.process.id()).context("cannot look at another process of jobq")
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
        while started.elapsed() < PATIENCE {
            match self.process.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(self.failed(status)),
                None => tokio::time::sleep(LOOK).await,
            }
        }
        Err(self.complaint("did not end"))
    }

    fn failed(&mut self, status: ExitStatus) -> anyhow::Error {
        self.complaint(&format!("ended with {status}"))
    }

    /// With the last it said.
    fn complaint(&mut self, what: &str) -> anyhow::Error {
        while let Ok((_, line)) = self.lines.try_recv() {
            self.said.push(line);
        }
        let last = self.said.last().map_or_else(String::new, |line| format!("; the last it said was: {line}"));
        Failure::new(Code::Unexpected, format!("another process of jobq {what}{last}")).into()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // One that has ended already is only collected.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
