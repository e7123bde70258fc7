//! What the decision about a VMI rests on.

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{Api, ResourceExt as _, api::ListParams, runtime::reflector::ObjectRef};
use kubevirt_api::{
    names,
    v1::{VirtualMachine, VirtualMachineInstance},
};
use virt_kit::{fault::Fault, guard::Guarded};

use super::{pod::PodFacts, pod_owner, status};
use crate::{context::Context, finalizer, kubevirt::Configuration, queue::ReconcileError};

/// What the decision about a VMI rests on.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) vmi: VirtualMachineInstance,
    /// Its launcher pods.
    pub(super) pods: Vec<PodFacts>,
    /// The VM that made it is gone.
    pub(super) owner_gone: bool,
    pub(super) configuration: Configuration,
    pub(super) launcher_image: String,
    /// A fault on purpose: nothing is said of readiness.
    pub(super) silent_on_readiness: bool,
    pub(super) now: Time,
}

/// Gathers from the stores, and from the server where the absence of something decides.
pub(super) async fn observe(
    context: &Context,
    vmi: VirtualMachineInstance,
) -> Result<Observed, ReconcileError> {
    let mut pods = pods_in_store(context, &vmi);
    if pods.is_empty() && status::absence_of_pods_matters(&vmi) {
        pods = pods_on_server(context, &vmi).await?;
    }
    let owner_gone = is_owner_gone(context, &vmi).await?;
    Ok(Observed {
        pods,
        owner_gone,
        configuration: context.configuration(),
        launcher_image: context.launcher_image.clone(),
        silent_on_readiness: Fault::SkipReadyCondition.is_on(),
        now: Time(Timestamp::now()),
        vmi,
    })
}

fn pods_in_store(context: &Context, vmi: &VirtualMachineInstance) -> Vec<PodFacts> {
    context
        .pods
        .state()
        .iter()
        .filter_map(|pod| pod.0.as_ref().ok())
        .filter(|pod| belongs(pod, vmi))
        .map(PodFacts::of)
        .collect()
}

/// A store that lags must not be the end of a VMI whose pod lives.
async fn pods_on_server(
    context: &Context,
    vmi: &VirtualMachineInstance,
) -> Result<Vec<PodFacts>, ReconcileError> {
    let namespace = vmi.namespace().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let uid = vmi.uid().unwrap_or_default();
    let params = ListParams::default().labels(&format!("{}={uid}", names::LABEL_CREATED_BY));
    let list = api
        .list(&params)
        .await
        .map_err(ReconcileError::api("list the pods of the VMI"))?;
    let mine = list.items.iter().filter(|pod| belongs(pod, vmi));
    Ok(mine.map(PodFacts::of).collect())
}

fn belongs(pod: &Pod, vmi: &VirtualMachineInstance) -> bool {
    pod.metadata.namespace == vmi.metadata.namespace
        && pod_owner(&pod.metadata)
            .is_some_and(|owner| Some(&owner.uid) == vmi.metadata.uid.as_ref())
}

/// Only asked when the answer lets the VMI go.
async fn is_owner_gone(
    context: &Context,
    vmi: &VirtualMachineInstance,
) -> Result<bool, ReconcileError> {
    let waits = finalizer::has(vmi, names::FINALIZER_CONTROLLER);
    let owner = vmi
        .owner_references()
        .iter()
        .find(|o| o.controller == Some(true));
    let leaving = vmi.metadata.deletion_timestamp.is_some();
    let (true, true, Some(owner)) = (waits, leaving, owner) else {
        return Ok(waits && leaving);
    };
    let namespace = vmi.namespace().unwrap_or_default();
    let key = ObjectRef::<Guarded<VirtualMachine>>::new(&owner.name).within(&namespace);
    let in_store = context.vms.get(&key);
    if in_store.is_some_and(|vm| vm.uid().as_ref() == Some(&owner.uid)) {
        return Ok(false);
    }
    let api: Api<VirtualMachine> = Api::namespaced(context.client.clone(), &namespace);
    let current = api
        .get_metadata_opt(&owner.name)
        .await
        .map_err(ReconcileError::api("look for the VM of the VMI"))?;
    Ok(current.is_none_or(|vm| vm.metadata.uid.as_ref() != Some(&owner.uid)))
}
