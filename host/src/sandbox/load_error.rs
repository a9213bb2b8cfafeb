//! Why a file can't be loaded, with messages that say what to do about it.

use bytesize::ByteSize;
use rustix::io::Errno;
use thiserror::Error;

use super::engine::EngineError;

/// Why a file isn't a handler that this host can run.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file is truncated.
    #[error("the file ends too early: it was truncated, or is still being written")]
    Truncated,
    /// The text format of WebAssembly.
    #[error("this is WebAssembly in text format; convert it with `wasm-tools parse`")]
    Wat,
    /// Some other text.
    #[error("this is text, not WebAssembly; it starts with {0:?}")]
    Text(String),
    /// A native program or library, or code compiled by wasmtime.
    #[error(
        "this is native code, not WebAssembly; programs and `.cwasm` files are never loaded, only the `.wasm` they were \
         built from"
    )]
    Native,
    /// Any other file.
    #[error("this is not WebAssembly; it starts with the bytes {0}")]
    NotWasm(String),
    /// A core module that can't become a component.
    #[error(
        "this is a core module with neither `_start` (a program) nor the `component-type` section that wit-bindgen adds \
         to a handler, so there is nothing to call. Build it with a main function, or with the bindings of the world \
         `job-handler`; a tool that strips custom sections must keep `component-type`"
    )]
    CoreModule,
    /// A core module for another host: a browser, Node.js, an older WASI.
    #[error("this core module imports `{module}`, which is {world}; {advice}")]
    Foreign {
        /// The module it imports.
        module: String,
        /// What that module is.
        world: &'static str,
        /// How to build it for this host.
        advice: &'static str,
    },
    /// A core module that fails to become a component.
    #[error("cannot turn this core module into a component: {0}")]
    Encode(String),
    /// It is invalid, or uses a proposal that isn't enabled.
    #[error("this is not valid WebAssembly, or uses a feature this host does not have: {0}")]
    Invalid(String),
    /// The system doesn't let this process execute code that it has compiled.
    #[error(
        "the system forbids executable memory, which compiled WebAssembly needs ({0}); under systemd, remove \
         `MemoryDenyWriteExecute=` from the unit; under SELinux, allow `execmem`"
    )]
    NoExecutableMemory(String),
    /// It was built for WASI 0.3.
    #[error(
        "it uses asynchronous functions of the component model (WASI 0.3), which this host does not support; \
         build it for WASI 0.2 (with componentize-qjs: `--sync`)"
    )]
    Async,
    /// It was built for another version of the contract.
    #[error(
        "it was built for the contract `{wanted}`, but this jobq serves `jobq:handler@0.1.x`; rebuild it for 0.1, or update jobq"
    )]
    Contract {
        /// Name and version it was built for.
        wanted: String,
    },
    /// A valid component that isn't a handler.
    #[error(
        "{}; a handler exports `jobq:handler/handler@0.1.0`, a program `wasi:cli/run@0.2.x`: build it for the world \
         `job-handler` of wit/, or as a program with a main function", exported(.exports)
    )]
    OtherWorld {
        /// What it exports.
        exports: Vec<String>,
    },
    /// It imports something unknown.
    #[error(
        "it imports {what}, which this host does not provide; it provides WASI 0.2, and `log`, `context` and `queue` of \
         `jobq:handler@0.1.0`. Build it without, or compose it with a component that exports it (`wac plug`)"
    )]
    UnknownImport {
        /// The name of the import.
        what: String,
    },
    /// An import or export has the right name and the wrong type.
    #[error(
        "{what} has a different type than in `jobq:handler@0.1.0` or WASI 0.2: {reason}; regenerate its bindings from \
         the wit/ of this jobq"
    )]
    WrongType {
        /// The name of the import or export.
        what: String,
        /// The difference.
        reason: String,
    },
    /// Its initial memory is over every limit.
    #[error(
        "it needs {} of memory to start, more than any job type may have ({}); raise `memory` in jobq.toml",
        ByteSize::b(*.minimum), ByteSize::b(*.limit)
    )]
    Memory {
        /// The size of its initial memory in bytes.
        minimum: u64,
        /// The largest memory limit of any job type.
        limit: u64,
    },
    /// It has more memories, tables or instances than a guest may have.
    #[error("it is larger than a guest may be: {0}")]
    TooLarge(String),
    /// The engine can't be created.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl LoadError {
    /// Whether the system refused to make code executable: because of `prctl(PR_SET_MDWE)`, a seccomp filter, SELinux, or
    /// a file system mounted `noexec`.
    fn forbids_execution(error: &wasmtime::Error) -> bool {
        let errno = error.downcast_ref::<Errno>();
        errno.is_some_and(|errno| matches!(*errno, Errno::ACCESS | Errno::PERM))
            && format!("{error:#}").contains("unable to make memory executable")
    }

    /// The error for a component that can't be compiled, or whose code can't be loaded.
    pub fn from_compile(error: wasmtime::Error) -> Self {
        let text = format!("{error:#}");
        if Self::forbids_execution(&error) {
            Self::NoExecutableMemory(error.root_cause().to_string())
        } else if text.contains("component model async") {
            Self::Async
        } else if let Some((minimum, limit)) = memory_over_limit(&text) {
            Self::Memory { minimum, limit }
        } else if text.contains("pooling allocator requirements") || text.contains("pooling allocator's") {
            Self::TooLarge(error.root_cause().to_string())
        } else if text.contains("unexpected end") {
            Self::Truncated
        } else {
            Self::Invalid(error.root_cause().to_string())
        }
    }
}

/// Parses both numbers of "… minimum byte size of 268435456 which exceeds the limit of 0x8000000 bytes".
fn memory_over_limit(text: &str) -> Option<(u64, u64)> {
    let minimum = text.split_once("minimum byte size of ")?.1.split_whitespace().next()?.parse().ok()?;
    let limit = text.split_once("exceeds the limit of 0x")?.1.split_whitespace().next()?;
    Some((minimum, u64::from_str_radix(limit, 16).ok()?))
}

fn exported(exports: &[String]) -> String {
    match exports {
        [] => "it exports nothing".into(),
        some => format!("it exports `{}`", some.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_executable_memory_is_not_blamed_on_the_file() {
        let refused = |errno: Errno| wasmtime::Error::from(errno).context("unable to make memory executable");
        for errno in [Errno::ACCESS, Errno::PERM] {
            let message = LoadError::from_compile(refused(errno)).to_string();
            assert!(
                message.contains("forbids executable memory") && message.contains("MemoryDenyWriteExecute"),
                "{message}"
            );
        }
        assert!(matches!(LoadError::from_compile(Errno::ACCESS.into()), LoadError::Invalid(_)));
    }
}
