//! The suite is shown to notice: the reference breaks one promise at a time, and exactly the scenarios
//! that pin that promise turn red. Then a component is killed in the middle of a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::Context as _;
use serde_json::Value;

use crate::{
    conformance::{Prepared, suite_command},
    progress::{Step, say},
    run::tail,
};

/// A broken promise, the scenarios that run, and those among them that must fail.
struct Fault {
    name: &'static str,
    scenarios: &'static [&'static str],
    red: &'static [&'static str],
}

/// What no fault touches: how it goes must not change.
const FAULTS: &[Fault] = &[
    Fault {
        name: "skip-ready-condition",
        scenarios: &["VM-LIFE-0001", "VM-NODE-0001", "VM-ADM-0001", "VM-ADM-0002"],
        red: &["VM-LIFE-0001"],
    },
    Fault {
        name: "forget-schedulable-label",
        scenarios: &["VM-NODE-0001", "VM-INST-0001", "VM-ADM-0001", "VM-ADM-0002"],
        red: &["VM-NODE-0001"],
    },
    Fault {
        name: "accept-everything",
        scenarios: &[
            "VM-ADM-0001",
            "VM-ADM-0002",
            "VM-ADM-0003",
            "VM-LIFE-0001",
            "VM-NODE-0001",
        ],
        red: &["VM-ADM-0001", "VM-ADM-0002", "VM-ADM-0003"],
    },
];

/// A scenario that must fail waits for its whole limit. The machine has just passed the whole suite, so
/// half a minute is plenty where the suite allows slow machines two.
const LONG: [&str; 2] = ["hard: 120s", "hard: 90s"];
const SHORT: &str = "hard: 30s";

/// Breaks one promise after the other.
pub fn each_turns_its_scenarios_red(root: &Path, prepared: &Prepared) -> anyhow::Result<()> {
    for fault in FAULTS {
        let what = format!("break a promise: {}", fault.name);
        let statuses = Step::of(what, |step| {
            step.note("rolling the fault out");
            roll_out(prepared, Some(fault.name))?;
            step.note("running scenarios");
            run(root, prepared, fault)
        })?;
        judge(fault, &statuses)?;
    }
    Step::of("mend the reference", |_| roll_out(prepared, None))
}

/// Sets the fault and waits until every component runs with it.
fn roll_out(prepared: &Prepared, fault: Option<&str>) -> anyhow::Result<()> {
    let kubectl = || prepared.cluster.kubectl().args(["-n", "kubevirt"]);
    let word = match fault {
        Some(name) => format!("virtmark.dev/fault={name}"),
        None => "virtmark.dev/fault-".to_owned(),
    };
    let before = observed(prepared)?;
    kubectl()
        .args(["annotate", "--overwrite", "kubevirt/kubevirt", &word])
        .output()?;
    // The fingerprint of what runs changes only when everything of the new wish is ready.
    let changed = format!(
        "--for=jsonpath={{.status.observedDeploymentID}}={}",
        target_after(prepared, &before)?
    );
    kubectl()
        .args(["wait", &changed, "--timeout=180s", "kubevirt/kubevirt"])
        .output()?;
    for workload in [
        "deployment/virt-api",
        "deployment/virt-controller",
        "daemonset/virt-handler",
    ] {
        kubectl()
            .args(["rollout", "status", "--timeout=120s", workload])
            .output()?;
    }
    Ok(())
}

fn observed(prepared: &Prepared) -> anyhow::Result<String> {
    status(prepared, "observedDeploymentID")
}

/// The fingerprint that the operator is heading for, once it has seen the new wish.
fn target_after(prepared: &Prepared, before: &str) -> anyhow::Result<String> {
    for _ in 0..200 {
        let target = status(prepared, "targetDeploymentID")?;
        if target != before {
            return Ok(target);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    anyhow::bail!("the operator did not see the changed annotation")
}

fn status(prepared: &Prepared, field: &str) -> anyhow::Result<String> {
    let path = format!("jsonpath={{.status.{field}}}");
    prepared
        .cluster
        .kubectl()
        .args(["-n", "kubevirt", "get", "kubevirt", "kubevirt", "-o", &path])
        .output()
}

/// Status of each scenario that ran, from the report.
fn run(
    root: &Path,
    prepared: &Prepared,
    fault: &Fault,
) -> anyhow::Result<BTreeMap<String, String>> {
    let folder = crate::image::target_dir(root)
        .join("conformance")
        .join(format!("fault-{}", fault.name));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let spec = impatient_spec(root)?;
    let ids = fault.scenarios.iter().flat_map(|id| ["--id", id]);
    let output = suite_command(root, &prepared.suite, &prepared.cluster)
        .args(["--progress", "none", "--cleanup", "always", "--spec"])
        .arg(spec)
        .arg("--save")
        .arg(&folder)
        .args(ids)
        .command()
        .stdin(Stdio::null())
        .output()
        .context("failed to start the suite")?;
    // The table of a run that has to fail would only confuse a reader; a run that broke down would not.
    anyhow::ensure!(
        folder.join("report.json").exists(),
        "the suite wrote no report:\n{}",
        tail(&String::from_utf8_lossy(&output.stderr), 10)
    );
    statuses(&folder.join("report.json"))
}

/// The suite's data files with shorter limits.
fn impatient_spec(root: &Path) -> anyhow::Result<PathBuf> {
    let to = crate::image::target_dir(root).join("conformance/impatient-spec");
    copy_tree(&root.join("conformance/spec"), &to)?;
    let times = to.join("timeouts.yaml");
    let mut text = std::fs::read_to_string(&times)?;
    for long in LONG {
        anyhow::ensure!(
            text.contains(long),
            "{} has no limit {long}",
            times.display()
        );
        text = text.replace(long, SHORT);
    }
    std::fs::write(&times, text)?;
    Ok(to)
}

fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn statuses(report: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let bytes =
        std::fs::read(report).with_context(|| format!("failed to read {}", report.display()))?;
    let report: Value = serde_json::from_slice(&bytes)?;
    let results = report["results"]
        .as_array()
        .context("the report has no results")?;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(results
        .iter()
        .map(|r| (word(&r["id"]), word(&r["status"])))
        .collect())
}

fn judge(fault: &Fault, statuses: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let red: BTreeSet<&str> = statuses
        .iter()
        .filter(|(_, status)| *status == "fail")
        .map(|(id, _)| id.as_str())
        .collect();
    let green: BTreeSet<&str> = statuses
        .iter()
        .filter(|(_, status)| *status == "pass")
        .map(|(id, _)| id.as_str())
        .collect();
    let want_red: BTreeSet<&str> = fault.red.iter().copied().collect();
    let want_green: BTreeSet<&str> = fault
        .scenarios
        .iter()
        .copied()
        .filter(|id| !want_red.contains(id))
        .collect();
    anyhow::ensure!(
        red == want_red && green == want_green,
        "with the fault {} these must fail: {want_red:?}, and these pass: {want_green:?}; it was {statuses:?}",
        fault.name
    );
    say!(
        "       {}: {} red, {} green, as it must be",
        fault.name,
        red.len(),
        green.len()
    );
    Ok(())
}

/// Kills virt-controller's leader while VMs start. The reference must converge, and whatever the suite
/// says must be a pass or an honest "could not see"; a failure would blame the product wrongly.
pub fn a_killed_component_is_survived(root: &Path, prepared: &Prepared) -> anyhow::Result<()> {
    Step::of("kill virt-controller in the middle of a run", |_| {
        let folder = crate::image::target_dir(root).join("conformance/killed");
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let mut command = suite_command(root, &prepared.suite, &prepared.cluster)
            .args(["--progress", "none", "--cleanup", "always", "--save"])
            .arg(&folder)
            .args([
                "--id",
                "VM-LIFE-0001",
                "--id",
                "VM-LIFE-0002",
                "--id",
                "VM-LIFE-0003",
            ])
            .command();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().context("failed to start the suite")?;
        let kubectl = || prepared.cluster.kubectl();
        // The first VMI of the run is the moment at which the controller has most to do.
        let seen = wait_for_some(&kubectl, &["get", "vmi", "-A", "-o", "name"]);
        let killed = kubectl()
            .args([
                "-n",
                "kubevirt",
                "delete",
                "pod",
                "-l",
                "kubevirt.io=virt-controller",
            ])
            .args(["--grace-period=0", "--force", "--wait=false"])
            .output();
        child.wait()?;
        seen?;
        killed?;
        let statuses = statuses(&folder.join("report.json"))?;
        let honest = |status: &String| matches!(status.as_str(), "pass" | "inconclusive");
        anyhow::ensure!(
            statuses.len() == 3 && statuses.values().all(honest),
            "after the kill: {statuses:?}"
        );
        kubectl()
            .args([
                "-n",
                "kubevirt",
                "wait",
                "--for=condition=Available",
                "--timeout=120s",
                "kubevirt/kubevirt",
            ])
            .output()
            .map(drop)
    })
}

fn wait_for_some(kubectl: &dyn Fn() -> crate::run::Cmd, words: &[&str]) -> anyhow::Result<()> {
    for _ in 0..300 {
        if !kubectl().args(words).output()?.trim().is_empty() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    anyhow::bail!("nothing came up: kubectl {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(red: &[&str]) -> BTreeMap<String, String> {
        let status = |id: &&str| if red.contains(id) { "fail" } else { "pass" };
        let ids = FAULTS[0].scenarios.iter();
        ids.map(|id| ((*id).to_owned(), status(id).to_owned()))
            .collect()
    }

    #[test]
    fn exactly_the_right_scenarios() {
        assert!(judge(&FAULTS[0], &outcome(&["VM-LIFE-0001"])).is_ok());
        assert!(judge(&FAULTS[0], &outcome(&[])).is_err());
        assert!(judge(&FAULTS[0], &outcome(&["VM-LIFE-0001", "VM-NODE-0001"])).is_err());
    }

    #[test]
    fn a_scenario_that_did_not_run_is_no_success() {
        let mut some = outcome(&["VM-LIFE-0001"]);
        some.remove("VM-NODE-0001");
        assert!(judge(&FAULTS[0], &some).is_err());
    }
}
