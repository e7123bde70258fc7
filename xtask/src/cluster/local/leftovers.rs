//! What is on this host that a cluster may leave behind, as plain lines that can be compared before
//! and after.

use std::{collections::BTreeSet, fs};

use super::cgroup;
use crate::run::Cmd;

/// Processes, mounts, links, network namespaces, routes, firewall rules and cgroups that carry our marks.
pub fn leftovers() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    found.extend(processes());
    found.extend(lines("mount", "cat", &["/proc/self/mountinfo"], |line| {
        line.contains("/virtmark/clusters/")
    }));
    found.extend(lines("link", "ip", &["-o", "link"], |line| {
        line.contains(": vmk")
    }));
    found.extend(lines("route", "ip", &["route"], |line| {
        line.contains("vmk")
    }));
    found.extend(lines("netns", "ip", &["netns", "list"], |_| true));
    found.extend(lines("rule", "iptables-save", &[], |line| {
        line.contains("KUBE") || line.contains("vmk")
    }));
    found.extend(
        cgroup::existing("virtmark-")
            .into_iter()
            .map(|path| format!("cgroup {path}")),
    );
    found
}

/// Programs that run from a cluster's directory or on its behalf.
fn processes() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name
            .to_str()
            .filter(|n| n.bytes().all(|b| b.is_ascii_digit()))
        else {
            continue;
        };
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        if words.contains("/virtmark/clusters/") || words.contains("containerd-shim-runc-v2") {
            found.insert(format!("process {pid} {words}"));
        }
    }
    found
}

fn lines(
    kind: &str,
    program: &str,
    args: &[&str],
    ours: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    // A host without the program has nothing of the kind.
    let text = Cmd::new(program).args(args).output().unwrap_or_default();
    text.lines()
        .filter(|line| ours(line))
        .map(|line| format!("{kind} {line}"))
        .collect()
}
