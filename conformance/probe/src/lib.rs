//! What the probe guest can decide without hardware: commands, options and the parsing of tables. Plain functions over
//! bytes, so that they are tested on the host; `kernel/` does the rest.

#![cfg_attr(not(test), no_std)]

pub mod acpi;
pub mod command;
