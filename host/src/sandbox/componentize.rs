//! Turns the bytes of a file into a component: keeps a component as it is, converts a core module, refuses everything else.

use std::borrow::Cow;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as ADAPTER, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER as COMMAND,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as REACTOR,
};
use wasmparser::{Encoding, Parser, Payload};
use wit_component::ComponentEncoder;

use super::load_error::LoadError;

/// Characters of a text file, or bytes of any other, that an error message shows.
const SHOWN: usize = 16;

/// Turns a file into a component.
///
/// # Errors
/// When it is neither a component nor a core module that can become one.
pub fn componentize(wasm: &[u8]) -> Result<Cow<'_, [u8]>, LoadError> {
    if !wasm.starts_with(b"\0asm") {
        return Err(not_wasm(wasm));
    }
    let Outline { form, foreign } = outline(wasm)?;
    let wrapped = match form {
        Form::Component => return Ok(Cow::Borrowed(wasm)),
        Form::Handler => wrap(wasm, REACTOR),
        Form::Program => wrap(wasm, COMMAND),
        Form::Neither => Err(LoadError::CoreModule),
    };
    // The host it was built for is a better explanation than the encoder's error.
    wrapped.map(Cow::Owned).map_err(|error| foreign.unwrap_or(error))
}

/// What parsing the file shows about it.
struct Outline {
    form: Form,
    /// The error for a module built for another known host.
    foreign: Option<LoadError>,
}

/// The kinds of WebAssembly files.
enum Form {
    Component,
    /// A core module with the `component-type` section of wit-bindgen.
    Handler,
    /// A core module with a main function.
    Program,
    /// A core module with neither.
    Neither,
}

/// Parses the whole file once, so that a truncated file is detected before anything is compiled.
fn outline(wasm: &[u8]) -> Result<Outline, LoadError> {
    let mut foreign = None;
    let (mut is_component, mut has_world, mut has_start) = (false, false, false);
    for (position, payload) in Parser::new(0).parse_all(wasm).enumerate() {
        match payload.map_err(unreadable)? {
            Payload::Version { encoding, .. } if position == 0 => is_component = encoding == Encoding::Component,
            Payload::CustomSection(section) => has_world |= section.name().starts_with("component-type"),
            Payload::ImportSection(imports) if !is_component => {
                for import in imports.into_imports() {
                    foreign = foreign.or(foreign_host(import.map_err(unreadable)?.module));
                }
            }
            Payload::ExportSection(exports) if !is_component => {
                for export in exports {
                    has_start |= export.map_err(unreadable)?.name == "_start";
                }
            }
            _ => {}
        }
    }
    let form = match (is_component, has_world, has_start) {
        (true, ..) => Form::Component,
        (false, true, _) => Form::Handler,
        (false, false, true) => Form::Program,
        (false, false, false) => Form::Neither,
    };
    Ok(Outline { form, foreign })
}

/// The error for a core module that another host would run, by the name of a module it imports.
fn foreign_host(module: &str) -> Option<LoadError> {
    let (world, advice) = match module {
        "env" => (
            "where Emscripten and freestanding C expect functions from JavaScript",
            "build it for WASI: wasi-sdk or `clang --target=wasm32-wasi`, and link the missing functions",
        ),
        "wbg" | "__wbindgen_placeholder__" => (
            "wasm-bindgen's interface to JavaScript",
            "build it with `--target wasm32-wasip2` (or wasip1) instead of wasm32-unknown-unknown",
        ),
        "go" | "gojs" => ("Go's interface to JavaScript", "build it with `GOOS=wasip1` instead of `GOOS=js`"),
        "wasi_unstable" => ("a version of WASI before preview 1", "build it with a toolchain for preview 1 or 0.2"),
        "wasix_32v1" | "wasix_64v1" => ("WASIX, which only Wasmer runs", "build it for WASI"),
        _ => return None,
    };
    Some(LoadError::Foreign { module: module.to_owned(), world, advice })
}

fn wrap(module: &[u8], adapter: &[u8]) -> Result<Vec<u8>, LoadError> {
    ComponentEncoder::default()
        .module(module)
        .and_then(|encoder| encoder.adapter(ADAPTER, adapter))
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| LoadError::Encode(format!("{error:#}")))
}

fn unreadable(error: wasmparser::BinaryReaderError) -> LoadError {
    if error.message().starts_with("unexpected end") {
        LoadError::Truncated
    } else {
        LoadError::Invalid(error.to_string())
    }
}

/// The error for a file that isn't WebAssembly: what it is instead.
fn not_wasm(bytes: &[u8]) -> LoadError {
    const NATIVE: [&[u8]; 5] = [b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xcf", b"\xca\xfe\xba\xbe"];
    if bytes.is_empty() {
        return LoadError::Empty;
    }
    if b"\0asm".starts_with(bytes) {
        return LoadError::Truncated;
    }
    if NATIVE.iter().any(|magic| bytes.starts_with(magic)) {
        return LoadError::Native;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => match text.trim_start() {
            text if text.starts_with("(module") || text.starts_with("(component") => LoadError::Wat,
            text => LoadError::Text(text.chars().take(SHOWN).collect()),
        },
        _ => LoadError::NotWasm(hex::encode(&bytes[..bytes.len().min(SHOWN)])),
    }
}
