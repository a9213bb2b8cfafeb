//! The registry: looks at the directory, has changed files loaded, and publishes which version serves which type.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::cache::Cache;
use super::loader::{LoadFileError, Loaded, Loader, Order};
use super::options::{PluginOptions, Source};
use super::scan::{FileName, Fingerprint, scan, stem};
use super::types::{self, is_type};
use super::watch::Watch;
use crate::sandbox::{Metering, Plugin, Sandbox};

/// How often the directory is looked at without a hint: not every file system sends them.
const LOOK: Duration = Duration::from_secs(2);

/// How long a file must be untouched before it counts as written; also the pause between two looks at one that is not.
const QUIET: Duration = Duration::from_millis(100);

/// How often the cache is rid of what nobody uses. The first time is when all files have been loaded, so that an entry
/// that is wanted after a long pause is not deleted just before.
const COLLECT: Duration = Duration::from_secs(6 * 3600);

/// What is said where a file cannot serve and another version can.
const GOES_ON: &str = "the version before it goes on serving";

/// One loaded plugin. Attempts hold on to the version they started with.
pub struct Version {
    digest: [u8; 32],
    /// Where the cache has its compiled code.
    key: String,
    plugin: Plugin,
    attempts: AtomicU64,
}

impl Version {
    pub(super) fn new(digest: [u8; 32], key: String, plugin: Plugin) -> Self {
        Self { digest, key, plugin, attempts: AtomicU64::new(0) }
    }

    /// SHA-256 of the `.wasm`.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// What the sandbox runs; counts an attempt.
    pub fn start(&self) -> &Plugin {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        &self.plugin
    }

    /// What the sandbox runs.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// Attempts that were started on it.
    pub fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Relaxed)
    }
}

/// How the newest file of a type stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being read or compiled.
    Compiling,
    /// It serves.
    Serving,
    /// It does not load; the text says why.
    Broken(String),
    /// It is not there.
    Missing,
}

impl State {
    /// One word.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Compiling => "compiling",
            Self::Serving => "serving",
            Self::Broken(_) => "broken",
            Self::Missing => "missing",
        }
    }
}

/// One type and what serves it.
#[derive(Clone)]
pub struct Entry {
    /// The file that should serve it.
    pub file: FileName,
    /// How that file stands.
    pub state: State,
    /// Since when.
    pub since: SystemTime,
    /// The version that serves; an older one, of this file or of the one the settings named before, while this one
    /// compiles or is broken.
    pub version: Option<Arc<Version>>,
}

type Table = HashMap<String, Entry>;

/// Which version serves which type, now.
pub struct Registry {
    table: Arc<ArcSwap<Table>>,
    messages: Sender<Message>,
    changes: Arc<watch::Sender<u64>>,
    hinted: Arc<AtomicBool>,
}

enum Message {
    Look,
    Loaded(Box<Loaded>),
    Reconfigure(Box<PluginOptions>),
    Stop,
}

impl Registry {
    /// Looks at the directory once, then keeps looking from a thread of its own until the registry is dropped.
    /// Files that the cache knows serve within milliseconds; others compile in the background while their jobs wait.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(options: PluginOptions, sandbox: Arc<Sandbox>) -> io::Result<Arc<Self>> {
        let (messages, inbox) = mpsc::channel();
        let table = Arc::new(ArcSwap::default());
        let changes = Arc::new(watch::Sender::default());
        let hinted = Arc::new(AtomicBool::new(false));
        let loader = Loader::start(options.dir.clone(), sandbox, Cache::open(&options.cache_dir), {
            let messages = Mutex::new(messages.clone());
            let messages = Arc::new(messages);
            move |loaded| _ = lock(&messages).send(Message::Loaded(Box::new(loaded)))
        })?;
        let watch = Watch::new(options.dir.clone(), {
            let (messages, hinted) = (Mutex::new(messages.clone()), hinted.clone());
            move || {
                if !hinted.swap(true, Ordering::AcqRel) {
                    _ = lock(&messages).send(Message::Look);
                }
            }
        });
        let mut keeper = Keeper {
            options,
            loader,
            watch,
            files: BTreeMap::new(),
            units: BTreeMap::new(),
            types: BTreeMap::new(),
            table: table.clone(),
            changes: changes.clone(),
        };
        keeper.look();
        let registry = Arc::new(Self { table, messages, changes, hinted: hinted.clone() });
        std::thread::Builder::new().name("plugins".into()).spawn(move || keeper.run(&inbox, &hinted))?;
        Ok(registry)
    }

    /// The version that serves `job_type`.
    pub fn current(&self, job_type: &str) -> Option<Arc<Version>> {
        self.table.load().get(job_type)?.version.clone()
    }

    /// The types that something serves.
    pub fn serving(&self) -> Vec<String> {
        self.table.load().iter().filter(|(_, entry)| entry.version.is_some()).map(|(name, _)| name.clone()).collect()
    }

    /// Every type by name.
    pub fn entries(&self) -> BTreeMap<String, Entry> {
        self.table.load().iter().map(|(name, entry)| (name.clone(), entry.clone())).collect()
    }

    /// Tells of every change of any entry.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Takes new settings: which types there are and which file serves each. The directories stay.
    pub fn reconfigure(&self, options: PluginOptions) {
        _ = self.messages.send(Message::Reconfigure(Box::new(options)));
    }

    /// Looks at the directory now.
    pub fn look(&self) {
        self.hinted.store(true, Ordering::Release);
        _ = self.messages.send(Message::Look);
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        _ = self.messages.send(Message::Stop);
    }
}

/// A file, compiled for one kind of engine.
type Unit = (FileName, Metering);

#[derive(Default)]
struct UnitState {
    /// The file this state speaks of; `None` once it is gone.
    fingerprint: Option<Fingerprint>,
    state: Option<(State, SystemTime)>,
    version: Option<Arc<Version>>,
}

impl UnitState {
    /// Returns whether that is news.
    fn set(&mut self, state: State) -> bool {
        let news = self.state.as_ref().is_none_or(|(old, _)| *old != state);
        if news {
            self.state = Some((state, SystemTime::now()));
        }
        news
    }
}

/// What a type is to be served by, and what serves it until then.
struct Wanted {
    source: Source,
    /// The version of the source before, until the one of this source serves or its file is taken away.
    before: Option<Arc<Version>>,
}

/// The thread behind the registry: owns what is known of every file.
struct Keeper {
    options: PluginOptions,
    loader: Loader,
    watch: Watch,
    files: BTreeMap<FileName, Result<Fingerprint, String>>,
    units: BTreeMap<Unit, UnitState>,
    types: BTreeMap<String, Wanted>,
    table: Arc<ArcSwap<Table>>,
    changes: Arc<watch::Sender<u64>>,
}

impl Keeper {
    fn run(mut self, inbox: &mpsc::Receiver<Message>, hinted: &AtomicBool) {
        let mut next_look = Instant::now();
        let mut next_collect = Instant::now();
        loop {
            if next_collect <= Instant::now() && self.is_loaded() {
                let table = self.table.load();
                self.loader.collect(table.values().filter_map(|entry| Some(entry.version.as_ref()?.key.as_str())));
                next_collect = Instant::now() + COLLECT;
            }
            match inbox.recv_timeout(next_look.saturating_duration_since(Instant::now())) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Message::Loaded(loaded)) => {
                    if !self.loaded(*loaded) {
                        next_look = next_look.min(Instant::now() + QUIET);
                    }
                    self.publish();
                    continue;
                }
                Ok(Message::Look) => hinted.store(false, Ordering::Release),
                Ok(Message::Reconfigure(options)) => self.options = PluginOptions { dir: self.options.dir, ..*options },
                Err(RecvTimeoutError::Timeout) => {}
            }
            let pause = if self.look() { LOOK } else { QUIET };
            next_look = Instant::now() + pause;
        }
    }

    /// Whether nothing waits to be loaded.
    fn is_loaded(&self) -> bool {
        !self.units.values().any(|unit| matches!(unit.state, None | Some((State::Compiling, _))))
    }

    /// Compares the directory with what is known and orders what has changed. Returns whether every file is at rest.
    fn look(&mut self) -> bool {
        self.watch.renew();
        let found = match scan(&self.options.dir) {
            Ok(found) => found,
            Err(error) => {
                tracing::error!("cannot read the plugin directory `{}`: {error}", self.options.dir.display());
                return true;
            }
        };
        let known = std::mem::replace(&mut self.files, found);
        for name in self.files.keys().filter(|name| !known.contains_key(*name)) {
            if stem(name).is_some_and(|stem| !is_type(stem)) {
                tracing::warn!(
                    "`{}` serves nothing unless a `[jobs.*]` names it: its name is no job type",
                    name.escape_debug()
                );
            }
        }
        self.want(&known);
        let wanted: BTreeSet<Unit> = self.types.values().map(|wanted| unit_of(&wanted.source)).collect();
        self.units.retain(|unit, _| wanted.contains(unit));
        let mut at_rest = true;
        for unit in wanted {
            at_rest &= self.look_at(unit, &known);
        }
        self.publish();
        at_rest
    }

    /// Notes what is to serve each type. Where that is something else than before, the version that serves now goes on
    /// until the new one is there; where somebody has taken the file away, it does not.
    fn want(&mut self, known: &BTreeMap<FileName, Result<Fingerprint, String>>) {
        let mut types = BTreeMap::new();
        for (name, source) in self.sources() {
            let is_gone = known.contains_key(&source.file) && !self.files.contains_key(&source.file);
            let before = match self.types.remove(&name) {
                _ if is_gone => None,
                Some(wanted) if wanted.source == source => wanted.before,
                Some(wanted) => self.version_of(&wanted).cloned(),
                None => None,
            };
            types.insert(name, Wanted { source, before });
        }
        let ended = std::mem::replace(&mut self.types, types).into_values().map(|wanted| wanted.source.file);
        for file in ended.filter(|file| !self.files.contains_key(file)) {
            tracing::warn!("plugin `{file}` is gone: its type is not served, and its jobs wait");
        }
    }

    /// What serves a type: the version of its source, or the one before as long as there is none.
    fn version_of<'a>(&'a self, wanted: &'a Wanted) -> Option<&'a Arc<Version>> {
        let unit = self.units.get(&unit_of(&wanted.source));
        unit.and_then(|unit| unit.version.as_ref()).or(wanted.before.as_ref())
    }

    /// Whether all types that a unit is for are served by what was before it.
    fn has_before(&self, unit: &Unit) -> bool {
        let mut types = self.types.values().filter(|wanted| unit_of(&wanted.source) == *unit);
        types.all(|wanted| wanted.before.is_some())
    }

    /// Orders one file if it is new and nobody is writing it. Returns whether it is at rest.
    fn look_at(&mut self, unit: Unit, known: &BTreeMap<FileName, Result<Fingerprint, String>>) -> bool {
        let has_before = self.has_before(&unit);
        let state = self.units.entry(unit.clone()).or_default();
        let (name, metering) = unit;
        match self.files.get(&name) {
            None => {
                *state = UnitState { state: state.state.take(), ..UnitState::default() };
                if state.set(State::Missing) {
                    let follows = if has_before { GOES_ON } else { "its types are not served, and their jobs wait" };
                    tracing::warn!("plugin `{name}` is not there: {follows}");
                }
            }
            Some(Err(reason)) => {
                state.fingerprint = None;
                if state.set(State::Broken(reason.clone())) {
                    tracing::error!("plugin `{name}` does not load: {reason}");
                }
            }
            Some(Ok(fingerprint)) if state.fingerprint.as_ref() != Some(fingerprint) => {
                let unchanged = matches!(known.get(&name), Some(Ok(earlier)) if earlier == fingerprint);
                if !unchanged && !fingerprint.is_quiet(QUIET) {
                    return false;
                }
                state.fingerprint = Some(fingerprint.clone());
                state.set(State::Compiling);
                self.loader.order(Order { name, metering, fingerprint: fingerprint.clone() });
            }
            Some(Ok(_)) => {}
        }
        true
    }

    /// Takes what the loader has done, unless the file has changed again meanwhile. Returns whether the file is at rest.
    fn loaded(&mut self, Loaded { order, result }: Loaded) -> bool {
        let unit = (order.name.clone(), order.metering);
        let has_before = self.has_before(&unit);
        let Some(unit) = self.units.get_mut(&unit) else { return true };
        if unit.fingerprint.as_ref() != Some(&order.fingerprint) {
            return true;
        }
        match result {
            Ok(version) if unit.version.as_ref().is_some_and(|old| old.digest == version.digest) => {
                unit.set(State::Serving);
            }
            Ok(version) => {
                tracing::info!("plugin `{}` serves: {}", order.name, hex::encode(&version.digest[..6]));
                unit.version = Some(Arc::new(version));
                unit.set(State::Serving);
            }
            Err(LoadFileError::Unsettled(_)) => {
                unit.fingerprint = None;
                return false;
            }
            Err(error) => {
                let is_served = has_before || unit.version.is_some();
                let follows = if is_served { format!("; {GOES_ON}") } else { String::new() };
                tracing::error!("plugin `{}` does not load: {error}{follows}", order.name);
                unit.set(State::Broken(error.to_string()));
            }
        }
        true
    }

    fn sources(&self) -> BTreeMap<String, Source> {
        types::sources(&self.options, self.files.keys().map(String::as_str))
    }

    fn publish(&mut self) {
        for wanted in self.types.values_mut() {
            if self.units.get(&unit_of(&wanted.source)).is_some_and(|unit| unit.version.is_some()) {
                wanted.before = None;
            }
        }
        let entry = |wanted: &Wanted| {
            let unit = self.units.get(&unit_of(&wanted.source))?;
            let (state, since) = unit.state.clone().unwrap_or((State::Compiling, SystemTime::now()));
            let version = self.version_of(wanted).cloned();
            Some(Entry { file: wanted.source.file.clone(), state, since, version })
        };
        let table: Table =
            self.types.iter().filter_map(|(name, wanted)| Some((name.clone(), entry(wanted)?))).collect();
        if differs(&self.table.load(), &table) {
            self.table.store(Arc::new(table));
            self.changes.send_modify(|change| *change += 1);
        }
    }
}

fn differs(old: &Table, new: &Table) -> bool {
    let same = |a: &Entry, b: &Entry| {
        // Two versions of one digest may run on different engines.
        let version = |entry: &Entry| entry.version.as_ref().map(Arc::as_ptr);
        a.state == b.state && a.file == b.file && version(a) == version(b)
    };
    old.len() != new.len() || new.iter().any(|(name, entry)| !old.get(name).is_some_and(|other| same(entry, other)))
}

fn unit_of(source: &Source) -> Unit {
    (source.file.clone(), source.metering)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
