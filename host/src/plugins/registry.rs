//! The registry: scans the directory, loads changed files, and publishes which version serves which type.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::cache::Cache;
use super::loader::{LoadFileError, LoadRequest, Loaded, Loader};
use super::options::{PluginOptions, Source};
use super::scan::{FileName, Fingerprint, Ignored, ignored, scan, stem};
use super::types::{self, is_type};
use super::version::Version;
use super::watch::Watch;
use crate::sandbox::{Metering, Sandbox};

/// How often the directory is scanned without an event; not every file system sends events.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);

/// How long a file must be unchanged before it is loaded; also the pause between two scans while a file is changing.
const QUIET: Duration = Duration::from_millis(100);

/// How often unused entries are deleted from the cache. The first time is after all files have been loaded, so that
/// entries needed after a long pause aren't deleted right before.
const COLLECT_INTERVAL: Duration = Duration::from_secs(6 * 3600);

/// Added to the message if a file can't be loaded but an earlier version serves.
const STILL_SERVING: &str = "the previous version keeps serving";

/// The state of a type's newest file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being read or compiled.
    Compiling,
    /// It serves.
    Serving,
    /// It can't be loaded, for this reason.
    Broken(String),
    /// It doesn't exist.
    Missing,
}

impl State {
    /// The state as one word.
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
    /// The state of that file.
    pub state: State,
    /// When the file entered that state.
    pub since: SystemTime,
    /// The version that serves. While the file compiles or is broken, an earlier one of this file, or of the file that the
    /// settings named before.
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
    Scan,
    Loaded(Box<Loaded>),
    Reconfigure(Box<PluginOptions>),
    Stop,
}

impl Registry {
    /// Scans the directory once, then keeps watching it on a separate thread until the registry is dropped.
    /// Cached files serve within milliseconds; others compile in the background while their jobs wait.
    ///
    /// # Errors
    /// When a thread can't be started.
    pub fn start(options: PluginOptions, sandbox: Arc<Sandbox>) -> io::Result<Arc<Self>> {
        let (messages, inbox) = mpsc::channel();
        let table = Arc::new(ArcSwap::default());
        let changes = Arc::new(watch::Sender::default());
        let hinted = Arc::new(AtomicBool::new(false));
        let loader = Loader::start(options.dir.clone(), sandbox, Cache::open(&options.cache_dir), {
            let messages = Mutex::new(messages.clone());
            let messages = Arc::new(messages);
            move |loaded| _ = messages.lock().send(Message::Loaded(Box::new(loaded)))
        })?;
        let watch = Watch::new(options.dir.clone(), {
            let (messages, hinted) = (Mutex::new(messages.clone()), hinted.clone());
            move || {
                if !hinted.swap(true, Ordering::AcqRel) {
                    _ = messages.lock().send(Message::Scan);
                }
            }
        });
        let mut thread = RegistryThread {
            options,
            loader,
            watch,
            files: BTreeMap::new(),
            ignored: BTreeSet::new(),
            units: BTreeMap::new(),
            types: BTreeMap::new(),
            table: table.clone(),
            changes: changes.clone(),
        };
        thread.scan();
        let registry = Arc::new(Self { table, messages, changes, hinted: hinted.clone() });
        std::thread::Builder::new().name("plugins".into()).spawn(move || thread.run(&inbox, &hinted))?;
        Ok(registry)
    }

    /// The version that serves `job_type`.
    pub fn current(&self, job_type: &str) -> Option<Arc<Version>> {
        self.table.load().get(job_type)?.version.clone()
    }

    /// The types that are served.
    pub fn serving(&self) -> Vec<String> {
        self.table.load().iter().filter(|(_, entry)| entry.version.is_some()).map(|(name, _)| name.clone()).collect()
    }

    /// All types by name.
    pub fn entries(&self) -> BTreeMap<String, Entry> {
        self.table.load().iter().map(|(name, entry)| (name.clone(), entry.clone())).collect()
    }

    /// A receiver that is notified of every change of an entry.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Applies new settings: the types and the file for each. The directories don't change.
    pub fn reconfigure(&self, options: PluginOptions) {
        _ = self.messages.send(Message::Reconfigure(Box::new(options)));
    }

    /// Scans the directory now.
    pub fn scan(&self) {
        self.hinted.store(true, Ordering::Release);
        _ = self.messages.send(Message::Scan);
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        _ = self.messages.send(Message::Stop);
    }
}

/// A file compiled for one engine.
type Unit = (FileName, Metering);

#[derive(Default)]
struct UnitState {
    /// The file that this state is about; `None` once it is gone.
    fingerprint: Option<Fingerprint>,
    state: Option<(State, SystemTime)>,
    version: Option<Arc<Version>>,
}

impl UnitState {
    /// Returns whether that is a change.
    fn set(&mut self, state: State) -> bool {
        let is_new = self.state.as_ref().is_none_or(|(old, _)| *old != state);
        if is_new {
            self.state = Some((state, SystemTime::now()));
        }
        is_new
    }
}

/// The source of a type, and what serves the type until that is loaded.
struct TypeSource {
    source: Source,
    /// The version of the previous source, until this source serves or its file is removed.
    previous: Option<Arc<Version>>,
}

/// The thread of the registry. It owns the state of every file.
struct RegistryThread {
    options: PluginOptions,
    loader: Loader,
    watch: Watch,
    files: BTreeMap<FileName, Result<Fingerprint, String>>,
    /// Files that look like plugins and are never loaded.
    ignored: BTreeSet<Ignored>,
    units: BTreeMap<Unit, UnitState>,
    types: BTreeMap<String, TypeSource>,
    table: Arc<ArcSwap<Table>>,
    changes: Arc<watch::Sender<u64>>,
}

impl RegistryThread {
    fn run(mut self, inbox: &mpsc::Receiver<Message>, hinted: &AtomicBool) {
        let mut next_scan = Instant::now();
        let mut next_collect = Instant::now();
        loop {
            if next_collect <= Instant::now() && self.is_loaded() {
                let table = self.table.load();
                let keys = table.values().filter_map(|entry| Some(entry.version.as_ref()?.key()));
                self.loader.collect(&keys.collect());
                next_collect = Instant::now() + COLLECT_INTERVAL;
            }
            match inbox.recv_timeout(next_scan.saturating_duration_since(Instant::now())) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Message::Loaded(loaded)) => {
                    if !self.loaded(*loaded) {
                        next_scan = next_scan.min(Instant::now() + QUIET);
                    }
                    self.publish();
                    continue;
                }
                Ok(Message::Scan) => hinted.store(false, Ordering::Release),
                Ok(Message::Reconfigure(options)) => self.options = PluginOptions { dir: self.options.dir, ..*options },
                Err(RecvTimeoutError::Timeout) => {}
            }
            let pause = if self.scan() { SCAN_INTERVAL } else { QUIET };
            next_scan = Instant::now() + pause;
        }
    }

    /// Whether no file is waiting to be loaded.
    fn is_loaded(&self) -> bool {
        !self.units.values().any(|unit| matches!(unit.state, None | Some((State::Compiling, _))))
    }

    /// Scans the directory and requests changed files to be loaded. Returns false while a file is being written.
    fn scan(&mut self) -> bool {
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
                    "`{}` serves nothing unless a `[jobs.*]` names it: its name is not a job type",
                    name.escape_debug()
                );
            }
        }
        let ignored = ignored(&self.options.dir).into_iter().collect();
        let known_ignored = std::mem::replace(&mut self.ignored, ignored);
        self.ignored.difference(&known_ignored).for_each(|file| tracing::warn!("{file}"));
        self.update_types(&known);
        let wanted: BTreeSet<Unit> = self.types.values().map(|wanted| unit_of(&wanted.source)).collect();
        self.units.retain(|unit, _| wanted.contains(unit));
        let mut at_rest = true;
        for unit in wanted {
            at_rest &= self.check_file(unit, &known);
        }
        self.publish();
        at_rest
    }

    /// Updates the source of each type. If a source changes, the current version serves until the new one is loaded. If the
    /// file was removed, nothing serves.
    fn update_types(&mut self, known: &BTreeMap<FileName, Result<Fingerprint, String>>) {
        let mut types = BTreeMap::new();
        for (name, source) in self.sources() {
            let is_gone = known.contains_key(&source.file) && !self.files.contains_key(&source.file);
            let previous = match self.types.remove(&name) {
                _ if is_gone => None,
                Some(wanted) if wanted.source == source => wanted.previous,
                Some(wanted) => self.version_of(&wanted).cloned(),
                None => None,
            };
            types.insert(name, TypeSource { source, previous });
        }
        let ended = std::mem::replace(&mut self.types, types).into_values().map(|wanted| wanted.source.file);
        for file in ended.filter(|file| !self.files.contains_key(file)) {
            tracing::warn!("plugin `{file}` was removed: its type is not served, and its jobs wait");
        }
    }

    /// The version that serves a type: that of its source, or the previous one until that is loaded.
    fn version_of<'a>(&'a self, wanted: &'a TypeSource) -> Option<&'a Arc<Version>> {
        let unit = self.units.get(&unit_of(&wanted.source));
        unit.and_then(|unit| unit.version.as_ref()).or(wanted.previous.as_ref())
    }

    /// Whether previous versions serve all types of a unit.
    fn has_previous(&self, unit: &Unit) -> bool {
        let mut types = self.types.values().filter(|wanted| unit_of(&wanted.source) == *unit);
        types.all(|wanted| wanted.previous.is_some())
    }

    /// Requests a file to be loaded if it has changed. Returns false while it is being written.
    fn check_file(&mut self, unit: Unit, known: &BTreeMap<FileName, Result<Fingerprint, String>>) -> bool {
        let has_previous = self.has_previous(&unit);
        let state = self.units.entry(unit.clone()).or_default();
        let (name, metering) = unit;
        match self.files.get(&name) {
            None => {
                *state = UnitState { state: state.state.take(), ..UnitState::default() };
                if state.set(State::Missing) {
                    let effect =
                        if has_previous { STILL_SERVING } else { "its types are not served, and their jobs wait" };
                    tracing::warn!("plugin `{name}` does not exist: {effect}");
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
                self.loader.request(LoadRequest { name, metering, fingerprint: fingerprint.clone() });
            }
            Some(Ok(_)) => {}
        }
        true
    }

    /// Takes the loader's result, unless the file has changed again. Returns false if the file is being written.
    fn loaded(&mut self, Loaded { request, result }: Loaded) -> bool {
        let unit = (request.name.clone(), request.metering);
        let has_previous = self.has_previous(&unit);
        let Some(unit) = self.units.get_mut(&unit) else { return true };
        if unit.fingerprint.as_ref() != Some(&request.fingerprint) {
            return true;
        }
        match result {
            Ok(version) if unit.version.as_ref().is_some_and(|old| old.digest() == version.digest()) => {
                unit.set(State::Serving);
            }
            Ok(version) => {
                tracing::info!("plugin `{}` serves: {}", request.name, hex::encode(&version.digest()[..6]));
                unit.version = Some(Arc::new(version));
                unit.set(State::Serving);
            }
            Err(LoadFileError::Unsettled(_)) => {
                unit.fingerprint = None;
                return false;
            }
            Err(error) => {
                let is_served = has_previous || unit.version.is_some();
                let effect = if is_served { format!("; {STILL_SERVING}") } else { String::new() };
                tracing::error!("plugin `{}` does not load: {error}{effect}", request.name);
                unit.set(State::Broken(error.to_string()));
            }
        }
        true
    }

    /// All types: those in the settings, and those of files that no setting names.
    fn sources(&self) -> BTreeMap<String, Source> {
        types::sources(&self.options, self.files.keys().map(String::as_str))
    }

    fn publish(&mut self) {
        for wanted in self.types.values_mut() {
            if self.units.get(&unit_of(&wanted.source)).is_some_and(|unit| unit.version.is_some()) {
                wanted.previous = None;
            }
        }
        let entry = |wanted: &TypeSource| {
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
        // Two versions with one digest may run on different engines.
        let version = |entry: &Entry| entry.version.as_ref().map(Arc::as_ptr);
        a.state == b.state && a.file == b.file && version(a) == version(b)
    };
    old.len() != new.len() || new.iter().any(|(name, entry)| !old.get(name).is_some_and(|other| same(entry, other)))
}

fn unit_of(source: &Source) -> Unit {
    (source.file.clone(), source.metering)
}
