//! One VMI on this node, from the moment that it is scheduled here to its end: hears the API server and the launcher,
//! asks `decide`, and has `perform` do it. Ending the handler ends sessions, never machines.

use std::{path::PathBuf, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, Resource as _, ResourceExt as _};
use kubevirt_api::v1::VirtualMachineInstance;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::{info, warn};
use virt_cmd::{Phase, client, paths::LauncherPaths};
use virt_kit::events::{EventRecorder, EventType};

use super::{
    decide::{Action, Done, Launcher, VmiFacts, decide},
    launcher,
    perform::{API_PATIENCE, PerformError},
    registry::{Listed, Registry, RunningMachine},
};
use crate::{backoff::Backoff, report::chain};

/// More rounds than any VMI needs: a guard against deciding the same thing for ever.
const MAX_ROUNDS: usize = 16;

/// The longest pause before a write or an order is tried again.
const WRITE_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause before a domain is offered again that the launcher could not build.
const START_PAUSE: Duration = Duration::from_secs(60);

/// What all sessions share.
#[derive(Clone)]
pub struct SessionContext {
    /// The API server.
    pub client: kube::Client,
    /// Events on behalf of virt-handler.
    pub recorder: EventRecorder,
    /// Where machines are listed for the HTTPS server.
    pub registry: Registry,
    /// This node.
    pub node: String,
    /// The kubelet's directory.
    pub kubelet_dir: PathBuf,
}

/// The newest that the watch knows of a VMI.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The object, or what it last was.
    pub vmi: Arc<VirtualMachineInstance>,
    /// It left the watch.
    pub gone: bool,
}

/// The state of one session.
pub(super) struct Session {
    pub(super) context: SessionContext,
    pub(super) vmi: Arc<VirtualMachineInstance>,
    pub(super) gone: bool,
    pub(super) done: Done,
    pub(super) sync_error: Option<String>,
    pub(super) shutdown_announced: bool,
    pub(super) pod_ip: Option<String>,
    link: Option<Link>,
    retry: Pause,
    start: Pause,
}

/// A pause after a failure; it grows until something works.
struct Pause {
    backoff: Backoff,
    until: Option<Instant>,
}

impl Pause {
    fn up_to(most: Duration) -> Self {
        Self {
            backoff: Backoff::new(Duration::from_millis(500), most),
            until: None,
        }
    }

    fn begin(&mut self) {
        self.until = Some(Instant::now() + self.backoff.take());
    }

    fn is_on(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }

    async fn over(&self) {
        match self.until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    }
}

/// The connection to the launcher.
pub(super) struct Link {
    pub(super) client: client::Client,
    pub(super) pod_uid: String,
    view: watch::Receiver<Launcher>,
    _follower: AbortOnDropHandle<()>,
    _listed: Listed,
}

/// Runs the session of one VMI until its launcher is released or the token is cancelled.
pub(super) async fn run(
    context: SessionContext,
    mut seen: watch::Receiver<Seen>,
    token: CancellationToken,
) {
    let first = seen.borrow_and_update().clone();
    let mut session = Session::new(context, first);
    loop {
        if session.advance().await {
            return;
        }
        tokio::select! {
            () = token.cancelled() => return,
            newest = next_seen(&mut seen) => {
                if session.see(newest).await == Fate::Elsewhere {
                    return;
                }
            }
            () = session.something_due() => {}
        }
    }
}

/// The next version of the VMI. After the last one there is only the launcher to listen to.
async fn next_seen(seen: &mut watch::Receiver<Seen>) -> Seen {
    if seen.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
    seen.borrow_and_update().clone()
}

async fn launcher_changed(link: Option<&mut Link>) {
    if let Some(link) = link
        && link.view.changed().await.is_ok()
    {
        return;
    }
    // No launcher yet, or its last word has been heard.
    std::future::pending().await
}

/// Whether a VMI is still this session's business.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Ours,
    /// Another node has it, or a new session will.
    Elsewhere,
}

impl Session {
    fn new(context: SessionContext, seen: Seen) -> Self {
        Self {
            context,
            vmi: seen.vmi,
            gone: seen.gone,
            done: Done::default(),
            sync_error: None,
            shutdown_announced: false,
            pod_ip: None,
            link: None,
            retry: Pause::up_to(WRITE_PAUSE),
            start: Pause::up_to(START_PAUSE),
        }
    }

    pub(super) fn api(&self) -> Api<VirtualMachineInstance> {
        let namespace = self.vmi.namespace().unwrap_or_default();
        Api::namespaced(self.context.client.clone(), &namespace)
    }

    pub(super) fn reference(&self) -> ObjectReference {
        self.vmi.object_ref(&())
    }

    pub(super) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    pub(super) fn launcher(&self) -> Launcher {
        match &self.link {
            Some(link) => link.view.borrow().clone(),
            None if self.facts().phase.is_final() || self.gone => Launcher::Missing(None),
            None => Launcher::Awaited,
        }
    }

    /// Publishes an event on the VMI; best effort, and never for long.
    pub(super) async fn event(&self, type_: EventType, reason: &str, message: &str) {
        let about = self.reference();
        let published = self
            .context
            .recorder
            .publish(&about, type_, reason, message);
        if timeout(API_PATIENCE, published).await.is_err() {
            warn!(vmi = self.vmi.name_any(), reason, "no answer to an event");
        }
    }

    fn facts(&self) -> VmiFacts {
        VmiFacts::of(&self.vmi, self.gone)
    }

    /// Takes in what the watch says; an answer to our own write may have been newer.
    async fn see(&mut self, newest: Seen) -> Fate {
        if newest.gone {
            return self.confirm_gone().await;
        }
        if is_newer(&newest.vmi, &self.vmi) {
            self.vmi = newest.vmi;
        }
        Fate::Ours
    }

    /// Leaving the watch means deleted, or the label moved to another node: only the object itself can tell.
    /// A machine is never killed on a guess; without an answer the end of its pod will end it.
    async fn confirm_gone(&mut self) -> Fate {
        let (min, max) = (Duration::from_millis(100), Duration::from_secs(10));
        for pause in virt_kit::retry::backoff(min, max, 8) {
            let (api, name) = (self.api(), self.vmi.name_any());
            match timeout(API_PATIENCE, api.get_opt(&name)).await {
                Ok(Ok(Some(vmi))) if vmi.uid() == self.vmi.uid() => return Fate::Elsewhere,
                Ok(Ok(_)) => {
                    self.gone = true;
                    return Fate::Ours;
                }
                Ok(Err(error)) => {
                    let error = chain(&error);
                    warn!(
                        vmi = name,
                        error, "failed to see whether a VMI still exists"
                    );
                }
                Err(_) => warn!(vmi = name, "no answer whether a VMI still exists"),
            }
            tokio::time::sleep(pause).await;
        }
        Fate::Elsewhere
    }

    /// Returns when the launcher said something new or a pause is over.
    async fn something_due(&mut self) {
        let Self {
            link, retry, start, ..
        } = self;
        tokio::select! {
            () = launcher_changed(link.as_mut()) => {}
            () = retry.over() => retry.until = None,
            () = start.over() => start.until = None,
        }
    }

    /// Decides and acts until nothing is left but to wait; true when the session is over.
    async fn advance(&mut self) -> bool {
        self.open_link();
        for _ in 0..MAX_ROUNDS {
            self.announce_shutdown().await;
            let done = Done {
                // An order that was refused is not repeated before its pause is over.
                started: self.done.started || self.start.is_on(),
                ..self.done
            };
            let mut changed = false;
            for action in decide(self.facts(), &self.launcher(), done) {
                if action == Action::Finish {
                    return true;
                }
                let is_start = action == Action::Start;
                match self.perform(action).await {
                    Ok(did) => changed |= did,
                    Err(error) => {
                        self.postpone(is_start, &error);
                        return false;
                    }
                }
            }
            if !changed {
                self.retry = Pause::up_to(WRITE_PAUSE);
                return false;
            }
        }
        warn!(vmi = self.vmi.name_any(), "a VMI does not settle");
        false
    }

    fn postpone(&mut self, is_start: bool, error: &PerformError) {
        let error = chain(error);
        info!(vmi = self.vmi.name_any(), error, "will try again");
        let pause = if is_start {
            &mut self.start
        } else {
            &mut self.retry
        };
        pause.begin();
    }

    /// Follows the launcher as soon as the VMI names its pod.
    fn open_link(&mut self) {
        if self.link.is_some() {
            return;
        }
        let Some((pod_uid, paths)) = self.launcher_pod() else {
            return;
        };
        let client = client::connect(&paths.command_socket());
        let (sender, view) = watch::channel(Launcher::Awaited);
        let follower = tokio::spawn(launcher::follow(paths.clone(), client.clone(), sender));
        let machine = RunningMachine::new(self.reference(), client.clone(), paths);
        self.link = Some(Link {
            client,
            pod_uid,
            view,
            _follower: AbortOnDropHandle::new(follower),
            _listed: self.context.registry.list(machine),
        });
    }

    /// The launcher's pod on this node; of several, one whose directory still exists.
    fn launcher_pod(&self) -> Option<(String, LauncherPaths)> {
        let pods = self.vmi.status.as_ref()?.active_pods.as_ref()?;
        let mut here: Vec<_> = pods
            .iter()
            .filter(|(_, node)| **node == self.context.node)
            .map(|(uid, _)| {
                (
                    uid.clone(),
                    LauncherPaths::on_node(&self.context.kubelet_dir, uid),
                )
            })
            .collect();
        here.sort_by_key(|(_, paths)| !paths.private_dir().exists());
        here.into_iter().next()
    }

    /// The event of a shutdown, once, whoever asked for it.
    async fn announce_shutdown(&mut self) {
        let shutting_down = matches!(
            self.launcher(),
            Launcher::Alive(machine) if machine.phase() == Phase::ShuttingDown
        );
        if shutting_down && !self.shutdown_announced {
            self.shutdown_announced = true;
            self.event(
                EventType::Normal,
                "ShuttingDown",
                "Signaled Graceful Shutdown",
            )
            .await;
        }
    }
}

/// Versions of one object are numbers that grow.
fn is_newer(one: &VirtualMachineInstance, other: &VirtualMachineInstance) -> bool {
    let version = |vmi: &VirtualMachineInstance| {
        vmi.resource_version()
            .and_then(|version| version.parse::<u64>().ok())
    };
    match (version(one), version(other)) {
        (Some(one), Some(other)) => one > other,
        _ => true,
    }
}

#[cfg(test)]
#[path = "session/tests.rs"]
mod tests;
