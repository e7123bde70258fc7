//! Carries out what was decided: reads the objects, writes the patches, or calls the node.

use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::Status,
};
use kubevirt_api::v1::{PauseOptions, UnpauseOptions, VirtualMachine, VirtualMachineInstance};
use serde_json::{Value, json};
use virt_kit::retry::on_conflict;

use super::{
    Calls, body,
    refusal::{Kind, Refusal},
    vm::{self, Order, Plan},
    vmi,
};

/// `PUT …/virtualmachines/{name}/{verb}`.
pub(super) async fn on_vm(
    calls: &Calls,
    verb: vm::Verb,
    namespace: &str,
    name: &str,
    body: &[u8],
) -> Result<Response, Refusal> {
    let (order, dry_run) = read_order(verb, body)?;
    vm::check(&order)?;
    let scene = Scene {
        vms: Api::namespaced(calls.client.clone(), namespace),
        vmis: Api::namespaced(calls.client.clone(), namespace),
        name,
        params: PatchParams {
            dry_run,
            ..PatchParams::default()
        },
    };
    // A test in a patch fails when somebody was quicker; then the state is looked at again.
    let outcome = on_conflict(|| async {
        match scene.attempt(&order).await {
            Ok(()) => Ok(Ok(())),
            Err(Failure::Refused(refusal)) => Ok(Err(refusal)),
            Err(Failure::Api(error)) => Err(as_conflict(error)),
        }
    })
    .await;
    match outcome {
        Ok(Ok(())) => Ok(StatusCode::ACCEPTED.into_response()),
        Ok(Err(refusal)) => Err(refusal),
        Err(error) if virt_kit::retry::is_conflict(&error) => Err(Refusal::conflict(
            Kind::Vm,
            name,
            "the object has been modified; please try again",
        )),
        Err(error) => Err(Refusal::internal(&text_of(&error))),
    }
}

fn read_order(verb: vm::Verb, text: &[u8]) -> Result<(Order, bool), Refusal> {
    let order = match verb {
        vm::Verb::Start => Order::Start(body::options(text)?),
        vm::Verb::Stop => Order::Stop(body::options(text)?),
        vm::Verb::Restart => Order::Restart(body::options(text)?),
    };
    let words = match &order {
        Order::Start(options) => options.dry_run.as_ref(),
        Order::Stop(options) => options.dry_run.as_ref(),
        Order::Restart(options) => options.dry_run.as_ref(),
    };
    let dry_run = body::is_dry_run(words)?;
    Ok((order, dry_run))
}

enum Failure {
    Refused(Refusal),
    Api(kube::Error),
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::Api(error)
    }
}

/// The API server answers 422 to a patch whose test fails; to us that is a conflict like any other.
fn as_conflict(error: kube::Error) -> kube::Error {
    match error {
        kube::Error::Api(mut status) if status.code == 422 && has_no_causes(&status) => {
            status.code = 409;
            kube::Error::Api(status)
        }
        other => other,
    }
}

/// A refusal by admission or by the schema says what is wrong with which field; a failed test does not.
fn has_no_causes(status: &Status) -> bool {
    let details = status.details.as_ref();
    details.is_none_or(|details| details.causes.is_empty())
}

fn text_of(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

struct Scene<'a> {
    vms: Api<VirtualMachine>,
    vmis: Api<VirtualMachineInstance>,
    name: &'a str,
    params: PatchParams,
}

impl Scene<'_> {
    async fn attempt(&self, order: &Order) -> Result<(), Failure> {
        let vm = self.vms.get_opt(self.name).await?;
        let vm = vm.ok_or_else(|| Failure::Refused(Refusal::not_found(Kind::Vm, self.name)))?;
        let vmi = self.vmis.get_opt(self.name).await?;
        let plan = vm::decide(order, &vm, vmi.as_ref()).map_err(Failure::Refused)?;
        self.write(&plan).await
    }

    async fn write(&self, plan: &Plan) -> Result<(), Failure> {
        if let Some(seconds) = plan.grace {
            let grace = json!({"spec": {"terminationGracePeriodSeconds": seconds}});
            self.vmis
                .patch(self.name, &self.params, &Patch::Merge(grace))
                .await?;
        }
        if !plan.spec.is_empty() {
            let patch = json_patch(&plan.spec)?;
            self.vms.patch(self.name, &self.params, &patch).await?;
        }
        if !plan.status.is_empty() {
            let patch = json_patch(&plan.status)?;
            self.vms
                .patch_status(self.name, &self.params, &patch)
                .await?;
        }
        Ok(())
    }
}

fn json_patch(operations: &[Value]) -> Result<Patch<()>, Failure> {
    serde_json::from_value(json!(operations))
        .map(Patch::Json)
        .map_err(|error| Failure::Refused(Refusal::internal(&error.to_string())))
}

/// `PUT …/virtualmachineinstances/{name}/{verb}`.
pub(super) async fn on_vmi(
    calls: &Calls,
    verb: vmi::Verb,
    namespace: &str,
    name: &str,
    text: &[u8],
) -> Result<Response, Refusal> {
    let dry_run = match verb {
        vmi::Verb::Pause => body::options::<PauseOptions>(text)?.dry_run,
        vmi::Verb::Unpause => body::options::<UnpauseOptions>(text)?.dry_run,
        vmi::Verb::SoftReboot | vmi::Verb::Reset => None,
    };
    let dry_run = body::is_dry_run(dry_run.as_ref())?;
    let machine = find_vmi(calls, namespace, name).await?;
    vmi::check(verb, &machine)?;
    if !dry_run {
        calls
            .handlers
            .put(&machine, verb.as_str())
            .await
            .map_err(|error| Refusal::internal(&error.to_string()))?;
    }
    Ok(StatusCode::OK.into_response())
}

/// The machine, or the answer for one that is not there.
pub(super) async fn find_vmi(
    calls: &Calls,
    namespace: &str,
    name: &str,
) -> Result<VirtualMachineInstance, Refusal> {
    let api: Api<VirtualMachineInstance> = Api::namespaced(calls.client.clone(), namespace);
    match api.get_opt(name).await {
        Ok(Some(vmi)) => Ok(vmi),
        Ok(None) => Err(Refusal::not_found(Kind::Vmi, name)),
        Err(error) => Err(Refusal::internal(&text_of(&error))),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use virt_kit::retry::is_conflict;

    use super::*;

    #[rstest]
    #[case::a_failed_test(json!({"code": 422, "reason": "Invalid", "details": {}}), true)]
    #[case::a_refusal(json!({"code": 422, "details": {"causes": [{"message": "no", "field": "spec"}]}}), false)]
    #[case::a_conflict(json!({"code": 409}), true)]
    #[case::another_error(json!({"code": 403}), false)]
    fn a_failed_test_is_a_conflict(#[case] status: Value, #[case] conflict: bool) {
        let status: Status = serde_json::from_value(status).unwrap();
        let error = as_conflict(kube::Error::Api(Box::new(status)));
        assert_eq!(is_conflict(&error), conflict);
    }
}
