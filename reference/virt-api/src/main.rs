//! Admission webhooks and the subresources of VMs and VMIs.

fn main() {}
