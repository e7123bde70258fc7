//! Leader election on a Lease: at most one replica acts, and the next takes over when it dies.
//!
//! `decide` is the whole protocol as a pure function; `run` carries out what it says. Times in the
//! Lease are never compared between machines: a candidate waits until it has seen no renewal for a
//! whole lease duration by its own clock.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::{Api, Client, api::PostParams};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

/// Which Lease, held by whom, for how long.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Name of this replica, unique among them.
    pub identity: String,
    /// A lease that was not renewed for so long is free.
    pub lease_duration: Duration,
    /// A leader that could not renew for so long stops acting.
    pub renew_deadline: Duration,
    /// Time between two tries.
    pub retry: Duration,
}

impl LeaseConfig {
    /// The durations that Kubernetes' own components use: 15 s, 10 s and 2 s.
    #[must_use]
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// Why leading ended.
#[derive(Debug, Error)]
pub enum LeaderError {
    /// Another replica leads now, or the lease could not be renewed in time.
    #[error("lost the lease {0}")]
    Lost(String),
    /// The work itself failed.
    #[error("failed while leading")]
    Work(#[source] anyhow::Error),
}

/// What to do about the Lease as it was just read.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Create,
    Renew,
    Take,
    Wait,
}

/// `unchanged_for`: how long this replica has seen the Lease without a renewal.
fn decide(lease: Option<&LeaseSpec>, me: &str, unchanged_for: Duration, limit: Duration) -> Step {
    let Some(spec) = lease else {
        return Step::Create;
    };
    match spec.holder_identity.as_deref() {
        Some(holder) if holder == me => Step::Renew,
        None | Some("") => Step::Take,
        Some(_) if unchanged_for >= limit => Step::Take,
        Some(_) => Step::Wait,
    }
}

/// When a renewal was last seen, by the local clock.
struct Observed {
    version: (Option<String>, Option<MicroTime>),
    since: Instant,
}

struct Elector {
    api: Api<Lease>,
    config: LeaseConfig,
    observed: Option<Observed>,
}

impl Elector {
    /// One try to hold the lease; true when this replica holds it.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        let lease = self.api.get_opt(&self.config.name).await?;
        let spec = lease.as_ref().and_then(|l| l.spec.as_ref());
        let unchanged_for = self.observe(spec);
        let step = decide(
            lease.as_ref().map(|l| l.spec.as_ref().unwrap_or(&EMPTY)),
            &self.config.identity,
            unchanged_for,
            self.config.lease_duration,
        );
        match (step, lease) {
            (Step::Wait, _) => Ok(false),
            (Step::Create, _) | (_, None) => {
                let lease = Lease {
                    metadata: ObjectMeta {
                        name: Some(self.config.name.clone()),
                        namespace: Some(self.config.namespace.clone()),
                        ..ObjectMeta::default()
                    },
                    spec: Some(self.spec(None)),
                };
                self.api.create(&PostParams::default(), &lease).await?;
                Ok(true)
            }
            (_, Some(mut lease)) => {
                lease.spec = Some(self.spec(lease.spec.as_ref()));
                self.api
                    .replace(&self.config.name, &PostParams::default(), &lease)
                    .await?;
                Ok(true)
            }
        }
    }

    fn observe(&mut self, spec: Option<&LeaseSpec>) -> Duration {
        let version = spec.map_or((None, None), |s| {
            (s.holder_identity.clone(), s.renew_time.clone())
        });
        match &self.observed {
            Some(seen) if seen.version == version => seen.since.elapsed(),
            _ => {
                self.observed = Some(Observed {
                    version,
                    since: Instant::now(),
                });
                Duration::ZERO
            }
        }
    }

    fn spec(&self, old: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let mine = old.and_then(|s| s.holder_identity.as_deref()) == Some(&*self.config.identity);
        let transitions = old.and_then(|s| s.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: i32::try_from(self.config.lease_duration.as_secs()).ok(),
            acquire_time: match old {
                Some(old) if mine => old.acquire_time.clone(),
                _ => Some(now.clone()),
            },
            renew_time: Some(now),
            lease_transitions: Some(if mine || old.is_none() {
                transitions
            } else {
                transitions + 1
            }),
            ..LeaseSpec::default()
        }
    }

    /// Gives the lease up, so that the next leader need not wait for it to run out.
    async fn release(&self) {
        let Ok(Some(mut lease)) = self.api.get_opt(&self.config.name).await else {
            return;
        };
        let Some(spec) = lease.spec.as_mut() else {
            return;
        };
        if spec.holder_identity.as_deref() != Some(&*self.config.identity) {
            return;
        }
        spec.holder_identity = None;
        let result = self
            .api
            .replace(&self.config.name, &PostParams::default(), &lease)
            .await;
        if let Err(error) = result {
            tracing::info!(%error, "failed to release the lease; the next leader waits for its end");
        }
    }
}

const EMPTY: LeaseSpec = LeaseSpec {
    acquire_time: None,
    holder_identity: None,
    lease_duration_seconds: None,
    lease_transitions: None,
    preferred_holder: None,
    renew_time: None,
    strategy: None,
};

/// Waits for the lease, then runs `work` while it is held.
///
/// `work` gets a token that is cancelled when the lease is lost or `token` is cancelled. The caller
/// should exit after `Lost`: a fresh process starts with nothing left over from its time as leader.
pub async fn run<F, Fut>(
    client: Client,
    config: LeaseConfig,
    token: CancellationToken,
    work: F,
) -> Result<(), LeaderError>
where
    F: FnOnce(CancellationToken) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let mut elector = Elector {
        api: Api::namespaced(client, &config.namespace),
        config,
        observed: None,
    };
    if !acquire(&mut elector, &token).await {
        return Ok(());
    }
    tracing::info!(lease = elector.config.name, "leading");
    let leading = token.child_token();
    let result = tokio::select! {
        result = work(leading.clone()) => result.map_err(LeaderError::Work),
        () = keep(&mut elector) => Err(LeaderError::Lost(elector.config.name.clone())),
    };
    leading.cancel();
    if !matches!(result, Err(LeaderError::Lost(_))) {
        elector.release().await;
    }
    result
}

/// False when the token was cancelled first.
async fn acquire(elector: &mut Elector, token: &CancellationToken) -> bool {
    loop {
        match elector.attempt().await {
            Ok(true) => return true,
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "failed to try for the lease"),
        }
        tokio::select! {
            () = token.cancelled() => return false,
            () = tokio::time::sleep(elector.config.retry) => {}
        }
    }
}

/// Renews until that fails for the whole renew deadline or somebody else holds the lease.
async fn keep(elector: &mut Elector) {
    let mut renewed = Instant::now();
    loop {
        tokio::time::sleep(elector.config.retry).await;
        let left = elector
            .config
            .renew_deadline
            .saturating_sub(renewed.elapsed());
        match tokio::time::timeout(left, elector.attempt()).await {
            Ok(Ok(true)) => renewed = Instant::now(),
            Ok(Ok(false)) => return,
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to renew the lease");
                if renewed.elapsed() >= elector.config.renew_deadline {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn held_by(holder: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: (!holder.is_empty()).then(|| holder.to_owned()),
            ..LeaseSpec::default()
        }
    }

    #[rstest]
    #[case::nobody_made_it(None, 0, Step::Create)]
    #[case::mine(Some("me"), 0, Step::Renew)]
    #[case::mine_though_old(Some("me"), 60, Step::Renew)]
    #[case::released(Some(""), 0, Step::Take)]
    #[case::other_alive(Some("other"), 14, Step::Wait)]
    #[case::other_silent(Some("other"), 15, Step::Take)]
    fn decides(#[case] holder: Option<&str>, #[case] unchanged_secs: u64, #[case] want: Step) {
        let spec = holder.map(held_by);
        let got = decide(
            spec.as_ref(),
            "me",
            Duration::from_secs(unchanged_secs),
            Duration::from_secs(15),
        );
        assert_eq!(got, want);
    }
}
