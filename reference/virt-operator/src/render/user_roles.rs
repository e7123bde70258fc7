//! The roles that users get: they aggregate into Kubernetes' own view, edit and admin.

use serde_json::{Value, json};

use super::rbac::rule;

const KINDS: &[&str] = &["virtualmachines", "virtualmachineinstances"];
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &[
    "get", "list", "watch", "create", "update", "patch", "delete",
];
const WRITE_ALL: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];
const SUBRESOURCES: &str = "subresources.kubevirt.io";

fn edit_rules(verbs: &[&str]) -> Vec<Value> {
    vec![
        rule(SUBRESOURCES, &["virtualmachineinstances/console"], &["get"]),
        rule(
            SUBRESOURCES,
            &[
                "virtualmachineinstances/pause",
                "virtualmachineinstances/unpause",
                "virtualmachineinstances/softreboot",
                "virtualmachineinstances/reset",
                "virtualmachines/start",
                "virtualmachines/stop",
                "virtualmachines/restart",
            ],
            &["update"],
        ),
        rule("kubevirt.io", KINDS, verbs),
    ]
}

fn default_rules() -> Vec<Value> {
    vec![
        rule(SUBRESOURCES, &["version"], &["get", "list"]),
        rule("kubevirt.io", &["kubevirts"], &["get", "list"]),
    ]
}

fn role(name: &str, aggregate_to: Option<&str>, rules: Vec<Value>) -> Value {
    let mut labels = json!({"kubevirt.io": ""});
    if let Some(to) = aggregate_to {
        labels[format!("rbac.authorization.k8s.io/aggregate-to-{to}")] = json!("true");
    }
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": format!("kubevirt.io:{name}"), "labels": labels},
        "rules": rules,
    })
}

/// Every rule that a user role grants.
pub(super) fn granted() -> Vec<Value> {
    [edit_rules(WRITE_ALL), default_rules()].concat()
}

pub(super) fn objects() -> Vec<Value> {
    vec![
        role("default", None, default_rules()),
        role("view", Some("view"), vec![rule("kubevirt.io", KINDS, READ)]),
        role("edit", Some("edit"), edit_rules(WRITE)),
        role("admin", Some("admin"), edit_rules(WRITE_ALL)),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "kubevirt.io:default"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "kubevirt.io:default",
            },
            "subjects": [{
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Group",
                "name": "system:authenticated",
            }],
        }),
    ]
}
