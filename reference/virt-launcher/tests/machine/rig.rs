//! One launcher process, with a client on every socket.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    future::Future,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    process::{Child, Command},
    time::{interval, timeout},
};
use tonic::{Code, Streaming};
use virt_cmd::{
    Domain, DomainState, Ending, Phase,
    client::{self, Client},
    domain::{Bus, Disk, Kernel},
    paths::LauncherPaths,
    proto::{Empty, PingRequest, StartRequest, WatchRequest},
    socket, state,
};

use crate::guest::{DISK, PROBE};

const UID: &str = "0f8e6c1c-5a0f-4d7a-9a83-2b1f0a3f5c11";
/// Firmware on a KVM that emulates real mode, on a host with other work, needs most of a minute. Every wait ends by
/// its event, not by this.
const PATIENCE: Duration = Duration::from_secs(180);

/// Where the machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// virt-vmm on /dev/kvm.
    Vmm,
    /// QEMU, emulating the processor.
    Tcg,
    /// QEMU on /dev/kvm.
    QemuKvm,
}

/// A launcher, its watch and its directories. Killed when dropped.
pub(crate) struct Rig {
    /// Before the directory: fields are dropped in this order.
    _words: Words,
    directory: TempDir,
    launcher: Child,
    watch: Streaming<DomainState>,
    pub(crate) client: Client,
    pub(crate) paths: LauncherPaths,
    /// The last state that was seen.
    pub(crate) state: DomainState,
}

/// What the launcher logs: shown only when the test fails.
struct Words(PathBuf);

#[expect(clippy::print_stderr, reason = "a failing test tells what it saw")]
impl Drop for Words {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(&self.0).unwrap_or_default());
        }
    }
}

/// How a launcher ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) phase: Phase,
    pub(crate) ending: Ending,
    pub(crate) code: Option<i32>,
    /// `ending` of the termination message.
    pub(crate) message: String,
}

/// A domain that boots the probe as a kernel.
pub(crate) fn kernel() -> Domain {
    Domain {
        uid: UID.to_owned(),
        name: "vm".to_owned(),
        namespace: "default".to_owned(),
        memory_bytes: 64 << 20,
        vcpus: 1,
        machine: "q35".to_owned(),
        kernel: Some(Kernel {
            path: PROBE.clone(),
            initrd: None,
            cmdline: "from=test".to_owned(),
        }),
        disks: Vec::new(),
        panic_device: true,
        paused: false,
        firmware_uuid: "5d307ca9-b3ef-428c-8861-06e72d69f223".to_owned(),
        log_serial: true,
    }
}

/// A domain that boots the probe from a throw-away disk.
pub(crate) fn disk(bus: Bus) -> Domain {
    let disk = Disk {
        name: "root".to_owned(),
        path: DISK.clone(),
        bus,
        read_only: false,
        ephemeral: true,
        cdrom: false,
        serial: None,
        boot_order: None,
    };
    Domain {
        kernel: None,
        disks: vec![disk],
        ..kernel()
    }
}

impl Rig {
    /// A launcher that waits for orders.
    pub(crate) async fn idle(on: On) -> Self {
        let directory = tempdir().unwrap();
        let paths = LauncherPaths::in_pod(directory.path());
        let output = File::create(directory.path().join("stdout")).unwrap();
        let words = Words(directory.path().join("stderr"));
        let errors = File::create(&words.0).unwrap();
        let mut command = Command::new(launcher());
        command
            .args([
                "--name",
                "vm",
                "--namespace",
                "default",
                "--uid",
                UID,
                "--grace-period-seconds",
                "20",
            ])
            .arg("--run-dir")
            .arg(directory.path())
            .arg("--termination-log")
            .arg(directory.path().join("termination-log"))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(errors))
            .kill_on_drop(true);
        if on == On::Tcg {
            command.args(["--allow-emulation", "--kvm", "/nonexistent"]);
        }
        let launcher = command.spawn().unwrap();
        let mut client = client::connect(&paths.command_socket());
        ping(&mut client).await;
        let watch = client.watch(WatchRequest {}).await.unwrap().into_inner();
        let mut rig = Self {
            _words: words,
            directory,
            launcher,
            watch,
            client,
            paths,
            state: DomainState::default(),
        };
        rig.until(|state| state.phase() == Phase::None).await;
        rig
    }

    /// A launcher whose guest has been ordered.
    pub(crate) async fn started(on: On, domain: Domain) -> Self {
        let mut rig = Self::idle(on).await;
        assert!(!rig.start(&domain).await.unwrap());
        rig
    }

    /// A launcher whose guest answers on the console.
    pub(crate) async fn booted(on: On, mut domain: Domain) -> (Self, Console) {
        // The console is attached before the guest says its first word.
        domain.paused = true;
        let mut rig = Self::started(on, domain).await;
        rig.until(|state| state.phase() == Phase::Paused).await;
        let mut console = rig.console().await;
        rig.client.resume(Empty {}).await.unwrap();
        console.until("PROBE 1 ready").await;
        rig.until(|state| state.phase() == Phase::Running).await;
        (rig, console)
    }

    /// Sends a start order.
    pub(crate) async fn start(&mut self, domain: &Domain) -> Result<bool, tonic::Status> {
        let request = StartRequest {
            domain_json: domain.to_json().unwrap(),
        };
        self.client
            .start(request)
            .await
            .map(|reply| reply.into_inner().already)
    }

    /// A new console client.
    pub(crate) async fn console(&self) -> Console {
        let stream = socket::connect(&self.paths.serial_console()).await.unwrap();
        Console {
            stream,
            unread: String::new(),
        }
    }

    /// Follows the watch until a state fits.
    pub(crate) async fn until(&mut self, fits: impl Fn(&DomainState) -> bool) -> &DomainState {
        while !fits(&self.state) || self.state.vmi_uid.is_empty() {
            let next = patiently("a state", self.watch.message()).await.unwrap();
            self.state = next.unwrap_or_else(|| panic!("the watch ended after {:?}", self.state));
        }
        &self.state
    }

    /// Waits for the end, lets the launcher go and tells what it left behind.
    pub(crate) async fn outcome(&mut self) -> Outcome {
        self.until(|state| matches!(state.phase(), Phase::Ended | Phase::FailedToStart))
            .await;
        assert_eq!(
            state::read(&self.paths.state_file()).unwrap().as_ref(),
            Some(&self.state)
        );
        self.client.release(Empty {}).await.unwrap();
        let code = patiently("the launcher's exit", self.launcher.wait())
            .await
            .unwrap()
            .code();
        let message = fs::read_to_string(self.directory.path().join("termination-log")).unwrap();
        assert_eq!(message.lines().count(), 1, "{message}");
        let message: Value = serde_json::from_str(&message).unwrap();
        let message = message["ending"].as_str().unwrap().to_owned();
        Outcome {
            phase: self.state.phase(),
            ending: self.state.ending(),
            code,
            message,
        }
    }

    /// Everything that the launcher printed.
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(self.directory.path().join("stdout")).unwrap()
    }

    /// The launcher's process, as the owner of its socket: a wrapper may stand between.
    pub(crate) async fn pid(&self) -> i32 {
        let stream = socket::connect(&self.paths.command_socket()).await.unwrap();
        stream.peer_cred().unwrap().pid().expect("the kernel knows")
    }

    /// The QEMU process below the launcher.
    pub(crate) async fn qemu_pid(&self) -> i32 {
        let pid = self.pid().await;
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        children.trim().parse().expect("one child")
    }

    /// A scratch place for the test.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

/// The program under test: ours, or a wrapper that runs it elsewhere (as another user, in a container's root).
fn launcher() -> OsString {
    env::var_os("VIRT_LAUNCHER").unwrap_or_else(|| env!("CARGO_BIN_EXE_virt-launcher").into())
}

/// Sends a signal by name.
pub(crate) fn signal(pid: i32, name: &str) {
    let status = std::process::Command::new("kill")
        .args([name, &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// One client of the serial console.
pub(crate) struct Console {
    stream: UnixStream,
    unread: String,
}

impl Console {
    /// Types a line.
    pub(crate) async fn say(&mut self, line: &str) {
        self.stream
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    /// Reads up to the end of the first line that contains `text`, and returns that line.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        loop {
            while let Some((line, rest)) = self.unread.split_once('\n') {
                let (line, rest) = (line.trim_end().to_owned(), rest.to_owned());
                self.unread = rest;
                if line.contains(text) {
                    return line;
                }
            }
            let mut buffer = [0; 4096];
            let count = patiently(text, self.stream.read(&mut buffer))
                .await
                .unwrap();
            assert!(count > 0, "the console was closed before it said `{text}`");
            self.unread
                .push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    }

    /// Types a line and waits for its answer.
    pub(crate) async fn ask(&mut self, line: &str) -> String {
        self.say(line).await;
        let word = line.split(' ').next().unwrap();
        self.until(word).await
    }

    /// Waits until the guest hears its power button: it learns about it when it is first asked.
    pub(crate) async fn until_button(&mut self) {
        assert!(self.ask("ident").await.ends_with("button=yes"));
    }

    /// Reads until the launcher closes.
    pub(crate) async fn closed(mut self) {
        let mut buffer = [0; 4096];
        while patiently("the end of the console", self.stream.read(&mut buffer))
            .await
            .unwrap()
            > 0
        {}
    }
}

/// Waits, and says for what when it was in vain.
pub(crate) async fn patiently<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

async fn ping(client: &mut Client) {
    let mut tick = interval(Duration::from_millis(20));
    let answered = async {
        loop {
            tick.tick().await;
            match client.ping(PingRequest {}).await {
                Ok(reply) => return reply.into_inner(),
                Err(status) => assert_eq!(status.code(), Code::Unavailable, "{status}"),
            }
        }
    };
    assert_eq!(patiently("the command socket", answered).await.vmi_uid, UID);
}
