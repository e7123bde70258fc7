//! One vCPU: its state at the start of a boot, how another thread gets its attention, and what its exits mean.

mod exit;
mod kick;
mod state;

pub(crate) use exit::{Exit, dead_halt, enter, finish_access};
pub(crate) use kick::{Kicker, prepare_thread};
pub(crate) use state::PowerOnState;
