//! What is on this host that a cluster may leave behind, as plain lines that can be compared before
//! and after. Other clusters may come and go meanwhile: lines with their marks are left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::{all, cgroup};
use crate::{cluster::plan::Plan, run::Cmd};

/// Mark of every local cluster in command lines and mounts.
const STATE: &str = "/virtmark/clusters/";

/// Processes, mounts, links, network namespaces, routes, firewall rules and cgroups of this host,
/// without those of clusters whose name does not begin with `ours`.
pub fn leftovers(ours: &str) -> BTreeSet<String> {
    let mut found = processes();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    found.extend(mounts.lines().filter_map(|line| {
        // Numbers in front differ between runs; the mount point is the fifth word.
        let point = line.split(' ').nth(4)?;
        Some(format!("mount {point}"))
    }));
    found.extend(lines("link", "ip", &["-brief", "link"], |line| {
        line.split_whitespace().next().map(str::to_owned)
    }));
    found.extend(lines("route", "ip", &["route"], |line| {
        Some(line.to_owned())
    }));
    found.extend(lines("netns", "ip", &["netns", "list"], |line| {
        Some(line.to_owned())
    }));
    found.extend(lines("rule", "iptables-save", &[], |line| {
        line.starts_with("-A").then(|| line.to_owned())
    }));
    found.extend(cgroup::marked().into_iter().map(|p| format!("cgroup {p}")));
    let others: Vec<Plan> = all()
        .into_iter()
        .filter(|plan| !plan.name.to_string().starts_with(ours))
        .collect();
    found.retain(|line| !others.iter().any(|plan| carries_mark(line, plan)));
    found
}

/// Whether the line is about that cluster.
fn carries_mark(line: &str, plan: &Plan) -> bool {
    let ends_there = |mark: &str, goes_on: fn(char) -> bool| {
        line.match_indices(mark).any(|(at, _)| {
            let rest = &line[at + mark.len()..];
            !rest.starts_with(goes_on)
        })
    };
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    ends_there(&format!("{STATE}{}", plan.name), in_name)
        || ends_there(&plan.cgroup(), in_name)
        || ends_there(&plan.bridge(), |c| c.is_ascii_digit())
        || line.contains(&plan.addresses())
}

/// Programs that run from a cluster's directory, in one of its cgroups, or among its mounts.
fn processes() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut namespaces: BTreeMap<String, Option<String>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let (name, dir) = (entry.file_name(), entry.path());
        let Some(pid) = name.to_str().filter(|n| n.parse::<u32>().is_ok()) else {
            continue;
        };
        let words = fs::read(dir.join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let cgroups = fs::read_to_string(dir.join("cgroup")).unwrap_or_default();
        let group = cgroups.lines().find(|line| line.contains("/virtmark-"));
        let namespace = fs::read_link(dir.join("ns/mnt")).unwrap_or_default();
        let mount = namespaces
            .entry(namespace.display().to_string())
            .or_insert_with(|| marked_mount(&dir));
        if let Some(evidence) = group.or(mount.as_deref()) {
            found.insert(format!("process {pid} {words} ({evidence})"));
        } else if words.contains(STATE) {
            found.insert(format!("process {pid} {words}"));
        }
    }
    found
}

/// A mount of a cluster that the process sees.
fn marked_mount(process: &Path) -> Option<String> {
    let mounts = fs::read_to_string(process.join("mountinfo")).ok()?;
    let line = mounts.lines().find(|line| line.contains(STATE))?;
    Some(line.to_owned())
}

fn lines(
    kind: &str,
    program: &str,
    args: &[&str],
    pick: impl Fn(&str) -> Option<String>,
) -> BTreeSet<String> {
    // A host without the program has nothing of the kind.
    let text = Cmd::new(program).args(args).output().unwrap_or_default();
    text.lines()
        .filter_map(pick)
        .map(|line| format!("{kind} {line}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("process 7 etcd --data-dir /s/virtmark/clusters/x/etcd", true)]
    #[case("process 7 etcd --data-dir /s/virtmark/clusters/xy/etcd", false)]
    #[case("cgroup /sys/fs/cgroup/pids/virtmark-x", true)]
    #[case("cgroup /sys/fs/cgroup/pids/virtmark-x-2", false)]
    #[case("link vmk4n1@if2", true)]
    #[case("link vmk42", false)]
    #[case("route 10.104.1.0/24 via 10.104.0.11", true)]
    #[case("route 10.4.1.0/24 via 192.0.2.1", false)]
    fn marks_are_told_apart(#[case] line: &str, #[case] carries: bool) {
        let plan = Plan {
            name: "x".parse().unwrap(),
            number: 4,
            nodes: 1,
            dir: PathBuf::from("/s/virtmark/clusters/x"),
            node_cpus: 8,
            bin: PathBuf::from("/bin"),
        };
        assert_eq!(carries_mark(line, &plan), carries);
    }
}
