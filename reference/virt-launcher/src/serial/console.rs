//! Serves the serial port to one client at a time on a unix socket; the newest client wins.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream, unix::OwnedReadHalf},
    task::JoinHandle,
};

use super::SerialHub;

/// One read from a client.
const PIECE: usize = 4096;

/// Accepts clients for ever. Stop it by dropping or aborting; the client that is attached then stays
/// until the hub is closed.
pub(crate) async fn serve(listener: UnixListener, hub: SerialHub) -> io::Result<()> {
    let mut attached: Option<JoinHandle<()>> = None;
    loop {
        let (stream, _) = listener.accept().await?;
        if let Some(old) = attached.take() {
            old.abort();
            tracing::info!("a new console client replaces the old one");
        }
        attached = Some(tokio::spawn(attend(stream, hub.clone())));
    }
}

/// Carries bytes both ways until either side is done.
async fn attend(stream: UnixStream, hub: SerialHub) {
    let ring = hub.attach();
    let (from_client, mut to_client) = stream.into_split();
    let outward = async {
        while let Some(bytes) = ring.pop().await {
            to_client.write_all(&bytes).await?;
        }
        to_client.shutdown().await
    };
    let done: io::Result<()> = tokio::select! {
        done = outward => done,
        done = inward(from_client, &hub) => done,
    };
    if let Err(error) = done {
        tracing::debug!(%error, "a console client went away");
    }
}

/// Waits when the guest does not take its input: typed bytes are not lost.
async fn inward(mut from_client: OwnedReadHalf, hub: &SerialHub) -> io::Result<()> {
    loop {
        let mut piece = BytesMut::with_capacity(PIECE);
        if from_client.read_buf(&mut piece).await? == 0 {
            return Ok(());
        }
        if hub.input.send(Bytes::from(piece)).await.is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;
    use virt_cmd::socket;

    use super::*;
    use crate::serial::port;

    #[tokio::test]
    async fn bytes_go_both_ways_and_the_newest_client_wins() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("virt-serial0");
        let (mut port, hub) = port();
        let server = tokio::spawn(serve(socket::listen(&path, 0o660).unwrap(), hub.clone()));

        port.output.write(b"nobody reads this");
        let mut first = socket::connect(&path).await.unwrap();
        first.write_all(b"a").await.unwrap();
        assert_eq!(port.input.recv().await.unwrap(), "a");
        port.output.write(b"1");
        assert_eq!(first.read_u8().await.unwrap(), b'1');

        let mut second = socket::connect(&path).await.unwrap();
        second.write_all(b"b").await.unwrap();
        assert_eq!(port.input.recv().await.unwrap(), "b");
        port.output.write(b"2");
        assert_eq!(second.read_u8().await.unwrap(), b'2');
        assert_eq!(
            first.read(&mut [0; 8]).await.unwrap(),
            0,
            "the old client is closed"
        );

        port.output.write(b"last");
        hub.close();
        let mut rest = String::new();
        second.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "last");
        server.abort();
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_does_not_stop_the_guest() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("virt-serial0");
        let (mut port, hub) = port();
        let server = tokio::spawn(serve(socket::listen(&path, 0o660).unwrap(), hub));
        let mut client = socket::connect(&path).await.unwrap();
        client.write_all(b"x").await.unwrap();
        port.input.recv().await.unwrap();

        for _ in 0..1000 {
            port.output.write(&[b'.'; 4096]);
            tokio::task::yield_now().await;
        }
        port.output.write(b"end");

        let mut buffer = vec![0; 1 << 20];
        let mut tail = Vec::new();
        while !tail.ends_with(b"end") {
            let count = client.read(&mut buffer).await.unwrap();
            tail.extend_from_slice(&buffer[..count]);
        }
        assert!(tail.len() < 1000 * 4096, "the oldest bytes are lost");
        server.abort();
    }
}
