//! Admission: one pure function per rule, and the lists that say which rules apply where.
//!
//! Numbers in the functions' docs are those of the behaviour notes that the scenarios cite. Every
//! rule of a list runs, so that an object with three faults is told of all three.

mod cloud_init;
mod cpu;
mod disks;
mod field;
mod firmware;
mod interfaces;
mod memory;
mod metadata;
mod networks;
mod pod;
mod ports;
mod probes;
mod schema;
mod syntax;
mod vm;
mod volumes;

use serde::Serialize;
use serde_json::Value;

pub use field::Field;
pub use metadata::{reserved_labels_changed, reserved_labels_set};
pub use schema::{Missing, conforms};
pub use vm::{virtual_machine, warnings};

use crate::{
    config::ClusterConfig,
    v1::{VirtualMachineInstance, VirtualMachineInstanceSpec},
};

/// The kind of a fault, with the words that Kubernetes uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Reason {
    /// The value is wrong.
    #[serde(rename = "FieldValueInvalid")]
    Invalid,
    /// The value is missing.
    #[serde(rename = "FieldValueRequired")]
    Required,
    /// The value is not one of those that are served.
    #[serde(rename = "FieldValueNotSupported")]
    NotSupported,
    /// The value is there twice.
    #[serde(rename = "FieldValueDuplicate")]
    Duplicate,
    /// What the value names is not there.
    #[serde(rename = "FieldValueNotFound")]
    NotFound,
}

/// One fault of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Its kind; none for faults against the schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What is wrong.
    pub message: String,
    /// Where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Cause {
    fn new(reason: Reason, field: &Field, message: impl Into<String>) -> Self {
        Self {
            reason: Some(reason),
            message: message.into(),
            field: Some(field.to_string()),
        }
    }

    fn invalid(field: &Field, message: impl Into<String>) -> Self {
        Self::new(Reason::Invalid, field, message)
    }

    fn required(field: &Field, message: impl Into<String>) -> Self {
        Self::new(Reason::Required, field, message)
    }

    fn not_supported(field: &Field, message: impl Into<String>) -> Self {
        Self::new(Reason::NotSupported, field, message)
    }

    fn duplicate(field: &Field, message: impl Into<String>) -> Self {
        Self::new(Reason::Duplicate, field, message)
    }
}

/// A machine to be judged, with all defaults filled in.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Where the machine stands in its object: `spec`, or `spec.template.spec` in a VM.
    pub root: &'a Field,
    /// The machine.
    pub spec: &'a VirtualMachineInstanceSpec,
    /// Settings of the system.
    pub config: &'a ClusterConfig,
}

/// A rule: what is wrong with a machine in one respect.
type Rule = fn(&Candidate<'_>) -> Vec<Cause>;

/// Rules for every machine, in the order in which faults are told.
const MACHINE_RULES: &[&[Rule]] = &[
    pod::RULES,
    memory::RULES,
    cpu::RULES,
    firmware::RULES,
    disks::RULES,
    volumes::RULES,
    cloud_init::RULES,
    networks::RULES,
    interfaces::RULES,
    ports::RULES,
    probes::RULES,
];

/// Faults of a machine, wherever it stands.
#[must_use]
pub fn machine(candidate: &Candidate<'_>) -> Vec<Cause> {
    MACHINE_RULES
        .iter()
        .flat_map(|rules| rules.iter())
        .flat_map(|rule| rule(candidate))
        .collect()
}

/// Faults of a new VirtualMachineInstance.
#[must_use]
pub fn virtual_machine_instance(
    vmi: &VirtualMachineInstance,
    config: &ClusterConfig,
    by_controller: bool,
) -> Vec<Cause> {
    let root = Field::new("spec");
    let candidate = Candidate {
        root: &root,
        spec: &vmi.spec,
        config,
    };
    let mut causes = machine(&candidate);
    causes.extend(memory::some_is_requested(&candidate));
    causes.extend(firmware::architecture_is_known(&candidate));
    if !by_controller {
        causes.extend(metadata::reserved_labels_set(&vmi.metadata));
    }
    causes
}

/// Rule 196: only the system's own controllers change a machine that exists.
#[must_use]
pub fn changed_machine(old: &Value, new: &Value) -> Option<Cause> {
    (old != new).then(|| Cause {
        reason: Some(Reason::NotSupported),
        message: "update of VMI object is restricted".to_owned(),
        field: None,
    })
}
