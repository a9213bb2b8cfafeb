//! From a compiled component to a plugin: checks its imports, its exports and the memory it starts with.

use std::sync::Arc;

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentNamedList, InstancePre, Lift, Lower};
use wasmtime_wasi::p2::bindings::CommandPre;

use super::bindings::JobHandlerPre;
use super::bindings::jobq::handler::types::{Job, JobError};
use super::debug_info::DebugInfo;
use super::engine::Sandbox;
use super::limits::Metering;
use super::load_error::LoadError;
use super::plugin::{Entry, Linked, Plugin};
use super::state::Host;

/// The prefix of all names of the contract.
const CONTRACT: &str = "jobq:handler/";

/// The versions of the contract that are served.
const SERVED: &str = "@0.1.";

/// Bytes of a page of memory.
const PAGE: u64 = 64 << 10;

impl Sandbox {
    /// Checks the imports and exports of a component and links it. No guest code runs. `wasm` is the component before it
    /// was compiled; if it has debug information, traps show source lines.
    ///
    /// # Errors
    /// When it isn't a handler or program that this host can run.
    pub fn link(&self, component: &Component, wasm: &[u8], metering: Metering) -> Result<Plugin, LoadError> {
        let pool = self.pool(metering)?;
        let (imports, exports) = names(component);
        check_versions(&imports, &exports)?;
        let minimum_memory = minimum_memory(component);
        let limit = self.options().max_memory as u64;
        if minimum_memory > limit {
            return Err(LoadError::Memory { minimum: minimum_memory, limit });
        }
        let linked = pool.linker.instantiate_pre(component).map_err(|error| wrong_import(&error, &imports))?;
        let entry = entry(linked, exports)?;
        let (engine, slots) = (pool.engine.clone(), Arc::clone(&pool.slots));
        let debug_info = DebugInfo::of(wasm).map(Arc::new);
        Ok(Plugin::new(Linked { entry, metering, engine, slots, imports, minimum_memory, debug_info }))
    }
}

fn entry(linked: InstancePre<Host>, exports: Vec<String>) -> Result<Entry, LoadError> {
    let find = |prefix: &str| exports.iter().find(|name| name.starts_with(prefix));
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

/// Checks the type of an export now; wasmtime checks it only when it is called.
fn check_type<Arguments, Return>(linked: &InstancePre<Host>, interface: &str, function: &str) -> wasmtime::Result<()>
where
    Arguments: ComponentNamedList + Lower,
    Return: ComponentNamedList + Lift,
{
    let (engine, component_type) = (linked.engine(), linked.component().component_type());
    let export = component_type.get_export(engine, interface).map(|item| item.ty);
    let Some(ComponentItem::ComponentInstance(interface)) = export else {
        wasmtime::bail!("it is not an interface");
    };
    let Some(ComponentItem::ComponentFunc(found)) = interface.get_export(engine, function).map(|item| item.ty) else {
        wasmtime::bail!("it has no function `{function}`");
    };
    found
        .typecheck::<Arguments, Return>(&linked.instance_type())
        .map_err(|error| error.context(format!("`{function}`")))
}

fn names(component: &Component) -> (Vec<String>, Vec<String>) {
    let (engine, component_type) = (component.engine(), component.component_type());
    let imports = component_type.imports(engine).map(|(name, _)| name.to_owned()).collect();
    let exports = component_type.exports(engine).map(|(name, _)| name.to_owned()).collect();
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
