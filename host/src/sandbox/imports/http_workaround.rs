//! Replacements for two functions of `wasi:http` that have bugs in wasmtime-wasi-http 48.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler::Host as _;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::p2::types::{HostFutureIncomingResponse, HostOutgoingRequest};
use wasmtime_wasi_http::{Error, RequestOptions, WasiHttpView};

use crate::sandbox::state::Host;

type Sent = Result<Resource<HostFutureIncomingResponse>, ErrorCode>;

/// Links them over the originals; `linker` must allow shadowing.
pub(super) fn add_to_linker(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.instance("wasi:http/outgoing-handler@0.2.12")?.func_wrap("handle", handle)?;
    linker.instance("wasi:http/types@0.2.12")?.func_wrap("http-error-code", error_code)
}

/// The original never removes the options from the table of handles, so a guest that sets timeouts runs out of handles.
fn handle(
    mut store: StoreContextMut<'_, Host>,
    (request, options): (Resource<HostOutgoingRequest>, Option<Resource<RequestOptions>>),
) -> wasmtime::Result<(Sent,)> {
    let mut http = store.data_mut().http();
    let options_handle = options.as_ref().map(Resource::rep);
    let sent = http.handle(request, options);
    if let Some(handle) = options_handle {
        http.table.delete(Resource::<RequestOptions>::new_own(handle))?;
    }
    match sent {
        Ok(response) => Ok((Ok(response),)),
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}

/// The original looks for a type that response bodies never fail with, so it never returns a code.
fn error_code(
    mut store: StoreContextMut<'_, Host>,
    (error,): (Resource<wasmtime::Error>,),
) -> wasmtime::Result<(Option<ErrorCode>,)> {
    let error = store.data_mut().http().table.get(&error)?;
    let of_body = error.downcast_ref::<Error>().map(|error| match error {
        Error::HttpResponseBodySize(size) => ErrorCode::HttpResponseBodySize(*size),
        Error::HttpResponseIncomplete => ErrorCode::HttpResponseIncomplete,
        Error::ConnectionReadTimeout => ErrorCode::ConnectionReadTimeout,
        Error::ConnectionTerminated => ErrorCode::ConnectionTerminated,
        _ => ErrorCode::HttpProtocolError,
    });
    Ok((of_body.or_else(|| error.downcast_ref().cloned()),))
}
