//! The memory limit of one attempt: all its memories and tables together, in bytes.

use bytesize::ByteSize;
use wasmtime::ResourceLimiter;

use super::host_shortage::is_shortage;

/// Elements a table may have. StarlingMonkey has 7,700.
pub(super) const TABLE_ELEMENTS: usize = 20_000;

/// Bytes of a table element.
const ELEMENT: usize = size_of::<usize>();

/// Adds up what a guest holds, and refuses growth beyond the limit.
///
/// A growth that is allowed here and then fails stays counted. wasmtime also reports failures of growths that it never
/// asked about, so subtracting them would let a guest lower its count.
#[derive(Debug)]
pub(super) struct Memory {
    limit: usize,
    held: usize,
    peak: usize,
    refused: Option<Refused>,
    /// The first growth within the limit that the system refused.
    refused_by_host: Option<String>,
}

/// The first growth that was refused.
#[derive(Clone, Copy, Debug)]
enum Refused {
    Bytes { held: usize, wanted: usize },
    Table { elements: usize },
}

impl Memory {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, held: 0, peak: 0, refused: None, refused_by_host: None }
    }

    /// The most that was held at once.
    pub(super) fn peak(&self) -> u64 {
        self.peak as u64
    }

    /// Why the limit refused a growth, if it did.
    pub(super) fn refusal(&self) -> Option<String> {
        Some(match self.refused? {
            Refused::Bytes { held, wanted } => {
                let [limit, held, wanted] = [self.limit, held, wanted].map(|bytes| ByteSize::b(bytes as u64));
                format!("it held {held} of its memory limit of {limit} and asked for {wanted} more")
            }
            Refused::Table { elements } => {
                format!("it asked for a table of {elements} elements, more than the maximum of {TABLE_ELEMENTS}")
            }
        })
    }

    /// Why the system refused a growth within the limit, if it did.
    pub(super) fn host_refusal(&self) -> Option<&str> {
        self.refused_by_host.as_deref()
    }

    fn note_failure(&mut self, error: &wasmtime::Error) {
        if is_shortage(error.as_ref()) {
            self.refused_by_host.get_or_insert_with(|| format!("{error:#}"));
        }
    }

    fn grow(&mut self, by: usize) -> bool {
        let total = self.held.saturating_add(by);
        if total > self.limit {
            self.refused.get_or_insert(Refused::Bytes { held: self.held, wanted: by });
            return false;
        }
        self.held = total;
        self.peak = self.peak.max(total);
        true
    }
}

/// A guest survives a refused growth: `memory.grow` returns -1, `malloc` returns null.
impl ResourceLimiter for Memory {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(fits(desired, maximum) && self.grow(desired.saturating_sub(current)))
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // This maximum is the smaller of the guest's own and that of the pool.
        if desired > TABLE_ELEMENTS && fits(TABLE_ELEMENTS, maximum) {
            self.refused.get_or_insert(Refused::Table { elements: desired });
            return Ok(false);
        }
        Ok(fits(desired, maximum) && self.grow(desired.saturating_sub(current).saturating_mul(ELEMENT)))
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.note_failure(&error);
        Ok(())
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.note_failure(&error);
        Ok(())
    }

    fn instances(&self) -> usize {
        64
    }

    fn tables(&self) -> usize {
        64
    }

    fn memories(&self) -> usize {
        16
    }
}

/// Whether it is within the maximum that the guest itself declared.
fn fits(desired: usize, maximum: Option<usize>) -> bool {
    maximum.is_none_or(|maximum| desired <= maximum)
}
