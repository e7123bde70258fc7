//! Rules on probes of the guest.

use super::{Candidate, Cause, Rule};
use crate::v1::Probe;

pub(super) const RULES: &[Rule] = &[
    one_handler,
    some_handler,
    pod_network_for_dialling,
    no_liveness_of_a_paused_start,
];

fn probes<'a>(c: &Candidate<'a>) -> impl Iterator<Item = (&'static str, &'a Probe)> {
    [
        ("readinessProbe", c.spec.readiness_probe.as_ref()),
        ("livenessProbe", c.spec.liveness_probe.as_ref()),
    ]
    .into_iter()
    .filter_map(|(name, probe)| Some((name, probe?)))
}

fn handlers(probe: &Probe) -> usize {
    [
        probe.tcp_socket.is_some(),
        probe.http_get.is_some(),
        probe.exec.is_some(),
        probe.guest_agent_ping.is_some(),
    ]
    .into_iter()
    .filter(|there| *there)
    .count()
}

/// 46: a probe asks one thing.
fn one_handler(c: &Candidate<'_>) -> Vec<Cause> {
    probes(c)
        .filter(|(_, probe)| handlers(probe) > 1)
        .map(|(name, _)| {
            let field = c.root.child(name);
            Cause::invalid(
                &field,
                format!("{field} must have exactly one probe type set"),
            )
        })
        .collect()
}

/// 47: a probe asks something.
fn some_handler(c: &Candidate<'_>) -> Vec<Cause> {
    probes(c)
        .filter(|(_, probe)| handlers(probe) == 0)
        .map(|(name, _)| {
            let field = c.root.child(name);
            let message = format!(
                "either {field}.tcpSocket, {field}.exec or {field}.httpGet must be set if a {field} is specified"
            );
            Cause::required(&field, message)
        })
        .collect()
}

/// 48: what is dialled from the pod needs the pod's network.
fn pod_network_for_dialling(c: &Candidate<'_>) -> Vec<Cause> {
    if c.spec
        .networks
        .iter()
        .flatten()
        .any(|network| network.pod.is_some())
    {
        return vec![];
    }
    probes(c)
        .flat_map(|(name, probe)| {
            let field = c.root.child(name);
            [
                ("httpGet", probe.http_get.is_some()),
                ("tcpSocket", probe.tcp_socket.is_some()),
            ]
            .into_iter()
            .filter(|(_, there)| *there)
            .map(move |(kind, _)| {
                let field = field.child(kind);
                let message = format!("{field} is only allowed if the Pod Network is attached");
                Cause::invalid(&field, message)
            })
        })
        .collect()
}

/// 35: a machine that starts paused would fail its liveness probe.
fn no_liveness_of_a_paused_start(c: &Candidate<'_>) -> Vec<Cause> {
    if c.spec.start_strategy.as_deref() != Some("Paused") || c.spec.liveness_probe.is_none() {
        return vec![];
    }
    let (field, other) = (c.root.child("startStrategy"), c.root.child("livenessProbe"));
    let message = format!(
        "either {field} or {other} should be provided.Pausing VMI with LivenessProbe is not supported"
    );
    vec![Cause::invalid(&field, message)]
}
