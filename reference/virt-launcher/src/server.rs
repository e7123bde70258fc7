//! The command server: translates calls into inputs of the conductor, and its answers into statuses.

use std::{error::Error, pin::Pin, time::Duration};

use futures::{Stream, StreamExt, stream};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_stream::wrappers::{BroadcastStream, errors::BroadcastStreamRecvError};
use tonic::{Request, Response, Status};
use virt_cmd::{
    Domain, DomainState,
    proto::{
        Empty, PingReply, PingRequest, ShutdownRequest, StartReply, StartRequest, WatchRequest,
        launcher_server::Launcher,
    },
};

use crate::{
    conductor::{CommandError, Input, StartRefusal, StateBoard},
    supervisor::Command,
};

/// The gRPC service.
pub(crate) struct Service {
    pub(crate) vmi_uid: String,
    pub(crate) inputs: mpsc::Sender<Input>,
    pub(crate) board: StateBoard,
}

type States = Pin<Box<dyn Stream<Item = Result<DomainState, Status>> + Send>>;

#[tonic::async_trait]
impl Launcher for Service {
    async fn ping(&self, _request: Request<PingRequest>) -> Result<Response<PingReply>, Status> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Response::new(PingReply {
            vmi_uid: self.vmi_uid.clone(),
            version,
        }))
    }

    async fn start(&self, request: Request<StartRequest>) -> Result<Response<StartReply>, Status> {
        let domain = Domain::from_json(&request.into_inner().domain_json)
            .map_err(|error| Status::invalid_argument(chain(&error)))?;
        if domain.uid != self.vmi_uid {
            let message = format!("this launcher serves {}, not {}", self.vmi_uid, domain.uid);
            return Err(Status::invalid_argument(message));
        }
        let already = self
            .ask(|reply| Input::Start {
                domain: Box::new(domain),
                reply,
            })
            .await?;
        let already =
            already.map_err(|StartRefusal::Files(error)| Status::not_found(chain(&error)))?;
        Ok(Response::new(StartReply { already }))
    }

    async fn pause(&self, _request: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.command(Command::Pause).await
    }

    async fn resume(&self, _request: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.command(Command::Resume).await
    }

    async fn shutdown(&self, request: Request<ShutdownRequest>) -> Result<Response<Empty>, Status> {
        let grace = Duration::from_secs(request.into_inner().grace_seconds.into());
        self.command(Command::Shutdown { grace }).await
    }

    async fn reset(&self, _request: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.command(Command::Reset).await
    }

    async fn soft_reboot(&self, _request: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.command(Command::SoftReboot).await
    }

    async fn kill(&self, _request: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.command(Command::Kill).await
    }

    type WatchStream = States;

    async fn watch(&self, _request: Request<WatchRequest>) -> Result<Response<States>, Status> {
        let (now, changes) = self.board.subscribe();
        let board = self.board.clone();
        let changes = BroadcastStream::new(changes).map(move |change| {
            // A watcher that fell behind goes on with the present state.
            Ok(change.unwrap_or_else(|BroadcastStreamRecvError::Lagged(_)| board.current()))
        });
        Ok(Response::new(Box::pin(
            stream::once(async { Ok(now) }).chain(changes),
        )))
    }

    async fn release(&self, _request: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.command(Command::Release).await
    }
}

impl Service {
    async fn command(&self, command: Command) -> Result<Response<Empty>, Status> {
        let answer = self
            .ask(|reply| Input::Command {
                command,
                reply: Some(reply),
            })
            .await?;
        answer.map_err(|error| match &error {
            CommandError::Refused(refusal) => Status::failed_precondition(refusal.to_string()),
            CommandError::Machine(_) => Status::aborted(chain(&error)),
        })?;
        Ok(Response::new(Empty {}))
    }

    async fn ask<T>(&self, input: impl FnOnce(oneshot::Sender<T>) -> Input) -> Result<T, Status> {
        let ending = || Status::unavailable("the launcher is ending");
        let (reply, answer) = oneshot::channel();
        self.inputs.send(input(reply)).await.map_err(|_| ending())?;
        answer.await.map_err(|_| ending())
    }
}

/// A status has one message: the whole chain goes into it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Changes that a watcher may fall behind.
pub(crate) const WATCH_BACKLOG: usize = 64;

/// A channel for changes of the state.
pub(crate) fn changes() -> broadcast::Sender<DomainState> {
    broadcast::Sender::new(WATCH_BACKLOG)
}
