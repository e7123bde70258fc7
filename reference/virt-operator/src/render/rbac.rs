//! Service accounts of the components and exactly the rights that each of them uses.

use serde_json::{Value, json};

use crate::install::Install;

/// One component's account: name, cluster-wide rules, rules in its own namespace.
struct Account {
    name: &'static str,
    cluster: fn() -> Vec<Value>,
    local: fn() -> Vec<Value>,
}

const ACCOUNTS: &[Account] = &[
    Account {
        name: "kubevirt-apiserver",
        cluster: api_rules,
        local: api_local_rules,
    },
    Account {
        name: "kubevirt-controller",
        cluster: controller_rules,
        local: lease_rules,
    },
    Account {
        name: "kubevirt-handler",
        cluster: handler_rules,
        local: Vec::new,
    },
];

/// A rule of a role.
pub(super) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn api_rules() -> Vec<Value> {
    vec![
        rule("kubevirt.io", &["virtualmachines"], &["get", "patch"]),
        rule("kubevirt.io", &["virtualmachines/status"], &["patch"]),
        rule(
            "kubevirt.io",
            &["virtualmachineinstances"],
            &["get", "patch"],
        ),
        rule("kubevirt.io", &["kubevirts"], &["list", "watch"]),
        rule(
            "authorization.k8s.io",
            &["subjectaccessreviews"],
            &["create"],
        ),
    ]
}

/// To find the virt-handler of a node.
fn api_local_rules() -> Vec<Value> {
    vec![rule("", &["pods"], &["list"])]
}

fn controller_rules() -> Vec<Value> {
    vec![
        rule(
            "kubevirt.io",
            &["virtualmachines"],
            &["get", "list", "watch", "patch"],
        ),
        rule("kubevirt.io", &["virtualmachines/status"], &["patch"]),
        rule(
            "kubevirt.io",
            &["virtualmachineinstances"],
            &["get", "list", "watch", "create", "patch", "delete"],
        ),
        // Owner references that block deletion need the right to set finalizers on the owner.
        rule(
            "kubevirt.io",
            &[
                "virtualmachines/finalizers",
                "virtualmachineinstances/finalizers",
            ],
            &["update"],
        ),
        rule("kubevirt.io", &["kubevirts"], &["get", "list", "watch"]),
        rule(
            "",
            &["pods"],
            &["get", "list", "watch", "create", "patch", "delete"],
        ),
        rule("", &["pods/status"], &["patch"]),
        rule("", &["pods/finalizers"], &["update"]),
        rule("", &["nodes"], &["get", "list", "watch", "patch"]),
        rule("", &["events"], &["create", "patch"]),
    ]
}

fn handler_rules() -> Vec<Value> {
    vec![
        rule(
            "kubevirt.io",
            &["virtualmachineinstances"],
            &["get", "list", "watch", "patch"],
        ),
        rule("", &["pods"], &["list"]),
        rule("", &["nodes"], &["get", "patch"]),
        rule("", &["events"], &["create", "patch"]),
    ]
}

fn lease_rules() -> Vec<Value> {
    vec![rule(
        "coordination.k8s.io",
        &["leases"],
        &["get", "create", "update", "patch"],
    )]
}

/// Every rule that some component holds: the operator must hold them too, to be allowed to grant them.
pub(super) fn granted() -> Vec<Value> {
    ACCOUNTS
        .iter()
        .flat_map(|account| [(account.cluster)(), (account.local)()].concat())
        .collect()
}

pub(super) fn objects(install: &Install) -> Vec<Value> {
    let mut objects: Vec<Value> = ACCOUNTS
        .iter()
        .flat_map(|account| account.objects(install))
        .collect();
    // The aggregator's certificate authority and header names, for virt-api alone.
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "kubevirt-apiserver-auth-reader", "namespace": "kube-system"},
        "roleRef": role_ref("Role", "extension-apiserver-authentication-reader"),
        "subjects": [subject("kubevirt-apiserver", install)],
    }));
    objects
}

impl Account {
    fn objects(&self, install: &Install) -> Vec<Value> {
        let mut objects = vec![
            json!({
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": self.name, "namespace": install.namespace},
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": self.name},
                "rules": (self.cluster)(),
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": self.name},
                "roleRef": role_ref("ClusterRole", self.name),
                "subjects": [subject(self.name, install)],
            }),
        ];
        let local = (self.local)();
        if !local.is_empty() {
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": {"name": self.name, "namespace": install.namespace},
                "rules": local,
            }));
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": self.name, "namespace": install.namespace},
                "roleRef": role_ref("Role", self.name),
                "subjects": [subject(self.name, install)],
            }));
        }
        objects
    }
}

fn role_ref(kind: &str, name: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name})
}

fn subject(account: &str, install: &Install) -> Value {
    json!({"kind": "ServiceAccount", "name": account, "namespace": install.namespace})
}
