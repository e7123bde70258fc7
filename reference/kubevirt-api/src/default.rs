//! Defaulting: what is filled into VMs and VMIs that leave it open. Pure; random ids come from the
//! caller.

mod cpu;
mod devices;
mod memory;
mod quantities;
mod vm;
mod vmi;

pub use quantities::{BadQuantity, canonical_quantities};
pub use vm::virtual_machine;
pub use vmi::{seed_status, virtual_machine_instance};

/// Where new identities come from.
pub type NewId<'a> = &'a mut dyn FnMut() -> String;

/// Whether an object is new or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The object is new.
    Create,
    /// The object is there already.
    Update,
}
