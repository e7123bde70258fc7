//! The VMI that a VM makes: its template, with an owner, a finalizer and what only the VM knows.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource as _, ResourceExt as _};
use kubevirt_api::{
    names,
    v1::{Disk, VirtualMachine, VirtualMachineInstance, VirtualMachineInstanceSpec},
};
use uuid::{Uuid, uuid};

/// Name space of firmware ids that stem from a VM's name.
const FIRMWARE_IDS: Uuid = uuid!("6a1a24a1-4061-4607-8bf4-a3963d0c5895");

/// The VMI of this VM; `paused`: the guest is not to run at first.
pub(super) fn vmi(vm: &VirtualMachine, paused: bool) -> VirtualMachineInstance {
    let template = vm.spec.template.metadata.clone().unwrap_or_default();
    let mut annotations = template.annotations.unwrap_or_default();
    annotations.extend(observed_versions());
    if let Some(generation) = vm.metadata.generation {
        let key = names::ANNOTATION_VM_GENERATION.to_owned();
        annotations.insert(key, generation.to_string());
    }
    VirtualMachineInstance {
        metadata: ObjectMeta {
            name: vm.metadata.name.clone(),
            namespace: vm.metadata.namespace.clone(),
            labels: template.labels,
            annotations: Some(annotations),
            finalizers: Some(vec![names::FINALIZER_CONTROLLER.to_owned()]),
            owner_references: Some(vec![owner(vm)]),
            ..ObjectMeta::default()
        },
        spec: spec(vm, paused),
        status: None,
    }
}

/// The reference by which a VMI belongs to its VM.
pub(super) fn owner(vm: &VirtualMachine) -> OwnerReference {
    OwnerReference {
        api_version: VirtualMachine::api_version(&()).into_owned(),
        kind: VirtualMachine::kind(&()).into_owned(),
        name: vm.name_any(),
        uid: vm.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Annotations that tell which version of the API this controller speaks.
pub(super) fn observed_versions() -> [(String, String); 2] {
    [
        names::ANNOTATION_LATEST_OBSERVED_API_VERSION,
        names::ANNOTATION_STORAGE_OBSERVED_API_VERSION,
    ]
    .map(|key| (key.to_owned(), "v1".to_owned()))
}

fn spec(vm: &VirtualMachine, paused: bool) -> VirtualMachineInstanceSpec {
    let mut spec = vm.spec.template.spec.clone().unwrap_or_default();
    let firmware = spec.domain.firmware.get_or_insert_default();
    if firmware.uuid.is_none() {
        let id = Uuid::new_v5(&FIRMWARE_IDS, vm.name_any().as_bytes());
        firmware.uuid = Some(id.to_string());
    }
    if paused {
        spec.start_strategy = Some("Paused".to_owned());
    }
    add_missing_disks(&mut spec);
    spec
}

/// A volume without a disk gets one of the same name; admission fills in the rest.
fn add_missing_disks(spec: &mut VirtualMachineInstanceSpec) {
    let Some(volumes) = &spec.volumes else { return };
    let disks = spec.domain.devices.disks.get_or_insert_default();
    for volume in volumes {
        if disks.iter().all(|disk| disk.name != volume.name) {
            disks.push(Disk {
                name: volume.name.clone(),
                ..Disk::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vm(template_spec: Value) -> VirtualMachine {
        serde_json::from_value(json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
            "metadata": {
                "name": "a", "namespace": "n", "uid": "vm-uid", "generation": 4,
                "labels": {"only": "vm"}, "annotations": {"only": "vm"}
            },
            "spec": {"runStrategy": "Always", "template": {
                "metadata": {
                    "labels": {"kubevirt.io/domain": "a"},
                    "annotations": {"kubevirt.io/pci-topology-version": "v3"}
                },
                "spec": template_spec
            }}
        }))
        .unwrap()
    }

    #[test]
    fn a_vmi_is_its_template_with_an_owner() {
        let made = vmi(
            &vm(json!({
                "terminationGracePeriodSeconds": 0,
                "domain": {
                    "firmware": {"uuid": "own"},
                    "devices": {"disks": [{"name": "cd", "disk": {"bus": "virtio"}}]}
                },
                "volumes": [
                    {"name": "cd", "containerDisk": {"image": "i"}},
                    {"name": "scratch", "emptyDisk": {"capacity": "1Mi"}}
                ]
            })),
            false,
        );
        let made = serde_json::to_value(made).unwrap();
        insta::with_settings!({sort_maps => true}, { insta::assert_yaml_snapshot!(made) });
    }

    #[test]
    fn an_order_to_start_paused_reaches_the_vmi() {
        let made = vmi(&vm(json!({"domain": {}})), true);
        assert_eq!(made.spec.start_strategy.as_deref(), Some("Paused"));
    }

    #[test]
    fn a_firmware_id_stems_from_the_name_and_stays() {
        let id = |vm: &VirtualMachine| vmi(vm, false).spec.domain.firmware.unwrap().uuid;
        let (one, two) = (vm(json!({"domain": {}})), vm(json!({"domain": {}})));
        assert!(id(&one).is_some());
        assert_eq!(id(&one), id(&two));
    }
}
