//! VirtualMachineInstance: gives it a launcher pod, follows the pod, and tells how far it is. From
//! Scheduled on the machine is virt-handler's; this controller then only mirrors the pod.

mod apply;
mod decide;
mod launcher;
mod observe;
mod pod;
mod status;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource as _, runtime::controller::Action};
use kubevirt_api::v1::VirtualMachineInstance;

use crate::{context::Context, queue::ReconcileError};

/// Brings one VMI a step further.
pub(crate) async fn reconcile(
    context: Arc<Context>,
    vmi: VirtualMachineInstance,
) -> Result<Action, ReconcileError> {
    let observed = observe::observe(&context, vmi).await?;
    let plan = decide::decide(&observed);
    apply::apply(&context, &observed, plan).await
}

/// The VMI that a pod belongs to.
pub(crate) fn pod_owner(pod: &ObjectMeta) -> Option<&OwnerReference> {
    let kind = VirtualMachineInstance::kind(&());
    pod.owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true) && owner.kind == *kind)
}
