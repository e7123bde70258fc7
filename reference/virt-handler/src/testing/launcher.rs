//! A launcher without a machine: it serves the real protocol on a real socket and notes what it was told.

use std::{path::Path, pin::Pin, sync::Arc};

use futures::{Stream, StreamExt as _};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{UnixListenerStream, WatchStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, Response, Status, transport::Server};
use virt_cmd::{
    DomainState, Ending, Phase,
    paths::LauncherPaths,
    proto::{
        Empty, PingReply, PingRequest, ShutdownRequest, StartReply, StartRequest, WatchRequest,
        launcher_server::{Launcher, LauncherServer},
    },
    socket, state,
};

use super::soon;

pub(crate) struct FakeLauncher {
    pub(crate) paths: LauncherPaths,
    orders: mpsc::UnboundedReceiver<String>,
    state: Arc<watch::Sender<DomainState>>,
    _stop: DropGuard,
}

impl FakeLauncher {
    /// A launcher in the kubelet directory `root`, in the pod with this uid.
    pub(crate) fn start(root: &Path, pod_uid: &str) -> Self {
        let paths = LauncherPaths::on_node(root, pod_uid);
        for dir in paths.directories() {
            std::fs::create_dir_all(dir).unwrap();
        }
        let listener = socket::listen(&paths.command_socket(), 0o600).unwrap();
        let (sender, orders) = mpsc::unbounded_channel();
        let state = Arc::new(watch::channel(DomainState::default()).0);
        let token = CancellationToken::new();
        let service = Service {
            orders: sender,
            state: Arc::clone(&state),
            token: token.clone(),
        };
        let server = Server::builder()
            .add_service(LauncherServer::new(service))
            .serve_with_incoming_shutdown(
                UnixListenerStream::new(listener),
                token.clone().cancelled_owned(),
            );
        tokio::spawn(server);
        Self {
            paths,
            orders,
            state,
            _stop: token.drop_guard(),
        }
    }

    /// The machine's next state.
    pub(crate) fn tell(&self, phase: Phase, ending: Ending) {
        self.state.send_modify(|state| {
            *state = DomainState {
                phase: phase.into(),
                ending: ending.into(),
                boots: 1,
                backend: "qemu".to_owned(),
                accelerator: "tcg".to_owned(),
                machine: "q35".to_owned(),
                ..DomainState::default()
            };
        });
    }

    /// Leaves the state in its file and dies.
    pub(crate) fn die(self) {
        state::write(&self.paths.state_file(), &self.state.borrow()).unwrap();
    }

    /// The next order.
    pub(crate) async fn order(&mut self) -> String {
        soon("an order", self.orders.recv()).await.unwrap()
    }

    pub(crate) fn no_order(&mut self) -> bool {
        self.orders.try_recv().is_err()
    }
}

struct Service {
    orders: mpsc::UnboundedSender<String>,
    state: Arc<watch::Sender<DomainState>>,
    token: CancellationToken,
}

impl Service {
    fn note(&self, order: impl Into<String>) -> Result<Response<Empty>, Status> {
        drop(self.orders.send(order.into()));
        Ok(Response::new(Empty {}))
    }

    fn phase(&self) -> Phase {
        self.state.borrow().phase()
    }
}

#[tonic::async_trait]
impl Launcher for Service {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<DomainState, Status>> + Send>>;

    async fn ping(&self, _: Request<PingRequest>) -> Result<Response<PingReply>, Status> {
        Ok(Response::new(PingReply::default()))
    }

    async fn start(&self, request: Request<StartRequest>) -> Result<Response<StartReply>, Status> {
        self.note("start")?;
        if request.into_inner().domain_json.contains("/nosuch") {
            return Err(Status::not_found("no file /nosuch"));
        }
        Ok(Response::new(StartReply { already: false }))
    }

    async fn pause(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        match self.phase() {
            Phase::Running => self.note("pause"),
            _ => Err(Status::failed_precondition("the machine is not running")),
        }
    }

    async fn resume(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.note("resume")
    }

    async fn shutdown(&self, request: Request<ShutdownRequest>) -> Result<Response<Empty>, Status> {
        self.note(format!("shutdown {}", request.into_inner().grace_seconds))
    }

    async fn reset(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.note("reset")
    }

    async fn soft_reboot(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.note("softreboot")
    }

    async fn kill(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.note("kill")
    }

    async fn watch(&self, _: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let states = WatchStream::new(self.state.subscribe())
            .map(Ok)
            .take_until(self.token.clone().cancelled_owned());
        Ok(Response::new(Box::pin(states)))
    }

    async fn release(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.note("release")
    }
}
