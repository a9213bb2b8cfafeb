//! File and line of a guest's code, from the debug information (DWARF) that its file carries.
//!
//! wasmtime can look them up by itself, but reads everything anew for each frame, on the thread that runs other guests.
//! Here it is read once a trap, on a thread where it may take its time, and within bounds: the file may be hostile.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use addr2line::Context;
use gimli::{Dwarf, EndianSlice, LittleEndian};
use wasmparser::{Name, NameSectionReader, Parser, Payload};

/// Debug information beyond this is not looked at. An optimised Rust handler has 0.3 MiB, an unoptimised one 4 MiB.
const MOST_BYTES: usize = 32 << 20;

/// The same for the tables of lines: each of their bytes may be a row of 24 in the memory of the host.
const MOST_LINES: usize = 2 << 20;

/// How long one trace is looked up; frames that are not reached by then stay without their lines.
const PATIENCE: Duration = Duration::from_millis(200);

/// The debug information of the one module of a component that has any.
pub(super) struct DebugInfo {
    /// The name of the module, by which frames say where they are.
    module: Option<String>,
    /// Where its code begins; DWARF counts from there.
    code: u64,
    sections: BTreeMap<String, Vec<u8>>,
    /// A trap of many guests at once does not take the memory of many look-ups.
    one_at_a_time: Mutex<()>,
}

/// Where a frame is in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) module: Option<String>,
    pub(super) offset: Option<u64>,
}

/// A module on the way through a component.
#[derive(Default)]
struct Module {
    name: Option<String>,
    code: u64,
    sections: BTreeMap<String, Vec<u8>>,
}

impl DebugInfo {
    /// Takes it out of a component; `None` where there is none, or too much of it.
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
                        return module.within_bounds();
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The line of the source for each address, `src/lib.rs:12:5`, where it is known; none where nobody wants them any
    /// more when their turn has come.
    ///
    /// Only the tables of lines are read. The tree of functions would tell which were inlined, but whoever walks it follows
    /// a hostile file as deep as that likes.
    pub(super) fn places(&self, addresses: &[Address], is_wanted: impl Fn() -> bool) -> Vec<Option<String>> {
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
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
            (started.elapsed() < PATIENCE).then(|| look_up(&context, offset.checked_sub(self.code)?))?
        };
        addresses.iter().map(known).collect()
    }
}

impl Module {
    fn within_bounds(self) -> Option<DebugInfo> {
        let bytes: usize = self.sections.values().map(Vec::len).sum();
        let lines = self.sections.get(".debug_line").map_or(0, Vec::len);
        if bytes > MOST_BYTES || lines > MOST_LINES {
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
