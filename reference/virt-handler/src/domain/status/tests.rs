use rstest::rstest;

use super::*;
use crate::{domain::decide::End, testing::merge};

fn now() -> Time {
    Time("2026-11-30T23:36:47Z".parse().unwrap())
}

fn vmi(status: Value) -> VirtualMachineInstance {
    serde_json::from_value(json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "spec": {
            "domain": {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}},
            "networks": [{"name": "default", "pod": {}}]},
        "status": status,
    }))
    .unwrap()
}

fn scheduled() -> VirtualMachineInstance {
    vmi(json!({
        "phase": "Scheduled", "nodeName": "node-1",
        "phaseTransitionTimestamps": [{"phase": "Scheduled", "phaseTransitionTimestamp": "2026-11-30T23:36:45Z"}],
        "conditions": [{"type": "Ready", "status": "False", "reason": "GuestNotRunning"}],
    }))
}

fn machine() -> DomainState {
    DomainState {
        backend: "qemu".to_owned(),
        accelerator: "tcg".to_owned(),
        machine: "q35".to_owned(),
        ..DomainState::default()
    }
}

fn report<'a>(outcome: &'a Outcome, machine: Option<&'a DomainState>) -> Report<'a> {
    Report {
        outcome,
        machine,
        pod_ip: Some("10.244.0.24"),
        sync_error: None,
    }
}

/// The VMI as the API server would keep it after the patch.
fn patched(vmi: &VirtualMachineInstance, patch: &Value) -> VirtualMachineInstance {
    let mut object = serde_json::to_value(vmi).unwrap();
    merge(&mut object, patch);
    serde_json::from_value(object).unwrap()
}

#[test]
fn the_start_of_a_machine() {
    let outcome = Outcome::Up { paused: false };
    let machine = machine();
    let patch = patch(&scheduled(), report(&outcome, Some(&machine)), &now()).unwrap();
    insta::assert_json_snapshot!(patch);
}

#[rstest]
#[case(Outcome::Preparing)]
#[case(Outcome::Up { paused: false })]
#[case(Outcome::Up { paused: true })]
#[case(Outcome::Ended(End { success: true, panicked: false, start_error: None }))]
#[case(Outcome::Ended(End { success: false, panicked: false, start_error: Some("no".to_owned()) }))]
fn a_patch_is_written_once(#[case] outcome: Outcome) {
    let machine = machine();
    let report = report(&outcome, Some(&machine));
    let first = patch(&scheduled(), report, &now()).unwrap();
    assert_eq!(first["metadata"]["resourceVersion"], "7");
    let after = patched(&scheduled(), &first);
    assert_eq!(patch(&after, report, &now()), None);
    let conditions = after.status.unwrap().conditions.unwrap();
    assert!(
        condition::find(&conditions, "Ready").is_some(),
        "others' conditions stay"
    );
}

#[test]
fn pause_comes_and_goes_as_a_condition() {
    let (up, held) = (Outcome::Up { paused: false }, Outcome::Up { paused: true });
    let paused = patched(
        &scheduled(),
        &patch(&scheduled(), report(&held, None), &now()).unwrap(),
    );
    let status = paused.status.clone().unwrap();
    assert_eq!(status.phase, Some(VmiPhase::Running));
    let conditions = status.conditions.unwrap();
    let condition = condition::find(&conditions, "Paused").unwrap();
    assert_eq!(condition.reason.as_deref(), Some("PausedByUser"));
    assert!(condition.last_transition_time.is_some() && condition.last_probe_time.is_some());

    let resumed = patched(&paused, &patch(&paused, report(&up, None), &now()).unwrap());
    let conditions = resumed.status.unwrap().conditions.unwrap();
    assert_eq!(condition::find(&conditions, "Paused"), None);
}

#[test]
fn a_failed_hand_over_is_a_condition_until_it_works() {
    let preparing = Outcome::Preparing;
    let failing = Report {
        sync_error: Some("no such kernel"),
        ..report(&preparing, None)
    };
    let failed = patched(&scheduled(), &patch(&scheduled(), failing, &now()).unwrap());
    let conditions = failed.status.clone().unwrap().conditions.unwrap();
    let synchronized = condition::find(&conditions, "Synchronized").unwrap();
    assert_eq!(
        (
            synchronized.status.as_str(),
            synchronized.message.as_deref()
        ),
        ("False", Some("no such kernel"))
    );
    assert_eq!(
        failed.status.clone().unwrap().phase,
        Some(VmiPhase::Scheduled)
    );

    let works = patch(&failed, report(&preparing, None), &now()).unwrap();
    let conditions = patched(&failed, &works).status.unwrap().conditions.unwrap();
    assert_eq!(condition::find(&conditions, "Synchronized"), None);
}

#[test]
fn the_controllers_own_sync_error_is_not_taken_away() {
    let vmi = vmi(json!({"phase": "Scheduled", "conditions": [
        {"type": "Synchronized", "status": "False", "reason": "FailedPvcNotFound"}]}));
    let preparing = Outcome::Preparing;
    let after = patched(
        &vmi,
        &patch(&vmi, report(&preparing, None), &now()).unwrap(),
    );
    let conditions = after.status.unwrap().conditions.unwrap();
    assert!(condition::find(&conditions, "Synchronized").is_some());
}

#[test]
fn a_bridge_on_the_pod_network_says_why_it_cannot_move() {
    let mut vmi = scheduled();
    vmi.spec.domain.devices.interfaces.as_mut().unwrap()[0].masquerade = None;
    let preparing = Outcome::Preparing;
    let after = patched(
        &vmi,
        &patch(&vmi, report(&preparing, None), &now()).unwrap(),
    );
    let conditions = after.status.unwrap().conditions.unwrap();
    let live = condition::find(&conditions, "LiveMigratable").unwrap();
    assert_eq!(live.reason.as_deref(), Some("InterfaceNotLiveMigratable"));
}

#[rstest]
#[case("vmm", "kvm", Some("vmm"))]
#[case("qemu", "kvm", Some("qemu-kvm"))]
#[case("qemu", "tcg", Some("qemu-tcg"))]
#[case("", "", None)]
fn back_ends_have_one_word(
    #[case] name: &str,
    #[case] accelerator: &str,
    #[case] word: Option<&str>,
) {
    let machine = DomainState {
        backend: name.to_owned(),
        accelerator: accelerator.to_owned(),
        ..DomainState::default()
    };
    assert_eq!(backend(&machine).as_deref(), word);
}
