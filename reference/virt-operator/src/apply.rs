//! Writing rendered objects: server-side apply, so that only fields that we state are ours.

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::Value;
use thiserror::Error;

/// Field manager of everything that the operator writes.
pub const MANAGER: &str = "virt-operator";

/// Why an object was not written.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// The rendered object lacks kind, version or name: a mistake of ours.
    #[error("failed to render an object: no {0}")]
    Malformed(&'static str),
    /// The API server refused.
    #[error("failed to write {kind} {name}")]
    Refused {
        /// Kind of the object.
        kind: String,
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
}

/// Applies objects one after the other; stops at the first that is refused.
pub async fn all(client: &Client, objects: &[Value]) -> Result<(), ApplyError> {
    for object in objects {
        one(client, object).await?;
    }
    Ok(())
}

async fn one(client: &Client, object: &Value) -> Result<(), ApplyError> {
    let text = |value: &Value, what: &'static str| {
        value
            .as_str()
            .map(str::to_owned)
            .ok_or(ApplyError::Malformed(what))
    };
    let version = text(&object["apiVersion"], "apiVersion")?;
    let kind = text(&object["kind"], "kind")?;
    let name = text(&object["metadata"]["name"], "name")?;
    let resource = resource(&version, &kind);
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply(MANAGER).force();
    api.patch(&name, &params, &Patch::Apply(object))
        .await
        .map(drop)
        .map_err(|source| ApplyError::Refused { kind, name, source })
}

/// The resource of a kind; all kinds that the operator writes have regular plurals.
#[must_use]
pub fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("v1", "ConfigMap", "", "configmaps")]
    #[case("apps/v1", "DaemonSet", "apps", "daemonsets")]
    #[case(
        "apiregistration.k8s.io/v1",
        "APIService",
        "apiregistration.k8s.io",
        "apiservices"
    )]
    #[case(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations"
    )]
    fn plurals(
        #[case] version: &str,
        #[case] kind: &str,
        #[case] group: &str,
        #[case] plural: &str,
    ) {
        let resource = resource(version, kind);
        assert_eq!(
            (resource.group.as_str(), resource.plural.as_str()),
            (group, plural)
        );
    }
}
