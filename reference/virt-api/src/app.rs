//! Puts the parts together and serves until told to stop.

use anyhow::Context as _;
use axum::Router;
use kube::Client;
use tokio_util::sync::CancellationToken;
use virt_kit::{
    health::Health,
    serve,
    tls::{self, ClientAuth, TrustPool},
};

use crate::{
    args::Args,
    auth::{self, Gate},
    discovery,
    handler::Handlers,
    settings::{self, Settings},
    subresource::{self, Calls},
    webhook,
};

/// Serves until the token is cancelled.
pub async fn run(args: Args, token: CancellationToken) -> anyhow::Result<()> {
    let client = virt_kit::client::connect(&args.client).await?;
    let health = Health::new();
    let pool = TrustPool::empty();
    let gate = Gate::new(client.clone());
    let settings = Settings::default();
    health.set_ready(settings::PART, false);
    health.set_ready(auth::PART, false);
    let watches = [
        tokio::spawn(settings::follow(
            client.clone(),
            settings.clone(),
            health.clone(),
            token.clone(),
        )),
        tokio::spawn(auth::follow(
            client.clone(),
            gate.clone(),
            pool.clone(),
            health.clone(),
            token.clone(),
        )),
    ];
    let identity = tls::server_identity(&args.certs.server_cert_dir)
        .context("failed to read the server certificate; virt-operator mounts it")?;
    let tls = tls::server_config(identity, ClientAuth::Optional(pool))?;
    let routes = routes(&args, client, gate, settings, &health);
    tracing::info!(address = %args.listen, "serving");
    serve::https(args.listen, tls, routes, token.clone()).await?;
    token.cancel();
    for watch in watches {
        watch.await.context("a watch ended badly")?;
    }
    Ok(())
}

fn routes(args: &Args, client: Client, gate: Gate, settings: Settings, health: &Health) -> Router {
    let handlers = Handlers::new(
        client.clone(),
        &args.client.namespace,
        args.handler_port,
        &args.certs,
    );
    let calls = Calls {
        client: client.clone(),
        gate,
        handlers,
    };
    Router::new()
        .merge(health.router())
        .merge(discovery::router(client))
        .merge(subresource::router(calls))
        .merge(webhook::router(settings, &args.client.namespace))
}
