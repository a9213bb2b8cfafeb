//! componentize WIT_DIR IN OUT
//!
//! Makes a component of IN, a core module as bytes or text.
//! A module that does not say which world it is made for is taken for a handler of WIT_DIR.
//! Text that is a component already is only translated.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use wasi_preview1_component_adapter_provider as adapters;
use wit_component::{ComponentEncoder, StringEncoding};

fn main() -> Result<()> {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [wit, input, output] = &args[..] else {
        bail!("usage: componentize WIT_DIR IN OUT");
    };
    let component =
        component(wit, input).with_context(|| format!("failed to make a component of `{}`", input.display()))?;
    std::fs::write(output, component).with_context(|| format!("failed to write `{}`", output.display()))
}

fn component(wit: &Path, input: &Path) -> Result<Vec<u8>> {
    let mut wasm = wat::parse_file(input)?;
    if wasmparser::Parser::is_component(&wasm) {
        return Ok(wasm);
    }
    let module = Module::read(&wasm)?;
    if !module.has_world && !module.is_program {
        let mut resolve = wit_parser::Resolve::default();
        let (package, _) = resolve.push_path(wit)?;
        let world = resolve.select_world(&[package], Some("job-handler"))?;
        wit_component::embed_component_metadata(&mut wasm, &resolve, world, StringEncoding::UTF8)?;
    }
    let adapter = if module.is_program {
        adapters::WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER
    } else {
        adapters::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER
    };
    ComponentEncoder::default()
        .module(&wasm)?
        .adapter(adapters::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter)?
        .validate(true)
        .encode()
}

/// What a core module tells about itself.
#[derive(Default)]
struct Module {
    /// wit-bindgen left the world it was made for.
    has_world: bool,
    /// It exports `_start`.
    is_program: bool,
}

impl Module {
    fn read(wasm: &[u8]) -> Result<Module> {
        use wasmparser::Payload;

        let mut module = Module::default();
        for payload in wasmparser::Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::CustomSection(section) => module.has_world |= section.name().starts_with("component-type"),
                Payload::ExportSection(exports) => {
                    for export in exports {
                        module.is_program |= export?.name == "_start";
                    }
                }
                _ => {}
            }
        }
        Ok(module)
    }
}
