//! A micro VMM as a library: one KVM machine, booted directly, whose end is told exactly.
