//! Tells whether a cluster keeps the promises of the KubeVirt API.

fn main() {}
