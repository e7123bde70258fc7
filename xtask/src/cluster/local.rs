//! The embedded cluster: real Kubernetes programs as processes of this host, nodes as sets of Linux
//! namespaces. Everything it makes is named after the cluster, so `down` needs no memory of `up`.

mod cgroup;
pub mod config;
mod control_plane;
mod cpus;
mod dns;
mod facts;
mod firewall;
pub mod init;
mod leftovers;
mod limits;
mod node;
mod number;
mod pki;
mod spawn;

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context as _;

pub use self::leftovers::leftovers;
use super::plan::{Name, Plan};
use crate::{
    host,
    lock::{self, Lock},
    progress::{Step, say},
    run::{Cmd, tail},
    tools::Tools,
};

/// Nodes that are not ready after this time will not be.
const PATIENCE: Duration = Duration::from_secs(60);

/// An API server that was killed is back after this time, even on a busy host.
const RESTART: Duration = Duration::from_secs(30);
/// Seconds after which an image that is being imported will not be.
const LOAD: &str = "300";

/// What `up` needs to know.
pub struct Wish {
    /// Name of the cluster.
    pub name: Name,
    /// Number of nodes.
    pub nodes: u8,
    /// CPUs that each node claims.
    pub node_cpus: u16,
    /// Whether to run a name server.
    pub dns: bool,
}

/// What is there.
#[derive(Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Absent,
    /// Something, but no API server that answers.
    Broken,
    /// A cluster that answers.
    Running,
}

/// Directory of all local clusters of this user.
pub fn state_root() -> anyhow::Result<PathBuf> {
    let base = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")));
    Ok(base
        .context("neither XDG_STATE_HOME nor HOME is set")?
        .join("virtmark/clusters"))
}

/// The plan of a cluster that was brought up before.
pub fn load(name: &Name) -> anyhow::Result<Option<Plan>> {
    let file = state_root()?.join(name.to_string()).join("plan.json");
    match fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .with_context(|| format!("failed to read {}", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display())),
    }
}

/// Two `up` of one name, or `down` beside `up`, would undo each other's work half-way.
fn lock(name: &Name) -> anyhow::Result<Lock> {
    let path = state_root()?.with_file_name("locks").join(name.to_string());
    lock::take(&path, &format!("changing cluster {name}"))
}

/// Plans of all local clusters of this user.
pub fn all() -> Vec<Plan> {
    let entries = state_root().and_then(|root| Ok(fs::read_dir(root)?));
    entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Name::try_from(entry.file_name().into_string().ok()?).ok())
        .filter_map(|name| load(&name).ok().flatten())
        .collect()
}

/// What is there of the cluster.
pub fn state(plan: &Plan) -> State {
    if cgroup::pids(plan).is_empty() {
        State::Absent
    } else if control_plane::ready(plan) {
        State::Running
    } else {
        State::Broken
    }
}

/// What is there once a control plane that is being restarted had time to answer.
fn settled(plan: &Plan) -> State {
    let started = Instant::now();
    loop {
        match state(plan) {
            State::Broken if started.elapsed() < RESTART => {
                std::thread::sleep(Duration::from_millis(200));
            }
            state => return state,
        }
    }
}

/// Brings a cluster up; one that runs already is left alone.
pub fn up(wish: &Wish, tools: &Tools) -> anyhow::Result<Plan> {
    host::require_root("a local cluster")?;
    let _lock = lock(&wish.name)?;
    if let Some(plan) = load(&wish.name)? {
        match settled(&plan) {
            State::Running => {
                say!(
                    "cluster {} is running already ({} nodes)",
                    plan.name,
                    plan.nodes
                );
                return Ok(plan);
            }
            State::Broken => say!("cluster {} is broken; starting it anew", plan.name),
            State::Absent => {}
        }
        remove(&plan)?;
    }
    let number = number::claim(&wish.name)?;
    let plan = Plan {
        name: wish.name.clone(),
        number,
        nodes: wish.nodes,
        dir: state_root()?.join(wish.name.to_string()),
        node_cpus: wish.node_cpus,
        bin: tools.bin.clone(),
    };
    fs::create_dir_all(&plan.dir)?;
    // In one step, so that `down` never finds half a plan.
    let part = plan.dir.join("plan.json.part");
    fs::write(&part, serde_json::to_vec(&plan)?)?;
    fs::rename(&part, plan.dir.join("plan.json"))?;
    let what = format!("start cluster {} with {} nodes", plan.name, plan.nodes);
    let started = Step::of(what, |step| start(&plan, tools, wish.dns, step));
    if let Err(error) = started {
        say!("the logs are in {}", plan.logs().display());
        return Err(error);
    }
    Ok(plan)
}

fn start(plan: &Plan, tools: &Tools, dns: bool, step: &Step) -> anyhow::Result<()> {
    let facts = facts::find();
    limits::raise();
    node::copy_init(plan)?;
    pki::Pki::create(plan)?;
    cgroup::create(plan)?;
    node::make_bridge(plan)?;
    control_plane::start(plan)?;
    std::thread::scope(|scope| {
        let nodes: Vec<_> = plan
            .node_plans()
            .map(|node| scope.spawn(move || node::start(&node, facts)))
            .collect();
        nodes.into_iter().try_for_each(|node| match node.join() {
            Ok(result) => result,
            Err(_) => anyhow::bail!("starting a node failed unexpectedly"),
        })
    })?;
    control_plane::wait_ready(plan, step)?;
    for node in plan.node_plans() {
        node::go(&node)?;
    }
    load_image(plan, &tools.pause)?;
    grant_proxy(plan)?;
    wait_nodes(plan, step)?;
    wait_accounts(plan, step)?;
    if dns {
        dns::start(plan)?;
    }
    Ok(())
}

/// kubectl for the cluster. What it remembers of it goes with the cluster: another one may have the
/// same address later.
pub fn kubectl(plan: &Plan) -> Cmd {
    Cmd::new(plan.bin.join("kubectl"))
        .arg("--kubeconfig")
        .arg(plan.kubeconfig())
        .arg("--cache-dir")
        .arg(plan.dir.join("kubectl-cache"))
}

/// kube-proxy logs in under its own name; the role exists in every cluster.
fn grant_proxy(plan: &Plan) -> anyhow::Result<()> {
    // The controller that aggregates roles may still be at work, but the binding needs no role.
    kubectl(plan)
        .args(["apply", "--request-timeout=30s", "-f", "-"])
        .input(
            r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding",
                "metadata":{"name":"virtmark:kube-proxy"},
                "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"system:node-proxier"},
                "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"system:kube-proxy"}]}"#,
        )
        .output()
        .map(drop)
}

fn wait_nodes(plan: &Plan, step: &Step) -> anyhow::Result<()> {
    step.note("waiting for the nodes");
    let names: Vec<String> = plan
        .node_plans()
        .map(|node| format!("node/{}", node.name()))
        .collect();
    let started = Instant::now();
    // A node that has not registered yet is an error for kubectl, whatever it is told to wait for.
    loop {
        let ready = kubectl(plan)
            .args(["wait", "--for=condition=Ready", "--timeout=60s"])
            .args(&names)
            .output();
        match ready {
            Ok(_) => break,
            Err(error) if started.elapsed() > PATIENCE => {
                return Err(error.context(last_words(plan)));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
    kubectl(plan)
        .args([
            "label",
            "--request-timeout=30s",
            "node",
            "node-1",
            "--overwrite",
            "node-role.kubernetes.io/control-plane=",
        ])
        .output()?;
    Ok(())
}

/// What the kubelets complained about last.
fn last_words(plan: &Plan) -> String {
    let mut text = "the nodes are not ready; their kubelets' last errors:".to_owned();
    for node in plan.node_plans() {
        let log = fs::read(node.file("logs/kubelet.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let errors: Vec<&str> = log.lines().filter(|line| line.starts_with('E')).collect();
        let errors = tail(&errors.join("\n"), 3);
        text.push_str(&format!("\n{}:\n{errors}", node.name()));
    }
    text
}

/// The controller manager makes this account when it is at work; without it no pod is accepted.
fn wait_accounts(plan: &Plan, step: &Step) -> anyhow::Result<()> {
    step.note("waiting for the controllers");
    kubectl(plan)
        .args(["--namespace", "default", "wait", "--for=create"])
        .args(["serviceaccount/default", "--timeout=60s"])
        .output()
        .map(drop)
        .context("the controller manager is not at work")
}

/// Ends and removes everything of the cluster; safe to call at any time and again.
pub fn down(plan: &Plan) -> anyhow::Result<()> {
    host::require_root("a local cluster")?;
    let _lock = lock(&plan.name)?;
    remove(plan)
}

fn remove(plan: &Plan) -> anyhow::Result<()> {
    let step = Step::start(format!("take cluster {} down", plan.name));
    cgroup::end(plan)?;
    node::remove_links(plan);
    match fs::remove_dir_all(&plan.dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("failed to remove {}", plan.dir.display()));
        }
        _ => {}
    }
    number::release(plan)?;
    step.done();
    Ok(())
}

/// Imports an image archive on every node.
pub fn load_image(plan: &Plan, archive: &Path) -> anyhow::Result<()> {
    let archive = archive
        .canonicalize()
        .with_context(|| format!("failed to find {}", archive.display()))?;
    std::thread::scope(|scope| {
        let imports: Vec<_> = plan
            .node_plans()
            .map(|node| {
                let archive = &archive;
                scope.spawn(move || {
                    let ctr = ctr(&node)?;
                    ctr.args(["images", "import", "--no-unpack=false"])
                        .arg(archive)
                        .output()
                })
            })
            .collect();
        imports
            .into_iter()
            .try_for_each(|import| match import.join() {
                Ok(result) => result.map(drop),
                Err(_) => anyhow::bail!("importing an image failed unexpectedly"),
            })
    })
}

fn ctr(node: &super::plan::Node<'_>) -> anyhow::Result<Cmd> {
    let entered = node::enter(node)?.args(["timeout", LOAD]);
    Ok(entered.arg(node.plan.bin.join("ctr")).args([
        "--address",
        init::CONTAINERD_SOCKET,
        "--namespace",
        "k8s.io",
    ]))
}

/// Runs a command in a node, with this terminal.
pub fn exec(
    plan: &Plan,
    node: &str,
    command: &[String],
) -> anyhow::Result<std::process::ExitStatus> {
    let node = plan.node(node).with_context(|| {
        let names: Vec<String> = plan.node_plans().map(|n| n.name()).collect();
        format!("there is no node {node:?}; there are {}", names.join(", "))
    })?;
    let entered = node::enter(&node)?;
    let mut command = entered.args(command).command();
    command.status().context("failed to enter the node")
}

/// Log files of the cluster: of the control plane and of each node.
pub fn log_files(plan: &Plan) -> Vec<PathBuf> {
    let dirs = std::iter::once(plan.logs()).chain(plan.node_plans().map(|n| n.file("logs")));
    let mut files: Vec<PathBuf> = dirs
        .flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}
