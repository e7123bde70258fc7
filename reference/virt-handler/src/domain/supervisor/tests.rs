//! One session for each VMI, whatever the watch repeats, restarts or drops.

use serde_json::{Value, json};
use virt_cmd::{Ending, Phase};
use virt_kit::events::EventRecorder;

use super::*;
use crate::{
    domain::Registry,
    testing::{FakeApi, FakeLauncher, soon},
};

fn vmi() -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {"name": "a", "namespace": "default", "uid": "vmi-1", "resourceVersion": "1"},
        "spec": {"domain": {"memory": {"guest": "64Mi"}}},
        "status": {"phase": "Running", "activePods": {"pod-1": "node-1"}},
    })
}

struct Scene {
    sessions: Sessions,
    api: FakeApi,
    launcher: FakeLauncher,
    _root: tempfile::TempDir,
}

fn scene() -> Scene {
    let root = tempfile::tempdir().unwrap();
    let launcher = FakeLauncher::start(root.path(), "pod-1");
    launcher.tell(Phase::Running, Ending::NotEnded);
    let api = FakeApi::new(vmi());
    let context = SessionContext {
        client: api.client(),
        recorder: EventRecorder::new(api.client(), "virt-handler"),
        registry: Registry::default(),
        node: "node-1".to_owned(),
        kubelet_dir: root.path().to_owned(),
    };
    Scene {
        sessions: Sessions::new(context, CancellationToken::new()),
        api,
        launcher,
        _root: root,
    }
}

impl Scene {
    fn object(&self) -> Guarded<VirtualMachineInstance> {
        serde_json::from_value(serde_json::to_value(self.api.vmi()).unwrap()).unwrap()
    }

    async fn list(&mut self, objects: Vec<Guarded<VirtualMachineInstance>>) {
        self.sessions.take(Event::Init).await;
        for object in objects {
            self.sessions.take(Event::InitApply(object)).await;
        }
        self.sessions.take(Event::InitDone).await;
    }

    async fn finished(&mut self) {
        soon("the session's end", self.sessions.tasks.join_next())
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn repeats_and_restarts_of_the_watch_start_nothing_twice() {
    let mut scene = scene();
    scene.list(vec![scene.object()]).await;
    scene.sessions.take(Event::Apply(scene.object())).await;
    scene.list(vec![scene.object()]).await;
    assert_eq!(scene.sessions.tasks.len(), 1);
}

#[tokio::test]
async fn a_finished_session_stays_finished_while_its_vmi_exists() {
    let mut scene = scene();
    scene.list(vec![scene.object()]).await;
    scene.launcher.tell(Phase::Ended, Ending::PoweredOff);
    scene.api.phase("Succeeded").await;
    assert_eq!(scene.launcher.order().await, "release");
    scene.finished().await;
    scene.sessions.take(Event::Apply(scene.object())).await;
    assert!(scene.sessions.tasks.is_empty());
    scene.sessions.take(Event::Delete(scene.object())).await;
    assert!(scene.sessions.known.is_empty());
}

#[tokio::test]
async fn a_deletion_that_the_watch_missed_ends_the_machine() {
    let mut scene = scene();
    scene.list(vec![scene.object()]).await;
    scene.api.condition("LiveMigratable", Some("False")).await;
    scene.api.delete();
    scene.list(Vec::new()).await;
    assert_eq!(scene.launcher.order().await, "kill");
    scene.launcher.tell(Phase::Ended, Ending::Killed);
    scene.finished().await;
}

#[tokio::test]
async fn an_unreadable_vmi_is_an_event_and_no_end() {
    let mut scene = scene();
    let mut broken = vmi();
    broken["spec"] = "banana".into();
    let broken = serde_json::from_value(broken).unwrap();
    scene.list(vec![broken]).await;
    assert_eq!(scene.api.events(), ["Warning SyncFailed"]);
    scene.sessions.take(Event::Apply(scene.object())).await;
    assert_eq!(scene.sessions.tasks.len(), 1);
}
