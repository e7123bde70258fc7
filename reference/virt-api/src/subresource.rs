//! The calls on VMs and VMIs: `…/{namespace}/{virtualmachines|virtualmachineinstances}/{name}/{call}`.
//!
//! What a call means for an object in its state is decided by pure functions ([`vm`], [`vmi`]); this
//! module finds the call, lets the caller in, and carries the decision out.

mod body;
mod console;
mod perform;
pub mod refusal;
pub mod vm;
pub mod vmi;

use axum::{
    Router,
    body::Bytes,
    extract::{
        FromRequest as _, FromRequestParts as _, Path, Request, State, rejection::BytesRejection,
    },
    http::{HeaderMap, Method, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
    routing::any,
};
use kube::Client;
use virt_kit::serve::PeerIdentity;

use crate::{
    auth::{Action, AuthError, Gate},
    handler::Handlers,
};

/// What the calls need.
#[derive(Clone)]
pub struct Calls {
    /// The API server.
    pub client: Client,
    /// Who may call.
    pub gate: Gate,
    /// The nodes' agents.
    pub handlers: Handlers,
}

/// The object that a call is about.
#[derive(Clone, Debug)]
struct Target {
    version: String,
    namespace: String,
    resource: String,
    name: String,
    call: String,
}

/// A call that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Vm(vm::Verb),
    Vmi(vmi::Verb),
    Console,
}

impl Call {
    fn find(resource: &str, word: &str) -> Option<Self> {
        match resource {
            "virtualmachines" => vm::Verb::parse(word).map(Self::Vm),
            "virtualmachineinstances" if word == "console" => Some(Self::Console),
            "virtualmachineinstances" => vmi::Verb::parse(word).map(Self::Vmi),
            _ => None,
        }
    }

    fn method(self) -> Method {
        match self {
            Self::Vm(_) | Self::Vmi(_) => Method::PUT,
            Self::Console => Method::GET,
        }
    }

    fn access(self) -> &'static str {
        match self {
            Self::Vm(_) | Self::Vmi(_) => "update",
            Self::Console => "get",
        }
    }
}

/// Whether a kind has a call of that name.
#[must_use]
pub fn is_served(resource: &str, call: &str) -> bool {
    Call::find(resource, call).is_some()
}

/// The routes, in both versions of the group.
pub fn router(calls: Calls) -> Router {
    Router::new()
        .route(
            "/apis/subresources.kubevirt.io/{version}/namespaces/{namespace}/{resource}/{name}/{call}",
            any(dispatch),
        )
        .with_state(calls)
}

async fn dispatch(State(calls): State<Calls>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let Ok(Path((version, namespace, resource, name, call))) =
        Path::<(String, String, String, String, String)>::from_request_parts(&mut parts, &()).await
    else {
        return plain(StatusCode::NOT_FOUND, "Page Not Found");
    };
    let target = Target {
        version,
        namespace,
        resource,
        name,
        call,
    };
    let found = match find(&target, &parts) {
        Ok(found) => found,
        Err(refused) => return *refused,
    };
    if let Err(error) = let_in(&calls, &parts, &target, found).await {
        return refuse_entry(&error);
    }
    let request = Request::from_parts(parts, body);
    let outcome = match found {
        Call::Console => console::open(&calls, &target.namespace, &target.name, request).await,
        Call::Vm(verb) => match read_body(request).await {
            Ok(body) => perform::on_vm(&calls, verb, &target.namespace, &target.name, &body).await,
            Err(refused) => return refused.into_response(),
        },
        Call::Vmi(verb) => match read_body(request).await {
            Ok(body) => perform::on_vmi(&calls, verb, &target.namespace, &target.name, &body).await,
            Err(refused) => return refused.into_response(),
        },
    };
    outcome.unwrap_or_else(|refusal| refusal.into_response())
}

/// The call that a request names, or the plain answers of the original's router.
fn find(target: &Target, parts: &Parts) -> Result<Call, Box<Response>> {
    let served = matches!(target.version.as_str(), "v1" | "v1alpha3");
    let call = Call::find(&target.resource, &target.call)
        .filter(|_| served)
        .ok_or_else(|| Box::new(plain(StatusCode::NOT_FOUND, "Page Not Found")))?;
    if parts.method != call.method() {
        return Err(Box::new(plain(
            StatusCode::METHOD_NOT_ALLOWED,
            "Method Not Allowed",
        )));
    }
    if call.method() == Method::PUT && !accepts_anything(&parts.headers) {
        return Err(Box::new(plain(
            StatusCode::NOT_ACCEPTABLE,
            "Not Acceptable",
        )));
    }
    Ok(call)
}

fn plain(code: StatusCode, words: &str) -> Response {
    (code, format!("{}: {words}", code.as_u16())).into_response()
}

/// The calls answer without a body, so the original serves only clients that take any type.
fn accepts_anything(headers: &HeaderMap) -> bool {
    let mut ranges = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim())
        .peekable();
    ranges.peek().is_none() || ranges.any(|range| range == "*/*")
}

async fn let_in(
    calls: &Calls,
    parts: &Parts,
    target: &Target,
    call: Call,
) -> Result<(), AuthError> {
    let peer = parts
        .extensions
        .get::<PeerIdentity>()
        .cloned()
        .unwrap_or_default();
    let action = Action {
        verb: call.access(),
        version: &target.version,
        namespace: &target.namespace,
        resource: &target.resource,
        name: &target.name,
        subresource: &target.call,
    };
    calls.gate.check(&peer, &parts.headers, &action).await
}

fn refuse_entry(error: &AuthError) -> Response {
    match error {
        AuthError::Unknown(reason) => {
            (StatusCode::UNAUTHORIZED, (*reason).to_owned()).into_response()
        }
        AuthError::Denied(reason) => (StatusCode::UNAUTHORIZED, reason.clone()).into_response(),
        AuthError::Review(source) => {
            tracing::warn!(error = %source, "failed to review access");
            (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
        }
    }
}

async fn read_body(request: Request) -> Result<Bytes, BytesRejection> {
    Bytes::from_request(request, &()).await
}

#[cfg(test)]
#[path = "subresource/tests.rs"]
mod tests;
