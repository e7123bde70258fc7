//! What is to be installed: images, namespace and the choices of the KubeVirt resource, as one
//! plain value that the rendering works from.

use kube::ResourceExt as _;
use kubevirt_api::v1::KubeVirt;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use virt_kit::fault::{self, Fault};

/// Version of the whole reference; every image carries it as its tag.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// A registry with path, and a tag: `registry/virt-api:tag` and its siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Everything before the image's name, without the last slash.
    pub registry: String,
    /// The tag, without colon.
    pub tag: String,
}

/// Why an image reference cannot serve as the model for the others.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("image {0:?} is not of the form <registry>/virt-operator:<tag>")]
pub struct ImageError(String);

impl Images {
    /// Takes registry and tag from the operator's own image.
    pub fn from_operator_image(image: &str) -> Result<Self, ImageError> {
        let wrong = || ImageError(image.to_owned());
        let (registry, rest) = image.rsplit_once('/').ok_or_else(wrong)?;
        let tag = rest.strip_prefix("virt-operator:").ok_or_else(wrong)?;
        if registry.is_empty() || tag.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            registry: registry.to_owned(),
            tag: tag.to_owned(),
        })
    }

    /// The image of a component.
    #[must_use]
    pub fn of(&self, component: &str) -> String {
        format!("{}/{component}:{}", self.registry, self.tag)
    }
}

/// The whole wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// Namespace of the system: the one of the KubeVirt resource.
    pub namespace: String,
    /// Where the images are.
    pub images: Images,
    /// Pull policy of all of them.
    pub pull_policy: String,
    /// Replicas of virt-api and virt-controller.
    pub replicas: u8,
    /// A promise to break on purpose.
    pub fault: Option<Fault>,
}

impl Install {
    /// Combines the operator's own images with what the KubeVirt resource overrides.
    #[must_use]
    pub fn new(namespace: &str, own: &Images, kubevirt: &KubeVirt) -> Self {
        let spec = &kubevirt.spec;
        let text = |value: &Option<String>, default: &str| match value {
            Some(value) if !value.is_empty() => value.clone(),
            _ => default.to_owned(),
        };
        Self {
            namespace: namespace.to_owned(),
            images: Images {
                registry: text(&spec.image_registry, &own.registry),
                tag: text(&spec.image_tag, &own.tag),
            },
            pull_policy: text(&spec.image_pull_policy, "IfNotPresent"),
            replicas: spec
                .infra
                .as_ref()
                .and_then(|infra| infra.replicas)
                .unwrap_or(2),
            fault: kubevirt
                .annotations()
                .get(fault::ANNOTATION)
                .and_then(|name| Fault::by_name(name)),
        }
    }

    /// A fingerprint of everything that is installed; changes when anything does.
    #[must_use]
    pub fn deployment_id(&self) -> String {
        let text = format!(
            "{}\n{}\n{}\n{}\n{}\n{:?}",
            self.namespace,
            self.images.registry,
            self.images.tag,
            self.pull_policy,
            self.replicas,
            self.fault
        );
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().take(20).map(|b| format!("{b:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::v1::{ComponentConfig, KubeVirtSpec};
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("r.example/x/virt-operator:v1", Some(("r.example/x", "v1")))]
    #[case("localhost:5000/virt-operator:v1", Some(("localhost:5000", "v1")))]
    #[case("virt-operator:v1", None)]
    #[case("r.example/virt-operator", None)]
    #[case("r.example/virt-api:v1", None)]
    #[case("r.example/virt-operator:", None)]
    fn reads_registry_and_tag(#[case] image: &str, #[case] want: Option<(&str, &str)>) {
        let got = Images::from_operator_image(image).ok();
        let want = want.map(|(registry, tag)| Images {
            registry: registry.to_owned(),
            tag: tag.to_owned(),
        });
        assert_eq!(got, want);
    }

    #[test]
    fn the_resource_overrides_and_changes_the_fingerprint() {
        let own = Images::from_operator_image("r.example/virt-operator:v1").unwrap();
        let plain = Install::new("kubevirt", &own, &KubeVirt::default());
        assert_eq!(plain.images.of("virt-api"), "r.example/virt-api:v1");
        assert_eq!(plain.replicas, 2);
        let spec = KubeVirtSpec {
            image_tag: Some("v2".to_owned()),
            infra: Some(ComponentConfig {
                replicas: Some(1),
                ..ComponentConfig::default()
            }),
            ..KubeVirtSpec::default()
        };
        let mut kubevirt = KubeVirt::new("kubevirt", spec);
        let changed = Install::new("kubevirt", &own, &kubevirt);
        assert_eq!(changed.images.of("virt-api"), "r.example/virt-api:v2");
        assert_eq!(changed.replicas, 1);
        assert_ne!(plain.deployment_id(), changed.deployment_id());
        let fault = (
            "virtmark.dev/fault".to_owned(),
            "accept-everything".to_owned(),
        );
        kubevirt.annotations_mut().extend([fault]);
        let broken = Install::new("kubevirt", &own, &kubevirt);
        assert_eq!(broken.fault, Some(Fault::AcceptEverything));
        assert_ne!(broken.deployment_id(), changed.deployment_id());
    }
}
