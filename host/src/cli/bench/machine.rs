//! What the figures were measured on: they mean nothing without it.

use std::path::Path;

use serde::Serialize;

use crate::queue::sqlite;
use crate::sandbox;

/// The machine, as it was before the bench, and what jobq is made of.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    pub(super) cores: usize,
    pub(super) cpu: Option<String>,
    pub(super) kernel: String,
    /// Of the directory that the queue was made in.
    pub(super) file_system: Option<String>,
    /// Jobs that wanted a core in the minute before.
    pub(super) load_before: Option<f64>,
    pub(super) jobq: &'static str,
    /// Whether the compiler optimised it: figures of a build that is not optimised say nothing.
    pub(super) optimised: bool,
    pub(super) sqlite: &'static str,
    pub(super) wasmtime: &'static str,
}

impl Machine {
    /// Looks at it; `dir` is where the queue will be.
    pub(super) fn detect(dir: &Path) -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: cpu(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            file_system: file_system(dir),
            load_before: load(),
            jobq: env!("CARGO_PKG_VERSION"),
            optimised: !cfg!(debug_assertions),
            sqlite: sqlite::version(),
            wasmtime: sandbox::version(),
        }
    }

    /// One line for people.
    pub(super) fn text(&self) -> String {
        let unknown = || "unknown".to_owned();
        let warning = if self.optimised { "" } else { "\nnot an optimised build: these figures say nothing" };
        format!(
            "{} cores ({}), Linux {}, {}, load {} before; jobq {}, SQLite {}, wasmtime {}{warning}",
            self.cores,
            self.cpu.clone().unwrap_or_else(unknown),
            self.kernel,
            self.file_system.clone().unwrap_or_else(unknown),
            self.load_before.map_or_else(unknown, |load| load.to_string()),
            self.jobq,
            self.sqlite,
            self.wasmtime,
        )
    }
}

fn cpu() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

fn file_system(dir: &Path) -> Option<String> {
    of_mounts(&std::fs::read_to_string("/proc/self/mountinfo").ok()?, &dir.canonicalize().ok()?)
}

/// The type of the file system that `dir` lies on: of the mounts above it the nearest, and of those the last one made.
fn of_mounts(mounts: &str, dir: &Path) -> Option<String> {
    let above = mounts.lines().filter_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?.replace("\\040", " ");
        dir.starts_with(&point).then(|| (point.len(), source.split(' ').next().unwrap_or_default().to_owned()))
    });
    above.max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_that_of_the_nearest_mount() {
        let mounts = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /dev/shm rw,nosuid - tmpfs tmpfs rw
24 22 0:22 / /my\\040disk rw shared:1 - btrfs /dev/vdb rw";
        let of = |dir: &str| of_mounts(mounts, Path::new(dir)).unwrap();
        assert_eq!([of("/dev/shm/x"), of("/dev/shmx"), of("/my disk/q"), of("/")], ["tmpfs", "ext4", "btrfs", "ext4"]);
    }
}
