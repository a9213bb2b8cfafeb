//! A component that has been checked and linked: what it imports, and how to enter it.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime::component::InstancePre;
use wasmtime::component::types::ComponentItem;
use wasmtime::{Engine, Store};
use wasmtime_wasi::p2::bindings::CommandPre;

use super::bindings::JobHandlerPre;
use super::bindings::jobq::handler::types::Job;
use super::call::Kind;
use super::debug_info::DebugInfo;
use super::guest_outcome::GuestReturn;
use super::limits::Metering;
use super::state::Host;

/// A component that can run. Cheap to clone.
#[derive(Clone)]
pub struct Plugin(Arc<Linked>);

/// An interface that a plugin imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `wasi:clocks/wall-clock@0.2.6`.
    pub name: String,
    /// The functions that the plugin imports from it, in the plugin's order.
    pub functions: Vec<String>,
}

/// Everything known about a plugin.
pub(super) struct Linked {
    pub(super) entry: Entry,
    pub(super) metering: Metering,
    pub(super) engine: Engine,
    pub(super) slots: Arc<Semaphore>,
    pub(super) imports: Vec<String>,
    pub(super) minimum_memory: u64,
    pub(super) debug_info: Option<Arc<DebugInfo>>,
}

/// The entry point of the guest.
pub(super) enum Entry {
    Handler(JobHandlerPre<Host>),
    Program(CommandPre<Host>),
}

impl Plugin {
    pub(super) fn new(linked: Linked) -> Self {
        Self(Arc::new(linked))
    }

    /// How it is called.
    pub fn kind(&self) -> Kind {
        match self.0.entry {
            Entry::Handler(_) => Kind::Handler,
            Entry::Program(_) => Kind::Program,
        }
    }

    /// Which engine it runs on.
    pub fn metering(&self) -> Metering {
        self.0.metering
    }

    /// The names of its imports, in its own order.
    pub fn imports(&self) -> &[String] {
        &self.0.imports
    }

    /// Its imports with their functions.
    pub fn interfaces(&self) -> Vec<Interface> {
        let (engine, component) = (self.engine(), self.instance_pre().component());
        let component_type = component.component_type();
        let interface = |name: &str, item: ComponentItem| {
            let functions = match item {
                ComponentItem::ComponentInstance(interface) => {
                    let functions = interface.exports(engine);
                    let functions = functions.filter(|(_, item)| matches!(item.ty, ComponentItem::ComponentFunc(_)));
                    functions.map(|(name, _)| name.to_owned()).collect()
                }
                _ => Vec::new(),
            };
            Interface { name: name.to_owned(), functions }
        };
        component_type.imports(engine).map(|(name, item)| interface(name, item.ty)).collect()
    }

    /// The version of the contract it was built for, such as `0.1.0`; `None` for a program that imports none of it.
    pub fn contract(&self) -> Option<String> {
        let component_type = self.instance_pre().component().component_type();
        let exports = component_type.exports(self.engine()).map(|(name, _)| name);
        let names = exports.chain(self.imports().iter().map(String::as_str));
        let mut versions = names.filter_map(|name| name.strip_prefix("jobq:handler/")?.split_once('@'));
        versions.next().map(|(_, version)| version.to_owned())
    }

    fn instance_pre(&self) -> &InstancePre<Host> {
        match &self.0.entry {
            Entry::Handler(handler) => handler.instance_pre(),
            Entry::Program(program) => program.instance_pre(),
        }
    }

    /// Its largest initial memory, in bytes. With a smaller limit every attempt ends as out of memory.
    pub fn minimum_memory(&self) -> u64 {
        self.0.minimum_memory
    }

    pub(super) fn debug_info(&self) -> Option<&Arc<DebugInfo>> {
        self.0.debug_info.as_ref()
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(super) fn slots(&self) -> &Semaphore {
        &self.0.slots
    }

    /// Runs guest code: its start functions, then its entry point. Handlers need `job`.
    pub(super) async fn enter(&self, store: &mut Store<Host>, job: Option<&Job>) -> wasmtime::Result<GuestReturn> {
        match (&self.0.entry, job) {
            (Entry::Handler(handler), Some(job)) => {
                let instance = handler.instantiate_async(&mut *store).await?;
                instance.jobq_handler_handler().call_handle(store, job).await.map(GuestReturn::Handler)
            }
            (Entry::Program(program), _) => {
                let instance = program.instantiate_async(&mut *store).await?;
                instance.wasi_cli_run().call_run(store).await.map(GuestReturn::Program)
            }
            (Entry::Handler(_), None) => wasmtime::bail!("a handler needs a job"),
        }
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, metering) = (self.kind(), self.metering());
        f.debug_struct("Plugin").field("kind", &kind).field("metering", &metering).finish_non_exhaustive()
    }
}
