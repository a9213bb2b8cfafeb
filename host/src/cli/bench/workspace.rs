//! A temporary directory for one benchmark, deleted afterwards, also after Ctrl-C.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::exit::{Code, Failure};

/// How long tasks that still run may delay the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The `--dir` option of every benchmark.
#[derive(Debug, clap::Args)]
pub(super) struct WorkspaceArgs {
    /// Where to create the temporary queue. Choose a directory on the disk you want to measure
    #[arg(long, default_value = ".")]
    dir: PathBuf,
}

impl WorkspaceArgs {
    /// Runs `work` in a fresh directory below `--dir`, on a runtime like the daemon's, until it ends or a signal asks to stop.
    /// Dropping the future must end all child processes that it started.
    ///
    /// # Errors
    /// Those of `work`, [`Code::Interrupted`] after a signal, or when the directory cannot be created.
    pub(super) fn run<T, W>(&self, work: impl FnOnce(PathBuf) -> W) -> anyhow::Result<T>
    where
        W: Future<Output = anyhow::Result<T>>,
    {
        let workspace = self.create()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime")?;
        let done = runtime.block_on(until_interrupted(work(workspace.path().to_owned())));
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        let left = workspace.path().display().to_string();
        let closed = workspace.close().with_context(|| format!("cannot delete `{left}`"));
        let done = done?;
        closed.map(|()| done)
    }

    fn create(&self) -> anyhow::Result<TempDir> {
        let made = tempfile::Builder::new().prefix(".jobq-bench-").tempdir_in(&self.dir);
        made.map_err(|error| {
            let message = format!("cannot create a directory in `{}`: {error}", self.dir.display());
            Failure::usage(message).hint("choose a writable directory with `--dir`").into()
        })
    }
}

/// Creates a directory below `parent`.
pub(super) fn subdirectory(parent: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let dir = parent.join(name);
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot create `{}`", dir.display()))?;
    Ok(dir)
}

async fn until_interrupted<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stopped = || Err(Failure::new(Code::Interrupted, "interrupted: nothing was measured").into());
    tokio::select! {
        done = work => done,
        _ = interrupt.recv() => stopped(),
        _ = terminate.recv() => stopped(),
    }
}
