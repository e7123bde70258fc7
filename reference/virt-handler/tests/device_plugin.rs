//! A device plugin against a kubelet that speaks the real protocol on real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{path::Path, time::Duration};

use tokio::{net::UnixListener, sync::mpsc, task::JoinSet, time::timeout};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{
    Request, Response, Status,
    transport::{Channel, Endpoint, Server},
};
use virt_handler::device_plugin::{
    DeviceResource, KubeletDir, PluginSet,
    api::{
        AllocateRequest, ContainerAllocateRequest, Empty, RegisterRequest,
        device_plugin_client::DevicePluginClient,
        registration_server::{Registration, RegistrationServer},
    },
    run_all,
};

const PATIENCE: Duration = Duration::from_secs(10);

struct Kubelet {
    requests: mpsc::UnboundedReceiver<RegisterRequest>,
    _stop: DropGuard,
}

struct Registrar(mpsc::UnboundedSender<RegisterRequest>);

#[tonic::async_trait]
impl Registration for Registrar {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        self.0
            .send(request.into_inner())
            .map_err(|_| Status::unavailable("stopped"))?;
        Ok(Response::new(Empty {}))
    }
}

impl Kubelet {
    /// Starts as the kubelet does: whatever lies in the directory goes first.
    fn start(dir: &Path) -> Self {
        for entry in std::fs::read_dir(dir).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        let listener = UnixListener::bind(dir.join("kubelet.sock")).unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let token = CancellationToken::new();
        let stop = token.clone().cancelled_owned();
        tokio::spawn(
            Server::builder()
                .add_service(RegistrationServer::new(Registrar(sender)))
                .serve_with_incoming_shutdown(UnixListenerStream::new(listener), stop),
        );
        Self {
            requests,
            _stop: token.drop_guard(),
        }
    }

    async fn registration(&mut self) -> RegisterRequest {
        timeout(PATIENCE, self.requests.recv())
            .await
            .unwrap()
            .unwrap()
    }
}

struct Scene {
    root: tempfile::TempDir,
    plugins: PluginSet,
    token: CancellationToken,
    tasks: JoinSet<()>,
}

fn resource() -> DeviceResource {
    DeviceResource {
        resource: "devices.kubevirt.io/kvm",
        path: "/dev/kvm",
        count: 1000,
    }
}

/// The node's root and the plugin directory below it.
fn node() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("dev")).unwrap();
    std::fs::create_dir(root.path().join("plugins")).unwrap();
    root
}

fn start(root: tempfile::TempDir) -> Scene {
    let dir = KubeletDir {
        sockets: root.path().join("plugins"),
        host_root: root.path().to_owned(),
    };
    let token = CancellationToken::new();
    let (plugins, tasks) = run_all(&dir, vec![resource()], &token);
    Scene {
        root,
        plugins,
        token,
        tasks,
    }
}

impl Scene {
    async fn client(&self, endpoint: &str) -> DevicePluginClient<Channel> {
        let socket = self.root.path().join("plugins").join(endpoint);
        let uri = format!("unix://{}", socket.display());
        let channel = Endpoint::from_shared(uri).unwrap().connect().await.unwrap();
        DevicePluginClient::new(channel)
    }

    async fn until(&mut self, registered: bool) {
        timeout(PATIENCE, async {
            while self.plugins.all_registered() != registered {
                self.plugins.changed().await;
            }
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn registers_lists_and_allocates() {
    let root = node();
    let mut kubelet = Kubelet::start(&root.path().join("plugins"));
    let mut scene = start(root);
    let request = kubelet.registration().await;
    assert_eq!(request.version, "v1beta1");
    assert_eq!(request.resource_name, "devices.kubevirt.io/kvm");
    scene.until(true).await;

    let mut client = scene.client(&request.endpoint).await;
    let mut lists = client.list_and_watch(Empty {}).await.unwrap().into_inner();
    let absent = timeout(PATIENCE, lists.message())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(absent.devices.len(), 1000);
    assert!(absent.devices.iter().all(|d| d.health == "Unhealthy"));

    std::fs::write(scene.root.path().join("dev/kvm"), b"").unwrap();
    let present = timeout(PATIENCE, lists.message())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(present.devices.iter().all(|d| d.health == "Healthy"));

    let container_requests = vec![ContainerAllocateRequest {
        devices_ids: vec!["kvm7".to_owned()],
    }];
    let answer = client
        .allocate(AllocateRequest { container_requests })
        .await
        .unwrap();
    let devices = &answer.into_inner().container_responses[0].devices;
    assert_eq!(devices.len(), 1);
    assert_eq!(
        (
            devices[0].host_path.as_str(),
            devices[0].container_path.as_str(),
            devices[0].permissions.as_str()
        ),
        ("/dev/kvm", "/dev/kvm", "mrw")
    );
}

#[tokio::test]
async fn registers_again_when_the_kubelet_restarts() {
    let root = node();
    let mut kubelet = Kubelet::start(&root.path().join("plugins"));
    let mut scene = start(root);
    kubelet.registration().await;
    scene.until(true).await;

    let mut restarted = Kubelet::start(&scene.root.path().join("plugins"));
    let request = restarted.registration().await;
    scene.until(true).await;
    let mut client = scene.client(&request.endpoint).await;
    assert!(client.get_device_plugin_options(Empty {}).await.is_ok());
}

#[tokio::test]
async fn waits_for_a_kubelet_that_starts_later() {
    let mut scene = start(node());
    assert!(!scene.plugins.all_registered());
    let mut kubelet = Kubelet::start(&scene.root.path().join("plugins"));
    kubelet.registration().await;
    scene.until(true).await;
}

#[tokio::test]
async fn stops_when_told() {
    let root = node();
    let mut kubelet = Kubelet::start(&root.path().join("plugins"));
    let mut scene = start(root);
    kubelet.registration().await;
    scene.token.cancel();
    timeout(PATIENCE, async {
        while scene.tasks.join_next().await.is_some() {}
    })
    .await
    .unwrap();
}
