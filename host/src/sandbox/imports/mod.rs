//! The functions a guest can call: our own interfaces (`jobq`), and WASI, one file for each package that we change.
//!
//! Everything is linked for every guest. A function that isn't granted fails when it is called.

pub(super) mod files;
pub(super) mod http;
mod http_workaround;
mod jobq;
pub(super) mod sockets;

use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types as filesystem};
use wasmtime_wasi::p2::bindings::sockets::{ip_name_lookup, tcp_create_socket, udp_create_socket};

use super::bindings::{JobHandler, jobq::handler::types};
use super::state::Host;

/// Links all functions. Slow (a quarter of a millisecond), so it is done once per engine.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<Host>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    // These replace some of the functions above. They do the same, and record denials.
    linker.allow_shadowing(true);
    preopens::add_to_linker::<_, files::HasFiles>(&mut linker, Host::files)?;
    filesystem::add_to_linker::<_, files::HasFiles>(&mut linker, Host::files)?;
    tcp_create_socket::add_to_linker::<_, sockets::HasSockets>(&mut linker, Host::sockets)?;
    udp_create_socket::add_to_linker::<_, sockets::HasSockets>(&mut linker, Host::sockets)?;
    ip_name_lookup::add_to_linker::<_, sockets::HasSockets>(&mut linker, Host::sockets)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    http_workaround::add_to_linker(&mut linker)?;
    linker.allow_shadowing(false);
    JobHandler::add_to_linker::<_, HasSelf<Host>>(&mut linker, |host| host)?;
    Ok(linker)
}

impl types::Host for Host {}
