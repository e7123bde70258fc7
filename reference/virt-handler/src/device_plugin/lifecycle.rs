//! One plugin's life: serve, register with the kubelet, and start over when the kubelet came back or took the socket away.
//! The kubelet empties its plugin directory when it starts and knows only who registers afterwards.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::FutureExt as _;
use tokio::{
    net::UnixListener,
    sync::watch::{self, error::RecvError},
    task::JoinSet,
};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Endpoint, Server};
use tracing::{info, warn};

use super::{
    api::{
        DevicePluginOptions, RegisterRequest, device_plugin_server::DevicePluginServer,
        registration_client::RegistrationClient,
    },
    health,
    resource::DeviceResource,
    service::PluginService,
};
use crate::{
    backoff::Backoff,
    dir_watch::{Change, DirWatch},
    report::chain,
};

/// Version of the protocol, as the kubelet wants to hear it.
const VERSION: &str = "v1beta1";
const KUBELET_SOCKET: &str = "kubelet.sock";
const REGISTER_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the kubelet and its plugins meet.
#[derive(Clone, Debug)]
pub struct KubeletDir {
    /// The directory of the sockets, `/var/lib/kubelet/device-plugins` on a node.
    pub sockets: PathBuf,
    /// Where the node's root is seen from here.
    pub host_root: PathBuf,
}

/// Why a plugin is not (or no longer) known to the kubelet.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The socket directory cannot be used.
    #[error("failed to use the plugin directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The plugin's own server stopped.
    #[error("the plugin's server stopped")]
    Serve(#[source] tonic::transport::Error),
    /// The kubelet's socket does not answer.
    #[error("failed to reach the kubelet")]
    Reach(#[source] tonic::transport::Error),
    /// The kubelet refused the registration.
    #[error("the kubelet refused the registration")]
    Refused(#[source] Box<tonic::Status>),
}

/// Tells whether all plugins are registered.
#[derive(Clone, Debug)]
pub struct PluginSet {
    registered: Vec<watch::Receiver<bool>>,
}

impl PluginSet {
    /// Whether the kubelet knows every plugin.
    #[must_use]
    pub fn all_registered(&self) -> bool {
        self.registered.iter().all(|plugin| *plugin.borrow())
    }

    /// Returns at the next time any plugin is registered or lost.
    pub async fn changed(&mut self) {
        let never = std::future::pending::<Result<(), RecvError>>().boxed();
        let waits = self.registered.iter_mut().map(|p| p.changed().boxed());
        // A plugin that stopped for good is no change; `never` keeps the wait up then.
        drop(futures::future::select_ok(waits.chain([never])).await);
    }
}

/// Starts every resource's plugin; they run until `token` is cancelled.
pub fn run_all(
    dir: &KubeletDir,
    resources: Vec<DeviceResource>,
    token: &CancellationToken,
) -> (PluginSet, JoinSet<()>) {
    let mut tasks = JoinSet::new();
    let registered = resources
        .into_iter()
        .map(|resource| {
            let (sender, receiver) = watch::channel(false);
            tasks.spawn(run(dir.clone(), resource, sender, token.clone()));
            receiver
        })
        .collect();
    (PluginSet { registered }, tasks)
}

async fn run(
    dir: KubeletDir,
    resource: DeviceResource,
    registered: watch::Sender<bool>,
    token: CancellationToken,
) {
    let device = resource.path_under(&dir.host_root);
    let (healthy, healthy_view) = watch::channel(device.exists());
    let follow_health = async {
        if let Err(error) = health::follow(&device, &healthy, &token).await {
            warn!(device = %device.display(), %error, "the device file is no longer watched");
        }
        token.cancelled().await;
    };
    let keep_registered = async {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
        loop {
            let ended = serve_once(&dir.sockets, &resource, &healthy_view, &registered, &token);
            match ended.await {
                Ok(()) => backoff.reset(),
                Err(error) => {
                    let error = chain(&error);
                    warn!(
                        resource = resource.resource,
                        error, "device plugin is not registered"
                    );
                }
            }
            registered.send_if_modified(|known| std::mem::replace(known, false));
            tokio::select! {
                () = token.cancelled() => return,
                () = backoff.wait() => {}
            }
        }
    };
    tokio::join!(follow_health, keep_registered);
}

/// Serves and registers once; returns when the registration has become void.
async fn serve_once(
    sockets: &Path,
    resource: &DeviceResource,
    healthy: &watch::Receiver<bool>,
    registered: &watch::Sender<bool>,
    token: &CancellationToken,
) -> Result<(), PluginError> {
    let directory = |source| PluginError::Directory {
        path: sockets.to_owned(),
        source,
    };
    let socket = sockets.join(resource.socket_name());
    remove_if_there(&socket).map_err(directory)?;
    let mut changes = DirWatch::new(sockets).map_err(directory)?;
    let listener = UnixListener::bind(&socket).map_err(directory)?;

    let stop = token.child_token();
    let _stop_streams = stop.clone().drop_guard();
    let service = PluginService {
        resource: resource.clone(),
        healthy: healthy.clone(),
        token: stop.clone(),
    };
    let server = Server::builder()
        .add_service(DevicePluginServer::new(service))
        .serve_with_incoming_shutdown(UnixListenerStream::new(listener), stop.cancelled_owned());
    tokio::pin!(server);

    let registration = async {
        register(sockets, resource).await?;
        registered.send_replace(true);
        info!(
            resource = resource.resource,
            "device plugin registered with the kubelet"
        );
        until_void(&mut changes, &resource.socket_name())
            .await
            .map_err(directory)
    };
    tokio::select! {
        served = &mut server => served.map_err(PluginError::Serve),
        outcome = registration => outcome,
    }
}

async fn register(sockets: &Path, resource: &DeviceResource) -> Result<(), PluginError> {
    let uri = format!("unix://{}", sockets.join(KUBELET_SOCKET).display());
    let channel = Endpoint::from_shared(uri)
        .map_err(PluginError::Reach)?
        .connect_timeout(REGISTER_TIMEOUT)
        .timeout(REGISTER_TIMEOUT)
        .connect()
        .await
        .map_err(PluginError::Reach)?;
    let request = RegisterRequest {
        version: VERSION.to_owned(),
        endpoint: resource.socket_name(),
        resource_name: resource.resource.to_owned(),
        options: Some(DevicePluginOptions::default()),
    };
    RegistrationClient::new(channel)
        .register(request)
        .await
        .map_err(|status| PluginError::Refused(Box::new(status)))?;
    Ok(())
}

/// Returns when the kubelet made a new socket or our own was taken away.
async fn until_void(changes: &mut DirWatch, own_socket: &str) -> io::Result<()> {
    loop {
        match changes.next().await? {
            Change::Created(name) if name == KUBELET_SOCKET => return Ok(()),
            Change::Removed(name) if name == own_socket => return Ok(()),
            Change::Unknown => return Ok(()),
            Change::Created(_) | Change::Removed(_) => {}
        }
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
