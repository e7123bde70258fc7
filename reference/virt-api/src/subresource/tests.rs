//! The router in front of the calls: what it answers before anybody is let in.

use std::convert::Infallible;

use axum::body::Body;
use http_body_util::BodyExt as _;
use rstest::rstest;
use tower::{ServiceExt as _, service_fn};
use virt_kit::args::CertArgs;

use super::*;

/// An API server that must not be asked.
fn calls() -> Calls {
    let refuse = service_fn(|_: axum::http::Request<kube::client::Body>| async {
        let body = r#"{"kind":"Status","status":"Failure","message":"not now","code":500}"#;
        let response = axum::http::Response::builder()
            .status(500)
            .body(Body::from(body));
        Ok::<_, Infallible>(response.unwrap_or_default())
    });
    let client = Client::new(refuse, "default");
    let certs = CertArgs {
        ca_file: "ca".into(),
        server_cert_dir: "server".into(),
        client_cert_dir: "client".into(),
    };
    Calls {
        client: client.clone(),
        gate: Gate::new(client.clone()),
        handlers: Handlers::new(client, "kubevirt", 8186, &certs),
    }
}

async fn ask(method: &str, path: &str, accept: Option<&str>) -> (u16, String) {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("/apis/subresources.kubevirt.io/{path}"));
    if let Some(accept) = accept {
        request = request.header("accept", accept);
    }
    let request = request.body(Body::empty()).unwrap();
    let response = router(calls()).oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8_lossy(&body).into_owned())
}

const START: &str = "v1/namespaces/a/virtualmachines/b/start";

#[rstest]
#[case::wrong_method("GET", START, None, 405, "405: Method Not Allowed")]
#[case::wrong_method_again("POST", START, None, 405, "405: Method Not Allowed")]
#[case::unknown_call(
    "PUT",
    "v1/namespaces/a/virtualmachines/b/fly",
    None,
    404,
    "404: Page Not Found"
)]
#[case::unknown_version(
    "PUT",
    "v2/namespaces/a/virtualmachines/b/start",
    None,
    404,
    "404: Page Not Found"
)]
#[case::call_of_another_kind(
    "PUT",
    "v1/namespaces/a/virtualmachines/b/pause",
    None,
    404,
    "404: Page Not Found"
)]
#[case::json_only("PUT", START, Some("application/json"), 406, "406: Not Acceptable")]
#[case::nobody(
    "PUT",
    START,
    Some("application/json, */*"),
    401,
    "the front proxy's terms are not known yet"
)]
#[case::older_version(
    "PUT",
    "v1alpha3/namespaces/a/virtualmachines/b/start",
    None,
    401,
    "the front proxy's terms are not known yet"
)]
#[case::console(
    "GET",
    "v1/namespaces/a/virtualmachineinstances/b/console",
    None,
    401,
    "the front proxy's terms are not known yet"
)]
#[tokio::test]
async fn the_router_answers_as_the_original(
    #[case] method: &str,
    #[case] path: &str,
    #[case] accept: Option<&str>,
    #[case] code: u16,
    #[case] text: &str,
) {
    assert_eq!(ask(method, path, accept).await, (code, text.to_owned()));
}
