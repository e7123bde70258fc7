//! Tables for printableStatus and the conditions of a VM.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::vm::observe;

fn now() -> Time {
    Time("2026-12-01T00:00:10Z".parse().unwrap())
}

fn observed(vm_metadata: &Value, vmi: Option<Value>) -> Observed {
    let mut metadata = json!({"name": "a", "namespace": "n", "uid": "vm-uid", "generation": 3});
    json_patch::merge(&mut metadata, vm_metadata);
    let vm = serde_json::from_value(json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata,
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {}, "volumes": [
            {"name": "cd", "containerDisk": {"image": "i"}},
            {"name": "pvc", "persistentVolumeClaim": {"claimName": "c"}}
        ]}}}
    }))
    .unwrap();
    let vmi = vmi.map(|patch| {
        let mut vmi = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {
                "name": "a", "namespace": "n", "uid": "vmi-uid",
                "annotations": {"kubevirt.io/vm-generation": "2"},
                "ownerReferences": [{
                    "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "a",
                    "uid": "vm-uid", "controller": true
                }]
            },
            "spec": {"domain": {}}
        });
        json_patch::merge(&mut vmi, &patch);
        serde_json::from_value(vmi).unwrap()
    });
    observe::sort(vm, vmi, now())
}

fn story(strategy: RunStrategy) -> Story {
    Story {
        strategy,
        requests: Requests::default(),
        start_failure: None,
        creating: false,
        deleting: false,
        start_due: false,
        failure: None,
    }
}

fn in_phase(phase: &str) -> Option<Value> {
    Some(json!({"status": {"phase": phase}}))
}

fn with_condition(phase: &str, type_: &str, status: &str, reason: &str) -> Option<Value> {
    Some(json!({"status": {"phase": phase, "conditions": [
        {"type": type_, "status": status, "reason": reason}
    ]}}))
}

fn leaving(phase: &str) -> Option<Value> {
    Some(json!({
        "metadata": {"deletionTimestamp": "2026-12-01T00:00:00Z"}, "status": {"phase": phase}
    }))
}

#[rstest]
#[case::nothing(None, "Stopped")]
#[case::made(in_phase("Pending"), "Starting")]
#[case::scheduling(in_phase("Scheduling"), "Starting")]
#[case::scheduled(in_phase("Scheduled"), "Starting")]
#[case::running(in_phase("Running"), "Running")]
#[case::paused(with_condition("Running", "Paused", "True", "PausedByUser"), "Paused")]
#[case::leaving(leaving("Running"), "Stopping")]
#[case::leaving_before_it_ran(leaving("Scheduling"), "Stopping")]
#[case::ended_though_not_gone(leaving("Succeeded"), "Stopped")]
#[case::powered_off(in_phase("Succeeded"), "Stopped")]
#[case::crashed(in_phase("Failed"), "Stopped")]
#[case::no_node(
    with_condition("Scheduling", "PodScheduled", "False", "Unschedulable"),
    "ErrorUnschedulable"
)]
#[case::no_image(
    with_condition("Scheduling", "Synchronized", "False", "ErrImagePull"),
    "ErrImagePull"
)]
#[case::no_image_again(
    with_condition("Scheduling", "Synchronized", "False", "ImagePullBackOff"),
    "ImagePullBackOff"
)]
#[case::no_claim(
    with_condition("Pending", "Synchronized", "False", "FailedPvcNotFound"),
    "ErrorPvcNotFound"
)]
#[case::handler_trouble(
    with_condition(
        "Scheduled",
        "Synchronized",
        "False",
        "Synchronizing with the Domain failed."
    ),
    "Starting"
)]
fn words(#[case] vmi: Option<Value>, #[case] want: &str) {
    let got = status(&observed(&json!({}), vmi), story(RunStrategy::Always));
    assert_eq!(got.printable_status.as_deref(), Some(want));
}

#[test]
fn a_vmi_that_is_being_made_or_deleted_counts_already() {
    let creating = Story {
        creating: true,
        ..story(RunStrategy::Always)
    };
    let got = status(&observed(&json!({}), None), creating);
    assert_eq!(got.printable_status.as_deref(), Some("Starting"));
    assert_eq!(
        (got.created, got.run_strategy),
        (None, Some(RunStrategy::Always))
    );

    let deleting = Story {
        deleting: true,
        ..story(RunStrategy::Halted)
    };
    let got = status(&observed(&json!({}), in_phase("Running")), deleting);
    assert_eq!(got.printable_status.as_deref(), Some("Stopping"));
}

#[rstest]
#[case(RunStrategy::Always, "CrashLoopBackOff")]
#[case(RunStrategy::Once, "CrashLoopBackOff")]
#[case(RunStrategy::Manual, "Stopped")]
#[case(RunStrategy::Halted, "Stopped")]
fn failed_starts(#[case] strategy: RunStrategy, #[case] want: &str) {
    let failing = Story {
        start_failure: Some(VirtualMachineStartFailure {
            consecutive_fail_count: Some(1),
            ..VirtualMachineStartFailure::default()
        }),
        ..story(strategy)
    };
    let got = status(&observed(&json!({}), in_phase("Failed")), failing);
    assert_eq!(got.printable_status.as_deref(), Some(want));
}

#[test]
fn a_vm_that_is_deleted_says_so_whatever_its_vmi_does() {
    let vm = json!({"deletionTimestamp": "2026-12-01T00:00:00Z"});
    let got = status(
        &observed(&vm, in_phase("Running")),
        story(RunStrategy::Always),
    );
    assert_eq!(got.printable_status.as_deref(), Some("Terminating"));
}

fn ready(status: &VirtualMachineStatus) -> (String, Option<String>) {
    let conditions = status.conditions.as_deref().unwrap();
    let ready = condition::find(conditions, "Ready").unwrap();
    (ready.status.clone(), ready.reason.clone())
}

#[rstest]
#[case::no_vmi(None, "False", Some("VMINotExists"), None)]
#[case::no_word_yet(in_phase("Pending"), "False", Some("VMIConditionMissing"), None)]
#[case::copied(
    with_condition("Scheduling", "Ready", "False", "GuestNotRunning"),
    "False",
    Some("GuestNotRunning"),
    None
)]
#[case::ready(Some(json!({"status": {"phase": "Running", "conditions": [
    {"type": "Ready", "status": "True"}
]}})), "True", None, Some(true))]
fn readiness(
    #[case] vmi: Option<Value>,
    #[case] want: &str,
    #[case] reason: Option<&str>,
    #[case] field: Option<bool>,
) {
    let exists = vmi.is_some();
    let got = status(&observed(&json!({}), vmi), story(RunStrategy::Always));
    assert_eq!(ready(&got), (want.to_owned(), reason.map(str::to_owned)));
    assert_eq!((got.created, got.ready), (exists.then_some(true), field));
}

#[test]
fn copies_come_and_go_with_the_vmi_and_stay_when_it_is_gone() {
    let paused = with_condition("Running", "Paused", "True", "PausedByUser");
    let mut seen = observed(&json!({}), paused);
    let first = status(&seen, story(RunStrategy::Always));
    let has_paused = |s: &VirtualMachineStatus| {
        condition::find(s.conditions.as_deref().unwrap(), "Paused").is_some()
    };
    assert!(has_paused(&first));

    seen.vm.status = Some(first);
    let vmi = seen.vmi.take();
    assert!(has_paused(&status(&seen, story(RunStrategy::Always))));

    seen.vmi = vmi.map(|mut vmi| {
        vmi.status = None;
        vmi
    });
    assert!(!has_paused(&status(&seen, story(RunStrategy::Always))));
}

#[test]
fn a_failure_goes_away_with_the_next_clean_pass() {
    let mut seen = observed(&json!({}), None);
    let failed = with_failure(&seen.vm, "FailedCreate", "no", &now());
    let find = |s: &VirtualMachineStatus| {
        condition::find(s.conditions.as_deref().unwrap(), "Failure").cloned()
    };
    assert_eq!(
        find(&failed).unwrap().reason.as_deref(),
        Some("FailedCreate")
    );
    seen.vm.status = Some(failed);
    assert_eq!(find(&status(&seen, story(RunStrategy::Always))), None);
}

#[test]
fn generations_are_told_while_a_vmi_exists() {
    let got = status(
        &observed(&json!({}), in_phase("Running")),
        story(RunStrategy::Always),
    );
    assert_eq!(
        (got.desired_generation, got.observed_generation),
        (Some(3), Some(2))
    );
    assert_eq!(got.volume_snapshot_statuses.unwrap().len(), 1);
}

#[test]
fn a_strategy_counts_only_when_its_start_was_made() {
    let due = Story {
        start_due: true,
        ..story(RunStrategy::RerunOnFailure)
    };
    let mut seen = observed(&json!({}), None);
    seen.vm.status = Some(VirtualMachineStatus {
        run_strategy: Some(RunStrategy::Halted),
        ..VirtualMachineStatus::default()
    });
    assert_eq!(status(&seen, due).run_strategy, Some(RunStrategy::Halted));
    let done = story(RunStrategy::RerunOnFailure);
    assert_eq!(
        status(&seen, done).run_strategy,
        Some(RunStrategy::RerunOnFailure)
    );
}
