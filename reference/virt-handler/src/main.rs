//! The node agent: device plugins, node labels, and the hand that drives each launcher.

fn main() {}
