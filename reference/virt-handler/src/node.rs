//! What the node says of itself: labels that place VMs, and the heartbeat that keeps it believed.

mod cpu;
mod heartbeat;
mod kvm;
mod labels;
mod offer;

pub use heartbeat::{Heartbeat, HeartbeatError};
pub use kvm::open_to_all;
