//! From the bytes of a file to a component: what is one stays as it is, a core module becomes one, everything else is refused.

use std::borrow::Cow;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as ADAPTER, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER as COMMAND,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as REACTOR,
};
use wasmparser::{Encoding, Parser, Payload};
use wit_component::ComponentEncoder;

use super::load_error::LoadError;

/// Characters of a text file, bytes of any other, that are shown to tell what it is.
const SHOWN: usize = 16;

/// Makes a component of a file.
///
/// # Errors
/// When it is neither a component nor a core module that can become one.
pub fn componentize(wasm: &[u8]) -> Result<Cow<'_, [u8]>, LoadError> {
    if !wasm.starts_with(b"\0asm") {
        return Err(stranger(wasm));
    }
    let Outline { form, foreign } = read(wasm)?;
    let wrapped = match form {
        Form::Component => return Ok(Cow::Borrowed(wasm)),
        Form::Handler => wrap(wasm, REACTOR),
        Form::Program => wrap(wasm, COMMAND),
        Form::Neither => Err(LoadError::CoreModule),
    };
    // What it was built for says more than why that does not fit here.
    wrapped.map(Cow::Owned).map_err(|error| foreign.unwrap_or(error))
}

/// What there is to see from outside.
struct Outline {
    form: Form,
    /// The host it was built for, if that is a known other one.
    foreign: Option<LoadError>,
}

/// What a WebAssembly file is.
enum Form {
    Component,
    /// A core module that wit-bindgen has prepared.
    Handler,
    /// A core module with a main function.
    Program,
    /// A core module that nothing can be made of.
    Neither,
}

/// Walks through the whole file once, so that one that ends too early is seen before anything is compiled.
fn read(wasm: &[u8]) -> Result<Outline, LoadError> {
    let mut foreign = None;
    let (mut is_component, mut has_world, mut has_start) = (false, false, false);
    for (position, payload) in Parser::new(0).parse_all(wasm).enumerate() {
        match payload.map_err(unreadable)? {
            Payload::Version { encoding, .. } if position == 0 => is_component = encoding == Encoding::Component,
            Payload::CustomSection(section) => has_world |= section.name().starts_with("component-type"),
            Payload::ImportSection(imports) if !is_component => {
                for import in imports.into_imports() {
                    foreign = foreign.or(stranger_among(import.map_err(unreadable)?.module));
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

/// Tells which other host a core module wants, by the name of a module that it imports.
fn stranger_among(module: &str) -> Option<LoadError> {
    let (world, advice) = match module {
        "env" => (
            "what Emscripten and bare C leave for JavaScript to fill in",
            "build it for WASI: wasi-sdk or `clang --target=wasm32-wasi`, and link what is missing",
        ),
        "wbg" | "__wbindgen_placeholder__" => (
            "wasm-bindgen's way to JavaScript",
            "build it with `--target wasm32-wasip2` (or wasip1) instead of wasm32-unknown-unknown",
        ),
        "go" | "gojs" => ("Go's way to JavaScript", "build it with `GOOS=wasip1` instead of `GOOS=js`"),
        "wasi_unstable" => ("a preview of WASI before the first", "build it with a toolchain for preview 1 or 0.2"),
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

/// Tells what a file is that is no WebAssembly.
fn stranger(bytes: &[u8]) -> LoadError {
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
