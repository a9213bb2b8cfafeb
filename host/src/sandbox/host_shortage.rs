//! Whether an error means that the host itself ran out of something: memory, address space, file descriptors or slots.
//!
//! Such a failure isn't the guest's fault. The job is run again later, and the attempt isn't counted.

use std::error::Error;
use std::io;

use rustix::io::Errno;
use wasmtime::{PoolConcurrencyLimitError, WasmBacktrace};

/// Whether the system refused memory or file descriptors.
pub(super) fn is_shortage(error: &(dyn Error + 'static)) -> bool {
    let io = error.downcast_ref::<io::Error>().and_then(Errno::from_io_error);
    let errno = error.downcast_ref::<Errno>().copied().or(io);
    error.is::<wasmtime::error::OutOfMemory>()
        || matches!(errno, Some(Errno::NOMEM | Errno::MFILE | Errno::NFILE))
        || error.source().is_some_and(is_shortage)
}

/// Whether an attempt failed because the host had no room for it. An error inside guest code is the guest's own.
pub(super) fn stopped_guest(error: &wasmtime::Error) -> bool {
    !error.is::<WasmBacktrace>() && (error.is::<PoolConcurrencyLimitError>() || is_shortage(error.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_that_refuses_memory_or_files_is_short_of_them() {
        for errno in [Errno::NOMEM, Errno::MFILE, Errno::NFILE] {
            assert!(stopped_guest(&wasmtime::Error::from(errno).context("failed to create memory")), "{errno:?}");
            assert!(stopped_guest(&wasmtime::Error::from(io::Error::from(errno))), "{errno:?}");
        }
        assert!(!stopped_guest(&wasmtime::Error::from(Errno::NOENT)));
        assert!(!stopped_guest(&wasmtime::Error::from(wasmtime::Trap::StackOverflow)));
    }
}
