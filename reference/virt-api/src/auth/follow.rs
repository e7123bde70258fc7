//! Follows the ConfigMap in which the API server publishes the front proxy's terms.

use std::pin::pin;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt as _, watcher},
};
use tokio_util::sync::CancellationToken;
use virt_kit::{health::Health, tls::TrustPool};

use super::{Gate, terms};

/// Name of this part in readiness.
pub const PART: &str = "front-proxy";

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// Keeps the gate's terms and the TLS layer's CAs current until the token is cancelled.
pub async fn follow(
    client: Client,
    gate: Gate,
    pool: TrustPool,
    health: Health,
    token: CancellationToken,
) {
    let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let only = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
    let events = watcher(api, only).default_backoff();
    let mut events = pin!(events.take_until(token.cancelled()));
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Apply(map) | watcher::Event::InitApply(map)) => {
                health.set_ready(PART, take(&map, &gate, &pool));
            }
            Ok(watcher::Event::Delete(_)) => {
                gate.set_terms(None);
                health.set_ready(PART, false);
            }
            Ok(watcher::Event::Init | watcher::Event::InitDone) => {}
            Err(error) => tracing::warn!(%error, "failed to watch {NAMESPACE}/{NAME}"),
        }
    }
}

/// Takes the terms over; with bad ones nobody is trusted any more.
fn take(map: &ConfigMap, gate: &Gate, pool: &TrustPool) -> bool {
    let data = map.data.clone().unwrap_or_default();
    let (proxy, ca) = match terms(&data) {
        Ok(terms) => terms,
        Err(error) => {
            tracing::error!(%error, "failed to use {NAMESPACE}/{NAME}");
            gate.set_terms(None);
            return false;
        }
    };
    if let Err(error) = pool.replace_pem(&ca) {
        tracing::error!(%error, "failed to use the front proxy's CA in {NAMESPACE}/{NAME}");
        gate.set_terms(None);
        return false;
    }
    gate.set_terms(Some(proxy));
    true
}
