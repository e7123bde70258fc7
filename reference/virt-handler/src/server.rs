//! What virt-api asks of this node over HTTPS: pause and its siblings, and the serial console.
//! Only a client whose certificate names virt-api's role is served; everything else is refused here.

mod console;
mod lifecycle;

use axum::{
    Extension, Router,
    extract::Request,
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{get, put},
};
use virt_kit::{events::EventRecorder, serve::PeerIdentity};

use crate::domain::Registry;

/// Common name of the certificate that virt-api shows.
pub const CLIENT_NAME: &str = "kubevirt.io:system:client:virt-handler";

/// What the answers are made from.
#[derive(Clone)]
pub struct ServerState {
    /// The machines of this node.
    pub registry: Registry,
    /// Events on behalf of virt-handler; none are published without it.
    pub recorder: Option<EventRecorder>,
}

/// The routes, guarded.
pub fn router(state: ServerState) -> Router {
    const VMI: &str = "/v1/namespaces/{namespace}/virtualmachineinstances/{name}";
    Router::new()
        .route(&format!("{VMI}/console"), get(console::open))
        .route(&format!("{VMI}/{{verb}}"), put(lifecycle::call))
        .layer(middleware::from_fn(only_virt_api))
        .with_state(state)
}

async fn only_virt_api(
    peer: Option<Extension<PeerIdentity>>,
    request: Request,
    next: Next,
) -> Response {
    let name = peer.and_then(|Extension(peer)| peer.common_name);
    if name.as_deref() == Some(CLIENT_NAME) {
        next.run(request).await
    } else {
        tracing::warn!(client = name, "refused a client that is not virt-api");
        (StatusCode::FORBIDDEN, "only virt-api may call this").into_response()
    }
}

/// The answer for a VMI that this node does not run.
fn not_here(namespace: &str, name: &str) -> Response {
    let text = format!("virtualmachineinstance.kubevirt.io {namespace}/{name} is not on this node");
    (StatusCode::NOT_FOUND, text).into_response()
}

#[cfg(test)]
#[path = "server/tests.rs"]
mod tests;
