//! `wasi:http`: requests to the granted origins and to no others.
//!
//! It is linked for every guest, because many toolchains import it without need. Redirects are not followed: a guest that
//! follows one sends a new request, which is checked again. No proxy is used, and a connection serves one request.
//!
//! The path of a request: [`HttpGate`] checks its origin, `connect` resolves the name and checks the addresses, `tls` checks
//! the server, `exchange` sends the request and waits for the head of the response, `body` limits what the guest then reads.
//! All futures belong to handles of the guest: they are dropped with its store, and the connection with them.

mod address;
mod body;
mod connect;
mod errors;
mod exchange;
mod policy;
mod tls;

use std::sync::Arc;
use std::time::Instant;

use http::{Method, Request, Response};
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks};

use crate::sandbox::grants::Grants;
use crate::sandbox::limits::Limits;
use crate::sandbox::origin::{Origin, OriginError};
use crate::sandbox::output::Output;
use exchange::{Transmission, exchange};
use policy::{ConnectionSlot, HttpPolicy};

/// Bytes of the headers of a request, and of one chunk of its body.
const MAX_PART: usize = 64 << 10;

/// Requests that one attempt may send.
const MAX_REQUESTS: usize = 1_000;

/// Connections that one attempt may have open at once. A connection stays open until the guest has read the response.
const MAX_OPEN: usize = 64;

/// Bytes of an address that are logged.
const MAX_ADDRESS: usize = 200;

/// Admits the requests of one attempt, or denies them and logs why.
pub(in crate::sandbox) struct HttpGate {
    policy: Arc<HttpPolicy>,
    sent: usize,
}

type Exchange = Box<dyn Future<Output = Result<(Response<WasiBody>, Transmission), Error>> + Send>;

impl HttpGate {
    pub(in crate::sandbox) fn new(
        grants: &Grants,
        limits: &Limits,
        deadline: Instant,
        job_type: &str,
        output: Arc<Output>,
    ) -> Self {
        let policy = HttpPolicy::new(grants.http.clone(), limits.max_response, deadline, job_type, output);
        Self { policy: Arc::new(policy), sent: 0 }
    }

    pub(in crate::sandbox) fn context() -> WasiHttpCtx {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(MAX_PART);
        context
    }

    /// Logs the open requests of an attempt that has timed out: it may have waited for them.
    pub(in crate::sandbox) fn log_open_requests(&self) {
        self.policy.log_open();
    }

    /// The origin of a request, if it is allowed.
    fn admit(&mut self, request: &Request<WasiBody>) -> Result<Origin, Error> {
        let origin = Origin::of(request.uri()).map_err(|error| self.refuse(request, error))?;
        if !self.policy.allows(&origin) {
            self.policy.log_denied(&origin);
            return Err(Error::HttpRequestDenied);
        }
        if *request.method() == Method::CONNECT {
            return Err(Error::HttpRequestMethodInvalid);
        }
        self.sent += 1;
        if self.sent > MAX_REQUESTS {
            self.policy.log(format!("denied a request: one attempt may send at most {MAX_REQUESTS}"));
            return Err(Error::HttpRequestDenied);
        }
        Ok(origin)
    }

    fn refuse(&self, request: &Request<WasiBody>, error: OriginError) -> Error {
        let mut address = request.uri().authority().map_or("an empty address", |authority| authority.as_str());
        // A password may precede the @.
        address = address.rsplit_once('@').map_or(address, |(_, host)| host);
        let address = &address[..address.floor_char_boundary(MAX_ADDRESS)];
        self.policy.log(match error {
            OriginError::ExtraParts => {
                format!("denied a request to {address}: its URL contains a user; send credentials in a header")
            }
            error => format!("denied a request to {address}: {error}"),
        });
        Error::HttpRequestUriInvalid
    }
}

impl WasiHttpHooks for HttpGate {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Transmission,
    ) -> Exchange {
        let origin = match self.admit(&request) {
            Ok(origin) => origin,
            Err(error) => return Box::new(async { Err(error) }),
        };
        let Some(slot) = ConnectionSlot::take(&self.policy, &origin, MAX_OPEN) else {
            self.policy.log(format!(
                "denied a request to {origin}: one attempt may have {MAX_OPEN} connections open at once, including those \
                 whose response has not been read"
            ));
            return Box::new(async { Err(Error::ConnectionLimitReached) });
        };
        Box::new(exchange(request, origin, options.unwrap_or_default(), Arc::clone(&self.policy), slot))
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        MAX_PART
    }

    fn p2_error_from_hyper(&mut self, _: &hyper::Error) -> ErrorCode {
        ErrorCode::HttpProtocolError
    }
}
