//! Version `v1` of the group `kubevirt.io`, one file per kind or family of types.

pub mod condition;
pub mod devices;
pub mod domain;
pub mod kubevirt;
pub mod probe;
pub mod subresource;
pub mod vm;
pub mod vmi;
pub mod volume;

pub use condition::{Condition, ConditionStatus};
pub use devices::*;
pub use domain::*;
pub use kubevirt::*;
pub use probe::*;
pub use subresource::*;
pub use vm::*;
pub use vmi::*;
pub use volume::*;
