//! What a guest may call: standard WASI, and one file for each interface of `wit/`.
//!
//! Everything is linked for every guest; what it is not granted is denied when it is called.

mod context;
pub(super) mod http;
mod log;
mod queue;

use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker};

use super::bindings::{JobHandler, jobq::handler::types};
use super::state::Host;

/// Links all of it. Slow (a quarter of a millisecond): once per engine.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<Host>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    JobHandler::add_to_linker::<_, HasSelf<Host>>(&mut linker, |host| host)?;
    Ok(linker)
}

impl types::Host for Host {}
