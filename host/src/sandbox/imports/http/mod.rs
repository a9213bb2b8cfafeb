//! `wasi:http`: requests to the origins that the type is granted, and to no other.
//!
//! It is linked for every guest, because many toolchains import it unasked. Redirects are not followed: a guest that does so
//! asks again, and is checked again. No proxy is used, and a connection serves one request.
//!
//! The way of a request: [`Guard`] looks at where it goes, `connect` resolves and checks the addresses, `trust` the server,
//! `exchange` sends it and waits for the head of the response, `body` bounds what the guest then reads. All of it are
//! futures that belong to the handles of the guest: they are dropped with its store, and the connection with them.

mod address;
mod body;
mod connect;
mod exchange;
mod policy;
mod trust;
mod workaround;

use std::sync::Arc;
use std::time::Instant;

use http::{Method, Request, Response};
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks};

use crate::sandbox::grants::Grants;
use crate::sandbox::limits::Limits;
use crate::sandbox::origin::{Origin, OriginError};
use crate::sandbox::output::Output;
use exchange::exchange;
use policy::{HttpPolicy, Slot};
pub(super) use workaround::apply;

/// Bytes of the headers of a request, and of what is taken of its body at once.
const MAX_PART: usize = 64 << 10;

/// Requests that one attempt may send.
const MAX_REQUESTS: usize = 1_000;

/// Connections that one attempt may have at once. As long as a guest has not read a response, its connection stands.
const MAX_OPEN: usize = 64;

/// Bytes of an address that are repeated in the log.
const MAX_ADDRESS: usize = 200;

/// Lets the requests of one attempt pass, or refuses them and says so in its log.
pub(in crate::sandbox) struct Guard {
    policy: Arc<HttpPolicy>,
    sent: usize,
}

type Transmission = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Exchange = Box<dyn Future<Output = Result<(Response<WasiBody>, Transmission), Error>> + Send>;

impl Guard {
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

    /// The attempt has run out of time: its log is told what it may have waited for.
    pub(in crate::sandbox) fn tell_open(&self) {
        self.policy.say_open();
    }

    /// Where a request goes, if it may go there.
    fn admit(&mut self, request: &Request<WasiBody>) -> Result<Origin, Error> {
        let origin = Origin::of(request.uri()).map_err(|error| self.refuse(request, error))?;
        if !self.policy.allows(&origin) {
            self.policy.say_denied(&origin);
            return Err(Error::HttpRequestDenied);
        }
        if *request.method() == Method::CONNECT {
            return Err(Error::HttpRequestMethodInvalid);
        }
        self.sent += 1;
        if self.sent > MAX_REQUESTS {
            self.policy.say(format!("denied a request: one attempt may send at most {MAX_REQUESTS}"));
            return Err(Error::HttpRequestDenied);
        }
        Ok(origin)
    }

    fn refuse(&self, request: &Request<WasiBody>, error: OriginError) -> Error {
        let mut address = request.uri().authority().map_or("nowhere", |authority| authority.as_str());
        // In front of the @ there may stand a password.
        address = address.rsplit_once('@').map_or(address, |(_, host)| host);
        let address = &address[..address.floor_char_boundary(MAX_ADDRESS)];
        self.policy.say(match error {
            OriginError::NotAlone => {
                format!("denied a request to {address}: it names a user in its address; send credentials in a header")
            }
            error => format!("denied a request to {address}: {error}"),
        });
        Error::HttpRequestUriInvalid
    }
}

impl WasiHttpHooks for Guard {
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
        let Some(slot) = Slot::take(&self.policy, &origin, MAX_OPEN) else {
            self.policy.say(format!(
                "denied a request to {origin}: one attempt may have {MAX_OPEN} connections at once, and one whose response \
                 has not been read counts"
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
