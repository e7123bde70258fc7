//! `console`: the client's websocket and virt-handler's, joined byte by byte.
//!
//! The handshake is passed through: virt-handler answers it, and chooses the subprotocol. What follows
//! is copied between the two connections with a small buffer each way, so a slow side slows the other
//! and nothing piles up here. The node is asked before the client is answered: a failure is an
//! ordinary answer.

use axum::{
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use hyper_util::rt::TokioIo;

use super::{Calls, perform, refusal::Refusal, vmi};

/// Headers of the handshake; nothing else of the request is virt-handler's business.
const HANDSHAKE: [&str; 5] = [
    "connection",
    "upgrade",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
];
const PROTOCOL: &str = "plain.kubevirt.io";

pub(super) async fn open(
    calls: &Calls,
    namespace: &str,
    name: &str,
    mut request: Request,
) -> Result<Response, Refusal> {
    let machine = perform::find_vmi(calls, namespace, name).await?;
    vmi::check_console(&machine)?;
    if !is_websocket(request.headers()) {
        let text = "Bad Request\nwebsocket: the client is not using the websocket protocol: 'upgrade' token not found in 'Connection' header";
        return Ok((StatusCode::BAD_REQUEST, text).into_response());
    }
    let answer = calls
        .handlers
        .upgrade(&machine, "console", handshake(request.headers()))
        .await
        .map_err(|error| Refusal::internal(&error.to_string()))?;
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    for name in [
        "connection",
        "upgrade",
        "sec-websocket-accept",
        "sec-websocket-protocol",
    ] {
        if let Some(value) = answer.headers().get(name) {
            response
                .headers_mut()
                .insert(header::HeaderName::from_static(name), value.clone());
        }
    }
    let client = hyper::upgrade::on(&mut request);
    tokio::spawn(join(client, hyper::upgrade::on(answer)));
    Ok(response)
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let holds = |name: header::HeaderName, word: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    holds(header::CONNECTION, "upgrade") && holds(header::UPGRADE, "websocket")
}

/// The client's handshake, with our subprotocol as the only offer.
fn handshake(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in HANDSHAKE {
        if let Some(value) = headers.get(name) {
            kept.insert(header::HeaderName::from_static(name), value.clone());
        }
    }
    let offers = headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|offer| offer.trim() == PROTOCOL);
    kept.remove(header::SEC_WEBSOCKET_PROTOCOL);
    if offers {
        kept.insert(
            header::SEC_WEBSOCKET_PROTOCOL,
            header::HeaderValue::from_static(PROTOCOL),
        );
    }
    kept
}

/// Copies both ways until one side ends; then the other is closed too.
async fn join(client: hyper::upgrade::OnUpgrade, node: hyper::upgrade::OnUpgrade) {
    let (client, node) = match tokio::try_join!(client, node) {
        Ok(both) => both,
        Err(error) => {
            tracing::debug!(%error, "a console session ended before it began");
            return;
        }
    };
    let (mut client, mut node) = (TokioIo::new(client), TokioIo::new(node));
    match tokio::io::copy_bidirectional(&mut client, &mut node).await {
        Ok((typed, shown)) => tracing::debug!(typed, shown, "a console session ended"),
        Err(error) => tracing::debug!(%error, "a console session broke off"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| {
                (
                    header::HeaderName::from_static(name),
                    header::HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[rstest]
    #[case(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")], true)]
    #[case(&[("upgrade", "websocket")], false)]
    #[case(&[("connection", "Upgrade"), ("upgrade", "SPDY/3.1")], false)]
    #[case(&[], false)]
    fn websockets_are_told_apart(#[case] list: &[(&'static str, &'static str)], #[case] is: bool) {
        assert_eq!(is_websocket(&headers(list)), is);
    }

    #[rstest]
    #[case("v4.channel.k8s.io, plain.kubevirt.io", Some("plain.kubevirt.io"))]
    #[case("v4.channel.k8s.io", None)]
    fn identity_stays_here_and_only_our_protocol_is_offered(
        #[case] offers: &'static str,
        #[case] passed: Option<&str>,
    ) {
        let kept = handshake(&headers(&[
            ("x-remote-user", "jane"),
            ("authorization", "Bearer x"),
            ("sec-websocket-key", "k"),
            ("sec-websocket-protocol", offers),
        ]));
        assert_eq!(kept.get("sec-websocket-key").unwrap(), "k");
        assert_eq!(
            kept.get("sec-websocket-protocol")
                .map(|v| v.to_str().unwrap()),
            passed
        );
        assert!(!kept.contains_key("x-remote-user") && !kept.contains_key("authorization"));
    }
}
