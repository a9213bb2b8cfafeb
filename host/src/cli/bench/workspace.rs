//! Where a bench works: a directory of its own that is gone afterwards, also when Ctrl-C ends it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::exit::{Code, Failure};

/// How long what still runs may hold up the end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Where to work, for every bench.
#[derive(Debug, clap::Args)]
pub(super) struct WorkspaceArgs {
    /// Where to make the queue; it is deleted afterwards. Choose the disk you want to measure
    #[arg(long, default_value = ".")]
    dir: PathBuf,
}

impl WorkspaceArgs {
    /// Does `work` in a fresh directory below this one, on a runtime like the daemon's, until it is done or somebody
    /// asks to stop. Children that `work` has started must end when it is dropped.
    ///
    /// # Errors
    /// Those of `work`; [`Code::Interrupted`] for a Ctrl-C; or when there can be no directory.
    pub(super) fn run<T, W>(&self, work: impl FnOnce(PathBuf) -> W) -> anyhow::Result<T>
    where
        W: Future<Output = anyhow::Result<T>>,
    {
        let workspace = self.make()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime")?;
        let done = runtime.block_on(until_interrupted(work(workspace.path().to_owned())));
        runtime.shutdown_timeout(LAST_WORDS);
        let left = workspace.path().display().to_string();
        let closed = workspace.close().with_context(|| format!("cannot delete `{left}`"));
        let done = done?;
        closed.map(|()| done)
    }

    fn make(&self) -> anyhow::Result<TempDir> {
        let made = tempfile::Builder::new().prefix(".jobq-bench-").tempdir_in(&self.dir);
        made.map_err(|error| {
            let message = format!("cannot make a directory in `{}`: {error}", self.dir.display());
            Failure::usage(message).hint("`--dir` names a directory that can be written").into()
        })
    }
}

/// A fresh directory below `parent`.
pub(super) fn subdirectory(parent: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let dir = parent.join(name);
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
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
