//! The bodies of a request and of its response, with limits.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};
use wasmtime_wasi_http::{Error, WasiBody};

use super::errors;

/// Bytes of the body of one request.
const MAX_REQUEST: u64 = 256 << 20;

/// The body of a request, limited in size.
pub(super) struct RequestBody {
    body: WasiBody,
    left: u64,
}

impl RequestBody {
    pub(super) fn new(body: WasiBody) -> Self {
        Self { body, left: MAX_REQUEST }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            let frame = frame?;
            let len = frame.data_ref().map_or(0, |data| data.len() as u64);
            self.left = self.left.checked_sub(len).ok_or(Error::HttpRequestBodySize(Some(MAX_REQUEST)))?;
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response, limited in size and in the pause between two chunks.
pub(super) struct ResponseBody<F> {
    incoming: Incoming,
    max: u64,
    left: u64,
    pause: Duration,
    /// Set while the guest waits for bytes. The time it takes to process them doesn't count.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Called once if the body is too large.
    on_too_large: Option<F>,
}

impl<F> ResponseBody<F> {
    pub(super) fn new(incoming: Incoming, max: u64, pause: Duration, on_too_large: F) -> Self {
        Self { incoming, max, left: max, pause, waiting: None, on_too_large: Some(on_too_large) }
    }
}

impl<F: FnOnce() + Unpin> Body for ResponseBody<F> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) else {
            let pause = self.pause;
            ready!(self.waiting.get_or_insert_with(|| Box::pin(sleep(pause))).as_mut().poll(cx));
            return Poll::Ready(Some(Err(Error::ConnectionReadTimeout)));
        };
        self.waiting = None;
        let Some(frame) = frame else { return Poll::Ready(None) };
        let frame = frame.map_err(errors::from_hyper)?;
        let len = frame.data_ref().map_or(0, |data| data.len() as u64);
        let Some(left) = self.left.checked_sub(len) else {
            if let Some(on_too_large) = self.on_too_large.take() {
                on_too_large();
            }
            return Poll::Ready(Some(Err(Error::HttpResponseBodySize(Some(self.max)))));
        };
        self.left = left;
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
