//! The real launcher with the real probe guest, on both back ends: our machine on KVM, and QEMU without it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed helper is a failed test"
)]

mod console;
mod endings;
mod guest;
mod lifecycle;
mod rig;
