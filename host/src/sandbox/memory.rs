//! Memory of one attempt: all its memories and tables together, in bytes.

use bytesize::ByteSize;
use wasmtime::ResourceLimiter;

/// Elements a table may have. StarlingMonkey has 7,700.
pub(super) const TABLE_ELEMENTS: usize = 20_000;

/// What an element of a table takes.
const ELEMENT: usize = size_of::<usize>();

/// Adds up what a guest holds and refuses what goes over the limit.
///
/// A growth that is allowed here and fails all the same stays counted: wasmtime reports such failures also for growths
/// it never asked about, so taking them back would let a guest talk its account down.
#[derive(Debug)]
pub(super) struct Memory {
    limit: usize,
    held: usize,
    peak: usize,
    refused: Option<Refused>,
}

/// The first growth that was refused.
#[derive(Clone, Copy, Debug)]
enum Refused {
    Bytes { held: usize, wanted: usize },
    Table { elements: usize },
}

impl Memory {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, held: 0, peak: 0, refused: None }
    }

    /// The most it held at once.
    pub(super) fn peak(&self) -> u64 {
        self.peak as u64
    }

    /// Tells what was refused, if anything was.
    pub(super) fn refusal(&self) -> Option<String> {
        Some(match self.refused? {
            Refused::Bytes { held, wanted } => {
                let [limit, held, wanted] = [self.limit, held, wanted].map(|bytes| ByteSize::b(bytes as u64));
                format!("it held {held} of its memory limit of {limit} and asked for {wanted} more")
            }
            Refused::Table { elements } => {
                format!("it asked for a table of {elements} elements, more than the {TABLE_ELEMENTS} any may have")
            }
        })
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

/// A refused growth is an answer the guest can live with: `memory.grow` says -1, `malloc` says null.
impl ResourceLimiter for Memory {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(fits(desired, maximum) && self.grow(desired.saturating_sub(current)))
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // Here the maximum is the smaller of the guest's own and that of the pool.
        if desired > TABLE_ELEMENTS && fits(TABLE_ELEMENTS, maximum) {
            self.refused.get_or_insert(Refused::Table { elements: desired });
            return Ok(false);
        }
        Ok(fits(desired, maximum) && self.grow(desired.saturating_sub(current).saturating_mul(ELEMENT)))
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

/// Whether it is within the bounds that the guest has set for itself.
fn fits(desired: usize, maximum: Option<usize>) -> bool {
    maximum.is_none_or(|maximum| desired <= maximum)
}
