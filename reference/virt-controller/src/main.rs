//! Makes VMIs from VMs and launcher pods from VMIs, and keeps their status true.

fn main() {}
