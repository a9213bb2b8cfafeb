//! What can be read from a `.wasm` without running it: its form, the tools that produced it, the names it has for traces.

use std::collections::BTreeSet;

use wasmparser::{BinaryReader, Encoding, Parser, Payload, ProducersSectionReader};

/// The form of a WebAssembly file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A component.
    Component,
    /// A core module, which becomes a component when it is loaded.
    CoreModule,
}

/// A tool that produced the file, from its `producers` sections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tool {
    /// `language`, `processed-by` or `sdk`.
    pub role: String,
    /// Its name.
    pub name: String,
    /// Its version; often empty.
    pub version: String,
}

/// The metadata of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Component or core module.
    pub form: Form,
    /// The tools that produced it, each once.
    pub tools: BTreeSet<Tool>,
    /// Whether stack frames show function names.
    pub has_names: bool,
    /// Whether stack frames show file and line.
    pub has_lines: bool,
}

impl Metadata {
    /// Reads a file as far as it is valid WebAssembly; `None` if it isn't WebAssembly at all.
    pub fn of(wasm: &[u8]) -> Option<Self> {
        let mut found = Self { form: Form::CoreModule, tools: BTreeSet::new(), has_names: false, has_lines: false };
        for (position, payload) in Parser::new(0).parse_all(wasm).enumerate() {
            match payload {
                Ok(Payload::Version { encoding: Encoding::Component, .. }) if position == 0 => {
                    found.form = Form::Component;
                }
                Ok(Payload::CustomSection(section)) => match section.name() {
                    "producers" => found.tools.extend(tools(section.data()).unwrap_or_default()),
                    "name" => found.has_names = true,
                    ".debug_line" => found.has_lines = true,
                    _ => {}
                },
                Ok(_) => {}
                Err(_) if position == 0 => return None,
                Err(_) => break,
            }
        }
        Some(found)
    }
}

fn tools(section: &[u8]) -> wasmparser::Result<Vec<Tool>> {
    let mut tools = Vec::new();
    for field in ProducersSectionReader::new(BinaryReader::new(section, 0))? {
        let field = field?;
        for value in field.values {
            let value = value?;
            let (role, name, version) = (field.name.to_owned(), value.name.to_owned(), value.version.to_owned());
            tools.push(Tool { role, name, version });
        }
    }
    Ok(tools)
}
