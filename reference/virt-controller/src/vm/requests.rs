//! Orders of the start, stop and restart calls. Only the first one counts; it is struck off when it
//! is done or can no longer be meant.

use kube::ResourceExt as _;
use kubevirt_api::v1::{VirtualMachineInstance, VirtualMachineStateChangeRequest};

use super::observe::phase;

const START: &str = "Start";
const STOP: &str = "Stop";

/// Orders that are not carried out yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Requests(Vec<VirtualMachineStateChangeRequest>);

impl Requests {
    /// The orders in the status, without those that are done.
    pub(super) fn pending(
        requests: Option<&Vec<VirtualMachineStateChangeRequest>>,
        vmi: Option<&VirtualMachineInstance>,
    ) -> Self {
        let mut pending = requests.cloned().unwrap_or_default();
        let done = pending
            .iter()
            .take_while(|request| is_done(request, vmi))
            .count();
        pending.drain(..done);
        Self(pending)
    }

    /// Whether the VMI is to be stopped. Stop orders for another VMI were struck off.
    pub(super) fn stop(&self) -> bool {
        self.0.first().is_some_and(|request| request.action == STOP)
    }

    /// The start order, when that is next.
    pub(super) fn start(&self) -> Option<StartOrder> {
        let first = self.0.first().filter(|r| r.action == START)?;
        let paused = first.data.as_ref().and_then(|data| data.get("paused"));
        Some(StartOrder {
            paused: paused.is_some_and(|word| word == "true"),
        })
    }

    /// With one more order to start.
    pub(super) fn and_start(mut self) -> Self {
        self.0.push(VirtualMachineStateChangeRequest {
            action: START.to_owned(),
            ..VirtualMachineStateChangeRequest::default()
        });
        self
    }

    /// As the status keeps them.
    pub(super) fn into_status(self) -> Option<Vec<VirtualMachineStateChangeRequest>> {
        (!self.0.is_empty()).then_some(self.0)
    }
}

/// An order to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartOrder {
    /// The guest is not to run at first.
    pub(super) paused: bool,
}

fn is_done(
    request: &VirtualMachineStateChangeRequest,
    vmi: Option<&VirtualMachineInstance>,
) -> bool {
    match request.action.as_str() {
        STOP => vmi.is_none_or(|vmi| request.uid.is_none() || request.uid != vmi.uid()),
        START => vmi
            .is_some_and(|vmi| !phase(vmi).is_final() && vmi.metadata.deletion_timestamp.is_none()),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn vmi(phase: &str, deleting: bool) -> VirtualMachineInstance {
        let mut metadata = json!({"name": "a", "uid": "one"});
        if deleting {
            metadata["deletionTimestamp"] = json!("2026-12-01T00:00:00Z");
        }
        serde_json::from_value(json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": metadata, "spec": {"domain": {}}, "status": {"phase": phase}
        }))
        .unwrap()
    }

    #[rstest]
    #[case::stop_in_force(json!([{"action": "Stop", "uid": "one"}]), Some(vmi("Running", false)), 1)]
    #[case::stop_while_it_ends(json!([{"action": "Stop", "uid": "one"}]), Some(vmi("Running", true)), 1)]
    #[case::stop_done(json!([{"action": "Stop", "uid": "one"}]), None, 0)]
    #[case::stop_of_an_older_one(json!([{"action": "Stop", "uid": "zero"}]), Some(vmi("Running", false)), 0)]
    #[case::stop_of_nothing(json!([{"action": "Stop"}]), Some(vmi("Running", false)), 0)]
    #[case::start_in_force(json!([{"action": "Start"}]), None, 1)]
    #[case::start_waits_for_the_end(json!([{"action": "Start"}]), Some(vmi("Failed", false)), 1)]
    #[case::start_waits_for_the_deletion(json!([{"action": "Start"}]), Some(vmi("Running", true)), 1)]
    #[case::start_done(json!([{"action": "Start"}]), Some(vmi("Pending", false)), 0)]
    #[case::restart_half_done(json!([{"action": "Stop", "uid": "one"}, {"action": "Start"}]), None, 1)]
    #[case::restart_done(
        json!([{"action": "Stop", "uid": "zero"}, {"action": "Start"}]), Some(vmi("Pending", false)), 0
    )]
    fn strikes_off(
        #[case] requests: Value,
        #[case] vmi: Option<VirtualMachineInstance>,
        #[case] left: usize,
    ) {
        let requests = serde_json::from_value(requests).unwrap();
        assert_eq!(
            Requests::pending(Some(&requests), vmi.as_ref()).0.len(),
            left
        );
    }

    #[rstest]
    #[case(json!([{"action": "Start", "data": {"paused": "true"}}]), Some(true))]
    #[case(json!([{"action": "Start", "data": {"paused": "false"}}]), Some(false))]
    #[case(json!([{"action": "Start"}]), Some(false))]
    #[case(json!([]), None)]
    fn reads_start_orders(#[case] requests: Value, #[case] paused: Option<bool>) {
        let requests = serde_json::from_value(requests).unwrap();
        let order = Requests::pending(Some(&requests), None).start();
        assert_eq!(order.map(|o| o.paused), paused);
    }
}
