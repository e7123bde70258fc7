//! What both sides rely on: names of files, the JSON of an order and of a state, connections that heal.
#![expect(clippy::unwrap_used, reason = "a failed helper is a failed test")]

use std::{fs, path::Path};

use rstest::rstest;
use tempfile::tempdir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::Code;
use virt_cmd::{
    Domain, DomainState, Ending, Phase, client,
    domain::{Bus, Disk, Kernel},
    paths::{KUBELET_DIR, LauncherPaths, POD_RUN_DIR, image_volume},
    proto::PingRequest,
    socket, state,
};

fn domain() -> Domain {
    Domain {
        uid: "5a7e".to_owned(),
        name: "vm".to_owned(),
        namespace: "default".to_owned(),
        memory_bytes: 128 << 20,
        vcpus: 1,
        machine: "q35".to_owned(),
        kernel: Some(Kernel {
            path: "/k".into(),
            initrd: None,
            cmdline: "console=ttyS0".to_owned(),
        }),
        disks: vec![Disk {
            name: "root".to_owned(),
            path: image_volume(0).join("disk"),
            bus: Bus::Sata,
            read_only: false,
            ephemeral: true,
            cdrom: false,
            serial: None,
            boot_order: Some(1),
        }],
        panic_device: true,
        paused: false,
        firmware_uuid: "1a2b3c4d-0000-4000-8000-000000000001".to_owned(),
        log_serial: true,
    }
}

#[test]
fn an_order_reads_as_documented() {
    insta::assert_json_snapshot!(domain());
}

#[test]
fn an_order_survives_the_journey() {
    let sent = domain();
    let received = Domain::from_json(&sent.to_json().unwrap()).unwrap();
    assert_eq!(received, sent);
}

#[test]
fn the_smallest_order_has_defaults() {
    let domain = Domain::from_json(
        r#"{"uid":"u","name":"n","namespace":"s","memory_bytes":1048576,"vcpus":1,"firmware_uuid":"","disks":[{"name":"d","path":"/d"}]}"#,
    )
    .unwrap();
    assert_eq!(domain.disks[0].bus, Bus::Virtio);
    assert!(
        !domain.paused && !domain.panic_device && !domain.log_serial && domain.kernel.is_none()
    );
}

#[rstest]
#[case::no_json("{", "the domain cannot be read")]
#[case::unknown_field(r#"{"gpus":1}"#, "the domain cannot be read")]
#[case::no_uid(&with("uid", "\"\""), "the domain's uid is empty, expected the instance's uid")]
#[case::no_cpu(&with("vcpus", "0"), "the domain's vcpus is 0, expected at least 1")]
#[case::odd_memory(
    &with("memory_bytes", "1048577"),
    "the domain's memory_bytes is 1048577, expected a positive multiple of 1 MiB"
)]
fn a_bad_order_is_refused(#[case] json: &str, #[case] message: &str) {
    assert_eq!(Domain::from_json(json).unwrap_err().to_string(), message);
}

fn with(field: &str, value: &str) -> String {
    let mut json = serde_json::to_value(domain()).unwrap();
    json[field] = serde_json::from_str(value).unwrap();
    json.to_string()
}

#[test]
fn both_sides_mean_the_same_files() {
    let pod = LauncherPaths::in_pod(Path::new(POD_RUN_DIR));
    let node = LauncherPaths::on_node(Path::new(KUBELET_DIR), "0f8e");
    assert_eq!(
        pod.command_socket(),
        Path::new("/var/run/kubevirt/sockets/launcher-sock")
    );
    assert_eq!(
        pod.serial_console(),
        Path::new("/var/run/kubevirt-private/virt-serial0")
    );
    assert_eq!(
        pod.state_file(),
        Path::new("/var/run/kubevirt/sockets/domain-state.json")
    );
    let volumes = Path::new("/var/lib/kubelet/pods/0f8e/volumes/kubernetes.io~empty-dir");
    assert_eq!(node.command_socket(), volumes.join("sockets/launcher-sock"));
    assert_eq!(node.serial_console(), volumes.join("private/virt-serial0"));
    assert_eq!(node.state_file(), volumes.join("sockets/domain-state.json"));
}

#[test]
fn a_state_file_is_read_back_with_words_in_it() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("domain-state.json");
    assert_eq!(state::read(&path).unwrap(), None);

    let written = DomainState {
        vmi_uid: "u".to_owned(),
        phase: Phase::Ended.into(),
        ending: Ending::Panicked.into(),
        boots: 2,
        ..DomainState::default()
    };
    state::write(&path, &written).unwrap();

    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains(r#""phase":"ENDED","ending":"PANICKED""#),
        "{text}"
    );
    assert_eq!(state::read(&path).unwrap(), Some(written));
}

#[rstest]
#[case("{}")]
#[case(r#"{"phase":"SLEEPING"}"#)]
fn a_file_that_is_no_state_is_an_error(#[case] text: &str) {
    let dir = tempdir().unwrap();
    let path = dir.path().join("domain-state.json");
    fs::write(&path, text).unwrap();
    assert!(
        state::read(&path)
            .unwrap_err()
            .to_string()
            .ends_with("cannot be understood")
    );
}

/// The node's path of a launcher's socket is 112 bytes long; an address holds 107.
#[tokio::test]
async fn a_socket_below_a_long_directory_works_and_replaces_a_stale_one() {
    let dir = tempdir().unwrap();
    let node = LauncherPaths::on_node(dir.path(), "3a0d5c2e-7f6b-4e59-9d1c-0a4f7d1f2b11");
    let path = node.command_socket();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(path.as_os_str().len() > 107);

    drop(socket::listen(&path, 0o660).unwrap());
    let listener = socket::listen(&path, 0o660).unwrap();
    let mut client = socket::connect(&path).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    client.write_all(b"x").await.unwrap();
    assert_eq!(server.read_u8().await.unwrap(), b'x');
}

#[tokio::test]
async fn a_client_without_a_launcher_says_unavailable() {
    let dir = tempdir().unwrap();
    let mut client = client::connect(&dir.path().join("launcher-sock"));
    let status = client.ping(PingRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
}
