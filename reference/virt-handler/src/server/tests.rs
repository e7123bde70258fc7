//! The HTTPS server's routes over a real connection, with a real websocket and a real unix socket.

use std::path::Path;

use futures::{SinkExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::ObjectReference;
use rstest::rstest;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixListener},
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest as _},
};
use virt_cmd::{Ending, Phase, client, socket};

use super::*;
use crate::{
    domain::RunningMachine,
    testing::{FakeLauncher, soon},
};

struct Scene {
    addr: std::net::SocketAddr,
    launcher: FakeLauncher,
    serial: UnixListener,
    _listed: crate::domain::Listed,
    _root: tempfile::TempDir,
}

async fn scene(client_name: &str) -> Scene {
    let root = tempfile::tempdir().unwrap();
    let launcher = FakeLauncher::start(root.path(), "pod-1");
    let serial = socket::listen(&launcher.paths.serial_console(), 0o600).unwrap();
    let registry = Registry::default();
    let vmi = ObjectReference {
        namespace: Some("default".to_owned()),
        name: Some("a".to_owned()),
        ..ObjectReference::default()
    };
    let client = client::connect(&launcher.paths.command_socket());
    let listed = registry.list(RunningMachine::new(vmi, client, launcher.paths.clone()));
    let peer = PeerIdentity {
        common_name: Some(client_name.to_owned()),
        organizations: Vec::new(),
    };
    let app = router(ServerState {
        registry,
        recorder: None,
    })
    .layer(Extension(peer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    Scene {
        addr,
        launcher,
        serial,
        _listed: listed,
        _root: root,
    }
}

impl Scene {
    /// Status code of a plain request.
    async fn request(&self, method: &str, path: &str) -> u16 {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        let text = format!("{method} {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        soon("an answer", stream.read_to_string(&mut answer))
            .await
            .unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    async fn console(&self) -> Result<WebSocketStream<TcpStream>, Error> {
        let url = format!(
            "ws://{}/v1/namespaces/default/virtualmachineinstances/a/console",
            self.addr
        );
        let mut request = url.into_client_request().unwrap();
        let protocol = "plain.kubevirt.io".parse().unwrap();
        request
            .headers_mut()
            .insert("sec-websocket-protocol", protocol);
        let stream = TcpStream::connect(self.addr).await.unwrap();
        let (socket, answer) = client_async(request, stream).await?;
        assert_eq!(
            answer.headers()["sec-websocket-protocol"],
            "plain.kubevirt.io"
        );
        Ok(socket)
    }
}

fn vmi_path(name: &str, verb: &str) -> String {
    format!("/v1/namespaces/default/virtualmachineinstances/{name}/{verb}")
}

#[rstest]
#[case("pause", Phase::Running, 200)]
#[case("pause", Phase::Paused, 409)]
#[case("unpause", Phase::Paused, 200)]
#[case("reset", Phase::Running, 200)]
#[case("softreboot", Phase::Running, 200)]
#[case("dance", Phase::Running, 404)]
#[tokio::test]
async fn orders_and_their_answers(#[case] verb: &str, #[case] phase: Phase, #[case] code: u16) {
    let mut scene = scene(CLIENT_NAME).await;
    scene.launcher.tell(phase, Ending::NotEnded);
    assert_eq!(scene.request("PUT", &vmi_path("a", verb)).await, code);
    if code == 200 {
        let order = scene.launcher.order().await;
        assert_eq!(order, verb.replace("unpause", "resume"));
    } else {
        assert!(scene.launcher.no_order());
    }
}

#[tokio::test]
async fn strangers_and_unknown_machines_are_refused() {
    let ours = scene(CLIENT_NAME).await;
    assert_eq!(ours.request("PUT", &vmi_path("nosuch", "pause")).await, 404);
    assert_eq!(
        ours.request("GET", &vmi_path("nosuch", "console")).await,
        404
    );
    assert_eq!(ours.request("GET", &vmi_path("a", "console")).await, 400);
    let mut stranger = scene("kubevirt.io:system:client:other").await;
    stranger.launcher.tell(Phase::Running, Ending::NotEnded);
    assert_eq!(stranger.request("PUT", &vmi_path("a", "pause")).await, 403);
    assert_eq!(
        stranger.request("GET", &vmi_path("a", "console")).await,
        403
    );
    assert!(stranger.launcher.no_order());
}

#[tokio::test]
async fn console_bytes_go_both_ways_and_the_end_is_told() {
    let scene = scene(CLIENT_NAME).await;
    let mut client = scene.console().await.unwrap();
    let (mut guest, _) = soon("a console", scene.serial.accept()).await.unwrap();

    client.send(Message::binary("echo hi\n")).await.unwrap();
    let mut typed = [0; 8];
    soon("input", guest.read_exact(&mut typed)).await.unwrap();
    assert_eq!(&typed, b"echo hi\n");

    guest.write_all(b"hi\xff\n").await.unwrap();
    let shown = soon("output", client.next()).await.unwrap().unwrap();
    assert_eq!(shown, Message::binary(b"hi\xff\n".to_vec()));

    drop(guest);
    let last = soon("the end", client.next()).await.unwrap().unwrap();
    assert!(last.is_close());
}

#[tokio::test]
async fn a_second_client_replaces_the_first() {
    let scene = scene(CLIENT_NAME).await;
    let mut first = scene.console().await.unwrap();
    let (mut guest_of_first, _) = soon("a console", scene.serial.accept()).await.unwrap();
    let mut second = scene.console().await.unwrap();
    let (mut guest_of_second, _) = soon("a console", scene.serial.accept()).await.unwrap();

    let last = soon("the first client's end", first.next())
        .await
        .unwrap()
        .unwrap();
    assert!(last.is_close());
    let mut rest = Vec::new();
    soon(
        "the first socket's end",
        guest_of_first.read_to_end(&mut rest),
    )
    .await
    .unwrap();
    guest_of_second.write_all(b"x").await.unwrap();
    let shown = soon("output", second.next()).await.unwrap().unwrap();
    assert_eq!(shown, Message::binary("x"));
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_back_the_guest_only() {
    let scene = scene(CLIENT_NAME).await;
    let _client = scene.console().await.unwrap();
    let (mut guest, _) = soon("a console", scene.serial.accept()).await.unwrap();
    let flood = async {
        let block = [0; 64 * 1024];
        for _ in 0..1024 {
            guest.write_all(&block).await.unwrap();
        }
    };
    let stalled = tokio::time::timeout(std::time::Duration::from_millis(500), flood).await;
    assert!(stalled.is_err(), "64 MiB went into buffers");
    assert!(scene.console().await.is_ok(), "the next client is served");
}

#[tokio::test]
async fn a_machine_without_a_serial_port_is_an_ordinary_error() {
    let scene = scene(CLIENT_NAME).await;
    std::fs::remove_file(scene.launcher.paths.serial_console()).unwrap();
    match scene.console().await {
        Err(Error::Http(answer)) => assert_eq!(answer.status(), 500),
        other => panic!("{other:?}"),
    }
    assert!(Path::new(&scene.launcher.paths.command_socket()).exists());
}
