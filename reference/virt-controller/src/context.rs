//! What every handler shares: the client, the stores, the settings and a voice.

use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use kube::{Client, runtime::reflector::ObjectRef};
use kubevirt_api::v1::{KubeVirt, VirtualMachine, VirtualMachineInstance};
use virt_kit::{
    events::{EventRecorder, EventType},
    guard::Guarded,
};

use crate::{kubevirt::Configuration, watch::Cache};

/// What every handler shares.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) events: EventRecorder,
    pub(crate) launcher_image: String,
    /// Namespace of the KubeVirt resource that counts.
    pub(crate) namespace: String,
    pub(crate) vms: Cache<VirtualMachine>,
    pub(crate) vmis: Cache<VirtualMachineInstance>,
    pub(crate) pods: Cache<Pod>,
    pub(crate) nodes: Cache<Node>,
    pub(crate) kubevirts: Cache<KubeVirt>,
}

impl Context {
    /// Publishes an event without making the handler wait for it.
    pub(crate) fn tell(
        &self,
        about: ObjectReference,
        type_: EventType,
        reason: &'static str,
        message: String,
    ) {
        let events = self.events.clone();
        tokio::spawn(async move { events.publish(&about, type_, reason, &message).await });
    }

    /// The VMI of that name, if there is one that can be read.
    pub(crate) fn vmi(&self, namespace: &str, name: &str) -> Option<VirtualMachineInstance> {
        let key = ObjectRef::<Guarded<VirtualMachineInstance>>::new(name).within(namespace);
        self.vmis.get(&key).and_then(|vmi| vmi.0.clone().ok())
    }

    /// The settings in force.
    pub(crate) fn configuration(&self) -> Configuration {
        let mut all: Vec<KubeVirt> = self
            .kubevirts
            .state()
            .iter()
            .filter_map(|guarded| guarded.0.clone().ok())
            .filter(|kubevirt| kubevirt.metadata.namespace.as_deref() == Some(&*self.namespace))
            .collect();
        all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        Configuration::of(all.first().map(|kubevirt| &kubevirt.spec))
    }
}
