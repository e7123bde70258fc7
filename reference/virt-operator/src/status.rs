//! Phase and conditions of the KubeVirt resource, as a pure function of how far things are.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_api::v1::{Condition, KubeVirtStatus, condition};

use crate::install::{Install, VERSION};

/// How far the system is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Objects are written or pods are not ready yet.
    Deploying,
    /// Everything runs.
    Ready,
    /// The last try failed, for the reason given.
    Failed(String),
    /// The resource is being deleted.
    Deleting,
    /// Another KubeVirt resource was here first, or this one is in a foreign namespace.
    Duplicate,
}

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const DEGRADED: &str = "Degraded";
const CREATED: &str = "Created";
const SYNCHRONIZED: &str = "Synchronized";

/// The status that follows from the old one; `generation` is that of the resource.
#[must_use]
pub fn next(
    old: &KubeVirtStatus,
    progress: &Progress,
    install: &Install,
    generation: Option<i64>,
    now: &Time,
) -> KubeVirtStatus {
    let mut status = old.clone();
    let mut conditions = status.conditions.take().unwrap_or_default();
    let mut three = |available, progressing, degraded, reason: &str, message: &str| {
        for (type_, value) in [
            (AVAILABLE, available),
            (PROGRESSING, progressing),
            (DEGRADED, degraded),
        ] {
            let condition = Condition::new(type_, value, reason, message);
            condition::set(&mut conditions, condition, now);
        }
    };
    match progress {
        Progress::Deploying if is_update(old, install) => {
            let message = format!("Transitioning to version {}", install.images.tag);
            three(true, true, true, "UpdateInProgress", &message);
            condition::remove(&mut conditions, CREATED);
        }
        Progress::Deploying if old.phase.as_deref() == Some("Deployed") => {
            // A pod that restarts is no new deployment: the conditions say it, the phase stays.
            let message = "Not all components are ready.";
            three(false, true, false, "DeploymentInProgress", message);
        }
        Progress::Deploying => {
            let message = format!(
                "Deploying version {} with registry {}",
                install.images.tag, install.images.registry
            );
            three(false, true, false, "DeploymentInProgress", &message);
            status.phase = Some("Deploying".to_owned());
        }
        Progress::Ready => {
            let message = "All components are ready.";
            three(true, false, false, "AllComponentsReady", message);
            let message = "All resources were created.";
            let created = Condition::new(CREATED, true, "AllResourcesCreated", message);
            condition::set(&mut conditions, created, now);
            condition::remove(&mut conditions, SYNCHRONIZED);
            status.phase = Some("Deployed".to_owned());
            status.observed_generation = generation;
            status.observed_kube_virt_registry = Some(install.images.registry.clone());
            status.observed_kube_virt_version = Some(install.images.tag.clone());
            status.observed_deployment_id = Some(install.deployment_id());
        }
        Progress::Failed(why) => {
            three(false, false, true, "DeploymentFailed", why);
            let synchronized = Condition::new(SYNCHRONIZED, false, "DeploymentFailed", why);
            condition::set(&mut conditions, synchronized, now);
        }
        Progress::Deleting => {
            three(
                false,
                false,
                true,
                "DeletionInProgress",
                "Deletion was triggered",
            );
            condition::remove(&mut conditions, CREATED);
            condition::remove(&mut conditions, SYNCHRONIZED);
            status.phase = Some("Deleting".to_owned());
        }
        Progress::Duplicate => {
            let message = "There is an active KubeVirt deployment";
            let refused = Condition::new(SYNCHRONIZED, false, "ExistingDeployment", message);
            condition::set(&mut conditions, refused, now);
            status.conditions = Some(conditions);
            return status;
        }
    }
    status.conditions = Some(conditions);
    status.operator_version = Some(VERSION.to_owned());
    status.target_kube_virt_registry = Some(install.images.registry.clone());
    status.target_kube_virt_version = Some(install.images.tag.clone());
    status.target_deployment_id = Some(install.deployment_id());
    status.default_architecture = Some("amd64".to_owned());
    status
        .outdated_virtual_machine_instance_workloads
        .get_or_insert(0);
    status
}

fn is_update(old: &KubeVirtStatus, install: &Install) -> bool {
    old.observed_deployment_id
        .as_ref()
        .is_some_and(|id| *id != install.deployment_id())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use kubevirt_api::v1::KubeVirt;
    use rstest::rstest;

    use super::*;
    use crate::install::Images;

    fn install(tag: &str) -> Install {
        let images = Images {
            registry: "r.example".to_owned(),
            tag: tag.to_owned(),
        };
        Install::new("kubevirt", &images, &KubeVirt::default())
    }

    /// `Available Progressing Degraded Created Synchronized`, `-` where absent.
    fn words(status: &KubeVirtStatus) -> String {
        [AVAILABLE, PROGRESSING, DEGRADED, CREATED, SYNCHRONIZED]
            .map(|type_| {
                let conditions = status.conditions.as_deref().unwrap_or_default();
                condition::find(conditions, type_).map_or("-", |c| &c.status)
            })
            .join(" ")
    }

    fn after(steps: &[(Progress, &str)]) -> KubeVirtStatus {
        let now = Time(Timestamp::UNIX_EPOCH);
        steps
            .iter()
            .fold(KubeVirtStatus::default(), |status, (progress, tag)| {
                next(&status, progress, &install(tag), Some(2), &now)
            })
    }

    #[rstest]
    #[case::first_install(&[(Progress::Deploying, "v1")], "Deploying", "False True False - -")]
    #[case::ready(&[(Progress::Deploying, "v1"), (Progress::Ready, "v1")], "Deployed", "True False False True -")]
    #[case::a_pod_restarts(&[(Progress::Ready, "v1"), (Progress::Deploying, "v1")], "Deployed", "False True False True -")]
    #[case::update(&[(Progress::Ready, "v1"), (Progress::Deploying, "v2")], "Deployed", "True True True - -")]
    #[case::failed(&[(Progress::Deploying, "v1"), (Progress::Failed("no".to_owned()), "v1")], "Deploying", "False False True - False")]
    #[case::mended(&[(Progress::Failed("no".to_owned()), "v1"), (Progress::Ready, "v1")], "Deployed", "True False False True -")]
    #[case::deleted(&[(Progress::Ready, "v1"), (Progress::Deleting, "v1")], "Deleting", "False False True - -")]
    fn phase_and_conditions(
        #[case] steps: &[(Progress, &str)],
        #[case] phase: &str,
        #[case] conditions: &str,
    ) {
        let status = after(steps);
        assert_eq!(status.phase.as_deref(), Some(phase));
        assert_eq!(words(&status), conditions);
    }

    #[test]
    fn a_duplicate_only_says_so() {
        let status = after(&[(Progress::Duplicate, "v1")]);
        assert_eq!(status.phase, None);
        assert_eq!(words(&status), "- - - - False");
    }

    #[test]
    fn observed_values_are_copied_only_when_all_is_ready() {
        let deploying = after(&[(Progress::Deploying, "v1")]);
        assert_eq!(deploying.observed_deployment_id, None);
        assert_eq!(deploying.target_kube_virt_version.as_deref(), Some("v1"));
        let ready = after(&[(Progress::Deploying, "v1"), (Progress::Ready, "v1")]);
        assert_eq!(ready.observed_deployment_id, ready.target_deployment_id);
        assert_eq!(ready.observed_generation, Some(2));
    }
}
