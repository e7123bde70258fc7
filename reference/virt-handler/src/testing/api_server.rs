//! An API server for one VMI: it keeps the object, checks versions as the real one does, and notes events.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Method, Request, Response, StatusCode};
use kube::{Client, client::Body};
use kubevirt_api::v1::VirtualMachineInstance;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::soon;

#[derive(Clone)]
pub(crate) struct FakeApi {
    vmi: Arc<watch::Sender<Option<Value>>>,
    events: Arc<Mutex<Vec<String>>>,
    conflicts: Arc<Mutex<u32>>,
}

impl FakeApi {
    pub(crate) fn new(vmi: Value) -> Self {
        Self {
            vmi: Arc::new(watch::channel(Some(vmi)).0),
            events: Arc::default(),
            conflicts: Arc::default(),
        }
    }

    pub(crate) fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        Client::new(service, "default")
    }

    pub(crate) fn vmi(&self) -> VirtualMachineInstance {
        serde_json::from_value(self.vmi.borrow().clone().unwrap()).unwrap()
    }

    /// Somebody else changes the object.
    pub(crate) fn change(&self, patch: &Value) -> VirtualMachineInstance {
        self.vmi.send_modify(|vmi| {
            let vmi = vmi.as_mut().unwrap();
            merge(vmi, patch);
            bump(vmi);
        });
        self.vmi()
    }

    pub(crate) fn delete(&self) {
        self.vmi.send_replace(None);
    }

    /// Waits until the VMI is in this phase.
    pub(crate) async fn phase(&self, phase: &str) {
        let mut vmi = self.vmi.subscribe();
        let reached = vmi.wait_for(|vmi| {
            vmi.as_ref()
                .is_some_and(|vmi| vmi["status"]["phase"] == phase)
        });
        drop(soon(&format!("phase {phase}"), reached).await.unwrap());
    }

    /// Waits for a condition: its status, or None when it is to go.
    pub(crate) async fn condition(&self, type_: &str, status: Option<&str>) {
        let mut vmi = self.vmi.subscribe();
        let reached = vmi.wait_for(|vmi| {
            let found = vmi.as_ref().and_then(|vmi| {
                let all = vmi["status"]["conditions"].as_array()?;
                all.iter().find(|c| c["type"] == type_).cloned()
            });
            found.as_ref().and_then(|c| c["status"].as_str()) == status
        });
        drop(soon(&format!("{type_} {status:?}"), reached).await.unwrap());
    }

    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    pub(crate) fn conflicts(&self) -> u32 {
        *self.conflicts.lock().unwrap()
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let path = parts.uri.path().to_owned();
        if path.ends_with("/events") {
            let event: Value = serde_json::from_slice(&body).unwrap();
            let text = format!(
                "{} {}",
                event["type"].as_str().unwrap(),
                event["reason"].as_str().unwrap()
            );
            self.events.lock().unwrap().push(text);
            return answer(StatusCode::CREATED, &event);
        }
        if path.ends_with("/pods") {
            return answer(
                StatusCode::OK,
                &json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [
                {"metadata": {"name": "p", "uid": "pod-1"}, "status": {"podIP": "10.1.0.9"}}]}),
            );
        }
        if parts.method == Method::PATCH {
            return self.patch(&serde_json::from_slice(&body).unwrap());
        }
        match self.vmi.borrow().as_ref() {
            Some(vmi) => answer(StatusCode::OK, vmi),
            None => failure(StatusCode::NOT_FOUND),
        }
    }

    fn patch(&self, patch: &Value) -> Response<Body> {
        let mut result = failure(StatusCode::NOT_FOUND);
        self.vmi.send_if_modified(|vmi| {
            let Some(vmi) = vmi.as_mut() else {
                return false;
            };
            if vmi["metadata"]["resourceVersion"] != patch["metadata"]["resourceVersion"] {
                *self.conflicts.lock().unwrap() += 1;
                result = failure(StatusCode::CONFLICT);
                return false;
            }
            merge(vmi, patch);
            bump(vmi);
            result = answer(StatusCode::OK, vmi);
            true
        });
        result
    }
}

fn bump(vmi: &mut Value) {
    let version = vmi["metadata"]["resourceVersion"].as_str().unwrap();
    let next: u64 = version.parse::<u64>().unwrap() + 1;
    vmi["metadata"]["resourceVersion"] = next.to_string().into();
}

fn answer(code: StatusCode, body: &Value) -> Response<Body> {
    Response::builder()
        .status(code)
        .body(Body::from(serde_json::to_vec(body).unwrap()))
        .unwrap()
}

fn failure(code: StatusCode) -> Response<Body> {
    let reason = match code {
        StatusCode::NOT_FOUND => "NotFound",
        _ => "Conflict",
    };
    answer(
        code,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code.as_u16(), "reason": reason, "message": ""}),
    )
}

/// JSON merge patch (RFC 7396).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}
