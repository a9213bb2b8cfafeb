//! The `jobq` binary: parse, run, exit code.

use std::process::ExitCode;

/// What one thread allocates for a job another one frees: this allocator makes that cheap, the system's does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    jobq::cli::main()
}
