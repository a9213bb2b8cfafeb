//! What a process uses: time of the cores and wake-ups by thread, memory. From Linux's `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::AddAssign;
use std::path::Path;
use std::time::Duration;

/// A process at one moment.
#[derive(Clone, Debug)]
pub(super) struct ProcessUsage {
    /// Bytes of memory that it holds.
    pub(super) rss: u64,
    /// The most it held.
    pub(super) peak_rss: u64,
    /// Its threads by their number.
    threads: BTreeMap<u32, Thread>,
}

#[derive(Clone, Debug)]
struct Thread {
    name: String,
    used: ThreadUsage,
}

/// What a thread, or some of one name, has used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadUsage {
    pub(super) threads: usize,
    /// Time on a core.
    pub(super) cpu: Duration,
    /// How often it had gone to sleep by itself, to be woken later.
    pub(super) wakeups: u64,
}

impl AddAssign for ThreadUsage {
    fn add_assign(&mut self, other: Self) {
        self.threads += other.threads;
        self.cpu += other.cpu;
        self.wakeups += other.wakeups;
    }
}

impl ProcessUsage {
    /// Of this process.
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let entry = entry?;
            let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // One that has ended since the directory was read is no longer there.
            let Ok(mut thread) = Thread::read(&entry.path()) else { continue };
            if number == pid {
                // It has the name of the program's file, whatever that was.
                "main".clone_into(&mut thread.name);
            }
            threads.insert(number, thread);
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let bytes = |key| number(&status, key) * 1024;
        Ok(Self { rss: bytes("VmRSS:"), peak_rss: bytes("VmHWM:"), threads })
    }

    /// Of the process that asks.
    pub(super) fn of_self() -> io::Result<Self> {
        Self::of(std::process::id())
    }

    /// What the threads that live have used since `earlier`, by their names.
    pub(super) fn since(&self, earlier: &Self) -> BTreeMap<String, ThreadUsage> {
        let mut used = BTreeMap::<String, ThreadUsage>::new();
        for (number, thread) in &self.threads {
            let before = earlier.threads.get(number).map(|thread| thread.used).unwrap_or_default();
            *used.entry(thread.name.clone()).or_default() += ThreadUsage {
                threads: 1,
                cpu: thread.used.cpu.saturating_sub(before.cpu),
                wakeups: thread.used.wakeups.saturating_sub(before.wakeups),
            };
        }
        used
    }
}

impl Thread {
    fn read(dir: &Path) -> io::Result<Self> {
        let name = fs::read_to_string(dir.join("comm"))?.trim_end().to_owned();
        let schedule = fs::read_to_string(dir.join("schedstat"))?;
        let nanoseconds = schedule.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
        let status = fs::read_to_string(dir.join("status"))?;
        let wakeups = number(&status, "voluntary_ctxt_switches:");
        Ok(Self { name, used: ThreadUsage { threads: 1, cpu: Duration::from_nanos(nanoseconds), wakeups } })
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
    use std::sync::mpsc::{RecvTimeoutError, channel};

    use super::*;

    #[test]
    fn a_busy_thread_and_a_sleepy_one_are_told_apart() {
        let before = ProcessUsage::of_self().unwrap();
        let used =
            move |name: &str| ProcessUsage::of_self().unwrap().since(&before).get(name).copied().unwrap_or_default();
        let (stop, stopped) = channel::<()>();
        let sleepy = std::thread::Builder::new()
            .name("sleepy".into())
            .spawn(move || while stopped.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {});
        let busy = std::thread::Builder::new().name("busy".into()).spawn(move || {
            while used("sleepy").wakeups < 20 || used("busy").cpu < Duration::from_millis(20) {}
            (used("sleepy"), used("busy"))
        });
        let (sleepy_used, busy_used) = busy.unwrap().join().unwrap();
        drop(stop);
        sleepy.unwrap().join().unwrap();
        assert_eq!((sleepy_used.threads, busy_used.threads), (1, 1));
        assert!(busy_used.cpu > sleepy_used.cpu, "{busy_used:?} {sleepy_used:?}");
    }

    #[test]
    fn memory_is_seen() {
        let memory = vec![1_u8; 8 << 20];
        let usage = ProcessUsage::of_self().unwrap();
        assert!(usage.rss > memory.len() as u64 && usage.peak_rss >= usage.rss, "{usage:?}");
    }

    #[test]
    fn a_key_is_not_taken_for_a_longer_one() {
        let status = "nonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t5\nVmRSS:\t  12 kB\n";
        assert_eq!(number(status, "voluntary_ctxt_switches:"), 5);
        assert_eq!(number(status, "VmRSS:"), 12);
        assert_eq!(number(status, "VmHWM:"), 0);
    }
}
