//! The launcher pod of a VMI, rendered from the VMI and the settings alone.

mod container;
mod overhead;
mod placement;
mod resources;
mod volumes;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Pod, PodReadinessGate, PodSecurityContext, PodSpec},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{Resource as _, ResourceExt as _};
use kubevirt_api::{names, v1::VirtualMachineInstance};

use super::{observe::Observed, pod::ANNOTATION_OVERHEAD};

/// User and group that launchers run as.
const USER: i64 = 107;
/// Seconds for the guest to power off when the VMI names none.
const DEFAULT_GRACE: i64 = 30;
/// What the pod gets beyond the guest's own time.
const POD_GRACE_EXTRA: i64 = 30;
/// Longest stem of a name that a suffix is added to, as in the API server.
const LONGEST_STEM: usize = 58;

/// The pod; none for a VMI without a name or uid, which no server sends.
pub(super) fn pod(observed: &Observed) -> Option<Pod> {
    let vmi = &observed.vmi;
    let (name, uid) = (vmi.metadata.name.as_ref()?, vmi.metadata.uid.as_ref()?);
    let overhead = overhead::bytes(&vmi.spec);
    let stem = format!("virt-launcher-{name}-");
    Some(Pod {
        metadata: ObjectMeta {
            name: Some(pod_name(&stem, uid)),
            generate_name: Some(stem),
            namespace: vmi.metadata.namespace.clone(),
            labels: Some(labels(vmi, name, uid)),
            annotations: Some(annotations(vmi, name, overhead)),
            owner_references: Some(vec![owner(name, uid)]),
            ..ObjectMeta::default()
        },
        spec: Some(spec(observed, overhead)),
        status: None,
    })
}

/// One name for each uid: the API server itself then refuses a second pod for the same VMI.
fn pod_name(stem: &str, uid: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let id = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, uid.as_bytes());
    let suffix = id.as_bytes().iter().take(5).map(|byte| {
        let index = usize::from(*byte) % LETTERS.len();
        LETTERS.get(index).map_or('b', |letter| char::from(*letter))
    });
    let stem: String = stem.chars().take(LONGEST_STEM).collect();
    stem.chars().chain(suffix).collect()
}

fn labels(vmi: &VirtualMachineInstance, name: &str, uid: &str) -> BTreeMap<String, String> {
    let mut labels = vmi.labels().clone();
    labels.extend(
        [
            (names::LABEL_APP, "virt-launcher".to_owned()),
            (names::LABEL_CREATED_BY, uid.to_owned()),
            (names::LABEL_VM_NAME, hostname(vmi)),
            (names::LABEL_VMI_ID, label_value(name)),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    labels
}

/// A name that is too long for a label is cut and told apart by a digest.
fn label_value(name: &str) -> String {
    if name.len() <= 63 {
        return name.to_owned();
    }
    let stem: String = name.chars().take(54).collect();
    let digest = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, name.as_bytes()).simple();
    let digest: String = digest.to_string().chars().take(8).collect();
    format!("{stem}-{digest}")
}

fn annotations(
    vmi: &VirtualMachineInstance,
    name: &str,
    overhead: i64,
) -> BTreeMap<String, String> {
    let private = [
        "kubectl.kubernetes.io",
        names::ANNOTATION_STORAGE_OBSERVED_API_VERSION,
        names::ANNOTATION_LATEST_OBSERVED_API_VERSION,
    ];
    let mut annotations: BTreeMap<_, _> = vmi
        .annotations()
        .iter()
        .filter(|(key, _)| !private.iter().any(|prefix| key.starts_with(prefix)))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    annotations.extend(
        [
            (names::ANNOTATION_DOMAIN, name.to_owned()),
            (
                "kubectl.kubernetes.io/default-container",
                "compute".to_owned(),
            ),
            ("kubevirt.io/migrationTransportUnix", "true".to_owned()),
            (
                "descheduler.alpha.kubernetes.io/request-evict-only",
                String::new(),
            ),
            (ANNOTATION_OVERHEAD, overhead.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    annotations
}

fn owner(name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: VirtualMachineInstance::api_version(&()).into_owned(),
        kind: VirtualMachineInstance::kind(&()).into_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The guest's own host name, else the first label of the VMI's name.
fn hostname(vmi: &VirtualMachineInstance) -> String {
    let name = vmi.name_any();
    let name = match &vmi.spec.hostname {
        Some(hostname) => hostname.as_str(),
        None => name.split('.').next().unwrap_or_default(),
    };
    let cut: String = name.chars().take(63).collect();
    cut.trim_end_matches('-').to_owned()
}

fn grace(vmi: &VirtualMachineInstance) -> i64 {
    vmi.spec
        .termination_grace_period_seconds
        .unwrap_or(DEFAULT_GRACE)
        .max(0)
}

fn spec(observed: &Observed, overhead: i64) -> PodSpec {
    let vmi = &observed.vmi;
    let spec = &vmi.spec;
    PodSpec {
        containers: vec![container::compute(observed, overhead)],
        volumes: Some(volumes::volumes(spec)),
        image_pull_secrets: volumes::pull_secrets(spec),
        restart_policy: Some("Never".to_owned()),
        hostname: Some(hostname(vmi)),
        subdomain: spec.subdomain.clone(),
        termination_grace_period_seconds: Some(grace(vmi) + POD_GRACE_EXTRA),
        readiness_gates: Some(vec![PodReadinessGate {
            condition_type: names::CONDITION_UNPAUSED.to_owned(),
        }]),
        security_context: Some(PodSecurityContext {
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            run_as_non_root: Some(true),
            fs_group: Some(USER),
            ..PodSecurityContext::default()
        }),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        node_selector: Some(placement::node_selector(vmi)),
        affinity: placement::affinity(spec),
        tolerations: spec.tolerations.clone(),
        topology_spread_constraints: spec.topology_spread_constraints.clone(),
        scheduler_name: spec.scheduler_name.clone(),
        priority_class_name: spec.priority_class_name.clone(),
        dns_policy: spec.dns_policy.clone(),
        dns_config: spec.dns_config.clone(),
        ..PodSpec::default()
    }
}

#[cfg(test)]
#[path = "launcher_tests.rs"]
mod tests;
