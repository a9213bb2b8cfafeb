//! A component that has been checked and linked: what it is, and how it is entered.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentNamedList, InstancePre, Lift, Lower};
use wasmtime::{Engine, Store};
use wasmtime_wasi::p2::bindings::CommandPre;

use super::bindings::JobHandlerPre;
use super::bindings::jobq::handler::types::{Job, JobError};
use super::engine::Sandbox;
use super::limits::Metering;
use super::load_error::LoadError;
use super::state::Host;

/// What all names of the contract begin with.
const CONTRACT: &str = "jobq:handler/";

/// What follows the name of an interface in every version of the contract that is served.
const SERVED: &str = "@0.1.";

/// Bytes of a page of memory.
const PAGE: u64 = 64 << 10;

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

struct Linked {
    entry: Entry,
    metering: Metering,
    engine: Engine,
    slots: Arc<Semaphore>,
    imports: Vec<String>,
    minimum_memory: u64,
}

enum Entry {
    Handler(JobHandlerPre<Host>),
    Program(CommandPre<Host>),
}

/// What a guest said when it came back by itself.
pub(super) enum Answer {
    Handler(Result<String, JobError>),
    Program(Result<(), ()>),
}

impl Sandbox {
    /// Checks the imports and exports of a component and links it. No guest code runs.
    ///
    /// # Errors
    /// When it is not a handler or program that this host can run.
    pub fn link(&self, component: &Component, metering: Metering) -> Result<Plugin, LoadError> {
        let pool = self.pool(metering)?;
        let (imports, exports) = names(component);
        check_versions(&imports, &exports)?;
        let minimum_memory = minimum_memory(component);
        let limit = self.options().max_memory as u64;
        if minimum_memory > limit {
            return Err(LoadError::Memory { minimum: minimum_memory, limit });
        }
        let linked = pool.linker.instantiate_pre(component).map_err(|error| wrong_import(&error, &imports))?;
        let entry = enter(linked, exports)?;
        let (engine, slots) = (pool.engine.clone(), Arc::clone(&pool.slots));
        Ok(Plugin(Arc::new(Linked { entry, metering, engine, slots, imports, minimum_memory })))
    }
}

impl Plugin {
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

    /// The largest memory it begins with, in bytes. A smaller limit ends every attempt as out of memory.
    pub fn minimum_memory(&self) -> u64 {
        self.0.minimum_memory
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

fn enter(linked: InstancePre<Host>, exports: Vec<String>) -> Result<Entry, LoadError> {
    let find = |start: &str| exports.iter().find(|name| name.starts_with(start));
    let (name, entry) = if let Some(name) = find("jobq:handler/handler@") {
        (
            name,
            check_type::<(Job,), (Result<String, JobError>,)>(&linked, name, "handle")
                .and_then(|()| JobHandlerPre::new(linked).map(Entry::Handler)),
        )
    } else if let Some(name) = find("wasi:cli/run@0.2.") {
        (
            name,
            check_type::<(), (Result<(), ()>,)>(&linked, name, "run")
                .and_then(|()| CommandPre::new(linked).map(Entry::Program)),
        )
    } else {
        return Err(LoadError::OtherWorld { exports });
    };
    entry.map_err(|error| LoadError::WrongType {
        what: format!("its export `{name}`"),
        reason: error.root_cause().to_string(),
    })
}

/// wasmtime itself looks at the type of an export only when it is called.
fn check_type<Arguments, Answer>(linked: &InstancePre<Host>, interface: &str, function: &str) -> wasmtime::Result<()>
where
    Arguments: ComponentNamedList + Lower,
    Answer: ComponentNamedList + Lift,
{
    let (engine, shape) = (linked.engine(), linked.component().component_type());
    let Some(ComponentItem::ComponentInstance(interface)) = shape.get_export(engine, interface).map(|item| item.ty)
    else {
        wasmtime::bail!("it is no interface");
    };
    let Some(ComponentItem::ComponentFunc(found)) = interface.get_export(engine, function).map(|item| item.ty) else {
        wasmtime::bail!("it has no function `{function}`");
    };
    found
        .typecheck::<Arguments, Answer>(&linked.instance_type())
        .map_err(|error| error.context(format!("`{function}`")))
}

fn names(component: &Component) -> (Vec<String>, Vec<String>) {
    let (engine, shape) = (component.engine(), component.component_type());
    let imports = shape.imports(engine).map(|(name, _)| name.to_owned()).collect();
    let exports = shape.exports(engine).map(|(name, _)| name.to_owned()).collect();
    (imports, exports)
}

fn check_versions(imports: &[String], exports: &[String]) -> Result<(), LoadError> {
    for name in imports.iter().chain(exports) {
        if name.starts_with("wasi:") && name.contains("@0.3.") {
            return Err(LoadError::Async);
        }
        let Some(interface) = name.strip_prefix(CONTRACT) else { continue };
        if let Some((_, version)) = interface.split_once('@')
            && !interface.contains(SERVED)
        {
            return Err(LoadError::Contract { wanted: format!("jobq:handler@{version}") });
        }
    }
    Ok(())
}

fn wrong_import(error: &wasmtime::Error, imports: &[String]) -> LoadError {
    let text = format!("{error:#}");
    let reason = error.root_cause().to_string();
    let import = imports.iter().find(|name| text.contains(&format!("`{name}`"))).map_or("something", String::as_str);
    let what = match text.split_once("instance export `").and_then(|(_, rest)| rest.split_once('`')) {
        Some((function, _)) => format!("`{function}` of `{import}`"),
        None => format!("`{import}`"),
    };
    if reason.contains("implementation is missing") {
        LoadError::UnknownImport { what }
    } else {
        LoadError::WrongType { what: format!("its import {what}"), reason }
    }
}

fn minimum_memory(component: &Component) -> u64 {
    let pages = component.resources_required().and_then(|required| required.max_initial_memory_size);
    pages.unwrap_or(0).saturating_mul(PAGE)
}
