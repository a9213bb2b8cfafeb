//! How many things of the host (files, streams, timers) a guest may hold at once.
//!
//! Each may be a file descriptor, and when a process has none left, its databases and its other guests fail.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than any honest guest needs.
const MOST: usize = 1_000;

/// A language runtime starts with about a dozen.
const FEWEST: usize = 64;

/// File descriptors that are left to the host.
const RESERVED: u64 = 256;

/// Shares what the system allows among `guests`, after asking it for as much as it has to give.
pub(super) fn per_guest(guests: u32) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = u64::from(guests) * MOST as u64 + RESERVED;
    let Some(now) = current.filter(|&now| now < wanted) else { return MOST };
    let raised = maximum.map_or(wanted, |maximum| wanted.min(maximum));
    let got = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => raised,
        Err(_) => now,
    };
    let share = got.saturating_sub(RESERVED) / u64::from(guests);
    usize::try_from(share).unwrap_or(MOST).clamp(FEWEST, MOST)
}
