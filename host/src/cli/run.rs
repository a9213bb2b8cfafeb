//! `jobq run`: the daemon.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::check::{missing_directories, unserved_types};
use super::context::{Context, store_options};
use super::exit::Code;
use super::log::LogArgs;
use super::output;
use crate::config::Settings;
use crate::plugins::{Entry, Registry, State};
use crate::queue::{self, OpenMode, Status, Store};
use crate::sandbox::{self, Sandbox};
use crate::worker::{self, PluginHandlers, Pool, Setup};

/// How long closing the database may take at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// The most types named in the line that says that the daemon is ready.
const LISTED_TYPES: usize = 20;

/// Farther ahead than any job can be due.
const FOREVER: Duration = Duration::from_secs(1100 * 366 * 86_400);

/// Examples for `--help`.
pub(super) const HELP: &str = "\
SIGTERM and SIGINT stop it: running attempts have `worker.shutdown_grace` to end. A second signal
stops them at once. SIGHUP reads the settings again.

The log goes to stderr: a warning for each dead job, an info line for each failed attempt. At most
10 such lines a second for each type; the rest is counted. JOBQ_LOG=debug shows more, and
JOBQ_LOG=jobq::worker=debug more about one part.

With `--drain`, it waits until all plugins are compiled, runs what is due, and exits once no job of
a type that it serves is due and nothing runs. Follow-ups and retries without delay are run too.
Jobs due later, such as retries after a backoff, and jobs that another daemon runs are left.

With `--log-format json`, each line is an object with timestamp (RFC 3339), level and message, and
for jobs these fields, as far as they apply: job, type, attempt, outcome, digest (its first 12
characters), error (its first line), retry_at, due_at, worker, status, jobs (a count).

Examples:
  jobq run
  jobq run --config /etc/jobq/jobq.toml
  jobq run --drain                                 run what is due, then exit: for tests and cron
  JOBQ_WORKER__CONCURRENCY=8 jobq run --log-format json";

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Exit once nothing is due and nothing runs
    #[arg(long)]
    drain: bool,
    #[command(flatten)]
    pub(super) log: LogArgs,
}

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

pub(super) fn run(args: &Args, listening: Listening, context: &Context) -> anyhow::Result<Code> {
    let Listening { runtime, signals } = listening;
    let served = runtime.block_on(serve(args, signals, context));
    // A guest that reads from a dead file system must not block the exit. Everything is recorded by now.
    runtime.shutdown_background();
    served.map(|()| Code::Ok)
}

async fn serve(args: &Args, mut signals: Signals, context: &Context) -> anyhow::Result<()> {
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
    let drained = drained(args.drain, registry.clone(), &pool);
    tokio::pin!(drained);
    let mut daemon = Daemon { current: settings.clone(), started_with: settings, registry, pool };
    let end = loop {
        tokio::select! {
            () = daemon.pool.gone() => break End::QueueGone,
            () = &mut drained => break End::Drained,
            request = signals.next() => match request {
                Request::Stop => break End::Stopped,
                Request::Reload => match read(context, &mut signals).await {
                    Some(read) => daemon.reload(read),
                    None => break End::Stopped,
                },
            },
        }
    };
    let Daemon { current, pool, .. } = daemon;
    let fatal = pool.fatal_error().filter(|_| end == End::QueueGone);
    match end {
        End::Drained => say_drained(&*store).await,
        End::Stopped | End::QueueGone => tracing::info!(
            "stopping; running attempts have {:?} to end, a second signal stops them at once",
            current.worker.shutdown_grace
        ),
    }
    let at_once = CancellationToken::new();
    tokio::spawn({
        let at_once = at_once.clone();
        async move {
            signals.stop().await;
            at_once.cancel();
        }
    });
    pool.stop(at_once).await;
    if tokio::time::timeout(CLOSE_TIMEOUT, store.close()).await.is_err() {
        tracing::warn!("the database could not be closed in time; nothing is lost");
    }
    tracing::info!("stopped");
    if let Some(error) = fatal {
        return Err(anyhow::Error::from(error));
    }
    Ok(())
}

/// Why the daemon ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stopped,
    Drained,
    QueueGone,
}

/// With `--drain`, returns when every plugin is compiled and nothing is due any more. Otherwise never.
fn drained(is_asked: bool, registry: Arc<Registry>, pool: &Pool) -> impl Future<Output = ()> + use<> {
    let drained = pool.drained();
    async move {
        if !is_asked {
            std::future::pending::<()>().await;
        }
        let mut changes = registry.changes();
        let compiles = || registry.entries().values().any(|it| it.state == State::Compiling && it.version.is_none());
        while compiles() && changes.changed().await.is_ok() {}
        drained.await;
    }
}

/// Says what a drain has left.
async fn say_drained(store: &dyn Store) {
    let left = async {
        let counts = store.counts().await?;
        let waiting = [Status::Pending, Status::Failed].iter().filter_map(|status| counts.get(status)).sum::<u64>();
        Ok::<_, queue::StoreError>((waiting, store.due_within(FOREVER).await?))
    };
    let left = match left.await {
        Ok((waiting, later)) => {
            let unserved = waiting.saturating_sub(later);
            let unserved = (unserved > 0).then(|| format!("{unserved} due of types that it does not serve"));
            let later = (later > 0).then(|| format!("{later} due later"));
            [later, unserved].into_iter().flatten().collect::<Vec<_>>()
        }
        Err(error) => vec![format!("cannot count the jobs that are left: {error}")],
    };
    let left = if left.is_empty() { "no job is left".to_owned() } else { format!("left: {}", left.join(", ")) };
    output::talk(format!("drained; {left}"));
}

/// Reads the settings unless a signal asks to stop: a dead file system may block.
async fn read(context: &Context, signals: &mut Signals) -> Option<anyhow::Result<Settings>> {
    let context = context.clone();
    let reading = tokio::task::spawn_blocking(move || context.load_to_run());
    tokio::select! {
        read = reading => Some(read.context("reading the settings failed").and_then(|settings| Ok(settings?))),
        () = signals.stop() => None,
    }
}

/// The running parts and their settings.
struct Daemon {
    started_with: Settings,
    /// The settings in effect.
    current: Settings,
    registry: Arc<Registry>,
    pool: Pool,
}

impl Daemon {
    /// Applies new settings if they are valid.
    fn reload(&mut self, read: anyhow::Result<Settings>) {
        match read {
            Ok(Settings { file: None, .. }) if let Some(file) = &self.current.file => {
                let file = file.display();
                tracing::error!("nothing was changed: `{file}` is gone; a restart without it would use the defaults");
            }
            Ok(new) => self.take(new),
            Err(error) => tracing::error!("nothing was changed: the settings have problems:\n{error:#}"),
        }
    }

    /// Applies new settings, except those that only a restart can change.
    fn take(&mut self, new: Settings) {
        for key in self.started_with.needs_restart(&new) {
            tracing::warn!("`{key}` has changed; only a restart applies it");
        }
        warn_of(&new);
        self.registry.reconfigure(new.plugins.clone());
        let concurrency = new.worker.concurrency.min(self.started_with.worker.concurrency);
        self.pool.reconfigure(worker::WorkerOptions { concurrency, ..new.worker.clone() });
        self.current = new;
        tracing::info!("settings reloaded");
    }
}

/// Logs warnings about new settings.
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
    let served = entries.iter().filter(|(name, _)| settings.worker.types.includes(name));
    let each = |(name, entry): (&String, &Entry)| match &entry.state {
        State::Serving => format!("`{name}`"),
        state => format!("`{name}` ({})", state.as_str()),
    };
    let types: Vec<String> = served.map(each).collect();
    let more = types.len().saturating_sub(LISTED_TYPES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let types = match types[..types.len().min(LISTED_TYPES)].join(", ") {
        none if none.is_empty() => "no type yet".to_owned(),
        types => format!("{types}{more}"),
    };
    output::talk(format!(
        "jobq is ready: database {}, {} slots, plugins in {}; serves {types}",
        settings.queue.database.display(),
        settings.worker.concurrency,
        settings.plugins.dir.display(),
    ));
}

/// What a signal asks for.
enum Request {
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

    /// Returns at the next request to stop. A request to reload is left for [`next`](Self::next).
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.interrupt.recv() => Request::Stop,
            _ = self.terminate.recv() => Request::Stop,
            _ = self.hangup.recv() => Request::Reload,
        }
    }
}
