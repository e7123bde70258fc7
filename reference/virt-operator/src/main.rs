//! Turns a KubeVirt resource into a running system and reports how far it is.

fn main() {}
