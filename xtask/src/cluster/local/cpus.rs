//! A made-up CPU topology for nodes. A node claims more CPUs than a small host has, since a manifest
//! that asks for two whole CPUs must be schedulable beside the system's own pods on a two-core machine.
//!
//! The kubelet counts CPUs per NUMA node in sysfs, so the node's init mounts a tree there in which
//! every NUMA node holds the host's real CPUs again: the count grows, while the set of CPU numbers,
//! which the kubelet writes into cpusets, stays one that the kernel accepts.

use std::{fs, io, path::Path};

/// Writes the tree for at least `cpus` CPUs on a host that has `real` of them.
pub fn write(dir: &Path, cpus: u16, real: u16) -> io::Result<()> {
    let real = real.max(1);
    let nodes = cpus.div_ceil(real).max(1);
    let memory = meminfo(&fs::read_to_string("/proc/meminfo")?);
    for number in 0..nodes {
        let node = dir.join(format!("node{number}"));
        for cpu in 0..real {
            let topology = node.join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology)?;
            fs::write(topology.join("core_id"), format!("{cpu}\n"))?;
            fs::write(topology.join("physical_package_id"), "0\n")?;
        }
        fs::write(node.join("cpulist"), range(real))?;
        fs::write(
            node.join("distance"),
            vec!["10"; usize::from(nodes)].join(" ") + "\n",
        )?;
        fs::write(
            node.join("meminfo"),
            memory.replace("Node 0", &format!("Node {number}")),
        )?;
        fs::create_dir_all(node.join("hugepages"))?;
    }
    for file in ["online", "possible", "has_cpu"] {
        fs::write(dir.join(file), range(nodes))?;
    }
    Ok(())
}

/// CPUs of this host.
pub fn of_host() -> u16 {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    u16::try_from(cpus).unwrap_or(u16::MAX)
}

fn range(count: u16) -> String {
    format!("0-{}\n", count.saturating_sub(1))
}

/// The host's memory in the form of a NUMA node's file.
fn meminfo(proc: &str) -> String {
    proc.lines()
        .filter(|line| line.starts_with("MemTotal:") || line.starts_with("MemFree:"))
        .map(|line| format!("Node 0 {line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_that_of_the_host() {
        let proc = "MemTotal:       24612345 kB\nMemFree:  1 kB\nBuffers: 2 kB\n";
        assert_eq!(
            meminfo(proc),
            "Node 0 MemTotal:       24612345 kB\nNode 0 MemFree:  1 kB\n"
        );
    }

    #[test]
    fn cpus_are_counted_again_but_keep_their_numbers() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 7, 2).unwrap();
        for node in 0..4 {
            let node = dir.path().join(format!("node{node}"));
            assert!(node.join("cpu1/topology/core_id").exists());
            assert!(!node.join("cpu2").exists());
        }
        assert!(!dir.path().join("node4").exists());
        assert_eq!(
            fs::read_to_string(dir.path().join("online")).unwrap(),
            "0-3\n"
        );
    }
}
