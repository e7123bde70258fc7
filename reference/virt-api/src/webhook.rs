//! The admission webhooks: JSON in, the pure review of `kubevirt-api`, JSON out.
//!
//! The answer is 200 also for a refusal; any other code would look to the API server as if the
//! webhook itself had failed.

mod envelope;

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::post,
};
pub use envelope::{Answer, Envelope, EnvelopeError};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_api::review;
use virt_kit::fault::Fault;

use crate::settings::Settings;

/// The API server takes objects of 3 MiB, and a review holds the old one too.
const MAX_BODY: usize = 16 << 20;

/// Accounts of the system's own components.
const COMPONENTS: [&str; 4] = [
    "kubevirt-apiserver",
    "kubevirt-controller",
    "kubevirt-handler",
    "kubevirt-operator",
];

#[derive(Clone)]
struct Webhooks {
    settings: Settings,
    own_users: Vec<String>,
}

/// The routes.
pub fn router(settings: Settings, namespace: &str) -> Router {
    let own_users = COMPONENTS
        .iter()
        .map(|account| format!("system:serviceaccount:{namespace}:{account}"))
        .collect();
    Router::new()
        .route("/virtualmachines-mutate", post(mutate_vm))
        .route("/virtualmachines-validate", post(validate_vm))
        .route("/virtualmachineinstances-mutate", post(mutate_vmi))
        .route(
            "/virtualmachineinstances-validate-create",
            post(validate_new_vmi),
        )
        .route(
            "/virtualmachineinstances-validate-update",
            post(validate_vmi_update),
        )
        .route("/status-validate", post(validate_status))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Webhooks {
            settings,
            own_users,
        })
}

fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

async fn mutate_vm(State(hooks): State<Webhooks>, body: Bytes) -> Response {
    hooks.answer(&body, |envelope, review| {
        let changed = review::mutate_vm(review, &hooks.settings.current(), &mut new_id);
        envelope.changed(changed)
    })
}

async fn validate_vm(State(hooks): State<Webhooks>, body: Bytes) -> Response {
    hooks.answer(&body, |envelope, review| {
        envelope.judged(review::validate_vm(review, &hooks.settings.current()))
    })
}

async fn mutate_vmi(State(hooks): State<Webhooks>, body: Bytes) -> Response {
    hooks.answer(&body, |envelope, review| {
        let now = Time(jiff::Timestamp::now());
        let changed = review::mutate_vmi(review, &hooks.settings.current(), &mut new_id, &now);
        envelope.changed(changed)
    })
}

async fn validate_new_vmi(State(hooks): State<Webhooks>, body: Bytes) -> Response {
    hooks.answer(&body, |envelope, review| {
        envelope.judged(review::validate_new_vmi(review, &hooks.settings.current()))
    })
}

async fn validate_vmi_update(State(hooks): State<Webhooks>, body: Bytes) -> Response {
    hooks.answer(&body, |envelope, review| {
        envelope.judged(review::validate_vmi_update(review))
    })
}

async fn validate_status(State(hooks): State<Webhooks>, body: Bytes) -> Response {
    hooks.answer(&body, |envelope, review| {
        envelope.judged(review::validate_vm_status(review))
    })
}

impl Webhooks {
    fn answer(
        &self,
        body: &[u8],
        decide: impl FnOnce(&Envelope, &review::Review<'_>) -> Answer,
    ) -> Response {
        let envelope = match Envelope::read(body) {
            Ok(envelope) => envelope,
            // Without a uid there is nothing that the API server would accept as an answer.
            Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
        };
        let by_system = self.own_users.contains(&envelope.user);
        let answer = match envelope.review(by_system) {
            Ok(review) => decide(&envelope, &review),
            Err(error) => envelope.judged(Err(error)),
        };
        let answer = if Fault::AcceptEverything.is_on() {
            answer.without_refusal(&envelope)
        } else {
            answer
        };
        axum::Json(answer.to_json(&envelope)).into_response()
    }
}

#[cfg(test)]
#[path = "webhook/tests.rs"]
mod tests;
