//! The serial console: bytes between a websocket and the launcher's socket, until either side ends or a newer
//! session takes over. Each direction holds one buffer at most; a slow side slows only itself.

use axum::{
    body::Bytes,
    extract::{
        Path, State, WebSocketUpgrade,
        ws::{Message, WebSocket, rejection::WebSocketUpgradeRejection},
    },
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use futures::{SinkExt as _, StreamExt as _, stream::SplitSink};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};
use tokio_util::sync::CancellationToken;
use tracing::debug;
use virt_cmd::socket;

use super::{ServerState, not_here};

/// The only protocol that is spoken.
const PROTOCOL: &str = "plain.kubevirt.io";
/// Bytes on their way in one direction.
const BUFFER: usize = 4096;
/// The largest message that a client may send.
const MAX_MESSAGE: usize = 64 * 1024;

/// `GET …/console`: the socket is opened first, so that a failure is an ordinary answer.
pub(super) async fn open(
    State(state): State<ServerState>,
    Path((namespace, name)): Path<(String, String)>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Some(machine) = state.registry.find(&namespace, &name) else {
        return not_here(&namespace, &name);
    };
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let serial = match socket::connect(&machine.paths.serial_console()).await {
        Ok(serial) => serial,
        Err(error) => {
            let text = format!("failed to open the serial console: {error}");
            return (StatusCode::INTERNAL_SERVER_ERROR, text).into_response();
        }
    };
    let replaced = machine.take_console();
    upgrade
        .protocols([PROTOCOL])
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_MESSAGE)
        .on_upgrade(move |client| relay(client, serial, replaced))
}

async fn relay(client: WebSocket, serial: UnixStream, replaced: CancellationToken) {
    let (mut to_client, mut from_client) = client.split();
    let (from_serial, mut to_serial) = serial.into_split();
    let input = async {
        while let Some(Ok(message)) = from_client.next().await {
            if !deliver(message, &mut to_serial).await {
                break;
            }
        }
    };
    tokio::select! {
        () = input => debug!("a console client left"),
        () = output(from_serial, &mut to_client) => debug!("a serial port closed"),
        () = replaced.cancelled() => debug!("a newer console session took over"),
    }
    // A client that does not read must not hold this task.
    let patience = std::time::Duration::from_secs(2);
    drop(tokio::time::timeout(patience, to_client.send(Message::Close(None))).await);
}

/// Writes what a client typed; false when there is nobody to write to or nothing more to come.
async fn deliver(message: Message, serial: &mut OwnedWriteHalf) -> bool {
    match message {
        Message::Binary(bytes) => serial.write_all(&bytes).await.is_ok(),
        Message::Text(text) => serial.write_all(text.as_bytes()).await.is_ok(),
        Message::Ping(_) | Message::Pong(_) => true,
        Message::Close(_) => false,
    }
}

async fn output(mut serial: OwnedReadHalf, client: &mut SplitSink<WebSocket, Message>) {
    let mut buffer = vec![0; BUFFER];
    loop {
        let n = match serial.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => n,
        };
        let bytes = Bytes::copy_from_slice(buffer.get(..n).unwrap_or_default());
        if client.send(Message::Binary(bytes)).await.is_err() {
            return;
        }
    }
}
