//! Every object of the system as a pure function of the wish, in the order in which they are applied.

pub mod manifest;
mod rbac;
mod registration;
mod user_roles;
mod workloads;

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kubevirt_api::crd;
use serde_json::{Value, json};
pub use workloads::{API, CONTROLLER, HANDLER};

use crate::{
    certs::{Material, Pair},
    install::Install,
};

/// Label on everything that the operator owns; also how it finds what to delete.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "virt-operator");

/// Name of the definition that comes with the manifest: the wish itself outlives what it asks for.
pub const KUBEVIRT_DEFINITION: &str = "kubevirts.kubevirt.io";

/// The definitions that the operator installs and removes.
#[must_use]
pub fn definitions(install: &Install) -> Vec<Value> {
    let objects = crd::documents()
        .into_iter()
        .map(|(_, definition)| definition)
        .filter(|definition| definition["metadata"]["name"] != KUBEVIRT_DEFINITION)
        .collect();
    own(objects, install)
}

/// Objects that must be there before virt-api is: accounts, roles, services, certificates.
#[must_use]
pub fn foundation(install: &Install, material: &Material) -> Vec<Value> {
    let mut objects = rbac::objects(install);
    objects.extend(user_roles::objects());
    objects.push(service(install));
    objects.extend(certificates(install, material));
    own(objects, install)
}

/// virt-api and what makes the API server call it.
#[must_use]
pub fn api(install: &Install, material: &Material) -> Vec<Value> {
    let mut objects = vec![workloads::api(install)];
    objects.extend(registration::objects(install, &material.bundle));
    own(objects, install)
}

/// What may start once virt-api answers.
#[must_use]
pub fn rest(install: &Install) -> Vec<Value> {
    own(
        vec![workloads::controller(install), workloads::handler(install)],
        install,
    )
}

fn service(install: &Install) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "virt-api",
            "namespace": install.namespace,
            "labels": {"kubevirt.io": "virt-api"},
        },
        "spec": {
            "type": "ClusterIP",
            "selector": {"kubevirt.io": "virt-api"},
            "ports": [{"port": 443, "targetPort": 8443, "protocol": "TCP"}],
        },
    })
}

fn certificates(install: &Install, material: &Material) -> Vec<Value> {
    let secret = |name: &str, pair: &Pair| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": install.namespace},
            "type": "kubernetes.io/tls",
            "data": {"tls.crt": base64(&pair.cert), "tls.key": base64(&pair.key)},
        })
    };
    let mut objects = vec![json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kubevirt-ca", "namespace": install.namespace},
        "data": {"ca-bundle": material.bundle},
    })];
    objects.extend(material.ca.iter().map(|ca| secret("kubevirt-ca", ca)));
    objects.extend(
        material
            .leaves
            .iter()
            .map(|(name, pair)| secret(name, pair)),
    );
    objects
}

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

/// Marks objects as ours, with the version that wrote them.
fn own(mut objects: Vec<Value>, install: &Install) -> Vec<Value> {
    let annotations = BTreeMap::from([
        (
            "kubevirt.io/install-strategy-version",
            install.images.tag.clone(),
        ),
        (
            "kubevirt.io/install-strategy-registry",
            install.images.registry.clone(),
        ),
        (
            "kubevirt.io/install-strategy-identifier",
            install.deployment_id(),
        ),
    ]);
    for object in &mut objects {
        object["metadata"]["labels"][MANAGED_BY.0] = json!(MANAGED_BY.1);
        for (key, value) in &annotations {
            object["metadata"]["annotations"][*key] = json!(value);
        }
    }
    objects
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kubevirt_api::v1::KubeVirt;

    use super::*;
    use crate::install::Images;

    fn install() -> Install {
        let images = Images {
            registry: "registry.virtmark.dev".to_owned(),
            tag: "v0.1.0".to_owned(),
        };
        Install::new("kubevirt", &images, &KubeVirt::default())
    }

    fn material() -> Material {
        Material {
            bundle: "BUNDLE\n".to_owned(),
            ..Material::default()
        }
    }

    #[test]
    fn objects_are_as_reviewed() {
        insta::assert_yaml_snapshot!("foundation", foundation(&install(), &material()));
        insta::assert_yaml_snapshot!("api", api(&install(), &material()));
        insta::assert_yaml_snapshot!("rest", rest(&install()));
    }

    #[test]
    fn no_object_is_rendered_twice() {
        let all = [
            foundation(&install(), &material()),
            api(&install(), &material()),
            rest(&install()),
        ]
        .concat();
        let names: BTreeSet<_> = all
            .iter()
            .map(|o| (o["kind"].to_string(), o["metadata"]["name"].to_string()))
            .collect();
        assert_eq!(names.len(), all.len());
    }
}
