//! The `jobq` binary: parse, run, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    jobq::cli::main()
}
