//! The bodies of a request and of its response, bounded.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};
use wasmtime_wasi_http::{Error, WasiBody};

use super::exchange::broken;

/// Bytes of the body of one request.
const MAX_REQUEST: u64 = 256 << 20;

/// The body of a request, counted.
pub(super) struct Counted {
    body: WasiBody,
    left: u64,
}

impl Counted {
    pub(super) fn new(body: WasiBody) -> Self {
        Self { body, left: MAX_REQUEST }
    }
}

impl Body for Counted {
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

/// The body of a response: not longer than a number of bytes, and not slower than a pause between two of them.
pub(super) struct Bounded<F> {
    incoming: Incoming,
    max: u64,
    left: u64,
    pause: Duration,
    /// While the guest waits for bytes; the time it takes to read them does not count.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Called once, when it turns out to be too long.
    too_long: Option<F>,
}

impl<F> Bounded<F> {
    pub(super) fn new(incoming: Incoming, max: u64, pause: Duration, too_long: F) -> Self {
        Self { incoming, max, left: max, pause, waiting: None, too_long: Some(too_long) }
    }
}

impl<F: FnOnce() + Unpin> Body for Bounded<F> {
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
        let frame = frame.map_err(broken)?;
        let len = frame.data_ref().map_or(0, |data| data.len() as u64);
        let Some(left) = self.left.checked_sub(len) else {
            if let Some(too_long) = self.too_long.take() {
                too_long();
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
