//! What makes the API server call virt-api: webhooks and the aggregated API.

use serde_json::{Value, json};

use super::base64;
use crate::install::Install;

/// One webhook: name, path, plural resource, operations.
struct Hook {
    name: &'static str,
    path: &'static str,
    resource: &'static str,
    operations: &'static [&'static str],
}

const MUTATORS: &[Hook] = &[
    Hook {
        name: "virtualmachines-mutator.kubevirt.io",
        path: "/virtualmachines-mutate",
        resource: "virtualmachines",
        operations: &["CREATE", "UPDATE"],
    },
    Hook {
        name: "virtualmachineinstances-mutator.kubevirt.io",
        path: "/virtualmachineinstances-mutate",
        resource: "virtualmachineinstances",
        operations: &["CREATE", "UPDATE"],
    },
];

const VALIDATORS: &[Hook] = &[
    Hook {
        name: "virtualmachine-validator.kubevirt.io",
        path: "/virtualmachines-validate",
        resource: "virtualmachines",
        operations: &["CREATE", "UPDATE"],
    },
    Hook {
        name: "virtualmachineinstances-create-validator.kubevirt.io",
        path: "/virtualmachineinstances-validate-create",
        resource: "virtualmachineinstances",
        operations: &["CREATE"],
    },
    Hook {
        name: "virtualmachineinstances-update-validator.kubevirt.io",
        path: "/virtualmachineinstances-validate-update",
        resource: "virtualmachineinstances",
        operations: &["UPDATE"],
    },
    Hook {
        name: "kubevirt-crd-status-validator.kubevirt.io",
        path: "/status-validate",
        resource: "virtualmachines/status",
        operations: &["CREATE", "UPDATE"],
    },
];

pub(super) fn objects(install: &Install, bundle: &str) -> Vec<Value> {
    let ca = base64(bundle);
    let mut objects = vec![
        configuration(
            "MutatingWebhookConfiguration",
            "virt-api-mutator",
            MUTATORS,
            install,
            &ca,
        ),
        configuration(
            "ValidatingWebhookConfiguration",
            "virt-api-validator",
            VALIDATORS,
            install,
            &ca,
        ),
    ];
    objects.extend(["v1", "v1alpha3"].map(|version| {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {
                "name": format!("{version}.subresources.kubevirt.io"),
                "labels": {"kubevirt.io": "virt-api-aggregator"},
            },
            "spec": {
                "group": "subresources.kubevirt.io",
                "version": version,
                "groupPriorityMinimum": 1000,
                "versionPriority": 15,
                "caBundle": ca,
                "service": {"namespace": install.namespace, "name": "virt-api", "port": 443},
            },
        })
    }));
    objects
}

fn configuration(kind: &str, name: &str, hooks: &[Hook], install: &Install, ca: &str) -> Value {
    let webhooks: Vec<Value> = hooks.iter().map(|hook| hook.render(install, ca)).collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {"kubevirt.io": "virt-api"}},
        "webhooks": webhooks,
    })
}

impl Hook {
    fn render(&self, install: &Install, ca: &str) -> Value {
        json!({
            "name": self.name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "caBundle": ca,
                "service": {
                    "namespace": install.namespace,
                    "name": "virt-api",
                    "path": self.path,
                    "port": 443,
                },
            },
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 10,
            "rules": [{
                "apiGroups": ["kubevirt.io"],
                "apiVersions": ["v1alpha3", "v1"],
                "operations": self.operations,
                "resources": [self.resource],
                "scope": "*",
            }],
        })
    }
}
