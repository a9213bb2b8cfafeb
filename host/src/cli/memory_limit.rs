//! How much memory this process may use: the smallest limit of its cgroup (version 1 or 2), or all of the machine.

use std::fs;
use std::path::Path;

/// Version 1 writes numbers near 2^63 for "no limit".
const UNLIMITED: u64 = 1 << 60;

/// A limit, and what imposes it, such as `the memory limit of the cgroup`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MemoryLimit {
    pub(super) bytes: u64,
    pub(super) of: &'static str,
}

/// The limit of this process; `None` if the system reports none. `root` is `/`.
pub(super) fn of_this_process(root: &Path) -> Option<MemoryLimit> {
    let cgroup = of_cgroup(root).map(|bytes| MemoryLimit { bytes, of: "the memory limit of the cgroup" });
    let machine = of_machine(root).map(|bytes| MemoryLimit { bytes, of: "the memory of this machine" });
    cgroup.into_iter().chain(machine).min_by_key(|limit| limit.bytes)
}

fn of_machine(root: &Path) -> Option<u64> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

fn of_cgroup(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        smallest_limit(&root.join(mount), group, file)
    });
    limits.min()
}

/// The smallest limit of a group and those above it. In a container the group may not be visible, but the mount is the group.
fn smallest_limit(mount: &Path, group: &str, file: &str) -> Option<u64> {
    let limit = |group: &Path| fs::read_to_string(mount.join(group).join(file)).ok()?.trim().parse::<u64>().ok();
    Path::new(group).ancestors().filter_map(limit).filter(|bytes| *bytes < UNLIMITED).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root directory with these files.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n");

    #[test]
    fn version_2_takes_the_smallest_limit_on_the_way_up() {
        let root = root(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/system.slice/jobq.service\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "1048576\n"),
            ("sys/fs/cgroup/system.slice/jobq.service/memory.max", "max\n"),
        ]);
        let expected = MemoryLimit { bytes: 1 << 20, of: "the memory limit of the cgroup" };
        assert_eq!(of_this_process(root.path()), Some(expected));
    }

    #[test]
    fn version_1_is_read_even_if_the_group_is_not_visible() {
        let root = root(&[
            MEMINFO,
            ("proc/self/cgroup", "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n"),
        ]);
        assert_eq!(of_this_process(root.path()).unwrap().bytes, 4096);
    }

    #[test]
    fn without_a_limit_it_is_the_memory_of_the_machine() {
        let unlimited = "9223372036854771712\n";
        let root = root(&[
            MEMINFO,
            ("proc/self/cgroup", "4:memory:/\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited),
        ]);
        let expected = MemoryLimit { bytes: 2 << 20, of: "the memory of this machine" };
        assert_eq!(of_this_process(root.path()), Some(expected));
        assert_eq!(of_this_process(&root.path().join("nowhere")), None);
    }
}
