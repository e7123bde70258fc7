//! Whole admission reviews, still pure: an object as JSON in, the changed object or a refusal out.
//!
//! virt-api puts HTTP around this; tests replay recorded requests through it.

mod denial;
mod vm;
mod vmi;

use serde_json::Value;

pub use denial::Denial;
pub use vm::{mutate_vm, validate_vm, validate_vm_status};
pub use vmi::{mutate_vmi, validate_new_vmi, validate_vmi_update};

pub use crate::default::Operation;
use crate::{admit, overlay};

/// Who asks for what.
#[derive(Clone, Debug)]
pub struct Review<'a> {
    /// Whether the object is new.
    pub operation: Operation,
    /// The object as it would be.
    pub object: &'a Value,
    /// The object as it is; null when it is new.
    pub old: &'a Value,
    /// Whether one of the system's own controllers asks.
    pub by_system: bool,
}

/// Reads an object whose nulls count as absent; refuses it when it is not of the type.
fn read<T: serde::de::DeserializeOwned>(object: &Value) -> Result<T, Denial> {
    let object = overlay::without_nulls(object.clone());
    serde_json::from_value(object).map_err(|error| Denial::unreadable(&error))
}

/// Refuses an object that does not fit the original's schema.
fn check_schema(object: &Value, type_: &str) -> Result<(), Denial> {
    let causes = admit::conforms(object, type_).into_iter().map(Into::into);
    Denial::unless_empty(causes.collect())
}

/// Carries what changed from `before` to `after` over to the object as it was sent.
fn write<T: serde::Serialize>(raw: &Value, before: &T, after: &T) -> Result<Value, Denial> {
    let json = |value: &T| serde_json::to_value(value).map_err(|error| Denial::unreadable(&error));
    Ok(overlay::apply(raw.clone(), &json(before)?, &json(after)?))
}
