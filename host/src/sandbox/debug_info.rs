//! File and line of a guest's code, from the debug information (DWARF) in its file.
//!
//! wasmtime can look them up too, but it reads everything again for each frame, on a thread that runs other guests.
//! This module reads it once per trap, on a separate thread and with limits, because the file may be hostile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use addr2line::Context;
use gimli::{Dwarf, EndianSlice, LittleEndian};
use parking_lot::Mutex;
use wasmparser::{Name, NameSectionReader, Parser, Payload};

/// Larger debug information is ignored. An optimised Rust handler has 0.3 MiB, an unoptimised one 4 MiB.
const MAX_BYTES: usize = 32 << 20;

/// Larger line tables are ignored. Each byte may become a row of 24 bytes in the host's memory.
const MAX_LINES: usize = 2 << 20;

/// How long the lookup of one trace may take; the remaining frames have no lines.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(200);

/// The debug information of the first module of a component that has any.
pub(super) struct DebugInfo {
    /// The name of the module, as frames refer to it.
    module: Option<String>,
    /// The offset of its code section, which DWARF addresses are relative to.
    code: u64,
    sections: BTreeMap<String, Vec<u8>>,
    /// Limits the memory in use when many guests trap at once.
    one_at_a_time: Mutex<()>,
}

/// The position of a frame in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) module: Option<String>,
    pub(super) offset: Option<u64>,
}

/// A module while its component is being parsed.
#[derive(Default)]
struct Module {
    name: Option<String>,
    code: u64,
    sections: BTreeMap<String, Vec<u8>>,
}

impl DebugInfo {
    /// Reads it from a component; `None` if there is none or too much.
    pub(super) fn of(component: &[u8]) -> Option<Self> {
        let mut open: Vec<Module> = Vec::new();
        for payload in Parser::new(0).parse_all(component) {
            match payload.ok()? {
                Payload::Version { .. } => open.push(Module::default()),
                Payload::CodeSectionStart { range, .. } => open.last_mut()?.code = range.start as u64,
                Payload::CustomSection(section) if section.name().starts_with(".debug_") => {
                    open.last_mut()?.sections.insert(section.name().to_owned(), section.data().to_vec());
                }
                Payload::CustomSection(section) if section.name() == "name" => {
                    let mut names = NameSectionReader::new(wasmparser::BinaryReader::new(section.data(), 0));
                    open.last_mut()?.name = names.find_map(|name| match name {
                        Ok(Name::Module { name, .. }) => Some(name.to_owned()),
                        _ => None,
                    });
                }
                Payload::End(_) => {
                    let module = open.pop()?;
                    if module.sections.contains_key(".debug_line") {
                        return module.within_limits();
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The source location of each address, such as `src/lib.rs:12:5`, if known. Empty if `is_wanted` is false by the time
    /// this lookup gets its turn.
    ///
    /// Only the line tables are read. The function tree would also show inlined functions, but a hostile file can nest
    /// them without end.
    pub(super) fn locations(&self, addresses: &[Address], is_wanted: impl Fn() -> bool) -> Vec<Option<String>> {
        let _alone = self.one_at_a_time.lock();
        if !is_wanted() {
            return Vec::new();
        }
        let started = Instant::now();
        let section = |id: gimli::SectionId| {
            let bytes = self.sections.get(id.name()).map_or(&[][..], Vec::as_slice);
            Ok::<_, gimli::Error>(EndianSlice::new(bytes, LittleEndian))
        };
        let Ok(context) = Dwarf::load(section).and_then(Context::from_dwarf) else { return Vec::new() };
        let known = |address: &Address| {
            let offset = address.offset.filter(|_| address.module == self.module)?;
            (started.elapsed() < LOOKUP_TIMEOUT).then(|| look_up(&context, offset.checked_sub(self.code)?))?
        };
        addresses.iter().map(known).collect()
    }
}

impl Module {
    fn within_limits(self) -> Option<DebugInfo> {
        let bytes: usize = self.sections.values().map(Vec::len).sum();
        let lines = self.sections.get(".debug_line").map_or(0, Vec::len);
        if bytes > MAX_BYTES || lines > MAX_LINES {
            return None;
        }
        let Self { name, code, sections } = self;
        Some(DebugInfo { module: name, code, sections, one_at_a_time: Mutex::new(()) })
    }
}

fn look_up(context: &Context<EndianSlice<'_, LittleEndian>>, address: u64) -> Option<String> {
    let location = context.find_location(address).ok()??;
    let (file, line) = (location.file?, location.line?);
    Some(location.column.map_or(format!("{file}:{line}"), |column| format!("{file}:{line}:{column}")))
}
