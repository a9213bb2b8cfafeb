//! A component that has been checked and linked: what it is, and how it is entered.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime::component::InstancePre;
use wasmtime::component::types::ComponentItem;
use wasmtime::{Engine, Store};
use wasmtime_wasi::p2::bindings::CommandPre;

use super::bindings::JobHandlerPre;
use super::bindings::jobq::handler::types::{Job, JobError};
use super::debug_info::DebugInfo;
use super::limits::Metering;
use super::state::Host;

/// How a plugin is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By its `handle` function.
    Handler,
    /// As a command-line program: payload on stdin, result on stdout.
    Program,
}

/// A component that can run. Cheap to clone.
#[derive(Clone)]
pub struct Plugin(Arc<Linked>);

/// An interface that a plugin imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `wasi:clocks/wall-clock@0.2.6`.
    pub name: String,
    /// The functions of it that the plugin wants, in its own order.
    pub functions: Vec<String>,
}

/// What there is to know about it.
pub(super) struct Linked {
    pub(super) entry: Entry,
    pub(super) metering: Metering,
    pub(super) engine: Engine,
    pub(super) slots: Arc<Semaphore>,
    pub(super) imports: Vec<String>,
    pub(super) minimum_memory: u64,
    pub(super) debug_info: Option<Arc<DebugInfo>>,
}

/// Where guest code begins.
pub(super) enum Entry {
    Handler(JobHandlerPre<Host>),
    Program(CommandPre<Host>),
}

/// What a guest said when it came back by itself.
pub(super) enum Answer {
    Handler(Result<String, JobError>),
    Program(Result<(), ()>),
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

    /// What it imports, by name, in its own order.
    pub fn imports(&self) -> &[String] {
        &self.0.imports
    }

    /// What it imports, with the functions.
    pub fn interfaces(&self) -> Vec<Interface> {
        let (engine, component) = (self.engine(), self.instance_pre().component());
        let shape = component.component_type();
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
        shape.imports(engine).map(|(name, item)| interface(name, item.ty)).collect()
    }

    /// The version of the contract it was built for, such as `0.1.0`; `None` for a program that imports none of it.
    pub fn contract(&self) -> Option<String> {
        let component = self.instance_pre().component();
        let shape = component.component_type();
        let names = shape.exports(self.engine()).map(|(name, _)| name).chain(self.imports().iter().map(String::as_str));
        let mut versions = names.filter_map(|name| name.strip_prefix("jobq:handler/")?.split_once('@'));
        versions.next().map(|(_, version)| version.to_owned())
    }

    fn instance_pre(&self) -> &InstancePre<Host> {
        match &self.0.entry {
            Entry::Handler(handler) => handler.instance_pre(),
            Entry::Program(program) => program.instance_pre(),
        }
    }

    /// The largest memory it begins with, in bytes. A smaller limit ends every attempt as out of memory.
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

    /// Runs guest code: its start functions, then its entry. `job` is what a handler is given.
    pub(super) async fn enter(&self, store: &mut Store<Host>, job: Option<&Job>) -> wasmtime::Result<Answer> {
        match (&self.0.entry, job) {
            (Entry::Handler(handler), Some(job)) => {
                let instance = handler.instantiate_async(&mut *store).await?;
                instance.jobq_handler_handler().call_handle(store, job).await.map(Answer::Handler)
            }
            (Entry::Program(program), _) => {
                let instance = program.instantiate_async(&mut *store).await?;
                instance.wasi_cli_run().call_run(store).await.map(Answer::Program)
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
