//! The operator's process: one leader that looks again whenever something it cares about changes.

use std::{pin::pin, time::Duration};

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use kube::{
    Api, Client, Resource,
    runtime::{WatchStreamExt as _, watcher},
};
use kubevirt_api::v1::KubeVirt;
use tokio_util::sync::CancellationToken;
use virt_kit::{args::ClientArgs, guard::Guarded, leader};

use crate::{install::Images, reconcile::Reconciler, render};

/// Changes that come in one burst lead to one look.
const SETTLE: Duration = Duration::from_millis(150);
/// A failed look is repeated after this time.
const RETRY: Duration = Duration::from_secs(2);

/// Installs and removes the components that a KubeVirt resource asks for.
#[derive(Parser, Debug)]
#[command(
    version,
    after_help = "Examples:
  virt-operator                                  run in the cluster, as the manifest does
  virt-operator --kubeconfig ~/.kube/config --image registry.example/virt-operator:v0.1.0
  virt-operator manifest --image registry.example/virt-operator:v0.1.0 | kubectl apply -f -"
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    client: ClientArgs,

    /// This operator's own image; the other components come from the same registry with the same tag.
    #[arg(long, env = "VIRT_OPERATOR_IMAGE", global = true, default_value = concat!("registry.virtmark.dev/virt-operator:v", env!("CARGO_PKG_VERSION")))]
    image: String,

    /// Name of this replica among the candidates for leadership; the host name when unset.
    #[arg(long, env = "POD_NAME")]
    identity: Option<String>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Print the manifest that installs the operator.
    Manifest,
}

/// Runs until the token is cancelled or the lease is lost.
pub async fn run(args: Args, token: CancellationToken) -> anyhow::Result<()> {
    let images = Images::from_operator_image(&args.image)
        .context("pass --image or set VIRT_OPERATOR_IMAGE")?;
    if let Some(Command::Manifest) = args.command {
        return print_manifest(&images);
    }
    let client = virt_kit::client::connect(&args.client).await?;
    let namespace = args.client.namespace.clone();
    let identity = match args.identity {
        Some(identity) => identity,
        None => host_name()?,
    };
    let lease = leader::LeaseConfig::new(&namespace, "virt-operator", &identity);
    leader::run(client.clone(), lease, token, |leading| {
        lead(
            Reconciler::new(client.clone(), namespace, images),
            client,
            leading,
        )
    })
    .await?;
    Ok(())
}

fn host_name() -> anyhow::Result<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .context("failed to read the host name; pass --identity")?;
    Ok(name.trim().to_owned())
}

#[expect(clippy::print_stdout, reason = "the manifest is the command's output")]
fn print_manifest(images: &Images) -> anyhow::Result<()> {
    print!("{}", render::manifest::yaml(images)?);
    Ok(())
}

/// Looks at once, then after each change, after each failure, and when a certificate is due.
async fn lead(
    reconciler: Reconciler,
    client: Client,
    token: CancellationToken,
) -> anyhow::Result<()> {
    let mut changes = pin!(changes(&client, reconciler.namespace()));
    loop {
        let wait = match reconciler.look().await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "failed to reconcile");
                RETRY
            }
        };
        tokio::select! {
            () = token.cancelled() => return Ok(()),
            () = tokio::time::sleep(wait) => {}
            change = changes.next() => {
                anyhow::ensure!(change.is_some(), "the watches ended");
                let settled = tokio::time::sleep(SETTLE);
                tokio::pin!(settled);
                loop {
                    tokio::select! {
                        () = &mut settled => break,
                        _ = changes.next() => {}
                    }
                }
            }
        }
    }
}

fn changes(client: &Client, namespace: &str) -> impl Stream<Item = ()> + use<> {
    let owned = watcher::Config::default().labels(&format!(
        "{}={}",
        render::MANAGED_BY.0,
        render::MANAGED_BY.1
    ));
    let resources: Api<Guarded<KubeVirt>> = Api::all(client.clone());
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let daemons: Api<DaemonSet> = Api::namespaced(client.clone(), namespace);
    stream::select_all([
        ticks(watcher(resources, watcher::Config::default())),
        ticks(watcher(deployments, owned.clone())),
        ticks(watcher(daemons, owned)),
    ])
}

/// The bare fact that something changed.
fn ticks<K>(
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static,
) -> stream::BoxStream<'static, ()>
where
    K: Resource + Clone + Send + 'static,
{
    events
        .default_backoff()
        .filter_map(|event| async move {
            match event {
                Ok(_) => Some(()),
                Err(error) => {
                    tracing::debug!(%error, "watch interrupted");
                    None
                }
            }
        })
        .boxed()
}
