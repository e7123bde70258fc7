//! Reviews of VirtualMachineInstances.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::{Denial, Operation, Review, check_schema, read, write};
use crate::{
    admit,
    config::ClusterConfig,
    default::{self, NewId},
    overlay::without_nulls,
    v1::VirtualMachineInstance,
};

/// The object with its defaults when it is new; with its old status when somebody else than the
/// system changes it.
pub fn mutate_vmi(
    review: &Review<'_>,
    config: &ClusterConfig,
    new_id: NewId<'_>,
    now: &Time,
) -> Result<Value, Denial> {
    match review.operation {
        Operation::Create => complete(review, config, new_id, now),
        Operation::Update if review.by_system => Ok(review.object.clone()),
        Operation::Update => Ok(with_old_status(review)),
    }
}

fn complete(
    review: &Review<'_>,
    config: &ClusterConfig,
    new_id: NewId<'_>,
    now: &Time,
) -> Result<Value, Denial> {
    check_schema(review.object, "v1.VirtualMachineInstanceSpec")?;
    let mut raw = review.object.clone();
    if let Value::Object(map) = &mut raw {
        // A machine that does not exist yet has no status, whatever its author says.
        map.remove("status");
    }
    let before: VirtualMachineInstance = read(&raw)?;
    let mut after = before.clone();
    default::canonical_quantities(&mut after.spec)?;
    default::virtual_machine_instance(&mut after, config, new_id);
    default::seed_status(&mut after, now);
    write(&raw, &before, &after)
}

/// The status is the controllers' word; the kind has no status subresource to protect it.
fn with_old_status(review: &Review<'_>) -> Value {
    let mut object = review.object.clone();
    if let Value::Object(map) = &mut object {
        match review.old.get("status") {
            Some(status) => map.insert("status".to_owned(), status.clone()),
            None => map.remove("status"),
        };
    }
    object
}

/// Refuses a new VirtualMachineInstance with faults.
pub fn validate_new_vmi(
    review: &Review<'_>,
    config: &ClusterConfig,
) -> Result<Vec<String>, Denial> {
    let vmi: VirtualMachineInstance = read(review.object)?;
    let causes = admit::virtual_machine_instance(&vmi, config, review.by_system);
    Denial::unless_empty(causes)?;
    Ok(Vec::new())
}

/// Refuses changes of the machine and of reserved labels by others than the system.
pub fn validate_vmi_update(review: &Review<'_>) -> Result<Vec<String>, Denial> {
    if review.by_system {
        return Ok(Vec::new());
    }
    let spec = |object: &Value| without_nulls(object["spec"].clone());
    let new: VirtualMachineInstance = read(review.object)?;
    let old: VirtualMachineInstance = read(review.old)?;
    let causes = [
        admit::changed_machine(&spec(review.old), &spec(review.object)),
        admit::reserved_labels_changed(&old.metadata, &new.metadata),
    ];
    Denial::unless_empty(causes.into_iter().flatten().collect())?;
    Ok(Vec::new())
}
