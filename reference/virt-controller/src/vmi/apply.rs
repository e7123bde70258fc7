//! Carries out a plan for a VMI. Pods are only ever touched by their uid.

use k8s_openapi::{api::core::v1::Pod, jiff::Timestamp};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::controller::Action,
};
use kubevirt_api::{names, v1::VirtualMachineInstance};
use serde_json::{Value, json};
use virt_kit::{events::EventType, retry};

use super::{
    decide::{Plan, Step},
    observe::Observed,
    status,
};
use crate::{
    context::Context,
    patch::{self, Target, Written},
    queue::{ReconcileError, reference, said},
};

struct Hands<'a> {
    context: &'a Context,
    observed: &'a Observed,
    vmis: Api<VirtualMachineInstance>,
    pods: Api<Pod>,
}

/// Carries out the plan.
pub(super) async fn apply(
    context: &Context,
    observed: &Observed,
    plan: Plan,
) -> Result<Action, ReconcileError> {
    let namespace = observed.vmi.namespace().unwrap_or_default();
    let hands = Hands {
        context,
        observed,
        vmis: Api::namespaced(context.client.clone(), &namespace),
        pods: Api::namespaced(context.client.clone(), &namespace),
    };
    for step in plan {
        match step {
            Step::CreatePod(pod) => hands.create(&pod).await?,
            Step::DeletePod { name, uid } => hands.delete(&name, &uid).await?,
            Step::SetGate { name, uid, paused } => hands.set_gate(&name, &uid, paused).await?,
            Step::LabelPod { name, uid, node } => hands.label(&name, &uid, &node).await?,
            Step::Write(vmi) => {
                if hands.write(&vmi).await? {
                    break;
                }
            }
        }
    }
    Ok(Action::await_change())
}

impl Hands<'_> {
    /// True when somebody wrote first.
    async fn write(&self, vmi: &VirtualMachineInstance) -> Result<bool, ReconcileError> {
        let written = patch::write(&self.vmis, Target::Object, &self.observed.vmi, vmi)
            .await
            .map_err(ReconcileError::api("update the VMI"))?;
        Ok(matches!(written, Written::Overtaken))
    }

    async fn create(&self, pod: &Pod) -> Result<(), ReconcileError> {
        match self.pods.create(&PostParams::default(), pod).await {
            Ok(made) => {
                let text = format!("Created virtual machine pod {}", made.name_any());
                self.tell(EventType::Normal, "SuccessfulCreate", text);
                Ok(())
            }
            Err(error) if retry::is_conflict(&error) => self.already_there(pod, error).await,
            Err(error) => {
                let text = format!("Error creating pod: {}", said(&error));
                self.write(&status::with_failed_creation(self.observed, &text))
                    .await?;
                self.tell(EventType::Warning, "FailedCreate", text);
                Err(ReconcileError::api("create the launcher pod")(error))
            }
        }
    }

    /// The pod's name stems from the VMI's uid: one of that name is ours already, or in the way.
    async fn already_there(&self, pod: &Pod, error: kube::Error) -> Result<(), ReconcileError> {
        let there = self
            .pods
            .get_metadata_opt(&pod.name_any())
            .await
            .map_err(ReconcileError::api("look at the launcher pod"))?;
        let label = |meta: &std::collections::BTreeMap<String, String>| {
            meta.get(names::LABEL_CREATED_BY).cloned()
        };
        match there {
            Some(there) if label(there.labels()) == label(pod.labels()) => Ok(()),
            _ => Err(ReconcileError::api("create the launcher pod")(error)),
        }
    }

    async fn delete(&self, name: &str, uid: &str) -> Result<(), ReconcileError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match self.pods.delete(name, &params).await {
            Ok(_) => {
                let text = format!("Deleted virtual machine pod {name}");
                self.tell(EventType::Normal, "SuccessfulDelete", text);
                Ok(())
            }
            Err(error) if retry::is_not_found(&error) || retry::is_conflict(&error) => Ok(()),
            Err(error) => {
                let text = format!("Error deleting pod {name}: {}", said(&error));
                self.tell(EventType::Warning, "FailedDelete", text);
                Err(ReconcileError::api("delete the launcher pod")(error))
            }
        }
    }

    async fn set_gate(&self, name: &str, uid: &str, paused: bool) -> Result<(), ReconcileError> {
        let patch = gate_patch(uid, paused, Timestamp::now());
        let result = self
            .pods
            .patch_status(name, &PatchParams::default(), &Patch::Strategic(patch))
            .await;
        done(result, "set the readiness gate of the launcher pod")
    }

    async fn label(&self, name: &str, uid: &str, node: &str) -> Result<(), ReconcileError> {
        let patch = json!({"metadata": {"uid": uid, "labels": {names::LABEL_NODE_NAME: node}}});
        let result = self
            .pods
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        done(result, "label the launcher pod")
    }

    fn tell(&self, type_: EventType, reason: &'static str, text: String) {
        let about = reference::<VirtualMachineInstance, _>(&self.observed.vmi);
        self.context.tell(about, type_, reason, text);
    }
}

/// A pod that is gone or was replaced needs no more of it.
fn done<T>(result: Result<T, kube::Error>, what: &'static str) -> Result<(), ReconcileError> {
    match result {
        Ok(_) => Ok(()),
        Err(error) if retry::is_not_found(&error) || retry::is_conflict(&error) => Ok(()),
        Err(error) => Err(ReconcileError::api(what)(error)),
    }
}

fn gate_patch(uid: &str, paused: bool, now: Timestamp) -> Value {
    let (status, reason, message) = if paused {
        ("False", "Paused", "the virtual machine is paused")
    } else {
        ("True", "NotPaused", "the virtual machine is not paused")
    };
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now);
    json!({"metadata": {"uid": uid}, "status": {"conditions": [{
        "type": names::CONDITION_UNPAUSED,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": now,
        "lastTransitionTime": now,
    }]}})
}
