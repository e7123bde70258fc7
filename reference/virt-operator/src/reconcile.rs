//! One look at the world: which KubeVirt resource counts, what is missing, how far things are.

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment},
        core::v1::{ConfigMap, ObjectReference, Secret},
    },
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
};
use kubevirt_api::{names::FINALIZER_KUBEVIRT, v1::KubeVirt};
use serde_json::json;
use virt_kit::events::{EventRecorder, EventType};

use crate::{
    apply,
    certs::{self, Material, Pair},
    install::{Images, Install},
    render,
    status::{self, Progress},
    teardown,
};

/// Without any event the world is looked at this often.
const RESYNC: Duration = Duration::from_secs(600);

/// Looks at the cluster and does what is missing.
pub struct Reconciler {
    client: Client,
    namespace: String,
    images: Images,
    events: EventRecorder,
}

impl Reconciler {
    /// `namespace` is the operator's own: the only one that it installs into.
    pub fn new(client: Client, namespace: String, images: Images) -> Self {
        let events = EventRecorder::new(client.clone(), "virt-operator");
        Self {
            client,
            namespace,
            images,
            events,
        }
    }

    /// The operator's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// One look; returns after how long to look again if nothing happens before.
    pub async fn look(&self) -> anyhow::Result<Duration> {
        let api: Api<KubeVirt> = Api::all(self.client.clone());
        let all = api
            .list(&ListParams::default())
            .await
            .context("failed to list KubeVirt resources")?;
        let (ours, others) = elect(all.items, &self.namespace);
        for other in &others {
            self.refuse(other).await?;
        }
        match ours {
            None => Ok(RESYNC),
            Some(kubevirt) if kubevirt.metadata.deletion_timestamp.is_some() => {
                self.remove(&kubevirt).await
            }
            Some(kubevirt) => self.install(&kubevirt).await,
        }
    }

    async fn install(&self, kubevirt: &KubeVirt) -> anyhow::Result<Duration> {
        let install = Install::new(&self.namespace, &self.images, kubevirt);
        self.add_finalizer(kubevirt).await?;
        let deployed = phase(kubevirt) == Some("Deployed");
        if !deployed {
            self.report(kubevirt, &Progress::Deploying, &install)
                .await?;
        }
        match self.roll_out(&install).await {
            Ok((progress, next)) => {
                self.report(kubevirt, &progress, &install).await?;
                Ok(next)
            }
            Err(error) => {
                let why = format!("{error:#}");
                self.report(kubevirt, &Progress::Failed(why), &install)
                    .await?;
                Err(error)
            }
        }
    }

    /// Writes what may be written now: the components wait for virt-api, whose webhooks they need.
    async fn roll_out(&self, install: &Install) -> anyhow::Result<(Progress, Duration)> {
        let now = Timestamp::now().as_second();
        let material = self.certificates(now).await?;
        let due = u64::try_from(certs::next_due(&material, now)).unwrap_or(0);
        let next = RESYNC.min(Duration::from_secs(due.max(1)));
        apply::all(&self.client, &render::definitions(install)).await?;
        apply::all(&self.client, &render::foundation(install, &material)).await?;
        apply::all(&self.client, &render::api(install, &material)).await?;
        if !self.deployment_ready(render::API).await? {
            return Ok((Progress::Deploying, next));
        }
        apply::all(&self.client, &render::rest(install)).await?;
        let ready = self.deployment_ready(render::CONTROLLER).await?
            && self.daemon_set_ready(render::HANDLER).await?;
        let progress = if ready {
            Progress::Ready
        } else {
            Progress::Deploying
        };
        Ok((progress, next))
    }

    async fn remove(&self, kubevirt: &KubeVirt) -> anyhow::Result<Duration> {
        if !kubevirt
            .finalizers()
            .iter()
            .any(|f| f == FINALIZER_KUBEVIRT)
        {
            return Ok(RESYNC);
        }
        let install = Install::new(&self.namespace, &self.images, kubevirt);
        self.report(kubevirt, &Progress::Deleting, &install).await?;
        if !teardown::step(&self.client, &self.namespace).await? {
            return Ok(Duration::from_secs(1));
        }
        let api: Api<KubeVirt> = Api::namespaced(self.client.clone(), &self.namespace);
        let patch = json!({"status": {"phase": "Deleted"}});
        api.patch_status(
            &kubevirt.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&patch),
        )
        .await
        .context("failed to report the phase Deleted")?;
        self.set_finalizers(kubevirt, |all| all.retain(|f| f != FINALIZER_KUBEVIRT))
            .await?;
        Ok(RESYNC)
    }

    async fn add_finalizer(&self, kubevirt: &KubeVirt) -> anyhow::Result<()> {
        if kubevirt
            .finalizers()
            .iter()
            .any(|f| f == FINALIZER_KUBEVIRT)
        {
            return Ok(());
        }
        self.set_finalizers(kubevirt, |all| all.push(FINALIZER_KUBEVIRT.to_owned()))
            .await
    }

    async fn set_finalizers(
        &self,
        kubevirt: &KubeVirt,
        change: impl FnOnce(&mut Vec<String>),
    ) -> anyhow::Result<()> {
        let api: Api<KubeVirt> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut finalizers = kubevirt.finalizers().to_vec();
        change(&mut finalizers);
        let patch = json!({"metadata": {
            "finalizers": finalizers,
            "uid": kubevirt.uid(),
        }});
        api.patch(
            &kubevirt.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&patch),
        )
        .await
        .context("failed to write the finalizers of the KubeVirt resource")?;
        Ok(())
    }

    /// Reads the stored certificates and renews what is due. They are written with the foundation.
    async fn certificates(&self, now: i64) -> anyhow::Result<Material> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let bundles: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        let pair = async |name: &str| -> anyhow::Result<Option<Pair>> {
            let secret = secrets
                .get_opt(name)
                .await
                .with_context(|| format!("failed to read the secret {name}"))?;
            Ok(secret.and_then(read_pair))
        };
        let mut stored = Material {
            ca: pair("kubevirt-ca").await?,
            ..Material::default()
        };
        for wanted in certs::WANTED {
            if let Some(found) = pair(wanted.secret).await? {
                stored.leaves.insert(wanted.secret.to_owned(), found);
            }
        }
        stored.bundle = bundles
            .get_opt("kubevirt-ca")
            .await
            .context("failed to read the CA bundle")?
            .and_then(|map| map.data?.remove("ca-bundle"))
            .unwrap_or_default();
        Ok(certs::renewed(&stored, &self.namespace, now)?)
    }

    async fn deployment_ready(&self, name: &str) -> anyhow::Result<bool> {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), &self.namespace);
        let found = api.get_opt(name).await?;
        Ok(found.is_some_and(|d| rolled_out(&d)))
    }

    async fn daemon_set_ready(&self, name: &str) -> anyhow::Result<bool> {
        let api: Api<DaemonSet> = Api::namespaced(self.client.clone(), &self.namespace);
        let found = api.get_opt(name).await?;
        Ok(found.is_some_and(|d| spread_out(&d)))
    }

    async fn refuse(&self, other: &KubeVirt) -> anyhow::Result<()> {
        let install = Install::new(&self.namespace, &self.images, other);
        self.report(other, &Progress::Duplicate, &install).await
    }

    /// Writes the status if it differs from what is there.
    async fn report(
        &self,
        kubevirt: &KubeVirt,
        progress: &Progress,
        install: &Install,
    ) -> anyhow::Result<()> {
        let namespace = kubevirt.namespace().unwrap_or_default();
        let api: Api<KubeVirt> = Api::namespaced(self.client.clone(), &namespace);
        let name = kubevirt.name_any();
        let Some(current) = api.get_opt(&name).await? else {
            return Ok(());
        };
        let old = current.status.clone().unwrap_or_default();
        let now = Time(Timestamp::now());
        let new = status::next(&old, progress, install, current.metadata.generation, &now);
        if new == old {
            return Ok(());
        }
        let patch = json!({
            "metadata": {"resourceVersion": current.resource_version()},
            "status": new,
        });
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .context("failed to write the status of the KubeVirt resource")?;
        if new.phase != old.phase {
            let phase = new.phase.as_deref().unwrap_or_default();
            let about: ObjectReference = current.object_ref(&());
            let message = format!("The system is in phase {phase}");
            self.events
                .publish(&about, EventType::Normal, phase, &message)
                .await;
        }
        Ok(())
    }
}

/// The resource that counts (in our namespace, the oldest) and the ones that do not.
fn elect(all: Vec<KubeVirt>, namespace: &str) -> (Option<KubeVirt>, Vec<KubeVirt>) {
    let (mut here, mut others): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|k| k.namespace().as_deref() == Some(namespace));
    here.sort_by_key(|k| (k.creation_timestamp().map(|t| t.0), k.name_any()));
    let mut here = here.into_iter();
    let ours = here.next();
    others.extend(here);
    (ours, others)
}

fn phase(kubevirt: &KubeVirt) -> Option<&str> {
    kubevirt.status.as_ref()?.phase.as_deref()
}

fn read_pair(secret: Secret) -> Option<Pair> {
    let mut data = secret.data?;
    let mut text = |key: &str| String::from_utf8(data.remove(key)?.0).ok();
    Some(Pair {
        cert: text("tls.crt")?,
        key: text("tls.key")?,
    })
}

/// Whether every replica of the newest template is ready and no older one is left.
fn rolled_out(deployment: &Deployment) -> bool {
    let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else {
        return false;
    };
    let wanted = spec.replicas.unwrap_or(1);
    status.observed_generation >= deployment.metadata.generation
        && status.updated_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
        && status.ready_replicas.unwrap_or(0) == wanted
}

/// Whether every node that should run the newest template does.
fn spread_out(daemons: &DaemonSet) -> bool {
    daemons.status.as_ref().is_some_and(|status| {
        let wanted = status.desired_number_scheduled;
        wanted > 0
            && status.observed_generation >= daemons.metadata.generation
            && status.updated_number_scheduled.unwrap_or(0) == wanted
            && status.number_ready == wanted
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value};

    use super::*;

    fn kubevirt(namespace: &str, name: &str, created: &str) -> KubeVirt {
        from_value(json!({
            "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": created},
            "spec": {},
        }))
        .unwrap()
    }

    #[test]
    fn the_oldest_in_our_namespace_counts() {
        let all = vec![
            kubevirt("kubevirt", "young", "2026-01-02T00:00:00Z"),
            kubevirt("elsewhere", "oldest", "2025-01-01T00:00:00Z"),
            kubevirt("kubevirt", "old", "2026-01-01T00:00:00Z"),
        ];
        let (ours, others) = elect(all, "kubevirt");
        assert_eq!(ours.unwrap().name_any(), "old");
        let names: Vec<_> = others.iter().map(|k| k.name_any()).collect();
        assert_eq!(names, ["oldest", "young"]);
    }

    #[rstest]
    #[case::no_status(json!({"metadata": {"generation": 1}, "spec": SPEC()}), false)]
    #[case::all_ready(json!({"metadata": {"generation": 1}, "spec": SPEC(), "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}}), true)]
    #[case::not_seen_yet(json!({"metadata": {"generation": 2}, "spec": SPEC(), "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}}), false)]
    #[case::old_one_left(json!({"metadata": {"generation": 1}, "spec": SPEC(), "status": {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 2, "readyReplicas": 2}}), false)]
    #[case::one_not_ready(json!({"metadata": {"generation": 1}, "spec": SPEC(), "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1}}), false)]
    fn deployments(#[case] object: Value, #[case] want: bool) {
        assert_eq!(rolled_out(&from_value(object).unwrap()), want);
    }

    #[expect(non_snake_case, reason = "stands for a constant in the table")]
    fn SPEC() -> Value {
        json!({
            "replicas": 2,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}},
        })
    }

    #[rstest]
    #[case::no_node(0, 0, 0, false)]
    #[case::one_missing(2, 2, 1, false)]
    #[case::old_template(2, 1, 2, false)]
    #[case::all(2, 2, 2, true)]
    fn daemon_sets(
        #[case] desired: i32,
        #[case] updated: i32,
        #[case] ready: i32,
        #[case] want: bool,
    ) {
        let object = json!({
            "metadata": {"generation": 1},
            "status": {
                "observedGeneration": 1,
                "currentNumberScheduled": desired,
                "numberMisscheduled": 0,
                "desiredNumberScheduled": desired,
                "updatedNumberScheduled": updated,
                "numberReady": ready,
            },
        });
        assert_eq!(spread_out(&from_value(object).unwrap()), want);
    }
}
