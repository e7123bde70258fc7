//! The manifest that installs the operator itself: what a user applies first.

use anyhow::Context as _;
use kubevirt_api::{crd, names::GROUP};
use serde_json::{Value, json};

use super::{KUBEVIRT_DEFINITION, rbac, rbac::rule, user_roles};
use crate::install::Images;

const NAMESPACE: &str = "kubevirt";
const ACCOUNT: &str = "kubevirt-operator";
const ALL: &[&str] = &[
    "get", "list", "watch", "create", "update", "patch", "delete",
];

/// The manifest as a YAML stream.
pub fn yaml(images: &Images) -> anyhow::Result<String> {
    let definition = crd::documents()
        .into_iter()
        .map(|(_, definition)| definition)
        .find(|definition| definition["metadata"]["name"] == KUBEVIRT_DEFINITION)
        .context("the definition of KubeVirt is missing")?;
    let documents = objects(images, definition)
        .iter()
        .map(serde_saphyr::to_string)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(documents.iter().fold(String::new(), |text, document| {
        text + "---\n" + document.trim_end() + "\n"
    }))
}

/// Namespace, KubeVirt's definition, the operator's account and rights, and its Deployment.
fn objects(images: &Images, kubevirt_crd: Value) -> Vec<Value> {
    let rules = [own_rules(), rbac::granted(), user_roles::granted()].concat();
    vec![
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": NAMESPACE,
                "labels": {
                    "kubevirt.io": "",
                    "pod-security.kubernetes.io/enforce": "privileged",
                },
            },
        }),
        kubevirt_crd,
        json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "kubevirt-cluster-critical"},
            "value": 1_000_000_000,
            "globalDefault": false,
            "description": "For the components that machines depend on.",
        }),
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": ACCOUNT},
            "rules": rules,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": ACCOUNT,
            },
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "kubevirt-operator-auth-reader", "namespace": "kube-system"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": "extension-apiserver-authentication-reader",
            },
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        }),
        deployment(images),
    ]
}

fn own_rules() -> Vec<Value> {
    let rbac = &[
        "clusterroles",
        "clusterrolebindings",
        "roles",
        "rolebindings",
    ];
    let hooks = &[
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
    ];
    vec![
        rule(
            GROUP,
            &["kubevirts", "kubevirts/status", "kubevirts/finalizers"],
            ALL,
        ),
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], ALL),
        rule("rbac.authorization.k8s.io", rbac, ALL),
        rule("admissionregistration.k8s.io", hooks, ALL),
        rule("apiregistration.k8s.io", &["apiservices"], ALL),
        rule("apps", &["deployments", "daemonsets"], ALL),
        rule(
            "",
            &["serviceaccounts", "services", "secrets", "configmaps"],
            ALL,
        ),
        rule("", &["nodes"], &["get", "list", "patch"]),
        rule("", &["events"], &["create", "patch"]),
        rule(
            "coordination.k8s.io",
            &["leases"],
            &["get", "create", "update", "patch"],
        ),
    ]
}

fn deployment(images: &Images) -> Value {
    let image = images.of("virt-operator");
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "virt-operator",
            "namespace": NAMESPACE,
            "labels": {"kubevirt.io": "virt-operator"},
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"kubevirt.io": "virt-operator"}},
            "template": {
                "metadata": {"labels": {"kubevirt.io": "virt-operator"}},
                "spec": {
                    "serviceAccountName": ACCOUNT,
                    "priorityClassName": "kubevirt-cluster-critical",
                    "terminationGracePeriodSeconds": 5,
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 1001,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "virt-operator",
                        "image": image,
                        "imagePullPolicy": "IfNotPresent",
                        "env": [
                            {"name": "VIRT_OPERATOR_IMAGE", "value": image},
                            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                        ],
                        "resources": {"requests": {"cpu": "10m", "memory": "40Mi"}},
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::VERSION;

    /// The committed manifest is what `virt-operator manifest` prints; `UPDATE_MANIFEST=1` writes it anew.
    #[test]
    fn the_committed_manifest_is_the_rendered_one() {
        let images = Images {
            registry: "registry.virtmark.dev".to_owned(),
            tag: VERSION.to_owned(),
        };
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../deploy/kubevirt-operator.yaml"
        );
        let rendered = yaml(&images).unwrap();
        if std::env::var_os("UPDATE_MANIFEST").is_some() {
            std::fs::write(path, &rendered).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), rendered);
    }
}
