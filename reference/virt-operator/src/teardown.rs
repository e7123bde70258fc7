//! Removing the system again: definitions first (which ends all VMs while the components can still
//! wind them down), then everything that carries our label, then our marks on the nodes.

use anyhow::Context as _;
use k8s_openapi::{
    api::core::v1::Node,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions},
};
use kubevirt_api::names::LABEL_SCHEDULABLE;
use serde_json::{Map, Value, json};

use crate::{apply::resource, render::MANAGED_BY};

/// What is deleted, in this order; namespaced kinds only in the operator's namespace.
const KINDS: &[(&str, &str, Scope)] = &[
    ("apps/v1", "DaemonSet", Scope::Namespaced),
    ("apps/v1", "Deployment", Scope::Namespaced),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        Scope::Cluster,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        Scope::Cluster,
    ),
    ("apiregistration.k8s.io/v1", "APIService", Scope::Cluster),
    ("v1", "Service", Scope::Namespaced),
    (
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        Scope::Cluster,
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        Scope::Cluster,
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        Scope::Everywhere,
    ),
    ("rbac.authorization.k8s.io/v1", "Role", Scope::Namespaced),
    ("v1", "ServiceAccount", Scope::Namespaced),
    ("v1", "Secret", Scope::Namespaced),
    ("v1", "ConfigMap", Scope::Namespaced),
];

#[derive(Clone, Copy)]
enum Scope {
    Cluster,
    Namespaced,
    /// Namespaced, but ours may be in several namespaces.
    Everywhere,
}

/// One step; true when nothing of ours is left.
pub async fn step(client: &Client, namespace: &str) -> anyhow::Result<bool> {
    if !definitions_gone(client).await? {
        return Ok(false);
    }
    for (version, kind, scope) in KINDS {
        let resource = resource(version, kind);
        let list_in: Api<DynamicObject> = match scope {
            Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
            Scope::Cluster | Scope::Everywhere => Api::all_with(client.clone(), &resource),
        };
        for object in list_in.list(&ours()).await?.items {
            let delete_in: Api<DynamicObject> = match object.namespace() {
                Some(own) => Api::namespaced_with(client.clone(), &own, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            delete(&delete_in, &object.name_any(), object.uid()).await?;
        }
    }
    strip_nodes(client).await?;
    Ok(true)
}

fn ours() -> ListParams {
    ListParams::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1))
}

async fn definitions_gone(client: &Client) -> anyhow::Result<bool> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let left = api.list(&ours()).await?.items;
    for definition in &left {
        if definition.metadata.deletion_timestamp.is_none() {
            delete(&api, &definition.name_any(), definition.uid()).await?;
        }
    }
    Ok(left.is_empty())
}

/// Deletes the object of that uid; one of the same name that came later survives.
async fn delete<K>(api: &Api<K>, name: &str, uid: Option<String>) -> anyhow::Result<()>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid,
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    match api.delete(name, &params).await {
        Ok(_) => Ok(()),
        Err(error) if virt_kit::retry::is_not_found(&error) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("failed to delete {name}")),
    }
}

/// Takes labels of the system off the nodes, so that nobody schedules by them.
async fn strip_nodes(client: &Client) -> anyhow::Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let marked = ListParams::default().labels(LABEL_SCHEDULABLE);
    for node in api.list(&marked).await?.items {
        let labels: Map<String, Value> = node
            .labels()
            .keys()
            .filter(|key| key.starts_with("kubevirt.io/"))
            .map(|key| (key.clone(), Value::Null))
            .collect();
        let patch = json!({"metadata": {"labels": labels}});
        api.patch(
            &node.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&patch),
        )
        .await
        .with_context(|| format!("failed to clean the labels of node {}", node.name_any()))?;
    }
    Ok(())
}
