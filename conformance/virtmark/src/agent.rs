//! What helper pods of a run do on a node. No cluster, no network: they read /proc and send signals.

pub(crate) mod machine;

use std::{fs, io, path::Path, time::Duration};

use anyhow::{Context as _, bail};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use crate::{
    agent::machine::{Process, choose},
    cli::KillArgs,
};

/// A killed process is gone within this time, or something holds it.
const LIMIT: Duration = Duration::from_secs(20);

/// Kills the machine process of a pod and returns when it is dead. Gives a line about it.
pub(crate) fn kill_machine(args: &KillArgs) -> anyhow::Result<String> {
    let processes = processes(Path::new("/proc"), &args.pod_uid)?;
    let Some(machine) = choose(&processes, &args.processes) else {
        bail!(
            "pod {} has no machine process among {} processes",
            args.pod_uid,
            processes.len()
        );
    };
    let pid = i32::try_from(machine.pid)
        .ok()
        .and_then(Pid::from_raw)
        .context("not a process id")?;
    // A descriptor names the process even if its number is given to another one meanwhile.
    let descriptor = pidfd_open(pid, PidfdFlags::empty()).context("failed to open the process")?;
    pidfd_send_signal(&descriptor, Signal::KILL).context("failed to kill the process")?;
    let limit = Timespec {
        tv_sec: i64::try_from(LIMIT.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: 0,
    };
    let ended = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit));
    if ended.context("failed to wait for the process")? == 0 {
        bail!("process {} did not die within {LIMIT:?}", machine.pid);
    }
    Ok(format!(
        "killed process {} ({}) of pod {}",
        machine.pid, machine.name, args.pod_uid
    ))
}

/// All processes of a pod, by their cgroup. One that ends while we look is left out.
fn processes(proc: &Path, pod_uid: &str) -> anyhow::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(proc).with_context(|| format!("failed to list {}", proc.display()))? {
        let path = entry?.path();
        let Some(pid) = path
            .file_name()
            .and_then(|name| name.to_str()?.parse().ok())
        else {
            continue;
        };
        let cgroup = fs::read_to_string(path.join("cgroup")).unwrap_or_default();
        if !machine::belongs(&cgroup, pod_uid) {
            continue;
        }
        if let Ok(process) = look_at(&path, pid) {
            found.push(process);
        }
    }
    found.sort_by_key(|process| process.pid);
    Ok(found)
}

fn look_at(path: &Path, pid: u32) -> io::Result<Process> {
    let name = fs::read_to_string(path.join("comm"))?.trim().to_owned();
    let command = fs::read(path.join("cmdline"))?;
    let program = command.split(|&byte| byte == 0).next().unwrap_or_default();
    let descriptors = fs::read_dir(path.join("fd"))
        .into_iter()
        .flatten()
        .flatten();
    let holds_vm = descriptors
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| machine::is_vm(&target.to_string_lossy()));
    Ok(Process {
        pid,
        name,
        program: String::from_utf8_lossy(program).into_owned(),
        holds_vm,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_is_not_here_has_no_processes() {
        let none = processes(Path::new("/proc"), "00000000-dead-beef-0000-000000000000").unwrap();
        assert!(none.is_empty());
    }

    #[test]
    fn this_very_process_can_be_looked_at() {
        let pid = std::process::id();
        let process = look_at(Path::new("/proc/self"), pid).unwrap();
        assert_eq!(process.pid, pid);
        assert!(!process.holds_vm && !process.name.is_empty());
    }

    #[test]
    fn a_child_in_a_made_up_pod_is_not_killed_by_mistake() {
        let args = KillArgs {
            pod_uid: "no-such-pod".into(),
            processes: Vec::new(),
        };
        assert!(
            kill_machine(&args)
                .unwrap_err()
                .to_string()
                .contains("no machine process")
        );
    }
}
