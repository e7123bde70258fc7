//! Reviews of VirtualMachines.

use serde_json::Value;

use super::{Denial, Operation, Review, check_schema, read, write};
use crate::{
    admit,
    config::ClusterConfig,
    default::{self, NewId},
    v1::{VirtualMachine, VirtualMachineInstance},
};

/// The object with its defaults.
pub fn mutate_vm(
    review: &Review<'_>,
    config: &ClusterConfig,
    new_id: NewId<'_>,
) -> Result<Value, Denial> {
    if is_being_deleted(review.object) {
        return Ok(review.object.clone());
    }
    check_schema(review.object, "v1.VirtualMachineSpec")?;
    let before: VirtualMachine = read(review.object)?;
    let mut after = before.clone();
    if let Some(spec) = &mut after.spec.template.spec {
        default::canonical_quantities(spec)?;
    }
    default::virtual_machine(&mut after, config, review.operation, new_id);
    write(review.object, &before, &after)
}

/// Refuses a VirtualMachine with faults; else tells what should be written otherwise.
pub fn validate_vm(review: &Review<'_>, config: &ClusterConfig) -> Result<Vec<String>, Denial> {
    if review.operation == Operation::Update && is_being_deleted(review.object) {
        return Ok(Vec::new());
    }
    let vm: VirtualMachine = read(review.object)?;
    let mut machine = VirtualMachineInstance {
        spec: vm.spec.template.spec.clone().unwrap_or_default(),
        ..VirtualMachineInstance::default()
    };
    default::virtual_machine_instance(&mut machine, config, &mut String::new);
    let causes = admit::virtual_machine(&vm.spec, &machine.spec, config);
    Denial::unless_empty(causes)?;
    Ok(admit::warnings(&vm.spec))
}

/// Refuses a status that is none.
pub fn validate_vm_status(review: &Review<'_>) -> Result<Vec<String>, Denial> {
    read::<VirtualMachine>(review.object).map(|_| Vec::new())
}

fn is_being_deleted(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}
