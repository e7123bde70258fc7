//! What the group offers, for `kubectl` and the aggregation layer, and the group's own version and
//! health. Open to everybody, as in the original.

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};
use kube::Client;
use kubevirt_api::names::SUBRESOURCE_GROUP as GROUP;
use serde_json::{Value, json};

/// Versions of the group; the same calls in both.
const VERSIONS: [&str; 2] = ["v1", "v1alpha3"];

/// The calls that are served, in the original's order.
const CALLS: [&str; 8] = [
    "virtualmachineinstances/console",
    "virtualmachineinstances/pause",
    "virtualmachineinstances/unpause",
    "virtualmachineinstances/reset",
    "virtualmachineinstances/softreboot",
    "virtualmachines/start",
    "virtualmachines/stop",
    "virtualmachines/restart",
];

/// The routes.
pub fn router(client: Client) -> Router {
    Router::new()
        .route("/", get(async || Json(roots())))
        .route("/apis", get(async || Json(groups())))
        .route(&format!("/apis/{GROUP}"), get(async || Json(group())))
        .route(&format!("/apis/{GROUP}/{{version}}"), get(resources))
        .route(
            &format!("/apis/{GROUP}/{{version}}/version"),
            get(async || Json(version())),
        )
        .route(
            &format!("/apis/{GROUP}/{{version}}/healthz"),
            get(connectivity),
        )
        .route("/openapi/v2", get(async || Json(openapi_v2())))
        .route("/openapi/v3", get(async || Json(openapi_v3())))
        .route(
            &format!("/openapi/v3/apis/{GROUP}/{{version}}"),
            get(async || Json(json!({"openapi": "3.0.0", "info": info(), "paths": {}}))),
        )
        .with_state(client)
}

fn roots() -> Value {
    let mut paths = vec!["/apis".to_owned(), format!("/apis/{GROUP}")];
    paths.extend(
        VERSIONS
            .iter()
            .map(|version| format!("/apis/{GROUP}/{version}")),
    );
    paths.extend(["/openapi/v2", "/openapi/v3", "/healthz"].map(str::to_owned));
    json!({"paths": paths})
}

fn group() -> Value {
    let version =
        |version: &&str| json!({"groupVersion": format!("{GROUP}/{version}"), "version": version});
    json!({
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": GROUP,
        "versions": VERSIONS.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": version(&VERSIONS[0]),
    })
}

fn groups() -> Value {
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group()]})
}

async fn resources(Path(version): Path<String>) -> Response {
    if !VERSIONS.contains(&version.as_str()) {
        return (StatusCode::NOT_FOUND, "404: Page Not Found").into_response();
    }
    Json(resource_list(&version)).into_response()
}

fn resource_list(version: &str) -> Value {
    let resource = |name: &&str| json!({"name": name, "singularName": "", "namespaced": true, "kind": "", "verbs": null});
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": format!("{GROUP}/{version}"),
        "resources": CALLS.iter().map(resource).collect::<Vec<_>>(),
    })
}

fn version() -> Value {
    json!({
        "gitVersion": concat!("v", env!("CARGO_PKG_VERSION")),
        "platform": format!("linux/{}", if cfg!(target_arch = "x86_64") { "amd64" } else { std::env::consts::ARCH }),
    })
}

async fn connectivity(State(client): State<Client>) -> Response {
    match client.apiserver_version().await {
        Ok(version) => Json(json!({
            "apiserver": {"connectivity": "ok", "version": version.git_version},
        }))
        .into_response(),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            Json(json!({"apiserver": {"connectivity": "failed", "error": error.to_string()}})),
        )
            .into_response(),
    }
}

fn info() -> Value {
    json!({"title": "virtmark subresources", "version": concat!("v", env!("CARGO_PKG_VERSION"))})
}

fn openapi_v2() -> Value {
    json!({"swagger": "2.0", "info": info(), "paths": {}})
}

fn openapi_v3() -> Value {
    let paths: serde_json::Map<String, Value> = VERSIONS
        .iter()
        .map(|version| {
            let path = format!("apis/{GROUP}/{version}");
            let url = format!("/openapi/v3/{path}?hash={}", env!("CARGO_PKG_VERSION"));
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subresource;

    #[test]
    fn the_list_has_the_recorded_shape() {
        insta::assert_json_snapshot!(resource_list("v1")["resources"][0], @r#"
        {
          "name": "virtualmachineinstances/console",
          "singularName": "",
          "namespaced": true,
          "kind": "",
          "verbs": null
        }
        "#);
        assert_eq!(
            resource_list("v1alpha3")["groupVersion"],
            "subresources.kubevirt.io/v1alpha3"
        );
    }

    #[test]
    fn what_is_listed_is_served() {
        for name in CALLS {
            let (resource, call) = name.split_once('/').unwrap();
            assert!(subresource::is_served(resource, call), "{name}");
        }
    }
}
