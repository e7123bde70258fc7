//! Defaults of a VirtualMachine: only what must not change from one start to the next.

use crate::{
    config::ClusterConfig,
    default::{NewId, Operation},
    names::ANNOTATION_PCI_TOPOLOGY_VERSION,
    v1::VirtualMachine,
};

/// Fills in D1 to D5: identity of the firmware, architecture, machine type, numbering of PCI slots.
pub fn virtual_machine(
    vm: &mut VirtualMachine,
    config: &ClusterConfig,
    operation: Operation,
    new_id: NewId<'_>,
) {
    let template = &mut vm.spec.template;
    let spec = template.spec.get_or_insert_default();
    fill(&mut spec.architecture, || config.architecture.clone());
    let machine = spec.domain.machine.get_or_insert_default();
    if machine.type_.is_empty() {
        machine.type_.clone_from(&config.machine_type);
    }
    let has_slots = machine.type_.contains("q35") || machine.type_.starts_with("virt");
    if operation == Operation::Update {
        return;
    }
    let firmware = spec.domain.firmware.get_or_insert_default();
    fill(&mut firmware.uuid, &mut *new_id);
    fill(&mut firmware.serial, &mut *new_id);
    if has_slots {
        template
            .metadata
            .get_or_insert_default()
            .annotations
            .get_or_insert_default()
            .entry(ANNOTATION_PCI_TOPOLOGY_VERSION.to_owned())
            .or_insert_with(|| "v3".to_owned());
    }
}

/// Sets a text that is not there or empty.
pub(super) fn fill(place: &mut Option<String>, make: impl FnOnce() -> String) {
    if place.as_ref().is_none_or(String::is_empty) {
        *place = Some(make());
    }
}
