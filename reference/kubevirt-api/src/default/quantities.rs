//! Quantities in canonical form, as the original stores them: `1024Mi` becomes `1Gi`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use thiserror::Error;

use crate::{
    quantity::{Quantity, QuantityError},
    v1::VirtualMachineInstanceSpec,
};

/// A quantity that cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{field}: '{text}' is no quantity")]
pub struct BadQuantity {
    /// Where it is.
    pub field: String,
    /// What it says.
    pub text: String,
    /// What is wrong with it.
    #[source]
    pub source: QuantityError,
}

/// Rewrites every quantity of a machine in place; fails at the first that cannot be read.
pub fn canonical_quantities(spec: &mut VirtualMachineInstanceSpec) -> Result<(), BadQuantity> {
    let resources = &mut spec.domain.resources;
    for (part, list) in [
        ("requests", &mut resources.requests),
        ("limits", &mut resources.limits),
    ] {
        for (name, quantity) in list.iter_mut().flatten() {
            rewrite(quantity, || format!("spec.domain.resources.{part}.{name}"))?;
        }
    }
    if let Some(memory) = &mut spec.domain.memory {
        for (name, quantity) in [
            ("guest", &mut memory.guest),
            ("maxGuest", &mut memory.max_guest),
        ] {
            if let Some(quantity) = quantity {
                rewrite(quantity, || format!("spec.domain.memory.{name}"))?;
            }
        }
    }
    for (i, volume) in spec.volumes.iter_mut().flatten().enumerate() {
        if let Some(disk) = &mut volume.empty_disk {
            rewrite(&mut disk.capacity, || {
                format!("spec.volumes[{i}].emptyDisk.capacity")
            })?;
        }
    }
    Ok(())
}

fn rewrite(quantity: &mut WireQuantity, field: impl Fn() -> String) -> Result<(), BadQuantity> {
    match Quantity::try_from(&*quantity) {
        Ok(value) => {
            *quantity = value.to_wire();
            Ok(())
        }
        Err(source) => Err(BadQuantity {
            field: field(),
            text: quantity.0.clone(),
            source,
        }),
    }
}
