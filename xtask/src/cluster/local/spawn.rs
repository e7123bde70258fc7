//! Starting the cluster's programs so that `down` finds them again whatever happens to us: each joins
//! the cluster's cgroup before it runs, in a session of its own, with its output in a log file.

use std::{fs::File, path::Path, process::Stdio};

use anyhow::Context as _;

use super::cgroup;
use crate::{cluster::plan::Plan, run::Cmd};

/// Joins the group named by the first argument, then becomes the rest.
const JOIN: &str = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
/// Joins the group, then keeps the rest running: the control plane of a real cluster is restarted
/// too, and its programs count on that when they start before each other.
const KEEP: &str = r#"echo $$ > "$0/cgroup.procs" || exit 1; while :; do "$@"; echo "ended with status $?: $1"; sleep 0.5; done"#;
/// How KEEP says in the log that the program ended.
const ENDED: &str = "ended with status ";

/// Starts a program of the cluster once; returns its pid.
pub fn program(plan: &Plan, log: &str, command: &Cmd) -> anyhow::Result<u32> {
    start(plan, log, JOIN, command)
}

/// Starts a program of the cluster again whenever it ends.
pub fn service(plan: &Plan, log: &str, command: &Cmd) -> anyhow::Result<()> {
    start(plan, log, KEEP, command).map(drop)
}

fn start(plan: &Plan, log: &str, script: &str, command: &Cmd) -> anyhow::Result<u32> {
    let mut child = wrapped(plan, script, command)
        .command()
        .stdin(Stdio::null())
        .stdout(log_file(&plan.logs(), log)?)
        .stderr(log_file(&plan.logs(), log)?)
        .spawn()
        .with_context(|| format!("failed to start {}", command.shown()))?;
    let pid = child.id();
    // An early death is reaped here and shows up where its work is waited for.
    std::thread::spawn(move || child.wait());
    Ok(pid)
}

/// How often a service ended, by its log.
pub fn ends(log: &str) -> usize {
    log.lines().filter(|line| line.starts_with(ENDED)).count()
}

fn wrapped(plan: &Plan, script: &str, command: &Cmd) -> Cmd {
    Cmd::new("setsid")
        .args(["sh", "-c", script])
        .arg(cgroup::processes(plan))
        .args(command.words())
}

/// Opens a log file for appending.
pub fn log_file(dir: &Path, name: &str) -> anyhow::Result<File> {
    std::fs::create_dir_all(dir)?;
    let path = dir.join(format!("{name}.log"));
    File::options()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("failed to open {}", path.display()))
}
