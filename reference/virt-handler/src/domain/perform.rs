//! Carries out one decided step: the only place where a session writes to the API server or orders the launcher.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
};
use kubevirt_api::{
    names::LABEL_CREATED_BY,
    v1::{VirtualMachineInstancePhase as VmiPhase, VirtualMachineInstanceStatus},
};
use tokio::time::{error::Elapsed, timeout};
use tonic::Code;
use tracing::{info, warn};
use virt_cmd::proto::{Empty, ShutdownRequest, StartRequest};
use virt_kit::{events::EventType, retry};

use super::{
    convert::{ConvertError, domain_of},
    decide::{Action, Launcher, Outcome},
    session::Session,
    status::{self, Report},
};
use crate::report::chain;

/// A server that has not answered by then is asked again later.
pub(super) const API_PATIENCE: Duration = Duration::from_secs(15);

/// Why a step did not work; it is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum PerformError {
    #[error("failed to write the VMI")]
    Write(#[source] kube::Error),
    #[error("failed to read the VMI")]
    Read(#[source] kube::Error),
    #[error("the API server did not answer in time")]
    Slow(#[from] Elapsed),
    #[error("failed to describe the machine")]
    Convert(#[from] ConvertError),
    #[error("failed to write the order")]
    Encode(#[from] virt_cmd::domain::DomainError),
    #[error("the launcher did not take the order")]
    Order(#[source] Box<tonic::Status>),
}

impl PerformError {
    /// What a user should read, when the user can do something about it.
    fn for_user(&self) -> Option<String> {
        let text = match self {
            Self::Convert(error) => chain(error),
            Self::Order(status) if is_refusal(status.code()) => status.message().to_owned(),
            _ => return None,
        };
        Some(format!("server error. command SyncVMI failed: {text:?}"))
    }
}

fn is_refusal(code: Code) -> bool {
    matches!(
        code,
        Code::NotFound | Code::InvalidArgument | Code::FailedPrecondition
    )
}

fn order(status: tonic::Status) -> PerformError {
    PerformError::Order(Box::new(status))
}

impl Session {
    /// Does it; tells whether anything changed by it.
    pub(super) async fn perform(&mut self, action: Action) -> Result<bool, PerformError> {
        match action {
            Action::Record(outcome) => self.record(&outcome).await,
            Action::Start => self.start().await,
            Action::Shutdown { grace_seconds } => self.shutdown(grace_seconds).await,
            Action::Kill => {
                if let Some(mut client) = self.launcher_client() {
                    client.kill(Empty {}).await.map_err(order)?;
                }
                self.done.killed = true;
                Ok(true)
            }
            Action::Release => {
                self.release().await;
                Ok(true)
            }
            Action::Finish => Ok(false),
        }
    }

    fn launcher_client(&self) -> Option<virt_cmd::client::Client> {
        self.link().map(|link| link.client.clone())
    }

    async fn start(&mut self) -> Result<bool, PerformError> {
        match self.hand_over().await {
            Ok(already) => {
                self.done.started = true;
                self.sync_error = None;
                if !already {
                    self.event(
                        EventType::Normal,
                        "Created",
                        "VirtualMachineInstance defined.",
                    )
                    .await;
                }
                Ok(true)
            }
            Err(error) => {
                if let Some(text) = error.for_user() {
                    self.sync_error = Some(text.clone());
                    self.record(&Outcome::Preparing).await?;
                    self.event(EventType::Warning, "SyncFailed", &text).await;
                }
                Err(error)
            }
        }
    }

    /// Sends the domain; tells whether an earlier handler had done so.
    async fn hand_over(&self) -> Result<bool, PerformError> {
        let domain = domain_of(&self.vmi)?;
        let domain_json = domain.to_json()?;
        let Some(mut client) = self.launcher_client() else {
            return Ok(false);
        };
        let reply = client.start(StartRequest { domain_json }).await;
        Ok(reply.map_err(order)?.into_inner().already)
    }

    async fn shutdown(&mut self, grace_seconds: u32) -> Result<bool, PerformError> {
        if let Some(mut client) = self.launcher_client() {
            let request = ShutdownRequest { grace_seconds };
            client.shutdown(request).await.map_err(order)?;
        }
        self.done.shutdown_grace = Some(grace_seconds);
        if grace_seconds == 0 {
            self.event(
                EventType::Normal,
                "Deleted",
                "VirtualMachineInstance stopping",
            )
            .await;
        } else if !self.shutdown_announced {
            self.shutdown_announced = true;
            self.event(
                EventType::Normal,
                "ShuttingDown",
                "Signaled Graceful Shutdown",
            )
            .await;
        }
        Ok(true)
    }

    /// A launcher that cannot be told leaves by itself a little later.
    async fn release(&mut self) {
        if let Some(mut client) = self.launcher_client()
            && let Err(status) = client.release(Empty {}).await
        {
            info!(vmi = self.vmi.name_any(), %status, "a launcher was not released");
        }
        self.done.released = true;
        self.event(EventType::Normal, "Deleted", "Signaled Deletion")
            .await;
    }

    /// Writes what changed. A conflict means that somebody else wrote: read again and let the caller decide anew.
    async fn record(&mut self, outcome: &Outcome) -> Result<bool, PerformError> {
        if matches!(outcome, Outcome::Up { .. }) {
            self.find_pod_ip().await;
        }
        let launcher = self.launcher();
        let machine = match &launcher {
            Launcher::Alive(machine) | Launcher::Missing(Some(machine)) => Some(machine),
            _ => None,
        };
        let report = Report {
            outcome,
            machine,
            pod_ip: self.pod_ip.as_deref(),
            sync_error: self.sync_error.as_deref(),
        };
        let Some(patch) = status::patch(&self.vmi, report, &Time(Timestamp::now())) else {
            return Ok(false);
        };
        let name = self.vmi.name_any();
        let params = PatchParams::default();
        let (api, patch) = (self.api(), Patch::Merge(&patch));
        match timeout(API_PATIENCE, api.patch(&name, &params, &patch)).await? {
            Ok(written) => {
                let before = std::mem::replace(&mut self.vmi, Arc::new(written));
                self.tell(phase(before.status.as_ref()), outcome).await;
            }
            Err(error) if retry::is_not_found(&error) => self.gone = true,
            Err(error) if retry::is_conflict(&error) => self.read_again().await?,
            Err(error) => return Err(PerformError::Write(error)),
        }
        Ok(true)
    }

    async fn read_again(&mut self) -> Result<(), PerformError> {
        let (api, name) = (self.api(), self.vmi.name_any());
        let found = timeout(API_PATIENCE, api.get_opt(&name)).await?;
        match found.map_err(PerformError::Read)? {
            Some(vmi) if vmi.uid() == self.vmi.uid() => self.vmi = Arc::new(vmi),
            _ => self.gone = true,
        }
        Ok(())
    }

    /// The events of a phase that has just been entered.
    async fn tell(&self, before: VmiPhase, outcome: &Outcome) {
        let now = phase(self.vmi.status.as_ref());
        if now == before {
            return;
        }
        info!(
            vmi = self.vmi.name_any(),
            phase = now.as_str(),
            "phase entered"
        );
        if matches!(outcome, Outcome::Ended(end) if end.panicked) {
            self.event(
                EventType::Warning,
                "GuestPanicked",
                "GuestPanicked (details unavailable)",
            )
            .await;
        }
        let (type_, reason, message) = match now {
            VmiPhase::Running => (
                EventType::Normal,
                "Started",
                "VirtualMachineInstance started.",
            ),
            VmiPhase::Succeeded => (
                EventType::Normal,
                "Stopped",
                "The VirtualMachineInstance was shut down.",
            ),
            VmiPhase::Failed => (
                EventType::Warning,
                "Stopped",
                "The VirtualMachineInstance crashed.",
            ),
            _ => return,
        };
        self.event(type_, reason, message).await;
    }

    /// The pod's address, once: it does not change in a pod's life.
    async fn find_pod_ip(&mut self) {
        let (None, Some(link)) = (&self.pod_ip, self.link()) else {
            return;
        };
        let namespace = self.vmi.namespace().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), &namespace);
        let label = format!("{LABEL_CREATED_BY}={}", self.vmi.uid().unwrap_or_default());
        let params = ListParams::default().labels(&label);
        match timeout(API_PATIENCE, pods.list(&params)).await {
            Ok(Ok(list)) => {
                self.pod_ip = list
                    .items
                    .iter()
                    .find(|pod| pod.uid().as_ref() == Some(&link.pod_uid))
                    .and_then(|pod| pod.status.as_ref()?.pod_ip.clone());
            }
            Ok(Err(error)) => {
                let error = chain(&error);
                warn!(
                    vmi = self.vmi.name_any(),
                    error, "failed to find the pod's address"
                );
            }
            Err(_) => warn!(
                vmi = self.vmi.name_any(),
                "no answer about the pod's address"
            ),
        }
    }
}

fn phase(status: Option<&VirtualMachineInstanceStatus>) -> VmiPhase {
    status.and_then(|status| status.phase).unwrap_or_default()
}
