//! The table of the original: strategy and state against what a call does.

use kubevirt_api::v1::{
    RunStrategy, VirtualMachineInstanceStatus, VirtualMachineStartFailure, VirtualMachineStatus,
};
use rstest::rstest;
use serde_json::json;

use super::*;

fn vm(strategy: &str) -> VirtualMachine {
    let mut vm = VirtualMachine {
        status: Some(VirtualMachineStatus::default()),
        ..VirtualMachine::default()
    };
    vm.metadata.name = Some("a".to_owned());
    match strategy {
        "running" => vm.spec.running = Some(true),
        "not running" => vm.spec.running = Some(false),
        word => vm.spec.run_strategy = Some(RunStrategy::from(word.to_owned())),
    }
    vm
}

fn vmi(phase: Option<Phase>) -> Option<VirtualMachineInstance> {
    let mut vmi = VirtualMachineInstance {
        status: Some(VirtualMachineInstanceStatus {
            phase: Some(phase?),
            ..VirtualMachineInstanceStatus::default()
        }),
        ..VirtualMachineInstance::default()
    };
    vmi.metadata.uid = Some("u".to_owned());
    Some(vmi)
}

fn orders(list: &Value) -> Vec<Value> {
    vec![json!({"op": "add", "path": "/status/stateChangeRequests", "value": list})]
}

fn strategy_from(old: &str, new: &str) -> Vec<Value> {
    vec![
        json!({"op": "test", "path": "/spec/runStrategy", "value": old}),
        json!({"op": "replace", "path": "/spec/runStrategy", "value": new}),
    ]
}

fn start() -> Order {
    Order::Start(StartOptions::default())
}

fn stop() -> Order {
    Order::Stop(StopOptions::default())
}

fn restart() -> Order {
    Order::Restart(RestartOptions::default())
}

#[rstest]
#[case::start_halted(start(), "Halted", None, "Always")]
#[case::start_halted_with_leftover(start(), "Halted", Some(Phase::Succeeded), "Always")]
#[case::stop_always(stop(), "Always", Some(Phase::Running), "Halted")]
#[case::stop_always_with_nothing(stop(), "Always", None, "Halted")]
#[case::stop_once(stop(), "Once", Some(Phase::Running), "Halted")]
fn the_strategy_changes(
    #[case] order: Order,
    #[case] old: &str,
    #[case] phase: Option<Phase>,
    #[case] new: &str,
) {
    let plan = decide(&order, &vm(old), vmi(phase).as_ref()).unwrap();
    assert_eq!(plan.spec, strategy_from(old, new));
    assert!(plan.status.is_empty());
}

#[rstest]
#[case(start(), "not running", None, true)]
#[case(stop(), "running", Some(Phase::Running), false)]
fn whoever_writes_running_keeps_it(
    #[case] order: Order,
    #[case] old: &str,
    #[case] phase: Option<Phase>,
    #[case] now: bool,
) {
    let plan = decide(&order, &vm(old), vmi(phase).as_ref()).unwrap();
    assert_eq!(
        plan.spec[1],
        json!({"op": "replace", "path": "/spec/running", "value": now})
    );
}

#[rstest]
#[case::start_manual(start(), "Manual", None, json!([{"action": "Start"}]))]
#[case::start_manual_over_ended(start(), "Manual", Some(Phase::Succeeded), json!([{"action": "Stop", "uid": "u"}, {"action": "Start"}]))]
#[case::start_rerun(start(), "RerunOnFailure", None, json!([{"action": "Start"}]))]
#[case::start_rerun_over_ended(start(), "RerunOnFailure", Some(Phase::Succeeded), json!([{"action": "Stop", "uid": "u"}, {"action": "Start"}]))]
#[case::start_paused(Order::Start(StartOptions { paused: Some(true), dry_run: None }), "Halted", None, json!([{"action": "Start", "data": {"paused": "true"}}]))]
#[case::stop_manual(stop(), "Manual", Some(Phase::Running), json!([{"action": "Stop", "uid": "u"}]))]
#[case::stop_rerun(stop(), "RerunOnFailure", Some(Phase::Scheduling), json!([{"action": "Stop", "uid": "u"}]))]
#[case::restart_always(restart(), "Always", Some(Phase::Running), json!([{"action": "Stop", "uid": "u"}, {"action": "Start"}]))]
#[case::restart_manual_over_ended(restart(), "Manual", Some(Phase::Succeeded), json!([{"action": "Stop", "uid": "u"}, {"action": "Start"}]))]
#[case::restart_running_true(restart(), "running", Some(Phase::Running), json!([{"action": "Stop", "uid": "u"}, {"action": "Start"}]))]
fn orders_are_left_in_the_status(
    #[case] order: Order,
    #[case] strategy: &str,
    #[case] phase: Option<Phase>,
    #[case] list: Value,
) {
    let plan = decide(&order, &vm(strategy), vmi(phase).as_ref()).unwrap();
    assert_eq!(plan.status, orders(&list));
    assert!(plan.spec.is_empty());
}

#[rstest]
#[case(start(), "Always", Some(Phase::Running), "VM is already running")]
#[case(start(), "Halted", Some(Phase::Running), "VM is already running")]
#[case(start(), "Manual", Some(Phase::Scheduling), "VM is already running")]
#[case(
    start(),
    "Always",
    None,
    "Always does not support manual start requests"
)]
#[case(
    start(),
    "running",
    None,
    "Always does not support manual start requests"
)]
#[case(start(), "Once", None, "Once does not support manual start requests")]
#[case(
    start(),
    "RerunOnFailure",
    Some(Phase::Failed),
    "RerunOnFailure does not support starting VM from failed state"
)]
#[case(stop(), "Halted", None, "VM is not running")]
#[case(stop(), "Halted", Some(Phase::Succeeded), "VM is not running")]
#[case(stop(), "Manual", Some(Phase::Succeeded), "VM is not running")]
#[case(stop(), "RerunOnFailure", None, "VM is not running")]
#[case(
    stop(),
    "Halted",
    Some(Phase::Running),
    "Halted only supports manual stop requests with a shorter graceperiod"
)]
#[case(
    restart(),
    "Halted",
    None,
    "RunStategy Halted does not support manual restart requests"
)]
#[case(
    restart(),
    "Once",
    Some(Phase::Succeeded),
    "RunStategy Once does not support manual restart requests"
)]
#[case(restart(), "RerunOnFailure", None, "VM is not running: Halted")]
#[case(restart(), "Always", None, "VM is not running: Halted")]
fn a_wrong_state_is_a_conflict(
    #[case] order: Order,
    #[case] strategy: &str,
    #[case] phase: Option<Phase>,
    #[case] why: &str,
) {
    let refusal = decide(&order, &vm(strategy), vmi(phase).as_ref()).unwrap_err();
    assert_eq!(refusal, Refusal::conflict(Kind::Vm, "a", why));
}

#[rstest]
#[case(-1, Some("gracePeriod has to be greater or equal to 0"))]
#[case(5, Some("For force restart, only gracePeriod=0 is supported for now"))]
#[case(0, None)]
fn a_forced_restart_has_no_grace(#[case] seconds: i64, #[case] message: Option<&str>) {
    let order = Order::Restart(RestartOptions {
        grace_period_seconds: Some(seconds),
        dry_run: None,
    });
    let outcome = decide(&order, &vm("Always"), vmi(Some(Phase::Running)).as_ref());
    match message {
        Some(message) => assert_eq!(outcome, Err(Refusal::bad_request(message))),
        None => assert_eq!(outcome.unwrap().grace, Some(1)),
    }
}

#[rstest]
#[case::shorter("Halted", 5, Some(Phase::Running), Some(202))]
#[case::not_shorter("Halted", 30, Some(Phase::Running), Some(409))]
#[case::negative_but_stopped("Halted", -1, None, Some(409))]
#[case::negative("Always", -1, Some(Phase::Running), Some(400))]
#[case::at_once("Always", 0, Some(Phase::Running), Some(202))]
fn a_stop_may_shorten_the_grace(
    #[case] strategy: &str,
    #[case] seconds: i64,
    #[case] phase: Option<Phase>,
    #[case] code: Option<u16>,
) {
    let order = Order::Stop(StopOptions {
        grace_period: Some(seconds),
        dry_run: None,
    });
    let outcome = decide(&order, &vm(strategy), vmi(phase).as_ref());
    let found = outcome.as_ref().map_or_else(Refusal::code, |_| 202);
    assert_eq!(Some(found), code);
    if let Ok(plan) = outcome {
        assert_eq!(plan.grace, Some(seconds));
    }
}

#[test]
fn pending_orders_are_replaced_by_a_stop_only() {
    let mut vm = vm("Manual");
    let pending = json!([{"action": "Start"}]);
    if let Some(status) = &mut vm.status {
        status.state_change_requests = serde_json::from_value(pending.clone()).unwrap();
    }
    let running = vmi(Some(Phase::Running));
    let plan = decide(&stop(), &vm, running.as_ref()).unwrap();
    assert_eq!(
        plan.status[0],
        json!({"op": "test", "path": "/status/stateChangeRequests", "value": pending})
    );
    let refusal = decide(&restart(), &vm, running.as_ref()).unwrap_err();
    assert_eq!(
        refusal,
        Refusal::internal("unable to complete request: stop/start already underway")
    );
}

#[test]
fn a_call_ends_the_back_off() {
    let mut vm = vm("Halted");
    if let Some(status) = &mut vm.status {
        status.start_failure = Some(VirtualMachineStartFailure::default());
    }
    let plan = decide(&start(), &vm, None).unwrap();
    assert_eq!(
        plan.status,
        [json!({"op": "remove", "path": "/status/startFailure"})]
    );
}

#[test]
fn a_vm_without_status_gets_one() {
    let mut vm = vm("Manual");
    vm.status = None;
    let plan = decide(&start(), &vm, None).unwrap();
    assert_eq!(
        plan.status,
        [
            json!({"op": "add", "path": "/status", "value": {"stateChangeRequests": [{"action": "Start"}]}})
        ]
    );
}
