//! The settings in force: followed in the KubeVirt resource, read by the webhooks.

use std::pin::pin;

use futures::StreamExt as _;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt as _, watcher},
};
use kubevirt_api::{
    config::ClusterConfig,
    v1::{KubeVirt, KubeVirtSpec},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use virt_kit::health::Health;

/// Name of this part in readiness.
pub const PART: &str = "settings";

/// The settings; clones share them.
#[derive(Clone)]
pub struct Settings(watch::Sender<ClusterConfig>);

impl Default for Settings {
    fn default() -> Self {
        Self(watch::Sender::new(ClusterConfig::default()))
    }
}

impl Settings {
    /// The settings at this moment.
    #[must_use]
    pub fn current(&self) -> ClusterConfig {
        self.0.borrow().clone()
    }
}

/// Follows the KubeVirt resource until the token is cancelled.
///
/// There is one; were there two, the last one that changed would count.
pub async fn follow(client: Client, settings: Settings, health: Health, token: CancellationToken) {
    // As plain JSON, so that a field of a newer version does not end the watch.
    let kind = ApiResource::erase::<KubeVirt>(&());
    let api: Api<DynamicObject> = Api::all_with(client, &kind);
    let events = watcher(api, watcher::Config::default()).default_backoff();
    let mut events = pin!(events.take_until(token.cancelled()));
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                take(&settings, &object);
            }
            Ok(watcher::Event::InitDone) => health.set_ready(PART, true),
            Ok(watcher::Event::Init | watcher::Event::Delete(_)) => {}
            Err(error) => tracing::warn!(%error, "failed to watch the KubeVirt resource"),
        }
    }
}

fn take(settings: &Settings, object: &DynamicObject) {
    match serde_json::from_value::<KubeVirtSpec>(object.data["spec"].clone()) {
        Ok(spec) => {
            settings.0.send_replace(ClusterConfig::of(&spec));
        }
        Err(error) => {
            tracing::warn!(%error, "failed to read the KubeVirt resource; the settings stay as they are");
        }
    }
}
