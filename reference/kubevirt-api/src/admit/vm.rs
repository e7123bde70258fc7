//! Rules on VirtualMachines.

use serde_json::Value;

use super::{Candidate, Cause, Field, machine};
use crate::{
    config::ClusterConfig,
    v1::{RunStrategy, VirtualMachineInstanceSpec, VirtualMachineSpec},
};

/// Faults of a VirtualMachine. `defaulted` is its machine with the defaults of a VMI filled in.
#[must_use]
pub fn virtual_machine(
    spec: &VirtualMachineSpec,
    defaulted: &VirtualMachineInstanceSpec,
    config: &ClusterConfig,
) -> Vec<Cause> {
    let root = Field::new("spec.template.spec");
    let candidate = Candidate {
        root: &root,
        spec: defaulted,
        config,
    };
    let mut causes = machine(&candidate);
    causes.extend(data_volume_templates(spec));
    causes.extend(running_or_run_strategy(spec));
    causes.extend(run_strategy(spec, config));
    causes.extend(guest_within_maximum(spec));
    causes
}

/// What is served but should be written otherwise.
#[must_use]
pub fn warnings(spec: &VirtualMachineSpec) -> Vec<String> {
    spec.running
        .map(|_| "spec.running is deprecated, please use spec.runStrategy instead.".to_owned())
        .into_iter()
        .collect()
}

/// 180, 181: the wish to run is said once.
fn running_or_run_strategy(spec: &VirtualMachineSpec) -> Option<Cause> {
    let field = Field::new("spec.running");
    match (spec.running, &spec.run_strategy) {
        (Some(_), Some(_)) => Some(Cause::invalid(
            &field,
            "Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead",
        )),
        (None, None) => Some(Cause::invalid(&field, "RunStrategy must be specified")),
        _ => None,
    }
}

/// 182, 183: the strategy is one that is served.
fn run_strategy(spec: &VirtualMachineSpec, config: &ClusterConfig) -> Option<Cause> {
    let strategy = spec.run_strategy.as_ref()?;
    let message = match strategy {
        RunStrategy::Other(word) => format!("Invalid RunStrategy ({word})"),
        RunStrategy::WaitAsReceiver if !config.has_gate("DecentralizedLiveMigration") => format!(
            "Invalid RunStrategy ({strategy}), DecentralizedLiveMigration feature gate is not enabled in kubevirt resource"
        ),
        _ => return None,
    };
    Some(Cause::invalid(&Field::new("spec.runStrategy"), message))
}

/// 185, in part: what is plugged in later only adds.
fn guest_within_maximum(spec: &VirtualMachineSpec) -> Option<Cause> {
    use crate::quantity::Quantity;
    let memory = spec.template.spec.as_ref()?.domain.memory.as_ref()?;
    let most = Quantity::try_from(memory.max_guest.as_ref()?).ok()?;
    let guest = Quantity::try_from(memory.guest.as_ref()?).ok()?;
    (guest > most).then(|| {
        Cause::invalid(
            &Field::new("spec.template.spec.domain.memory.guest"),
            "Guest memory is greater than the configured maxGuest memory",
        )
    })
}

/// 186, 187, 189: a template of a DataVolume has a name and a size, and a volume uses it.
fn data_volume_templates(spec: &VirtualMachineSpec) -> Vec<Cause> {
    let templates = spec.data_volume_templates.iter().flatten().enumerate();
    templates
        .filter_map(|(i, template)| data_volume_template(spec, i, template))
        .collect()
}

fn data_volume_template(spec: &VirtualMachineSpec, i: usize, template: &Value) -> Option<Cause> {
    // The original drops the plural here.
    let field = Field::new("spec.dataVolumeTemplate").index(i);
    let name = template["metadata"]["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        let field = field.child("name");
        return Some(Cause::required(
            &field,
            format!("'name' field must not be empty for DataVolumeTemplate entry {field}."),
        ));
    }
    let (claim, storage) = (
        template["spec"]["pvc"].is_object(),
        template["spec"]["storage"].is_object(),
    );
    match (claim, storage) {
        (false, false) => {
            return Some(Cause::invalid(
                &field.child("PVC.Storage"),
                "Missing Data volume PVC or Storage",
            ));
        }
        (true, true) => {
            return Some(Cause::invalid(
                &field.child("PVC.Storage"),
                "Duplicate storage definition, both target storage and target pvc defined",
            ));
        }
        _ => {}
    }
    let volumes = spec
        .template
        .spec
        .iter()
        .flat_map(|s| s.volumes.iter().flatten());
    let mut names = volumes.filter_map(|v| {
        let by_claim = v
            .persistent_volume_claim
            .as_ref()
            .map(|c| c.claim_name.as_str());
        v.data_volume.as_ref().map(|d| d.name.as_str()).or(by_claim)
    });
    (!names.any(|used| used == name)).then(|| {
        Cause::required(
            &field,
            format!("DataVolumeTemplate entry {field} must be referenced in the VMI template's 'volumes' list"),
        )
    })
}
