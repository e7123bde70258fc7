//! Cgroups of a cluster: one in the hierarchy that holds processes, so that everything we started
//! can be found and ended even if nobody wrote its pid down; and the roots of the nodes' pods.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::plan::Plan;

const MOUNT: &str = "/sys/fs/cgroup";
/// Controllers of the unified hierarchy that a kubelet does not start without; others are a bonus.
const NEEDED: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

/// Whether the unified hierarchy is all there is.
pub fn is_v2() -> bool {
    Path::new(MOUNT).join("cgroup.controllers").exists()
}

/// Roots of all hierarchies of this host.
fn hierarchies() -> Vec<PathBuf> {
    if is_v2() {
        return vec![PathBuf::from(MOUNT)];
    }
    let entries = fs::read_dir(MOUNT).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        // Links such as cpu,cpuacct lead to a hierarchy that is listed under its own name.
        .filter(|path| !path.is_symlink() && path.join("cgroup.procs").exists())
        .collect();
    found.sort();
    found
}

/// The hierarchy that processes are tracked in: the unified one, else one that every v1 host has.
fn tracking() -> PathBuf {
    if is_v2() {
        return PathBuf::from(MOUNT);
    }
    let unified = Path::new(MOUNT).join("unified");
    if unified.join("cgroup.procs").exists() {
        return unified;
    }
    Path::new(MOUNT).join("pids")
}

/// Directory whose `cgroup.procs` a process of the cluster joins before it does anything else.
///
/// A leaf of its own: in the unified hierarchy a group with processes may not have groups that
/// controllers are enabled for.
pub fn processes(plan: &Plan) -> PathBuf {
    tracking().join(plan.cgroup()).join("processes")
}

/// Makes all groups of the cluster.
pub fn create(plan: &Plan) -> anyhow::Result<()> {
    let processes = processes(plan);
    fs::create_dir_all(&processes)
        .with_context(|| format!("failed to make {}", processes.display()))?;
    for root in hierarchies() {
        for node in plan.node_plans() {
            let group = root.join(node.cgroup());
            fs::create_dir_all(&group)
                .with_context(|| format!("failed to make {}", group.display()))?;
        }
        if is_v2() {
            enable_controllers(&root, plan)?;
        } else if root.ends_with("cpuset") {
            for node in plan.node_plans() {
                copy_cpuset(&root, &plan.cgroup())?;
                copy_cpuset(&root, &node.cgroup())?;
            }
        }
    }
    Ok(())
}

/// A v1 cpuset without CPUs takes no process; nothing is inherited.
fn copy_cpuset(root: &Path, group: &str) -> anyhow::Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let value = fs::read_to_string(root.join(file))?;
        let to = root.join(group).join(file);
        fs::write(&to, value).with_context(|| format!("failed to write {}", to.display()))?;
    }
    Ok(())
}

fn enable_controllers(root: &Path, plan: &Plan) -> anyhow::Result<()> {
    let available = fs::read_to_string(root.join("cgroup.controllers"))?;
    let wanted: Vec<String> = available
        .split_whitespace()
        .map(|c| format!("+{c}"))
        .collect();
    for group in [root.to_owned(), root.join(plan.cgroup())] {
        let file = group.join("cgroup.subtree_control");
        for controller in &wanted {
            let enabled = fs::write(&file, controller);
            if NEEDED.contains(&controller.trim_start_matches('+')) {
                enabled.with_context(|| {
                    format!("failed to write {controller} to {}", file.display())
                })?;
            }
        }
    }
    Ok(())
}

/// Pids of the cluster's processes, on the host and in its nodes.
pub fn pids(plan: &Plan) -> Vec<i32> {
    let text = fs::read_to_string(processes(plan).join("cgroup.procs")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.trim().parse().ok())
        .filter(|pid| *pid > 0)
        .collect()
}

/// Kills everything of the cluster and removes its groups.
///
/// Killing the nodes' inits ends their whole process trees, mounts and networks. A program that is
/// just being started may join after the first look, so killing goes on until the groups are gone;
/// after that nothing can join any more, and a program that cannot join does not run.
pub fn end(plan: &Plan) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        kill_all(plan);
        match hierarchies()
            .iter()
            .try_for_each(|root| remove_tree(&root.join(plan.cgroup())))
        {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                return Err(error)
                    .with_context(|| format!("failed to end the processes of {}", plan.name));
            }
            // The kernel takes a moment to let go of a process that was killed.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Kills what is in the group now: all at once where the kernel can, so that no parent sees its child
/// end and starts it again.
fn kill_all(plan: &Plan) {
    if fs::write(processes(plan).join("cgroup.kill"), "1").is_ok() {
        return;
    }
    for pid in pids(plan).into_iter().filter_map(Pid::from_raw) {
        // A process that is gone already is what we want.
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn remove_tree(dir: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            remove_tree(&path)?;
        }
    }
    match fs::remove_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Groups of clusters and of pods that exist, for the leak check.
pub fn marked() -> Vec<String> {
    let mut found = Vec::new();
    for root in hierarchies() {
        for entry in fs::read_dir(&root).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("virtmark-") || name.starts_with("kubepods") {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}
