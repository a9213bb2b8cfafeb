//! `jobq run`: the daemon.

use crate::queue::{self, OpenMode};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::check::{missing_directories, unserved_types};
use super::context::{Context, store_options};
use super::exit::Code;
use super::output;
use crate::config::Settings;
use crate::plugins::{Registry, State};
use crate::sandbox::{self, Sandbox};
use crate::worker::{self, PluginHandlers, Pool, Setup};

/// How long closing the database may take at the end.
const LAST_CHECKPOINT: Duration = Duration::from_millis(200);

/// Examples for `--help`.
pub(super) const HELP: &str = "\
SIGTERM and SIGINT stop it, a second one at once; SIGHUP reads the settings again.
It logs on stderr; JOBQ_LOG=debug, or JOBQ_LOG=jobq::worker=debug, shows more.

Examples:
  jobq run
  jobq run --config /etc/jobq/jobq.toml
  JOBQ_WORKER__CONCURRENCY=8 jobq run";

#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// The runtime of the daemon, which listens to signals.
pub(super) struct Listening {
    runtime: Runtime,
    signals: Signals,
}

impl Listening {
    pub(super) fn start() -> anyhow::Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
        let signals = {
            let _entered = runtime.enter();
            Signals::new()?
        };
        Ok(Self { runtime, signals })
    }
}

pub(super) fn run(listening: Listening, context: &Context) -> anyhow::Result<Code> {
    let Listening { runtime, signals } = listening;
    let served = runtime.block_on(serve(signals, context));
    // A guest's read from a dead file system must not hold up the end: everything is on record by now.
    runtime.shutdown_background();
    served.map(|()| Code::Ok)
}

async fn serve(mut signals: Signals, context: &Context) -> anyhow::Result<()> {
    let Some(settings) = read(context, &mut signals).await else { return Ok(()) };
    let settings = settings?;
    warn_of(&settings);
    let options = store_options(&settings, None);
    let opening = tokio::task::spawn_blocking(|| queue::open(options, OpenMode::Create));
    let store = tokio::select! {
        opened = opening => opened.context("opening the database failed")??,
        () = signals.stop() => return Ok(()),
    };
    let options =
        sandbox::SandboxOptions { slots: settings.worker.concurrency.get(), max_memory: settings.max_memory() };
    let sandbox = Arc::new(Sandbox::new(options)?);
    let registry = Registry::start(settings.plugins.clone(), sandbox.clone())?;
    let pool = Pool::start(Setup {
        store: store.clone(),
        handlers: Arc::new(PluginHandlers::new(sandbox, registry.clone())),
        options: settings.worker.clone(),
    });
    say_ready(&settings, &registry);
    let mut daemon = Daemon { current: settings.clone(), started_with: settings, registry, pool };
    let gone = loop {
        tokio::select! {
            () = daemon.pool.gone() => break true,
            wish = signals.next() => match wish {
                Wish::Stop => break false,
                Wish::Reload => match read(context, &mut signals).await {
                    Some(read) => daemon.reload(read),
                    None => break false,
                },
            },
        }
    };
    let Daemon { current, pool, .. } = daemon;
    let fatal = pool.fatal_error().filter(|_| gone);
    tracing::info!(
        "stopping; running attempts have {:?} to end, a second signal stops them at once",
        current.worker.shutdown_grace
    );
    let at_once = CancellationToken::new();
    tokio::spawn({
        let at_once = at_once.clone();
        async move {
            signals.stop().await;
            at_once.cancel();
        }
    });
    pool.stop(at_once).await;
    if tokio::time::timeout(LAST_CHECKPOINT, store.close()).await.is_err() {
        tracing::warn!("the database could not be closed in time; nothing is lost");
    }
    tracing::info!("stopped");
    if let Some(error) = fatal {
        return Err(anyhow::Error::from(error));
    }
    Ok(())
}

/// Reads the settings, as long as nobody asks to stop: a dead file system may take its time.
async fn read(context: &Context, signals: &mut Signals) -> Option<anyhow::Result<Settings>> {
    let context = context.clone();
    let reading = tokio::task::spawn_blocking(move || context.load_to_run());
    tokio::select! {
        read = reading => Some(read.context("reading the settings failed").and_then(|settings| Ok(settings?))),
        () = signals.stop() => None,
    }
}

/// What runs, and what it was told.
struct Daemon {
    started_with: Settings,
    /// The settings that hold.
    current: Settings,
    registry: Arc<Registry>,
    pool: Pool,
}

impl Daemon {
    /// Takes new settings, if they are any good.
    fn reload(&mut self, read: anyhow::Result<Settings>) {
        match read {
            Ok(Settings { file: None, .. }) if let Some(file) = &self.current.file => {
                let file = file.display();
                tracing::error!("nothing was changed, for `{file}` is gone; a restart without it takes the defaults");
            }
            Ok(new) => self.take(new),
            Err(error) => tracing::error!("nothing was changed, for the settings have problems:\n{error:#}"),
        }
    }

    /// Takes new settings, as far as what was made at the start allows it.
    fn take(&mut self, new: Settings) {
        for key in self.started_with.needs_restart(&new) {
            tracing::warn!("`{key}` has changed and is taken only by a restart");
        }
        warn_of(&new);
        self.registry.reconfigure(new.plugins.clone());
        let concurrency = new.worker.concurrency.min(self.started_with.worker.concurrency);
        self.pool.reconfigure(worker::WorkerOptions { concurrency, ..new.worker.clone() });
        self.current = new;
        tracing::info!("settings reloaded");
    }
}

/// Says what is worth knowing about settings that are taken.
fn warn_of(settings: &Settings) {
    settings.notes.iter().for_each(|note| tracing::warn!("{note}"));
    unserved_types(settings).iter().for_each(|(message, cure)| tracing::warn!("{message}; {cure}"));
    if !settings.plugins.dir.is_dir() {
        tracing::warn!("there is no plugin directory `{}` yet", settings.plugins.dir.display());
    }
    missing_directories(settings).iter().for_each(|(_, message)| tracing::warn!("{message}"));
}

fn say_ready(settings: &Settings, registry: &Registry) {
    let entries = registry.entries();
    let count = |wanted: fn(&State) -> bool| entries.values().filter(|entry| wanted(&entry.state)).count();
    output::talk(format!(
        "jobq is ready: database {}, {} slots, plugins in {}: {} serving, {} compiling, {} broken, {} missing",
        settings.queue.database.display(),
        settings.worker.concurrency,
        settings.plugins.dir.display(),
        count(|state| *state == State::Serving),
        count(|state| *state == State::Compiling),
        count(|state| matches!(state, State::Broken(_))),
        count(|state| *state == State::Missing),
    ));
}

/// What a signal asks for.
enum Wish {
    Stop,
    Reload,
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Returns at the next request to stop. One to reload waits until [`next`](Self::next) is asked.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.terminate.recv() => Wish::Stop,
            _ = self.hangup.recv() => Wish::Reload,
        }
    }
}
