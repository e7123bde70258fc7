//! A whole session against a launcher behind a real socket and an API server that checks versions.

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use virt_cmd::{Ending, Phase};

use super::*;
use crate::testing::{FakeApi, FakeLauncher, soon};

struct Scene {
    api: FakeApi,
    seen: watch::Sender<Seen>,
    session: JoinHandle<()>,
    token: CancellationToken,
    registry: Registry,
    root: tempfile::TempDir,
}

fn vmi(phase: &str, kernel: &str) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {"name": "a", "namespace": "default", "uid": "vmi-1", "resourceVersion": "1"},
        "spec": {
            "terminationGracePeriodSeconds": 20,
            "domain": {
                "memory": {"guest": "64Mi"},
                "firmware": {"kernelBoot": {"container": {"image": "k", "kernelPath": kernel}}},
                "devices": {"interfaces": [{"name": "default", "masquerade": {}}]}},
            "networks": [{"name": "default", "pod": {}}]},
        "status": {"phase": phase, "activePods": {"pod-1": "node-1", "pod-0": "node-0"}},
    })
}

impl Scene {
    fn new(phase: &str, kernel: &str, root: tempfile::TempDir) -> Self {
        let api = FakeApi::new(vmi(phase, kernel));
        let client = api.client();
        let registry = Registry::default();
        let context = SessionContext {
            recorder: EventRecorder::new(client.clone(), "virt-handler"),
            client,
            registry: registry.clone(),
            node: "node-1".to_owned(),
            kubelet_dir: root.path().to_owned(),
        };
        let (seen, receiver) = watch::channel(Seen {
            vmi: Arc::new(api.vmi()),
            gone: false,
        });
        let token = CancellationToken::new();
        let session = tokio::spawn(run(context, receiver, token.clone()));
        Self {
            api,
            seen,
            session,
            token,
            registry,
            root,
        }
    }

    fn with_launcher(phase: &str, kernel: &str) -> (Self, FakeLauncher) {
        let root = tempfile::tempdir().unwrap();
        let launcher = FakeLauncher::start(root.path(), "pod-1");
        (Self::new(phase, kernel, root), launcher)
    }

    /// What the watch would deliver after somebody else's change.
    fn others_change(&self, patch: &Value) {
        let vmi = Arc::new(self.api.change(patch));
        self.seen.send_replace(Seen { vmi, gone: false });
    }

    fn user_deletes(&self) {
        self.others_change(&json!({"metadata": {"deletionTimestamp": "2026-11-30T23:40:00Z"}}));
    }

    async fn ends(self) -> Vec<String> {
        soon("the end of the session", self.session).await.unwrap();
        assert!(self.registry.is_empty(), "a finished machine is not listed");
        self.api.events()
    }
}

#[tokio::test]
async fn from_scheduled_to_the_guests_own_power_off() {
    let (scene, mut launcher) = Scene::with_launcher("Scheduled", "/boot/k");
    assert_eq!(launcher.order().await, "start");
    scene.api.condition("LiveMigratable", Some("False")).await;
    launcher.tell(Phase::Starting, Ending::NotEnded);
    launcher.tell(Phase::Running, Ending::NotEnded);
    scene.api.phase("Running").await;
    let status = scene.api.vmi().status.unwrap();
    assert_eq!(
        status.interfaces.unwrap()[0].ip_address.as_deref(),
        Some("10.1.0.9")
    );
    assert!(scene.registry.find("default", "a").is_some());

    launcher.tell(Phase::Ended, Ending::PoweredOff);
    scene.api.phase("Succeeded").await;
    assert_eq!(launcher.order().await, "release");
    let events = scene.ends().await;
    assert_eq!(
        events,
        [
            "Normal Created",
            "Normal Started",
            "Normal Stopped",
            "Normal Deleted"
        ]
    );
}

#[tokio::test]
async fn pausing_is_a_condition_and_no_phase() {
    let (scene, launcher) = Scene::with_launcher("Running", "/boot/k");
    launcher.tell(Phase::Running, Ending::NotEnded);
    scene.api.condition("LiveMigratable", Some("False")).await;
    launcher.tell(Phase::Paused, Ending::NotEnded);
    scene.api.condition("Paused", Some("True")).await;
    launcher.tell(Phase::Running, Ending::NotEnded);
    scene.api.condition("Paused", None).await;
    scene.api.phase("Running").await;
    assert_eq!(scene.api.events(), Vec::<String>::new());
}

#[tokio::test]
async fn a_deleted_vmi_is_shut_down_once_with_its_grace() {
    let (scene, mut launcher) = Scene::with_launcher("Running", "/boot/k");
    launcher.tell(Phase::Running, Ending::NotEnded);
    scene.api.condition("LiveMigratable", Some("False")).await;
    scene.user_deletes();
    assert_eq!(launcher.order().await, "shutdown 20");
    launcher.tell(Phase::ShuttingDown, Ending::NotEnded);
    scene.others_change(&json!({"metadata": {"labels": {"x": "y"}}}));
    launcher.tell(Phase::Ended, Ending::ShutdownForced);
    scene.api.phase("Failed").await;
    assert_eq!(launcher.order().await, "release");
    let events = scene.ends().await;
    assert_eq!(
        events,
        ["Normal ShuttingDown", "Warning Stopped", "Normal Deleted"]
    );
}

#[tokio::test]
async fn a_launcher_that_dies_with_its_machine_is_a_crash() {
    let (scene, launcher) = Scene::with_launcher("Running", "/boot/k");
    launcher.tell(Phase::Running, Ending::NotEnded);
    scene.api.condition("LiveMigratable", Some("False")).await;
    launcher.die();
    scene.api.phase("Failed").await;
    assert_eq!(scene.ends().await, ["Warning Stopped"]);
}

#[tokio::test]
async fn a_restarted_handler_learns_the_end_from_the_dead_launchers_file() {
    let root = tempfile::tempdir().unwrap();
    let launcher = FakeLauncher::start(root.path(), "pod-1");
    launcher.tell(Phase::Ended, Ending::PoweredOff);
    launcher.die();
    let scene = Scene::new("Running", "/boot/k", root);
    scene.api.phase("Succeeded").await;
    assert_eq!(scene.ends().await, ["Normal Stopped"]);
}

#[tokio::test]
async fn a_pod_without_a_directory_is_a_crash() {
    let scene = Scene::new("Running", "/boot/k", tempfile::tempdir().unwrap());
    scene.api.phase("Failed").await;
    assert_eq!(scene.ends().await, ["Warning Stopped"]);
}

#[tokio::test]
async fn a_launcher_that_comes_late_is_waited_for() {
    let root = tempfile::tempdir().unwrap();
    for dir in LauncherPaths::on_node(root.path(), "pod-1").directories() {
        std::fs::create_dir_all(dir).unwrap();
    }
    let scene = Scene::new("Scheduled", "/boot/k", root);
    scene.api.condition("LiveMigratable", Some("False")).await;
    let mut launcher = FakeLauncher::start(scene.root.path(), "pod-1");
    assert_eq!(launcher.order().await, "start");
}

#[tokio::test]
async fn a_missing_kernel_is_told_and_tried_again_and_can_be_deleted() {
    let (scene, mut launcher) = Scene::with_launcher("Scheduled", "/nosuch");
    assert_eq!(launcher.order().await, "start");
    scene.api.condition("Synchronized", Some("False")).await;
    assert_eq!(launcher.order().await, "start");
    scene.user_deletes();
    scene.api.phase("Failed").await;
    assert_eq!(launcher.order().await, "kill");
    let events = scene.ends().await;
    assert_eq!(events.last().map(String::as_str), Some("Warning Stopped"));
    assert!(events.contains(&"Warning SyncFailed".to_owned()));
}

#[tokio::test]
async fn a_write_of_somebody_else_is_not_overwritten() {
    let (scene, launcher) = Scene::with_launcher("Running", "/boot/k");
    launcher.tell(Phase::Running, Ending::NotEnded);
    scene.api.condition("LiveMigratable", Some("False")).await;
    // The watch has not told the session of this one yet.
    scene
        .api
        .change(&json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}));
    launcher.tell(Phase::Paused, Ending::NotEnded);
    scene.api.condition("Paused", Some("True")).await;
    scene.api.condition("Ready", Some("True")).await;
    assert_eq!(scene.api.conflicts(), 1);
}

#[tokio::test]
async fn a_vmi_that_vanished_takes_its_machine_along() {
    let (scene, mut launcher) = Scene::with_launcher("Running", "/boot/k");
    launcher.tell(Phase::Running, Ending::NotEnded);
    scene.api.condition("LiveMigratable", Some("False")).await;
    scene.api.delete();
    scene.seen.send_modify(|seen| seen.gone = true);
    assert_eq!(launcher.order().await, "kill");
    launcher.tell(Phase::Ended, Ending::Killed);
    assert_eq!(launcher.order().await, "release");
    scene.ends().await;
}

#[tokio::test]
async fn leaving_the_watch_alone_kills_nothing() {
    let (scene, mut launcher) = Scene::with_launcher("Running", "/boot/k");
    launcher.tell(Phase::Running, Ending::NotEnded);
    scene.api.condition("LiveMigratable", Some("False")).await;
    scene.seen.send_modify(|seen| seen.gone = true);
    scene.ends().await;
    assert!(launcher.no_order());
}

#[tokio::test]
async fn the_end_of_the_handler_leaves_the_machine_alone() {
    let (scene, mut launcher) = Scene::with_launcher("Running", "/boot/k");
    launcher.tell(Phase::Running, Ending::NotEnded);
    scene.api.condition("LiveMigratable", Some("False")).await;
    scene.token.cancel();
    scene.ends().await;
    assert!(launcher.no_order());
}
