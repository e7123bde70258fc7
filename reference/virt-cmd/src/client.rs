//! A connection to one launcher.
//!
//! It is made at the first call and made again after a loss, so a handler can hold it for the life of
//! the pod. Deadlines are on every call; a watch has none, but a silent peer is noticed by pings.

use std::{path::Path, time::Duration};

use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use crate::{proto::launcher_client::LauncherClient, socket};

/// The client of one launcher; clones share the connection.
pub type Client = LauncherClient<Channel>;

/// The launcher accepts at once or not at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Every order is answered when it has been taken, not when it has been carried out.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// A watch on a frozen launcher breaks after the sum of both.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for the launcher behind `command_socket` (see [`crate::paths`]). Nothing is connected yet:
/// the first call does it. Must be called within a tokio runtime.
#[must_use]
pub fn connect(command_socket: &Path) -> Client {
    let socket = command_socket.to_owned();
    // The address is never resolved: the connector below decides where a connection goes.
    let channel = Endpoint::from_static("http://virt-launcher")
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(CALL_TIMEOUT)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .connect_with_connector_lazy(service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { socket::connect(&socket).await.map(TokioIo::new) }
        }));
    LauncherClient::new(channel)
}
