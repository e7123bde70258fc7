//! Clusters leave nothing behind: not after `down`, not after this program was killed in the middle
//! of `up`, not with two of them side by side. What is on the host is listed before and after.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::{
    cluster::{self, Cluster, Make, PAUSE_IMAGE, local},
    progress::{Step, say},
    run::{Cmd, tail},
};

/// Bounds of the design for a warm cluster on two quiet cores; only printed, since machines differ.
const UP: Duration = Duration::from_secs(15);
const DOWN: Duration = Duration::from_secs(5);

/// Beginning of the names of the clusters that are made here.
const OURS: &str = "selftest-";

/// Runs all of it.
pub fn run(root: &Path, make: &Make) -> anyhow::Result<()> {
    // An earlier run may have been killed.
    take_down()?;
    let result = compare(root, make);
    if result.is_err() {
        take_down()?;
    }
    result
}

fn take_down() -> anyhow::Result<()> {
    local::all()
        .iter()
        .filter(|plan| plan.name.to_string().starts_with(OURS))
        .try_for_each(local::down)
}

fn compare(root: &Path, make: &Make) -> anyhow::Result<()> {
    let before = local::leftovers(OURS);
    side_by_side(root, make)?;
    nothing_left(&before, "after two clusters side by side")?;
    killed_in_the_middle(root, make)?;
    nothing_left(&before, "after kill -9 in the middle of up, and down")?;
    say!("clusters leave nothing behind");
    Ok(())
}

fn named(make: &Make, name: &str, nodes: u8) -> anyhow::Result<Make> {
    let mut make = make.clone();
    make.which.name = name.parse()?;
    make.nodes = nodes;
    Ok(make)
}

fn side_by_side(root: &Path, make: &Make) -> anyhow::Result<()> {
    let started = Instant::now();
    let first = cluster::up(root, &named(make, "selftest-a", 2)?)?;
    report("up", started.elapsed(), UP);
    let second = cluster::up(root, &named(make, "selftest-b", 1)?)?;
    for (cluster, nodes) in [(&first, 2), (&second, 1)] {
        run_pods(cluster, nodes)?;
        let nodes = cluster
            .kubectl()
            .args(["get", "nodes", "--no-headers"])
            .output()?;
        anyhow::ensure!(
            !nodes.is_empty() && nodes.lines().all(|line| line.contains(" Ready ")),
            "not all ready:\n{nodes}"
        );
    }
    anyhow::ensure!(
        first.kubeconfig() != second.kubeconfig(),
        "two clusters share a kubeconfig"
    );
    let again = cluster::up(root, &named(make, "selftest-a", 2)?)?;
    anyhow::ensure!(
        again.kubeconfig() == first.kubeconfig(),
        "up on a running cluster made another one"
    );
    second.down()?;
    let alive = first.kubectl().args(["get", "--raw", "/readyz"]).output()?;
    anyhow::ensure!(alive == "ok", "taking one cluster down harmed the other");
    let started = Instant::now();
    first.down()?;
    report("down", started.elapsed(), DOWN);
    Ok(())
}

/// A pod on each node, with what is hardest to clean up: mounts that the node shares, memory, a
/// cgroup of its own.
fn run_pods(cluster: &Cluster, nodes: u8) -> anyhow::Result<()> {
    let pods: Vec<_> = (1..=nodes).map(pod).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": pods});
    cluster
        .kubectl()
        .args(["apply", "-f", "-"])
        .input(list.to_string())
        .output()?;
    cluster
        .kubectl()
        .args(["wait", "pod", "--all", "--for=condition=Ready"])
        .arg("--timeout=60s")
        .output()
        .map(drop)
        .context("the pods do not run")
}

fn pod(node: u8) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": format!("selftest-{node}")},
        "spec": {
            "nodeName": format!("node-{node}"),
            "containers": [{
                "name": "pause",
                "image": PAUSE_IMAGE,
                "imagePullPolicy": "IfNotPresent",
                "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "32Mi"}},
                "securityContext": {"privileged": true},
                "volumeMounts": [
                    {"name": "memory", "mountPath": "/memory"},
                    {
                        "name": "kubelet",
                        "mountPath": "/var/lib/kubelet",
                        "mountPropagation": "Bidirectional",
                    },
                ],
            }],
            "volumes": [
                {"name": "memory", "emptyDir": {"medium": "Memory"}},
                {"name": "kubelet", "hostPath": {"path": "/var/lib/kubelet"}},
            ],
        },
    })
}

fn report(what: &str, took: Duration, bound: Duration) {
    let verdict = if took <= bound {
        "within"
    } else {
        "slower than"
    };
    say!(
        "{what} took {:.1} s, {verdict} {} s",
        took.as_secs_f64(),
        bound.as_secs()
    );
}

/// Kills `up` at several points; each time `down` has to find everything.
fn killed_in_the_middle(root: &Path, make: &Make) -> anyhow::Result<()> {
    for witness in [
        "plan.json",
        "logs/etcd.log",
        "node-1/init.pid",
        "node-2/logs/kubelet.log",
        "kubectl-cache",
    ] {
        let make = named(make, "selftest-k", 2)?;
        let what = format!("kill up when {witness} is there, then down");
        Step::of(what, |_| {
            let mut child = start_up(root, &make)?;
            let file = local::state_root()?.join("selftest-k").join(witness);
            let seen = wait_for(&file, &mut child);
            child.kill().context("failed to kill the child")?;
            let output = child.wait_with_output()?;
            anyhow::ensure!(
                seen,
                "{} never appeared:\n{}",
                file.display(),
                tail(&String::from_utf8_lossy(&output.stderr), 10)
            );
            let Cluster::Local(plan) = cluster::find(&make.which)? else {
                anyhow::bail!("the test is for local clusters");
            };
            local::down(&plan)
        })?;
    }
    Ok(())
}

fn start_up(root: &Path, make: &Make) -> anyhow::Result<Child> {
    let me = std::env::current_exe()?;
    let mut command = Cmd::new(me)
        .args(["cluster", "up", "--provider", "local", "--name"])
        .arg(make.which.name.to_string());
    if let Some(dir) = &make.k8s_bin_dir {
        command = command.arg("--k8s-bin-dir").arg(dir);
    }
    let mut command = command.dir(root).command();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
        .spawn()
        .context("failed to start a second cargo xtask")
}

/// Whether the file appears while the child lives.
fn wait_for(file: &Path, child: &mut Child) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(60) {
        if file.exists() {
            return true;
        }
        if !matches!(child.try_wait(), Ok(None)) {
            return file.exists();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

fn nothing_left(before: &BTreeSet<String>, when: &str) -> anyhow::Result<()> {
    let mut left: Vec<String> = Vec::new();
    // The kernel takes a moment to let go of namespaces; what is still there then stays.
    for _ in 0..100 {
        left = local::leftovers(OURS).difference(before).cloned().collect();
        if left.is_empty() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    anyhow::bail!("left behind {when}:\n  {}", left.join("\n  "))
}
