//! Rules on virtual CPUs.

use super::{Candidate, Cause, Rule, memory::not_negative};
use crate::{quantity::Quantity, v1::Cpu};

pub(super) const RULES: &[Rule] = &[
    request_is_not_negative,
    limit_is_not_negative,
    request_is_within_limit,
    dedicated_needs_memory,
    dedicated_request_is_whole,
    dedicated_limit_is_whole,
    dedicated_memory_is_guaranteed,
    dedicated_cpu_is_guaranteed,
    dedicated_topology_agrees,
    dedicated_threads,
    isolated_emulator_needs_dedicated,
    feature_policies,
    sockets_within_maximum,
];

const REQUEST: &str = "domain.resources.requests.cpu";
const LIMIT: &str = "domain.resources.limits.cpu";

fn request(c: &Candidate<'_>, name: &str) -> Option<Quantity> {
    Quantity::try_from(c.spec.domain.resources.request(name)?).ok()
}

fn limit(c: &Candidate<'_>, name: &str) -> Option<Quantity> {
    Quantity::try_from(c.spec.domain.resources.limit(name)?).ok()
}

fn dedicated<'a>(c: &Candidate<'a>) -> Option<&'a Cpu> {
    let cpu = c.spec.domain.cpu.as_ref()?;
    (cpu.dedicated_cpu_placement == Some(true)).then_some(cpu)
}

/// 15: the request is not negative.
fn request_is_not_negative(c: &Candidate<'_>) -> Vec<Cause> {
    not_negative(&c.root.child(REQUEST), request(c, "cpu"))
}

/// 16: the limit is not negative.
fn limit_is_not_negative(c: &Candidate<'_>) -> Vec<Cause> {
    not_negative(&c.root.child(LIMIT), limit(c, "cpu"))
}

/// 17: the request is within the limit.
fn request_is_within_limit(c: &Candidate<'_>) -> Vec<Cause> {
    match (request(c, "cpu"), limit(c, "cpu")) {
        (Some(request), Some(limit)) if limit > Quantity::ZERO && request > limit => {
            let (field, other) = (c.root.child(REQUEST), c.root.child(LIMIT));
            let message = format!("{field} '{request}' is greater than {other} '{limit}'");
            vec![Cause::invalid(&field, message)]
        }
        _ => vec![],
    }
}

/// 18: a machine with host CPUs of its own says how much memory it needs.
fn dedicated_needs_memory(c: &Candidate<'_>) -> Vec<Cause> {
    let memory = c.spec.domain.memory.as_ref();
    let has_some = request(c, "memory").is_some()
        || limit(c, "memory").is_some()
        || memory.is_some_and(|m| m.guest.is_some() || m.hugepages.is_some());
    if dedicated(c).is_none() || has_some {
        return vec![];
    }
    let root = c.root;
    let field = root.child("domain.resources.limits.memory");
    let message = format!("{root}.domain.resources.requests.memory or {field} should be provided");
    vec![Cause::invalid(&field, message)]
}

/// 19: host CPUs are requested whole.
fn dedicated_request_is_whole(c: &Candidate<'_>) -> Vec<Cause> {
    whole(c, request(c, "cpu"), REQUEST, "requests")
}

/// 20: host CPUs are limited whole.
fn dedicated_limit_is_whole(c: &Candidate<'_>) -> Vec<Cause> {
    whole(c, limit(c, "cpu"), LIMIT, "limits")
}

fn whole(c: &Candidate<'_>, quantity: Option<Quantity>, name: &str, word: &str) -> Vec<Cause> {
    match (dedicated(c), quantity) {
        (Some(_), Some(quantity)) if !quantity.is_whole() => vec![Cause::invalid(
            &c.root.child(name),
            // The spelling is the original's.
            format!("provided resources CPU {word} must be an interger"),
        )],
        _ => vec![],
    }
}

/// 21: memory request and limit agree, or the pod would not be of the guaranteed class.
fn dedicated_memory_is_guaranteed(c: &Candidate<'_>) -> Vec<Cause> {
    equal(c, "memory")
}

/// 23: the same for CPUs.
fn dedicated_cpu_is_guaranteed(c: &Candidate<'_>) -> Vec<Cause> {
    equal(c, "cpu")
}

fn equal(c: &Candidate<'_>, name: &str) -> Vec<Cause> {
    match (dedicated(c), request(c, name), limit(c, name)) {
        (Some(_), Some(request), Some(limit)) if request != limit => {
            let field = c.root.child(&format!("domain.resources.requests.{name}"));
            let other = c.root.child(&format!("domain.resources.limits.{name}"));
            let message =
                format!("{field} must be equal to {other} when DedicatedCPUPlacement is true");
            vec![Cause::invalid(&field, message)]
        }
        _ => vec![],
    }
}

/// 24: resources and topology do not contradict each other.
fn dedicated_topology_agrees(c: &Candidate<'_>) -> Vec<Cause> {
    let Some(cpu) = dedicated(c) else {
        return vec![];
    };
    let known = |number: Option<u32>| i128::from(number.unwrap_or(1).max(1));
    let wanted = known(cpu.sockets) * known(cpu.cores) * known(cpu.threads);
    let given: Vec<Quantity> = [request(c, "cpu"), limit(c, "cpu")]
        .into_iter()
        .flatten()
        .collect();
    let whole = given.iter().all(Quantity::is_whole);
    if given.is_empty() || !whole || given.iter().any(|quantity| quantity.value() == wanted) {
        return vec![];
    }
    let root = c.root;
    vec![Cause::invalid(
        &root.child("domain.cpu.dedicatedCpuPlacement"),
        format!(
            "{root}.{REQUEST} or {root}.{LIMIT} must not be provided at the same time with {root}.domain.cpu.cores when DedicatedCPUPlacement is true "
        ),
    )]
}

/// 26: no more than two threads in a core that is a host core.
fn dedicated_threads(c: &Candidate<'_>) -> Vec<Cause> {
    match dedicated(c) {
        Some(Cpu {
            threads: Some(3..), ..
        }) => vec![Cause::invalid(
            &c.root.child("domain.cpu.dedicatedCpuPlacement"),
            format!(
                "Not more than two threads must be provided at the same time with {} when DedicatedCPUPlacement is true",
                c.root.child("domain.cpu.threads")
            ),
        )],
        _ => vec![],
    }
}

/// 28: an emulator CPU of its own needs host CPUs of its own.
fn isolated_emulator_needs_dedicated(c: &Candidate<'_>) -> Vec<Cause> {
    let isolated = c
        .spec
        .domain
        .cpu
        .as_ref()
        .and_then(|cpu| cpu.isolate_emulator_thread);
    if isolated != Some(true) || dedicated(c).is_some() {
        return vec![];
    }
    vec![Cause::invalid(
        &c.root.child("domain.cpu.isolateEmulatorThread"),
        "IsolateEmulatorThread should be only set in combination with DedicatedCPUPlacement",
    )]
}

/// 29: what is to be done about a CPU feature is something that can be done.
fn feature_policies(c: &Candidate<'_>) -> Vec<Cause> {
    let known = ["", "force", "require", "optional", "disable", "forbid"];
    let features = c
        .spec
        .domain
        .cpu
        .iter()
        .flat_map(|cpu| cpu.features.iter().flatten());
    features
        .enumerate()
        .filter_map(|(i, feature)| {
            let policy = feature.policy.as_deref()?;
            (!known.contains(&policy)).then(|| {
                Cause::not_supported(
                    &c.root.child("domain.cpu.features").index(i).child("policy"),
                    format!(
                        "CPU feature {} uses policy {policy} that is not supported.",
                        feature.name
                    ),
                )
            })
        })
        .collect()
}

/// 30, 184: no more sockets than there may ever be.
fn sockets_within_maximum(c: &Candidate<'_>) -> Vec<Cause> {
    let Some(cpu) = &c.spec.domain.cpu else {
        return vec![];
    };
    match (cpu.sockets, cpu.max_sockets) {
        (Some(sockets), Some(most)) if most > 0 && sockets > most => vec![Cause::invalid(
            &c.root.child("domain.cpu.sockets"),
            "Number of sockets in CPU topology is greater than the maximum sockets allowed",
        )],
        _ => vec![],
    }
}
