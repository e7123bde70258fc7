//! Puts the parts together: each is a task, the first that fails ends the program, SIGTERM ends them all in order.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use tracing::info;
use virt_kit::{
    client,
    events::EventRecorder,
    health::Health,
    serve,
    tls::{self, ClientAuth, TrustPool},
};

use crate::{
    args::Args,
    device_plugin::{self, KubeletDir},
    domain::{self, Registry, SessionContext},
    node::Heartbeat,
    server::{self, ServerState},
};

const COMPONENT: &str = "virt-handler";

/// Runs the handler until the token is cancelled.
///
/// # Errors
/// When a part cannot start, or one that never ends does.
pub async fn run(args: Args, token: CancellationToken) -> anyhow::Result<()> {
    let client = client::connect(&args.client)
        .await
        .context("failed to connect to the cluster; see --kubeconfig")?;
    let health = Health::new();
    let registry = Registry::default();
    let recorder = EventRecorder::new(client.clone(), COMPONENT);
    info!(node = args.node_name, "virt-handler starts");

    let dir = KubeletDir {
        sockets: args.kubelet_dir.join("device-plugins"),
        host_root: args.host_root.clone(),
    };
    let resources = device_plugin::standard_resources(args.max_devices);
    let (plugins, mut plugin_tasks) = device_plugin::run_all(&dir, resources, &token);
    let heartbeat = Heartbeat {
        client: client.clone(),
        node: args.node_name.clone(),
        host_root: args.host_root.clone(),
        plugins,
        health: health.clone(),
    };
    let sessions = SessionContext {
        client: client.clone(),
        recorder: recorder.clone(),
        registry: registry.clone(),
        node: args.node_name.clone(),
        kubelet_dir: args.kubelet_dir.clone(),
    };
    let state = ServerState {
        registry,
        recorder: Some(recorder),
    };
    let parts = async {
        tokio::try_join!(
            serve_console(&args, state, token.clone()),
            serve_health(&args, &health, token.clone()),
            async {
                heartbeat.run(token.clone()).await;
                Ok(())
            },
            async {
                let supervised = domain::supervise(sessions, health.clone(), token.clone());
                supervised.await.context("failed to follow the VMIs")
            },
        )
    };
    let result = parts.await.map(drop);
    token.cancel();
    while plugin_tasks.join_next().await.is_some() {}
    result
}

async fn serve_console(
    args: &Args,
    state: ServerState,
    token: CancellationToken,
) -> anyhow::Result<()> {
    let remedy = "failed to use the certificates; see --ca-file and --server-cert-dir";
    let identity = tls::server_identity(&args.certs.server_cert_dir).context(remedy)?;
    let trust = TrustPool::from_file(&args.certs.ca_file).context(remedy)?;
    let tls = tls::server_config(identity, ClientAuth::Required(trust)).context(remedy)?;
    let addr = SocketAddr::new(args.pod_ip, args.console_port);
    serve::https(addr, tls, server::router(state), token)
        .await
        .context("failed to serve virt-api")
}

async fn serve_health(
    args: &Args,
    health: &Health,
    token: CancellationToken,
) -> anyhow::Result<()> {
    let remedy = "failed to use the server's certificate; see --server-cert-dir";
    let identity = tls::server_identity(&args.certs.server_cert_dir).context(remedy)?;
    let tls = tls::server_config(identity, ClientAuth::None).context(remedy)?;
    let addr = SocketAddr::new(args.pod_ip, args.health_port);
    serve::https(addr, tls, health.router(), token)
        .await
        .context("failed to serve health and metrics")
}
