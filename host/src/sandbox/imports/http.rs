//! `wasi:http`: linked, because many toolchains import it unasked, and denied.

use std::sync::Arc;

use http::{Request, Response};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks};

use crate::sandbox::output::Output;

/// Bytes of the headers, and of a chunk of the body, of a request that will not be sent.
const MAX_PART: usize = 16 << 10;

/// Bytes of an address that are repeated in the log.
const MAX_ADDRESS: usize = 200;

/// Refuses every request and says so in the log of the attempt.
pub(in crate::sandbox) struct Denied {
    output: Arc<Output>,
    job_type: String,
}

type Transmission = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Exchange = Box<dyn Future<Output = Result<(Response<WasiBody>, Transmission), Error>> + Send>;

impl Denied {
    pub(in crate::sandbox) fn new(output: Arc<Output>, job_type: &str) -> Self {
        Self { output, job_type: job_type.to_owned() }
    }

    pub(in crate::sandbox) fn context() -> WasiHttpCtx {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(MAX_PART);
        context
    }
}

impl WasiHttpHooks for Denied {
    fn send_request(&mut self, request: Request<WasiBody>, _: Option<RequestOptions>, _: Transmission) -> Exchange {
        let uri = request.uri();
        let mut address = format!("{}://{}", uri.scheme_str().unwrap_or("https"), uri.host().unwrap_or_default());
        if let Some(port) = uri.port() {
            address = format!("{address}:{port}");
        }
        address.truncate(address.floor_char_boundary(MAX_ADDRESS));
        let job_type = &self.job_type;
        let message = format!(
            "denied a request to {address}: `{job_type}` has no network. A later jobq will grant it by \
             `http = [\"{address}\"]` under `[jobs.{job_type}]` in jobq.toml"
        );
        self.output.log("warn", message);
        Box::new(async { Err(Error::HttpRequestDenied) })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        MAX_PART
    }
}
