//! What a guest may call: standard WASI, and one file for each interface of `wit/`.
//!
//! Everything is linked for every guest; what it is not granted is denied when it is called.

mod context;
pub(super) mod files;
pub(super) mod http;
mod log;
mod queue;
pub(super) mod sockets;

use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types as filesystem};
use wasmtime_wasi::p2::bindings::sockets::{ip_name_lookup, tcp_create_socket, udp_create_socket};

use super::bindings::{JobHandler, jobq::handler::types};
use super::state::Host;

/// Links all of it. Slow (a quarter of a millisecond): once per engine.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<Host>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    // Over some of it: the same, and denials are kept.
    linker.allow_shadowing(true);
    preopens::add_to_linker::<_, files::Lent>(&mut linker, Host::files)?;
    filesystem::add_to_linker::<_, files::Lent>(&mut linker, Host::files)?;
    tcp_create_socket::add_to_linker::<_, sockets::Lent>(&mut linker, Host::sockets)?;
    udp_create_socket::add_to_linker::<_, sockets::Lent>(&mut linker, Host::sockets)?;
    ip_name_lookup::add_to_linker::<_, sockets::Lent>(&mut linker, Host::sockets)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    http::apply(&mut linker)?;
    linker.allow_shadowing(false);
    JobHandler::add_to_linker::<_, HasSelf<Host>>(&mut linker, |host| host)?;
    Ok(linker)
}

impl types::Host for Host {}
