//! Tables for whole passes over a VMI: which steps, which phase, which reason.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kubevirt_api::v1::{Condition, condition};
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::kubevirt::Configuration;

fn observed(patch: &Value, pods: Vec<PodFacts>) -> Observed {
    let mut vmi = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {
            "name": "a", "namespace": "n", "uid": "vmi-uid",
            "finalizers": ["kubevirt.io/foregroundDeleteVirtualMachine"]
        },
        "spec": {"domain": {}},
        "status": {"phase": "Pending", "phaseTransitionTimestamps": [
            {"phase": "Pending", "phaseTransitionTimestamp": "2026-12-01T00:00:00Z"}
        ]}
    });
    json_patch::merge(&mut vmi, patch);
    Observed {
        vmi: serde_json::from_value(vmi).unwrap(),
        pods,
        owner_gone: false,
        configuration: Configuration::default(),
        launcher_image: "launcher:1".to_owned(),
        silent_on_readiness: false,
        now: Time("2026-12-01T00:00:10Z".parse().unwrap()),
    }
}

fn phase(word: &str) -> Value {
    json!({"status": {"phase": word}})
}

fn leaving(word: &str) -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-12-01T00:00:00Z"}, "status": {"phase": word}})
}

fn pod() -> PodFacts {
    PodFacts {
        name: "virt-launcher-a-xxxxx".to_owned(),
        uid: "pod-uid".to_owned(),
        unpaused: Some(true),
        ..PodFacts::default()
    }
}

fn running() -> PodFacts {
    PodFacts {
        node: "node-1".to_owned(),
        launcher_runs: true,
        ready: Some(Condition::new("Ready", true, "", "")),
        ..pod()
    }
}

fn dead() -> PodFacts {
    PodFacts {
        going_down: true,
        ..pod()
    }
}

fn deleted() -> PodFacts {
    PodFacts {
        deleted: true,
        ..dead()
    }
}

/// A plan in words.
fn words(plan: &Plan) -> Vec<String> {
    plan.iter()
        .map(|step| match step {
            Step::CreatePod(pod) => format!("create {}", pod.name_any().len()),
            Step::DeletePod { uid, .. } => format!("delete {uid}"),
            Step::SetGate { paused, .. } => format!("paused {paused}"),
            Step::LabelPod { node, .. } => format!("label {node}"),
            Step::Write(vmi) => {
                let status = vmi.status.as_ref().unwrap();
                let conditions = status.conditions.as_deref().unwrap_or_default();
                let ready = condition::find(conditions, "Ready");
                let ready = ready.and_then(|c| c.reason.as_deref());
                format!(
                    "{} {}",
                    status.phase.unwrap().as_str(),
                    ready.unwrap_or("-")
                )
            }
        })
        .collect()
}

#[rstest]
#[case::a_pod_is_made(&json!({}), vec![], &["create 21"])]
#[case::came_around_admission(
    &json!({"metadata": {"finalizers": null}, "status": null}), vec![], &["Pending -"]
)]
#[case::pod_seen(&json!({}), vec![pod()], &["Scheduling GuestNotRunning"])]
#[case::gate_opens(
    &json!({}), vec![PodFacts { unpaused: None, ..pod() }],
    &["Scheduling GuestNotRunning", "paused false"]
)]
#[case::launcher_runs(&phase("Scheduling"), vec![running()], &["Scheduled GuestNotRunning"])]
#[case::pod_vanished_early(&phase("Scheduling"), vec![], &["Failed PodNotExists"])]
#[case::pod_died_early(&phase("Scheduling"), vec![dead()], &["Failed PodTerminating"])]
#[case::machine_runs(&phase("Running"), vec![running()], &["Running -"])]
#[case::pod_vanished_later(&phase("Running"), vec![], &["Failed PodNotExists"])]
#[case::pod_ends_before_the_handler_says_so(
    &phase("Running"), vec![dead()], &["Running PodTerminating"]
)]
#[case::machine_ended(&phase("Succeeded"), vec![running()], &["Succeeded GuestNotRunning"])]
#[case::label_follows(
    &json!({"metadata": {"labels": {"kubevirt.io/nodeName": "node-1"}}, "status": {"phase": "Running"}}),
    vec![running()], &["Running -", "label node-1"]
)]
#[case::deleted_before_a_pod(&leaving("Pending"), vec![], &["Failed PodNotExists"])]
#[case::deleted_while_running(&leaving("Running"), vec![running()], &["delete pod-uid", "Running -"])]
#[case::deleted_and_pod_leaves(&leaving("Running"), vec![deleted()], &["Running PodTerminating"])]
#[case::deleted_and_pod_left(&leaving("Succeeded"), vec![], &["Succeeded PodNotExists"])]
#[case::ended_pod_is_cleared_away(
    &leaving("Succeeded"), vec![dead()], &["delete pod-uid", "Succeeded PodTerminating"]
)]
#[case::no_launch_while_leaving(&leaving("Scheduling"), vec![running()], &["delete pod-uid", "Scheduling GuestNotRunning"])]
fn passes(#[case] vmi: &Value, #[case] pods: Vec<PodFacts>, #[case] want: &[&str]) {
    assert_eq!(words(&decide(&observed(vmi, pods))), want);
}

fn written(plan: &Plan) -> &VirtualMachineInstance {
    let write = plan.iter().find_map(|step| match step {
        Step::Write(vmi) => Some(vmi),
        _ => None,
    });
    write.unwrap()
}

#[test]
fn node_and_label_come_with_scheduled_in_one_write() {
    let plan = decide(&observed(&phase("Scheduling"), vec![running()]));
    let vmi = written(&plan);
    let status = vmi.status.as_ref().unwrap();
    assert_eq!(status.phase, Some(Phase::Scheduled));
    assert_eq!(status.node_name.as_deref(), Some("node-1"));
    assert_eq!(vmi.labels()[names::LABEL_NODE_NAME], "node-1");
    assert_eq!(status.active_pods.as_ref().unwrap()["pod-uid"], "node-1");
}

#[test]
fn readiness_of_a_running_machine_is_the_pods() {
    let closed = Condition::new("Ready", false, "ReadinessGatesNotReady", "gate");
    let paused = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Paused", "status": "True", "reason": "PausedByUser"}
    ]}});
    let pod = PodFacts {
        ready: Some(closed),
        ..running()
    };
    let plan = decide(&observed(&paused, vec![pod]));
    assert_eq!(
        words(&plan),
        ["Running ReadinessGatesNotReady", "paused true"]
    );
}

#[rstest]
#[case::pull(PodFacts { image_error: Some(("ErrImagePull".into(), "m".into())), ..pod() }, "Synchronized", "ErrImagePull")]
#[case::no_node(
    PodFacts { unscheduled: Some(Condition::new("PodScheduled", false, "Unschedulable", "m")), ..pod() },
    "PodScheduled", "Unschedulable"
)]
fn trouble_is_told_and_forgotten(
    #[case] pod_: PodFacts,
    #[case] type_: &str,
    #[case] reason: &str,
) {
    let plan = decide(&observed(&phase("Scheduling"), vec![pod_]));
    let vmi = written(&plan);
    let conditions = vmi.status.clone().unwrap().conditions.unwrap();
    let trouble = condition::find(&conditions, type_).unwrap();
    assert_eq!(trouble.reason.as_deref(), Some(reason));

    let mut later = observed(&phase("Scheduling"), vec![running()]);
    later.vmi = vmi.clone();
    let plan = decide(&later);
    let conditions = written(&plan).status.clone().unwrap().conditions.unwrap();
    assert_eq!(condition::find(&conditions, type_), None);
}

#[test]
fn what_the_handler_says_is_left_alone() {
    let vmi = json!({"status": {"phase": "Scheduled", "conditions": [
        {"type": "Synchronized", "status": "False", "reason": "Synchronizing with the Domain failed."}
    ]}});
    let plan = decide(&observed(&vmi, vec![running()]));
    let conditions = written(&plan).status.clone().unwrap().conditions.unwrap();
    assert!(condition::find(&conditions, "Synchronized").is_some());
}

#[rstest]
#[case::the_vm_still_waits(false, &["kubevirt.io/virtualMachineControllerFinalize"])]
#[case::the_vm_is_gone(true, &[])]
fn finalizers(#[case] owner_gone: bool, #[case] left: &[&str]) {
    let vmi = json!({
        "metadata": {
            "deletionTimestamp": "2026-12-01T00:00:00Z",
            "finalizers": [
                "kubevirt.io/virtualMachineControllerFinalize",
                "kubevirt.io/foregroundDeleteVirtualMachine"
            ]
        },
        "status": {"phase": "Succeeded"}
    });
    let gone = Observed {
        owner_gone,
        ..observed(&vmi, vec![])
    };
    assert_eq!(written(&decide(&gone)).finalizers(), left);
    let still_there = Observed {
        owner_gone,
        ..observed(&vmi, vec![deleted()])
    };
    assert_eq!(written(&decide(&still_there)).finalizers().len(), 2);
}

#[test]
fn a_fault_on_purpose_hides_readiness() {
    let faulty = Observed {
        silent_on_readiness: true,
        ..observed(&phase("Running"), vec![running()])
    };
    let conditions = written(&decide(&faulty)).status.clone().unwrap().conditions;
    assert_eq!(conditions, None);
}

#[test]
fn each_phase_is_dated_once() {
    let plan = decide(&observed(&json!({}), vec![pod()]));
    let mut again = observed(&json!({}), vec![running()]);
    again.vmi = written(&plan).clone();
    let plan = decide(&again);
    let status = written(&plan).status.clone().unwrap();
    let history = status.phase_transition_timestamps.unwrap();
    let phases: Vec<_> = history.iter().map(|entry| entry.phase.as_str()).collect();
    assert_eq!(phases, ["Pending", "Scheduling", "Scheduled"]);
}

#[test]
fn a_pass_over_its_own_result_does_nothing() {
    let plan = decide(&observed(&phase("Running"), vec![running()]));
    let mut again = observed(&phase("Running"), vec![running()]);
    again.vmi = written(&plan).clone();
    assert_eq!(decide(&again), Plan::new());
}
