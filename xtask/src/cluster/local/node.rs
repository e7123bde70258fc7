//! A node from the host's side: its directory and files, its namespaces, and its cable.

use std::{
    fs,
    io::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;

use super::{config, config::HostFacts, cpus, firewall, spawn};
use crate::{
    cluster::plan::{Node, Plan},
    run::{Cmd, tail},
};

/// Names of the files by which host and node meet.
pub mod files {
    /// Written by the node's init: its namespaces are ready for the cable.
    pub const READY: &str = "namespaces-ready";
    /// A pipe: the host writes one line when the cable is in, another when the API server answers.
    pub const GO: &str = "go";
    /// Pid of the node's init, as the host sees it.
    pub const PID: &str = "init.pid";
}

const PATIENCE: Duration = Duration::from_secs(20);
/// The nodes' init: a copy of this program.
const INIT: &str = "node-init";

/// Copies this program for the nodes, so that building it anew does not pull it from under them.
///
/// To be done before anything is started: a child that is forked while the copy is written holds it
/// open for writing until it becomes another program, and such a file cannot be executed.
pub fn copy_init(plan: &Plan) -> anyhow::Result<()> {
    let me = std::env::current_exe().context("failed to find this program")?;
    fs::copy(me, plan.dir.join(INIT)).context("failed to copy this program for the nodes")?;
    Ok(())
}

/// Writes the node's files and starts its init, which waits for the cable.
pub fn start(node: &Node<'_>, facts: HostFacts) -> anyhow::Result<()> {
    write_files(node, facts)?;
    let command = Cmd::new("unshare")
        .args([
            "--mount",
            "--net",
            "--uts",
            "--ipc",
            "--pid",
            "--fork",
            "--kill-child",
        ])
        .arg(node.plan.dir.join(INIT))
        .arg("node-init")
        .arg("--dir")
        .arg(node.dir())
        .arg("--bin")
        .arg(&node.plan.bin)
        .arg("--name")
        .arg(node.name())
        .arg("--address")
        .arg(node.address())
        .arg("--network")
        .arg(node.plan.network());
    let pid = spawn::program(node.plan, &node.name(), &command)?;
    let init = wait_for_namespaces(node, pid)?;
    fs::write(node.file(files::PID), init.to_string())?;
    plug_in(node, init)?;
    go(node)
}

/// Lets the node's init take its next step.
pub fn go(node: &Node<'_>) -> anyhow::Result<()> {
    let path = node.file(files::GO);
    let mut pipe = fs::OpenOptions::new().read(true).write(true).open(&path)?;
    writeln!(pipe, "go").with_context(|| format!("failed to write to {}", path.display()))
}

/// Pid of the node's init, if the node is up.
pub fn init_pid(node: &Node<'_>) -> Option<u32> {
    let pid: u32 = fs::read_to_string(node.file(files::PID))
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let members = super::cgroup::pids(node.plan);
    i32::try_from(pid)
        .is_ok_and(|pid| members.contains(&pid))
        .then_some(pid)
}

/// A command that runs in the node's namespaces.
pub fn enter(node: &Node<'_>) -> anyhow::Result<Cmd> {
    let pid = init_pid(node).with_context(|| format!("{} is not running", node.name()))?;
    Ok(Cmd::new("nsenter")
        .arg("--target")
        .arg(pid.to_string())
        .args(["--mount", "--net", "--uts", "--ipc", "--pid", "--"]))
}

fn write_files(node: &Node<'_>, facts: HostFacts) -> anyhow::Result<()> {
    for dir in [
        "kubelet",
        "containerd",
        "cni",
        "logs",
        "log",
        "var-lib",
        "var-lib-work",
    ] {
        fs::create_dir_all(node.file(dir))?;
    }
    let kubelet = config::kubelet(node, facts).to_string();
    fs::write(node.file("kubelet.json"), kubelet)?;
    fs::write(
        node.file("containerd.toml"),
        config::containerd(node, facts),
    )?;
    fs::write(
        node.file("cni/10-pods.conflist"),
        config::cni(node).to_string(),
    )?;
    cpus::write(&node.file("sysfs"), node.plan.node_cpus, cpus::of_host())?;
    let pipe = node.file(files::GO);
    if !pipe.exists() {
        Cmd::new("mkfifo").arg(&pipe).output()?;
    }
    Ok(())
}

/// Pid of the init: the only child of `unshare`.
fn wait_for_namespaces(node: &Node<'_>, unshare: u32) -> anyhow::Result<u32> {
    let started = Instant::now();
    let process = format!("/proc/{unshare}");
    let children = format!("{process}/task/{unshare}/children");
    while started.elapsed() < PATIENCE && Path::new(&process).exists() {
        if node.file(files::READY).exists() {
            let text = fs::read_to_string(&children).unwrap_or_default();
            if let Some(pid) = text.split_whitespace().next().and_then(|p| p.parse().ok()) {
                return Ok(pid);
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let log = fs::read_to_string(node.plan.logs().join(format!("{}.log", node.name())));
    anyhow::bail!(
        "{} did not come up; its last words:\n{}",
        node.name(),
        tail(&log.unwrap_or_default(), 10)
    )
}

/// Puts one end of a cable into the node and the other one on the bridge.
fn plug_in(node: &Node<'_>, init: u32) -> anyhow::Result<()> {
    let (link, plan) = (node.link(), node.plan);
    ip(&[
        "link",
        "add",
        &link,
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "netns",
        &init.to_string(),
    ])?;
    ip(&["link", "set", &link, "master", &plan.bridge(), "up"])?;
    // The host reaches pods as the API server has to.
    ip(&["route", "replace", &node.pods(), "via", &node.address()])?;
    let inside = |args: &[&str]| {
        let net = format!("--net=/proc/{init}/ns/net");
        Cmd::new("nsenter").arg(net).arg("ip").args(args).output()
    };
    inside(&[
        "address",
        "add",
        &format!("{}/24", node.address()),
        "dev",
        "eth0",
    ])?;
    inside(&["link", "set", "lo", "up"])?;
    inside(&["link", "set", "eth0", "up"])?;
    inside(&["route", "add", "default", "via", &plan.gateway()])?;
    for other in plan
        .node_plans()
        .filter(|other| other.number != node.number)
    {
        inside(&["route", "add", &other.pods(), "via", &other.address()])?;
    }
    Ok(())
}

/// Makes the cluster's bridge.
pub fn make_bridge(plan: &Plan) -> anyhow::Result<()> {
    let bridge = plan.bridge();
    ip(&["link", "add", &bridge, "type", "bridge"])?;
    ip(&[
        "address",
        "add",
        &format!("{}/24", plan.gateway()),
        "dev",
        &bridge,
    ])?;
    ip(&["link", "set", &bridge, "up"])?;
    firewall::open(plan)
}

/// Removes the bridge and cables whose other end is gone or stuck; routes go with them.
pub fn remove_links(plan: &Plan) {
    firewall::close(plan);
    let mut links: Vec<String> = plan.node_plans().map(|node| node.link()).collect();
    links.push(plan.bridge());
    for link in links {
        // Most of them went with their node.
        let _ = Cmd::new("ip").args(["link", "delete", &link]).succeeds();
    }
}

fn ip(args: &[&str]) -> anyhow::Result<()> {
    Cmd::new("ip").args(args).output().map(drop)
}
