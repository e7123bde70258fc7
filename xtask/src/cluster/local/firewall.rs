//! Hosts with docker send bridged packets through their firewall, whose forwarding is closed. There
//! a cluster needs one rule that lets its own bridge pass; elsewhere it needs none and makes none.

use crate::{cluster::plan::Plan, run::Cmd};

const BRIDGED: &str = "/proc/sys/net/bridge/bridge-nf-call-iptables";

/// Whether bridged packets pass the host's firewall.
fn sees_bridges() -> bool {
    std::fs::read_to_string(BRIDGED).is_ok_and(|value| value.trim() == "1")
}

fn rule(action: &str, plan: &Plan) -> Cmd {
    let bridge = plan.bridge();
    Cmd::new("iptables")
        .args(["--wait", "5", action, "FORWARD"])
        .args(["--in-interface", &bridge, "--out-interface", &bridge])
        .args(["--jump", "ACCEPT"])
}

/// Lets the nodes of the cluster reach each other.
pub fn open(plan: &Plan) -> anyhow::Result<()> {
    if sees_bridges() {
        rule("--insert", plan).output()?;
    }
    Ok(())
}

/// Removes the rule, if there is one.
pub fn close(plan: &Plan) {
    while sees_bridges() && rule("--check", plan).succeeds() {
        if !rule("--delete", plan).succeeds() {
            return;
        }
    }
}
