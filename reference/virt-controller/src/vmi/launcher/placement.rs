//! On which nodes a launcher pod may run.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
};
use kubevirt_api::{
    names,
    v1::{Cpu, CpuFeature, VirtualMachineInstance, VirtualMachineInstanceSpec},
};

/// Label of nodes whose own CPU model is too old to be a guest's.
const OBSOLETE_HOST_MODEL: &str = "node-labeller.kubevirt.io/obsolete-host-model";
const CPU_MANAGER: &str = "kubevirt.io/cpumanager";

/// Labels that the node must carry.
pub(super) fn node_selector(vmi: &VirtualMachineInstance) -> BTreeMap<String, String> {
    let spec = &vmi.spec;
    let mut selector = spec.node_selector.clone().unwrap_or_default();
    let mut require = |key: String| selector.insert(key, "true".to_owned());
    require(names::LABEL_SCHEDULABLE.to_owned());
    if let Some(machine) = machine_type(vmi) {
        require(format!("{}{machine}", names::LABEL_PREFIX_MACHINE_TYPE));
    }
    if let Some(model) = named_model(spec.domain.cpu.as_ref()) {
        require(format!("{}{model}", names::LABEL_PREFIX_CPU_MODEL));
    }
    for feature in features(spec).filter(|f| matches!(policy(f), "" | "require")) {
        require(format!(
            "{}{}",
            names::LABEL_PREFIX_CPU_FEATURE,
            feature.name
        ));
    }
    if dedicated(spec) {
        require(CPU_MANAGER.to_owned());
    }
    if let Some(architecture) = &spec.architecture {
        selector.insert("kubernetes.io/arch".to_owned(), architecture.clone());
    }
    selector
}

/// The VMI's own affinity, and what its CPU must not meet.
pub(super) fn affinity(spec: &VirtualMachineInstanceSpec) -> Option<Affinity> {
    let forbidden = features(spec)
        .filter(|feature| policy(feature) == "forbid")
        .map(|feature| format!("{}{}", names::LABEL_PREFIX_CPU_FEATURE, feature.name));
    let obsolete = takes_host_model(spec).then(|| OBSOLETE_HOST_MODEL.to_owned());
    let absent: Vec<_> = forbidden.chain(obsolete).map(does_not_exist).collect();
    if absent.is_empty() {
        return spec.affinity.clone();
    }
    let mut affinity = spec.affinity.clone().unwrap_or_default();
    let required = affinity
        .node_affinity
        .get_or_insert_with(NodeAffinity::default)
        .required_during_scheduling_ignored_during_execution
        .get_or_insert_with(NodeSelector::default);
    if required.node_selector_terms.is_empty() {
        required
            .node_selector_terms
            .push(NodeSelectorTerm::default());
    }
    // Terms are alternatives: each of them must rule it out.
    for term in &mut required.node_selector_terms {
        let expressions = term.match_expressions.get_or_insert_default();
        expressions.extend(absent.iter().cloned());
    }
    Some(affinity)
}

fn does_not_exist(key: String) -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key,
        operator: "DoesNotExist".to_owned(),
        values: None,
    }
}

/// The type that the machine got, else the one that was asked for.
fn machine_type(vmi: &VirtualMachineInstance) -> Option<&str> {
    let status = vmi.status.as_ref().and_then(|s| s.machine.as_ref());
    let machine = status.or(vmi.spec.domain.machine.as_ref())?;
    (!machine.type_.is_empty()).then_some(machine.type_.as_str())
}

fn named_model(cpu: Option<&Cpu>) -> Option<&str> {
    let model = cpu?.model.as_deref()?;
    (!matches!(model, "" | "host-model" | "host-passthrough")).then_some(model)
}

fn takes_host_model(spec: &VirtualMachineInstanceSpec) -> bool {
    let model = spec
        .domain
        .cpu
        .as_ref()
        .and_then(|cpu| cpu.model.as_deref());
    matches!(model, None | Some("" | "host-model"))
}

fn features(spec: &VirtualMachineInstanceSpec) -> impl Iterator<Item = &CpuFeature> {
    let cpu = spec.domain.cpu.iter();
    cpu.flat_map(|cpu| cpu.features.iter().flatten())
}

fn policy(feature: &CpuFeature) -> &str {
    feature.policy.as_deref().unwrap_or_default()
}

fn dedicated(spec: &VirtualMachineInstanceSpec) -> bool {
    let cpu = spec.domain.cpu.as_ref();
    cpu.is_some_and(|cpu| cpu.dedicated_cpu_placement == Some(true))
}
