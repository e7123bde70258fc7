//! Tables for whole passes over a VM: which steps, in which order, and the word that people see.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::vm::observe;

const FINALIZER: &str = names::FINALIZER_CONTROLLER;

fn vm(patch: Value) -> Value {
    let mut vm = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
        "metadata": {
            "name": "a", "namespace": "n", "uid": "vm-uid", "generation": 1,
            "finalizers": [FINALIZER],
            "annotations": {
                "kubevirt.io/latest-observed-api-version": "v1",
                "kubevirt.io/storage-observed-api-version": "v1"
            }
        },
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {}}}}
    });
    json_patch::merge(&mut vm, &patch);
    vm
}

fn vmi(patch: Value) -> Option<Value> {
    let mut vmi = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {
            "name": "a", "namespace": "n", "uid": "vmi-uid", "finalizers": [FINALIZER],
            "ownerReferences": [{
                "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "a",
                "uid": "vm-uid", "controller": true, "blockOwnerDeletion": true
            }]
        },
        "spec": {"domain": {}},
        "status": {"phase": "Running", "phaseTransitionTimestamps": [
            {"phase": "Running", "phaseTransitionTimestamp": "2026-12-01T00:00:00Z"}
        ]}
    });
    json_patch::merge(&mut vmi, &patch);
    Some(vmi)
}

fn ended(phase: &str) -> Option<Value> {
    vmi(json!({"status": {"phase": phase}}))
}

fn plan(vm: Value, vmi: Option<Value>) -> Plan {
    decide(&observe::sort(
        serde_json::from_value(vm).unwrap(),
        vmi.map(|vmi| serde_json::from_value(vmi).unwrap()),
        Time("2026-12-01T00:00:10Z".parse().unwrap()),
    ))
}

/// A plan in words.
fn words(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .map(|step| match step {
            Step::WriteVm(vm) => format!("vm {}", vm.spec.effective_run_strategy()),
            Step::WriteStatus(status) => {
                let orders = status.state_change_requests.iter().flatten();
                let orders: String = orders.map(|r| format!(" {}", r.action)).collect();
                format!("{}{orders}", status.printable_status.as_deref().unwrap())
            }
            Step::WriteVmi { new, .. } => format!("vmi finalizers {}", new.finalizers().len()),
            Step::CreateVmi(_) => "create".to_owned(),
            Step::DeleteVmi { uid } => format!("delete {uid}"),
        })
        .collect()
}

#[rstest]
#[case::first_sight_makes_no_vmi(
    vm(json!({"metadata": {"finalizers": null}})), None, &["vm Always", "Stopped"]
)]
#[case::start(vm(json!({})), None, &["create", "Starting"])]
#[case::steady(vm(json!({})), vmi(json!({})), &["Running"])]
#[case::stop(
    vm(json!({"spec": {"runStrategy": "Halted"}})), vmi(json!({})), &["delete vmi-uid", "Stopping"]
)]
#[case::old_form_of_stop(
    vm(json!({"spec": {"runStrategy": null, "running": false}})), vmi(json!({})),
    &["delete vmi-uid", "Stopping"]
)]
#[case::power_off_under_always(
    vm(json!({})), ended("Succeeded"), &["vmi finalizers 0", "delete vmi-uid", "Stopped"]
)]
#[case::crash_under_rerun(
    vm(json!({"spec": {"runStrategy": "RerunOnFailure"}})), ended("Failed"),
    &["vmi finalizers 0", "Stopped Start", "delete vmi-uid"]
)]
#[case::power_off_under_rerun(
    vm(json!({"spec": {"runStrategy": "RerunOnFailure"}})), ended("Succeeded"),
    &["vmi finalizers 0", "delete vmi-uid", "Stopped"]
)]
#[case::stays_off_under_rerun(
    vm(json!({"spec": {"runStrategy": "RerunOnFailure"}, "status": {"runStrategy": "RerunOnFailure"}})),
    None, &["Stopped"]
)]
#[case::first_start_under_rerun(
    vm(json!({"spec": {"runStrategy": "RerunOnFailure"}})), None, &["create", "Starting"]
)]
#[case::power_off_under_once(
    vm(json!({"spec": {"runStrategy": "Once"}})), ended("Succeeded"), &["vmi finalizers 0", "Stopped"]
)]
#[case::restart_begins(
    vm(json!({"status": {"stateChangeRequests": [{"action": "Stop", "uid": "vmi-uid"}, {"action": "Start"}]}})),
    vmi(json!({})), &["delete vmi-uid", "Stopping Stop Start"]
)]
#[case::restart_goes_on(
    vm(json!({
        "spec": {"runStrategy": "Manual"},
        "status": {"stateChangeRequests": [{"action": "Stop", "uid": "vmi-uid"}, {"action": "Start"}]}
    })),
    None, &["create", "Starting Start"]
)]
#[case::restart_ends(
    vm(json!({"status": {"stateChangeRequests": [{"action": "Start"}]}})), vmi(json!({})), &["Running"]
)]
#[case::start_order_of_a_halted_vm(
    vm(json!({
        "spec": {"runStrategy": "Halted"},
        "status": {"stateChangeRequests": [{"action": "Start", "data": {"paused": "true"}}]}
    })),
    None, &["vm Always", "Stopped Start"]
)]
#[case::deleted_with_a_vmi(
    vm(json!({"metadata": {"deletionTimestamp": "2026-12-01T00:00:00Z"}})), vmi(json!({})),
    &["delete vmi-uid", "Terminating"]
)]
#[case::deleted_and_the_machine_ended(
    vm(json!({"metadata": {"deletionTimestamp": "2026-12-01T00:00:00Z"}})),
    vmi(json!({"metadata": {"deletionTimestamp": "2026-12-01T00:00:00Z"}, "status": {"phase": "Succeeded"}})),
    &["vmi finalizers 0", "Terminating"]
)]
#[case::deleted_and_nothing_left(
    vm(json!({"metadata": {"deletionTimestamp": "2026-12-01T00:00:00Z"}})), None, &["vm Always"]
)]
#[case::deleted_leaving_orphans(
    vm(json!({"metadata": {"deletionTimestamp": "2026-12-01T00:00:00Z", "finalizers": [FINALIZER, "orphan"]}})),
    vmi(json!({})), &["vm Always"]
)]
#[case::someone_elses_vmi_is_no_vmi(
    vm(json!({"spec": {"runStrategy": "Halted"}})),
    vmi(json!({"metadata": {"ownerReferences": [{
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "a", "uid": "old", "controller": true
    }]}})),
    &["Stopped"]
)]
#[case::an_orphan_is_adopted(
    vm(json!({})), vmi(json!({"metadata": {"ownerReferences": null}})), &["vmi finalizers 1", "Stopped"]
)]
fn passes(#[case] vm: Value, #[case] vmi: Option<Value>, #[case] want: &[&str]) {
    assert_eq!(words(&plan(vm, vmi)), want);
}

#[test]
fn a_failed_start_waits_and_then_starts() {
    let failing = |until: &str| {
        vm(json!({"status": {"startFailure": {
            "consecutiveFailCount": 1, "lastFailedVMIUID": "x", "retryAfterTimestamp": until
        }}}))
    };
    let early = plan(failing("2026-12-01T00:00:15Z"), None);
    assert_eq!(words(&early), ["CrashLoopBackOff"]);
    assert_eq!(early.again, Some(Duration::from_secs(5)));
    let late = plan(failing("2026-12-01T00:00:10Z"), None);
    assert_eq!(words(&late), ["create", "Starting"]);
}

#[test]
fn a_vmi_that_never_ran_counts_as_a_failed_start() {
    let never_ran = vmi(json!({"status": {"phase": "Failed", "phaseTransitionTimestamps": null}}));
    let got = plan(vm(json!({})), never_ran);
    assert_eq!(
        words(&got),
        ["vmi finalizers 0", "delete vmi-uid", "CrashLoopBackOff"]
    );
}

#[test]
fn a_pass_over_its_own_result_changes_nothing() {
    let mut current = vm(json!({}));
    let first = plan(current.clone(), vmi(json!({})));
    let [Step::WriteStatus(status)] = &first.steps[..] else {
        unreachable!("one step: {first:?}")
    };
    current["status"] = serde_json::to_value(status).unwrap();
    let second = plan(current, vmi(json!({})));
    assert_eq!(first, second);
}
