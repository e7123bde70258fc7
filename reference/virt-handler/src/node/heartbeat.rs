//! Tells the API server every minute that this node is alive, with what it can do; at once when a device plugin
//! comes or goes; and one last time on shutdown that nothing should be placed here.

use std::{
    hash::{BuildHasher as _, RandomState},
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::{api::core::v1::Node, jiff::Timestamp};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use virt_kit::{fault::Fault, health::Health};

use super::{cpu, kvm, labels, offer};
use crate::{device_plugin::PluginSet, report::chain};

const PERIOD: Duration = Duration::from_secs(60);
/// Nodes that were started together do not beat together.
const JITTER: Duration = Duration::from_secs(12);
/// A beat that did not reach the server is repeated sooner.
const RETRY: Duration = Duration::from_secs(5);
/// How long the first beat waits for the device plugins.
const PLUGIN_PATIENCE: Duration = Duration::from_secs(10);
/// How long it waits after that for the kubelet to tell the scheduler.
const OFFER_PATIENCE: Duration = Duration::from_secs(20);
const BEAT_PATIENCE: Duration = Duration::from_secs(15);
const FAREWELL_PATIENCE: Duration = Duration::from_secs(5);
const HEALTH_PART: &str = "heartbeat";

/// One beat did not reach the server.
#[derive(Debug, thiserror::Error)]
pub enum HeartbeatError {
    /// The node cannot be read.
    #[error("failed to read node {0}")]
    Read(String, #[source] kube::Error),
    /// The node cannot be written.
    #[error("failed to label node {0}")]
    Write(String, #[source] kube::Error),
}

/// The node's sign of life.
pub struct Heartbeat {
    /// The API server.
    pub client: Client,
    /// This node.
    pub node: String,
    /// Where the node's root is seen from here.
    pub host_root: PathBuf,
    /// The device plugins that must be registered before VMs may be placed here.
    pub plugins: PluginSet,
    /// Where the first beat is reported.
    pub health: Health,
}

impl Heartbeat {
    /// Beats until the token is cancelled, then says farewell.
    pub async fn run(mut self, token: CancellationToken) {
        self.health.set_ready(HEALTH_PART, false);
        // Without its plugins the node would only be told to take no VMs.
        tokio::select! {
            () = token.cancelled() => return self.farewell().await,
            _ = timeout(PLUGIN_PATIENCE, self.plugins_registered()) => {}
        }
        let wanted = offer::expected(&self.host_root);
        tokio::select! {
            () = token.cancelled() => return self.farewell().await,
            _ = timeout(OFFER_PATIENCE, offer::seen(&self.client, &self.node, &wanted)) => {}
        }
        loop {
            let pause = match timeout(BEAT_PATIENCE, self.beat()).await {
                Ok(Ok(())) => {
                    self.health.set_ready(HEALTH_PART, true);
                    PERIOD + jitter()
                }
                Ok(Err(error)) => {
                    warn!(error = chain(&error), "no heartbeat");
                    RETRY
                }
                Err(_) => {
                    warn!("no heartbeat: the API server did not answer in time");
                    RETRY
                }
            };
            let next = Instant::now() + pause;
            tokio::select! {
                () = token.cancelled() => break,
                () = self.plugins.changed() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
        self.farewell().await;
    }

    async fn plugins_registered(&mut self) {
        while !self.plugins.all_registered() {
            self.plugins.changed().await;
        }
    }

    async fn beat(&self) -> Result<(), HeartbeatError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = nodes
            .get_metadata(&self.node)
            .await
            .map_err(|error| HeartbeatError::Read(self.node.clone(), error))?;
        let current = node.metadata.labels.unwrap_or_default();
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        self.open_kvm();
        let patch =
            labels::heartbeat_patch(&current, &self.capabilities(), self.schedulable(), &now);
        self.write(&nodes, &patch).await
    }

    fn schedulable(&self) -> Option<bool> {
        (!Fault::ForgetSchedulableLabel.is_on()).then(|| self.plugins.all_registered())
    }

    async fn write(
        &self,
        nodes: &Api<Node>,
        patch: &serde_json::Value,
    ) -> Result<(), HeartbeatError> {
        nodes
            .patch_metadata(&self.node, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .map(drop)
            .map_err(|error| HeartbeatError::Write(self.node.clone(), error))
    }

    fn capabilities(&self) -> std::collections::BTreeMap<String, String> {
        let read = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
        let cpu = cpu::from_cpuinfo(&read("/proc/cpuinfo"));
        let ksm = read("/sys/kernel/mm/ksm/run").trim() == "1";
        labels::capability_labels(&cpu, ksm)
    }

    /// The device may have come with a module that was loaded after the start.
    fn open_kvm(&self) {
        match kvm::open_to_all(&self.host_root.join("dev/kvm")) {
            Ok(true) => info!("/dev/kvm is now open to launchers"),
            Ok(false) => {}
            Err(error) => {
                let error = chain(&error);
                warn!(error, "launchers may not be able to use /dev/kvm");
            }
        }
    }

    async fn farewell(&self) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let patch = labels::farewell_patch();
        match timeout(FAREWELL_PATIENCE, self.write(&nodes, &patch)).await {
            Ok(Ok(())) => info!("the node takes no new VMs"),
            Ok(Err(error)) => warn!(error = chain(&error), "the node still looks schedulable"),
            Err(_) => warn!("the node still looks schedulable: no answer in time"),
        }
    }
}

/// A part of the jitter that differs from node to node and from beat to beat.
fn jitter() -> Duration {
    let random = RandomState::new().hash_one(Instant::now());
    let share = f64::from(u16::try_from(random % 1000).unwrap_or(0)) / 1000.0;
    JITTER.mul_f64(share)
}
