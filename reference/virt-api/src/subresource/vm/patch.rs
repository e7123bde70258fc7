//! JSON patches of a VM. Each tests what it replaces, so that of two callers at the same moment one is
//! told to look again.

use kubevirt_api::v1::{
    RunStrategy, VirtualMachine, VirtualMachineInstance, VirtualMachineStateChangeRequest,
};
use serde_json::{Value, json};

use super::Refusal;

/// An order to start, perhaps paused.
pub(super) fn start(paused: bool) -> VirtualMachineStateChangeRequest {
    VirtualMachineStateChangeRequest {
        action: "Start".to_owned(),
        data: paused.then(|| [("paused".to_owned(), "true".to_owned())].into()),
        uid: None,
    }
}

/// An order to stop this machine and no later one.
pub(super) fn stop(vmi: &VirtualMachineInstance) -> VirtualMachineStateChangeRequest {
    VirtualMachineStateChangeRequest {
        action: "Stop".to_owned(),
        data: None,
        uid: vmi.metadata.uid.clone(),
    }
}

/// Lets the VM run, or not: in the word that its author uses for that.
pub(super) fn run(vm: &VirtualMachine, on: bool) -> Vec<Value> {
    let strategy = if on {
        RunStrategy::Always
    } else {
        RunStrategy::Halted
    };
    match (vm.spec.running, &vm.spec.run_strategy) {
        (Some(old), _) => replace("/spec/running", &json!(old), &json!(on)),
        (None, Some(old)) => replace("/spec/runStrategy", &json!(old), &json!(strategy)),
        (None, None) => vec![json!({"op": "add", "path": "/spec/runStrategy", "value": strategy})],
    }
}

fn replace(path: &str, old: &Value, new: &Value) -> Vec<Value> {
    vec![
        json!({"op": "test", "path": path, "value": old}),
        json!({"op": "replace", "path": path, "value": new}),
    ]
}

/// Leaves orders for virt-controller in the status.
///
/// While others are pending, only a single order to stop takes their place.
pub(super) fn orders(
    vm: &VirtualMachine,
    orders: &[VirtualMachineStateChangeRequest],
) -> Result<Vec<Value>, Refusal> {
    const PATH: &str = "/status/stateChangeRequests";
    let Some(status) = &vm.status else {
        return Ok(vec![
            json!({"op": "add", "path": "/status", "value": {"stateChangeRequests": orders}}),
        ]);
    };
    let mut patch = match &status.state_change_requests {
        Some(pending) if !pending.is_empty() => {
            if !matches!(orders, [only] if only.action == "Stop") {
                return Err(Refusal::internal(
                    "unable to complete request: stop/start already underway",
                ));
            }
            replace(PATH, &json!(pending), &json!(orders))
        }
        Some(empty) => replace(PATH, &json!(empty), &json!(orders)),
        None => vec![json!({"op": "add", "path": PATH, "value": orders})],
    };
    patch.extend(forgive(vm));
    Ok(patch)
}

/// Whoever asks in person does not wait for the end of a back-off.
pub(super) fn forgive(vm: &VirtualMachine) -> Option<Value> {
    let failure = vm.status.as_ref()?.start_failure.as_ref();
    failure.map(|_| json!({"op": "remove", "path": "/status/startFailure"}))
}
