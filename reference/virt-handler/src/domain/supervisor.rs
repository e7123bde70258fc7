//! Watches the VMIs of this node and keeps exactly one session for each. A session hears only the newest version
//! of its VMI, so a burst of writes costs no memory and a slow launcher delays nobody else.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Api, Resource as _, ResourceExt as _,
    core::error_boundary::InvalidObject,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event},
    },
};
use kubevirt_api::{names::LABEL_NODE_NAME, v1::VirtualMachineInstance};
use tokio::{sync::watch, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use virt_kit::{events::EventType, guard::Guarded, health::Health};

use super::session::{self, Seen, SessionContext};
use crate::report::chain;

/// Name of the watch in the readiness report.
const HEALTH_PART: &str = "vmi-watch";

/// How long sessions get to notice that the handler stops.
const GOODBYE: Duration = Duration::from_secs(3);

/// Why the handler cannot follow its VMIs.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// The watch ended, which it never does by itself.
    #[error("the watch of VMIs ended")]
    WatchEnded,
}

/// Follows the VMIs of this node until the token is cancelled.
///
/// # Errors
/// [`SuperviseError`] when the watch is over for good.
pub async fn supervise(
    context: SessionContext,
    health: Health,
    token: CancellationToken,
) -> Result<(), SuperviseError> {
    health.set_ready(HEALTH_PART, false);
    let api: Api<Guarded<VirtualMachineInstance>> = Api::all(context.client.clone());
    let mine = watcher::Config::default().labels(&format!("{LABEL_NODE_NAME}={}", context.node));
    let mut events = watcher::watcher(api, mine).default_backoff().boxed();
    let mut sessions = Sessions::new(context, token.clone());
    loop {
        let event = tokio::select! {
            () = token.cancelled() => break,
            Some(_) = sessions.tasks.join_next(), if !sessions.tasks.is_empty() => continue,
            event = events.next() => event,
        };
        match event.ok_or(SuperviseError::WatchEnded)? {
            Ok(event) => {
                let in_sync = matches!(event, Event::InitDone);
                sessions.take(event).await;
                if in_sync {
                    health.set_ready(HEALTH_PART, true);
                }
            }
            Err(error) => warn!(error = chain(&error), "the watch of VMIs is interrupted"),
        }
    }
    // Sessions leave their machines alone; one that waits for an answer is not waited for.
    let all = async { while sessions.tasks.join_next().await.is_some() {} };
    drop(timeout(GOODBYE, all).await);
    Ok(())
}

/// One entry for each VMI that the watch knows; finished sessions keep theirs, so that they are not started again.
struct Sessions {
    context: SessionContext,
    token: CancellationToken,
    known: HashMap<String, watch::Sender<Seen>>,
    listed: HashSet<String>,
    tasks: JoinSet<()>,
}

impl Sessions {
    fn new(context: SessionContext, token: CancellationToken) -> Self {
        Self {
            context,
            token,
            known: HashMap::new(),
            listed: HashSet::new(),
            tasks: JoinSet::new(),
        }
    }

    async fn take(&mut self, event: Event<Guarded<VirtualMachineInstance>>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                if let Some(uid) = object.uid() {
                    self.listed.insert(uid);
                }
                self.apply(object).await;
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let missed: Vec<_> = self
                    .known
                    .keys()
                    .filter(|uid| !listed.contains(*uid))
                    .cloned()
                    .collect();
                for uid in missed {
                    self.forget(&uid);
                }
            }
            Event::Apply(object) => self.apply(object).await,
            Event::Delete(object) => {
                if let Some(uid) = object.uid() {
                    self.forget(&uid);
                }
            }
        }
    }

    async fn apply(&mut self, object: Guarded<VirtualMachineInstance>) {
        let vmi = match object.0 {
            Ok(vmi) => Arc::new(vmi),
            Err(invalid) => return self.complain(&invalid).await,
        };
        let Some(uid) = vmi.uid() else { return };
        let seen = Seen { vmi, gone: false };
        if let Some(sender) = self.known.get(&uid) {
            sender.send_replace(seen);
            return;
        }
        info!(vmi = seen.vmi.name_any(), uid, "following a VMI");
        let (sender, receiver) = watch::channel(seen);
        self.known.insert(uid, sender);
        let session = session::run(self.context.clone(), receiver, self.token.clone());
        self.tasks.spawn(session);
    }

    /// The session ends by itself once the machine is gone; its sender goes with the last word.
    fn forget(&mut self, uid: &str) {
        if let Some(sender) = self.known.remove(uid) {
            sender.send_modify(|seen| seen.gone = true);
        }
    }

    async fn complain(&self, invalid: &InvalidObject) {
        warn!(
            name = invalid.metadata.name,
            error = invalid.error,
            "a VMI cannot be read"
        );
        let about = ObjectReference {
            api_version: Some(VirtualMachineInstance::api_version(&()).into_owned()),
            kind: Some(VirtualMachineInstance::kind(&()).into_owned()),
            name: invalid.metadata.name.clone(),
            namespace: invalid.metadata.namespace.clone(),
            uid: invalid.metadata.uid.clone(),
            ..ObjectReference::default()
        };
        let recorder = &self.context.recorder;
        recorder
            .publish(&about, EventType::Warning, "SyncFailed", &invalid.error)
            .await;
    }
}

#[cfg(test)]
#[path = "supervisor/tests.rs"]
mod tests;
