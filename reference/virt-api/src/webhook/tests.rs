//! The webhooks through their router, as the API server calls them.

use axum::{body::Body, http::Request};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http_body_util::BodyExt as _;
use rstest::rstest;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

async fn call(path: &str, body: impl Into<Body>) -> (StatusCode, Value) {
    let request = Request::post(path).body(body.into()).unwrap();
    let response = router(Settings::default(), "kubevirt")
        .oneshot(request)
        .await
        .unwrap();
    let code = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn review(path: &str, request: Value) -> Value {
    let mut request = request;
    request["uid"] = json!("u1");
    let body =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    let (code, answer) = call(path, body.to_string()).await;
    assert_eq!(code, StatusCode::OK);
    assert_eq!(answer["response"]["uid"], "u1");
    answer["response"].clone()
}

fn vm() -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a"},
        "spec": {"running": true, "template": {"spec": {
            "domain": {
                "devices": {"disks": [{"name": "cd", "disk": {"bus": "virtio"}}], "tpm": {}},
                "resources": {"requests": {"memory": "1024Mi"}}
            },
            "volumes": [{"name": "cd", "containerDisk": {"image": "x"}}]
        }}}
    })
}

fn vmi() -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "a"},
        "spec": vm()["spec"]["template"]["spec"],
        "status": {"phase": "Running"}
    })
}

#[tokio::test]
async fn defaults_come_as_a_patch_that_spares_unknown_fields() {
    let object = vm();
    let answer = review(
        "/virtualmachines-mutate",
        json!({"operation": "CREATE", "object": object}),
    )
    .await;
    assert_eq!(answer["allowed"], true);
    assert_eq!(answer["patchType"], "JSONPatch");
    let patch = BASE64_STANDARD
        .decode(answer["patch"].as_str().unwrap())
        .unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    let mut changed = object;
    json_patch::patch(&mut changed, &patch).unwrap();
    let domain = &changed["spec"]["template"]["spec"]["domain"];
    assert_eq!(domain["machine"]["type"], "q35");
    assert_eq!(domain["devices"]["tpm"], json!({}));
    assert_eq!(domain["resources"]["requests"]["memory"], "1Gi");
}

#[tokio::test]
async fn warnings_come_with_the_permission() {
    let answer = review(
        "/virtualmachines-validate",
        json!({"operation": "CREATE", "object": vm()}),
    )
    .await;
    assert_eq!(answer["allowed"], true);
    assert_eq!(
        answer["warnings"][0],
        "spec.running is deprecated, please use spec.runStrategy instead."
    );
}

#[tokio::test]
async fn all_faults_are_told_at_once() {
    let mut object = vm();
    object["spec"]["runStrategy"] = json!("Always");
    object["spec"]["template"]["spec"]["volumes"][0]["name"] = json!("other");
    let answer = review(
        "/virtualmachines-validate",
        json!({"operation": "CREATE", "object": object}),
    )
    .await;
    assert_eq!(answer["allowed"], false);
    assert_eq!(answer["status"]["code"], 422);
    let causes = answer["status"]["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes.iter().filter_map(|c| c["field"].as_str()).collect();
    assert_eq!(
        fields,
        [
            "spec.template.spec.domain.devices.disks[0].name",
            "spec.running"
        ]
    );
}

#[rstest]
#[case::a_user("jane", json!({"phase": "Running"}))]
#[case::a_controller("system:serviceaccount:kubevirt:kubevirt-handler", json!({"phase": "Failed"}))]
#[case::an_account_elsewhere("system:serviceaccount:default:kubevirt-handler", json!({"phase": "Running"}))]
#[tokio::test]
async fn only_the_system_writes_the_status_of_a_machine(#[case] user: &str, #[case] kept: Value) {
    let (old, mut new) = (vmi(), vmi());
    new["status"]["phase"] = json!("Failed");
    let answer = review(
        "/virtualmachineinstances-mutate",
        json!({"operation": "UPDATE", "object": new, "oldObject": old, "userInfo": {"username": user}}),
    )
    .await;
    let mut stored = new;
    if let Some(patch) = answer["patch"].as_str() {
        let patch: json_patch::Patch =
            serde_json::from_slice(&BASE64_STANDARD.decode(patch).unwrap()).unwrap();
        json_patch::patch(&mut stored, &patch).unwrap();
    }
    assert_eq!(stored["status"], kept);
}

#[rstest]
#[case::the_machine("/spec/domain/devices/tpm", json!({"persistent": true}), "jane", false)]
#[case::by_the_system("/spec/domain/devices/tpm", json!({"persistent": true}), "system:serviceaccount:kubevirt:kubevirt-controller", true)]
#[case::a_free_label("/metadata/labels", json!({"x": "y"}), "jane", true)]
#[case::a_reserved_label("/metadata/labels", json!({"kubevirt.io/nodeName": "n"}), "jane", false)]
#[tokio::test]
async fn a_machine_that_runs_is_not_edited(
    #[case] at: &str,
    #[case] value: Value,
    #[case] user: &str,
    #[case] allowed: bool,
) {
    let (mut old, mut new) = (vmi(), vmi());
    for object in [&mut old, &mut new] {
        object["metadata"]["labels"] = json!({});
    }
    *new.pointer_mut(at).unwrap() = value;
    let answer = review(
        "/virtualmachineinstances-validate-update",
        json!({"operation": "UPDATE", "object": new, "oldObject": old, "userInfo": {"username": user}}),
    )
    .await;
    assert_eq!(answer["allowed"], allowed);
}

#[rstest]
#[case::no_object(json!({"operation": "CREATE"}))]
#[case::another_shape(json!({"operation": "CREATE", "object": {"spec": {"template": 7}}}))]
#[case::another_operation(json!({"operation": "DELETE", "object": vm()}))]
#[case::a_bad_quantity(json!({"operation": "CREATE", "object": {"spec": {"running": true, "template": {"spec": {"domain": {
    "devices": {}, "resources": {"requests": {"memory": "64MB"}}}}}}}}))]
#[tokio::test]
async fn what_cannot_be_read_is_refused_with_a_message(#[case] request: Value) {
    for path in ["/virtualmachines-mutate", "/virtualmachineinstances-mutate"] {
        let answer = review(path, request.clone()).await;
        assert_eq!(answer["allowed"], false, "{path}");
        assert!(
            answer["status"]["message"]
                .as_str()
                .is_some_and(|m| !m.is_empty())
        );
    }
}

#[tokio::test]
async fn a_body_that_is_no_review_is_a_bad_request() {
    for body in ["", "{}", "not json"] {
        assert_eq!(
            call("/virtualmachines-mutate", body).await.0,
            StatusCode::BAD_REQUEST
        );
    }
}

#[tokio::test]
async fn large_objects_are_read() {
    let mut object = vm();
    object["metadata"]["annotations"] = json!({"big": "x".repeat(3 << 20)});
    let request = json!({"operation": "UPDATE", "object": object, "oldObject": object});
    assert_eq!(
        review("/virtualmachines-mutate", request).await["allowed"],
        true
    );
}
