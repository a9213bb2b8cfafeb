//! What a process uses: time of the cores, wake-ups, memory. From Linux's `/proc`.

use std::fs;
use std::io;
use std::time::Duration;

/// What a process has used since its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vitals {
    /// Time on a core, of all its threads that live.
    pub(super) cpu: Duration,
    /// How often one of its threads that live went to sleep by itself, to be woken later.
    pub(super) wakeups: u64,
    /// How many threads it has.
    pub(super) threads: usize,
    /// Bytes of memory that it holds.
    pub(super) rss: u64,
    /// The most it held.
    pub(super) peak_rss: u64,
}

impl Vitals {
    /// Of this process.
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        let (mut cpu, mut wakeups, mut threads) = (0, 0, 0);
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let thread = thread?.path();
            let Ok(schedule) = fs::read_to_string(thread.join("schedstat")) else { continue };
            let Ok(status) = fs::read_to_string(thread.join("status")) else { continue };
            cpu += schedule.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
            wakeups += number(&status, "voluntary_ctxt_switches:");
            threads += 1;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let bytes = |key| number(&status, key) * 1024;
        Ok(Self { cpu: Duration::from_nanos(cpu), wakeups, threads, rss: bytes("VmRSS:"), peak_rss: bytes("VmHWM:") })
    }

    /// Of the process that asks.
    pub(super) fn of_self() -> io::Result<Self> {
        Self::of(std::process::id())
    }
}

/// Bytes as MB, of which there are a million in one.
pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The number behind a key of `status`; 0 where it is missing.
fn number(status: &str, key: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_thread_is_seen() {
        let before = Vitals::of_self().unwrap();
        let memory = vec![1_u8; 8 << 20];
        while Vitals::of_self().unwrap().cpu < before.cpu + Duration::from_millis(20) {}
        let after = Vitals::of_self().unwrap();
        assert!(after.threads > 0 && after.rss > 0 && after.peak_rss >= after.rss, "{after:?}");
        assert!(after.peak_rss >= before.peak_rss.max(memory.len() as u64), "{before:?} {after:?}");
    }

    #[test]
    fn a_key_is_not_taken_for_a_longer_one() {
        let status = "nonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t5\nVmRSS:\t  12 kB\n";
        assert_eq!(number(status, "voluntary_ctxt_switches:"), 5);
        assert_eq!(number(status, "VmRSS:"), 12);
        assert_eq!(number(status, "VmHWM:"), 0);
    }
}
