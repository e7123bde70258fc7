//! The way to a serial console: a WebSocket over the API server's aggregated path, by hand because the client
//! library offers only the protocols of exec and attach.

use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        handshake::{client::generate_key, derive_accept_key},
        protocol::Role,
    },
};

use crate::wire::{CallError, Wire};

/// The one protocol that KubeVirt's streams speak.
pub const PROTOCOL: &str = "plain.kubevirt.io";

/// An open session.
pub type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A session that did not come about.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The server answered with something else than a switch of protocols.
    #[error("the server answered with {code}: {body}")]
    Refused {
        /// HTTP code.
        code: u16,
        /// What it said.
        body: String,
    },
    /// The server switched, but to something else.
    #[error("the server switched protocols wrongly: {0}")]
    Handshake(&'static str),
    /// The connection did not carry the switch.
    #[error("the connection broke during the upgrade")]
    Upgrade(#[source] hyper::Error),
    /// No answer.
    #[error("no answer to the upgrade")]
    Call(#[source] CallError),
    /// The request itself cannot be written.
    #[error("failed to write the request")]
    Request(#[from] http::Error),
}

/// Opens a session at this path.
pub async fn open(wire: &Wire, path: &str) -> Result<Socket, OpenError> {
    let key = generate_key();
    let request = Request::get(path)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, &key)
        .header(header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL)
        .body(Body::empty())?;
    let response = wire.client().send(request).await;
    let response = response.map_err(|error| OpenError::Call(CallError::of(error)))?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refusal(response).await);
    }
    check(response.headers(), &key).map_err(OpenError::Handshake)?;
    let upgraded = hyper::upgrade::on(response)
        .await
        .map_err(OpenError::Upgrade)?;
    Ok(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None).await)
}

async fn refusal(response: Response<Body>) -> OpenError {
    let code = response.status().as_u16();
    let body = match response.into_body().collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Err(_) => String::new(),
    };
    OpenError::Refused { code, body }
}

/// What RFC 6455 wants of the answer, and the protocol that we asked for.
fn check(headers: &HeaderMap, key: &str) -> Result<(), &'static str> {
    let holds = |name, wanted: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.eq_ignore_ascii_case(wanted))
    };
    if !holds(header::UPGRADE, "websocket") {
        return Err("no websocket in the Upgrade header");
    }
    if headers
        .get(header::SEC_WEBSOCKET_ACCEPT)
        .map(|value| value.as_bytes())
        != Some(derive_accept_key(key.as_bytes()).as_bytes())
    {
        return Err("the accept key does not belong to our key");
    }
    if !holds(header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL) {
        return Err("another subprotocol than the one asked for");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    fn good(key: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(
            header::SEC_WEBSOCKET_PROTOCOL,
            HeaderValue::from_static(PROTOCOL),
        );
        let accept = derive_accept_key(key.as_bytes());
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept.parse().unwrap());
        headers
    }

    #[test]
    fn a_right_answer_is_taken() {
        let key = generate_key();
        assert_eq!(check(&good(&key), &key), Ok(()));
    }

    #[rstest]
    #[case(header::UPGRADE, "h2c")]
    #[case(header::SEC_WEBSOCKET_PROTOCOL, "v5.channel.k8s.io")]
    #[case(header::SEC_WEBSOCKET_ACCEPT, "AAAA")]
    fn a_wrong_answer_is_not(#[case] name: http::HeaderName, #[case] value: &'static str) {
        let key = generate_key();
        let mut headers = good(&key);
        headers.insert(name, HeaderValue::from_static(value));
        assert!(check(&headers, &key).is_err());
    }
}
