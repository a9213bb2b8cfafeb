//! Why a file cannot serve, in words that say what to do.

use bytesize::ByteSize;
use thiserror::Error;

use super::engine::EngineError;

/// Why a file is not a handler that this host can run.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Nothing in it.
    #[error("the file is empty")]
    Empty,
    /// It ends in the middle.
    #[error("the file ends too early: it was cut off, or is still being written")]
    Truncated,
    /// The text format.
    #[error("this is WebAssembly as text; make a binary of it with `wasm-tools parse`")]
    Wat,
    /// Some other text.
    #[error("this is text, not WebAssembly; it begins with {0:?}")]
    Text(String),
    /// A program or library for this or another machine, or compiled code of wasmtime.
    #[error(
        "this is native code, not WebAssembly; neither programs nor `.cwasm` files are taken, only the `.wasm` they were made from"
    )]
    Native,
    /// Anything else.
    #[error("this is not WebAssembly; it begins with the bytes {0}")]
    NotWasm(String),
    /// A core module that nothing can be made of.
    #[error(
        "this is a core module with neither `_start` (a program) nor the `component-type` section that wit-bindgen leaves \
         in a handler; there is nothing to call. Build it with a main function, or with the bindings of the world \
         `job-handler`; a tool that strips custom sections must keep `component-type`"
    )]
    CoreModule,
    /// A core module for another host: a browser, Node.js, an earlier WASI.
    #[error("this core module imports `{module}`, which is {world}; {advice}")]
    Foreign {
        /// The module it imports.
        module: String,
        /// What it was built for.
        world: &'static str,
        /// How to build it for this host.
        advice: &'static str,
    },
    /// A core module that does not become a component.
    #[error("cannot make a component of this core module: {0}")]
    Encode(String),
    /// It breaks the rules of the format, or uses a proposal that is not switched on.
    #[error("this is not valid WebAssembly, or uses a feature this host does not have: {0}")]
    Invalid(String),
    /// It is written for WASI 0.3.
    #[error(
        "it uses asynchronous functions of the component model (WASI 0.3), which this host does not run; \
         build it for WASI 0.2 (with componentize-qjs: `--sync`)"
    )]
    Async,
    /// It wants another contract.
    #[error(
        "it was built for the contract `{wanted}`, and this jobq serves `jobq:handler@0.1.x`; rebuild it for 0.1, or update jobq"
    )]
    Contract {
        /// Name and version it was built for.
        wanted: String,
    },
    /// It is a good component, but no handler.
    #[error(
        "{}; a handler exports `jobq:handler/handler@0.1.0`, a program `wasi:cli/run@0.2.x`: build it for the world \
         `job-handler` of wit/, or as a program with a main function", exported(.exports)
    )]
    OtherWorld {
        /// What it exports.
        exports: Vec<String>,
    },
    /// It wants what no host offers.
    #[error(
        "it imports {what}, which this host does not offer; there are WASI 0.2, and `log`, `context` and `queue` of \
         `jobq:handler@0.1.0`. Build it without, or compose it with a component that exports it (`wac plug`)"
    )]
    UnknownImport {
        /// The import, by name.
        what: String,
    },
    /// A name is right and its type is not.
    #[error(
        "{what} has another type than `jobq:handler@0.1.0` and WASI 0.2 give it: {reason}; generate its bindings anew \
         from the wit/ of this jobq"
    )]
    WrongType {
        /// What of it, by name.
        what: String,
        /// The difference.
        reason: String,
    },
    /// It cannot even start.
    #[error(
        "it needs {} of memory to start, more than any job type may have ({}); raise `memory` in jobq.toml",
        ByteSize::b(*.minimum), ByteSize::b(*.limit)
    )]
    Memory {
        /// The memory it begins with, in bytes.
        minimum: u64,
        /// The largest memory limit of any job type.
        limit: u64,
    },
    /// It has more parts than a guest may have.
    #[error("it is larger than a guest may be: {0}")]
    TooLarge(String),
    /// Nothing could run.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl LoadError {
    /// Reads what the compiler, or the engine that takes its code, has to say.
    pub fn from_compile(error: wasmtime::Error) -> Self {
        let text = format!("{error:#}");
        if text.contains("component model async") {
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

/// Takes the two figures out of "… minimum byte size of 268435456 which exceeds the limit of 0x8000000 bytes".
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
