//! PID 1 of a VM's pod: takes orders, runs one machine, says how it ended.

fn main() {}
