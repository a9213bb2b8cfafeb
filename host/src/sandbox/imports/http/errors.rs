//! The errors a guest gets when a request fails.

use std::error::Error as _;
use std::io;

use wasmtime_wasi_http::Error;

/// Bytes of the head of a response.
pub(super) const MAX_HEAD: usize = 64 << 10;

/// The error for a connection that can't be made.
pub(super) fn from_connect(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        io::ErrorKind::TimedOut => Error::ConnectionTimeout,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Error::DestinationIpUnroutable,
        io::ErrorKind::NotFound => Error::DestinationNotFound,
        _ => Error::DestinationUnavailable,
    }
}

/// The error for a connection that fails during an exchange.
pub(super) fn from_hyper(error: hyper::Error) -> Error {
    if let Some(own) = error.source().and_then(|source| source.downcast_ref::<Error>()) {
        return match own {
            Error::HttpRequestBodySize(size) => Error::HttpRequestBodySize(*size),
            _ => Error::HttpProtocolError,
        };
    }
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let ended = source.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
    if error.is_parse_too_large() {
        Error::HttpResponseHeaderSectionSize(Some(MAX_HEAD as u32))
    } else if ended || error.is_incomplete_message() {
        Error::HttpResponseIncomplete
    } else if error.is_parse() || error.is_user() {
        Error::HttpProtocolError
    } else {
        Error::ConnectionTerminated
    }
}
