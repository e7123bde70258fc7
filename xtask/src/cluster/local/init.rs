//! PID 1 of a node: arranges its mounts, then runs containerd, kubelet and kube-proxy and starts them
//! again when they die. When it is killed, the kernel ends every process and mount of the node.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::{fs::MetadataExt as _, net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use clap::Args;
use rustix::{
    fs::{major, minor},
    process::{WaitOptions, wait},
    system::sethostname,
};

use super::{node::files, spawn::log_file};
use crate::{progress::say, run::Cmd};

/// What the host tells the node about itself.
#[derive(Args, Debug)]
pub struct NodeInit {
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    bin: PathBuf,
    #[arg(long)]
    name: String,
    #[arg(long)]
    address: String,
    #[arg(long)]
    network: String,
}

/// Where the node's container runtime listens.
pub const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";
/// A program that dies sooner than this after its start is started again only after the rest of it.
const LEAST_LIFE: Duration = Duration::from_secs(1);

/// A program that is kept running.
struct Service {
    name: &'static str,
    command: Cmd,
    child: Child,
    started: Instant,
}

impl NodeInit {
    /// Never returns while the node lives.
    pub fn run(&self) -> anyhow::Result<()> {
        self.mounts()?;
        sethostname(self.name.as_bytes())?;
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        let pipe = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.dir.join(files::GO))?;
        let mut signals = BufReader::new(pipe).lines();
        fs::write(self.dir.join(files::READY), "")?;
        signals.next().context("the host went away")??;
        let mut services = vec![self.start("containerd", self.containerd())?];
        self.wait_for_containerd()?;
        signals.next().context("the host went away")??;
        services.push(self.start("kubelet", self.kubelet())?);
        services.push(self.start("kube-proxy", self.proxy())?);
        loop {
            self.reap(&mut services)?;
        }
    }

    fn mounts(&self) -> anyhow::Result<()> {
        let mount = |args: &[&str]| Cmd::new("mount").args(args).output().map(drop);
        mount(&["--make-rprivate", "/"])?;
        mount(&["-t", "proc", "proc", "/proc"])?;
        mount(&["-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"])?;
        self.own_var(&mount)?;
        for dir in [
            "/run/containerd",
            "/run/netns",
            "/run/kubevirt",
            "/run/lock",
            "/var/lib/kubelet",
        ] {
            fs::create_dir_all(dir)?;
        }
        let own = |name: &str| self.dir.join(name).display().to_string();
        mount(&["--bind", &own("kubelet"), "/var/lib/kubelet"])?;
        // Not every kernel has NUMA nodes; without them the real topology is the only one.
        let topology = "/sys/devices/system/node";
        if Path::new(topology).exists() {
            mount(&["--bind", &own("sysfs"), topology])?;
        }
        self.devices(&mount)?;
        // Pods that share mounts with their node need the node to share them in the first place.
        mount(&["--make-rshared", "/"])
    }

    /// Gives the node a /var/lib and a /var/log of its own: node agents and pods write there, the
    /// nodes must not see each other's files, and the host is to keep none.
    fn own_var(&self, mount: &dyn Fn(&[&str]) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let own = |name: &str| self.dir.join(name).display().to_string();
        mount(&["--bind", &own("log"), "/var/log"])?;
        // containerd's directory cannot be on an overlay, since it mounts overlays itself.
        if self.dir.starts_with("/var/lib") {
            return Ok(());
        }
        let layers = format!(
            "lowerdir=/var/lib,upperdir={},workdir={}",
            own("var-lib"),
            own("var-lib-work")
        );
        mount(&["-t", "overlay", "-o", &layers, "overlay", "/var/lib"])
    }

    /// Gives the node device files of its own, so that what a node agent does to their owner and
    /// mode is undone with the node.
    fn devices(&self, mount: &dyn Fn(&[&str]) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for name in ["kvm", "net/tun", "vhost-net"] {
            let device = Path::new("/dev").join(name);
            let Ok(meta) = fs::metadata(&device) else {
                continue;
            };
            // A new tmpfs, since the file system of the node's directory may refuse devices.
            let own = Path::new("/run/node-dev").join(name);
            fs::create_dir_all(own.parent().unwrap_or(&self.dir))?;
            let (major, minor) = (
                major(meta.rdev()).to_string(),
                minor(meta.rdev()).to_string(),
            );
            Cmd::new("mknod")
                .args(["-m", &format!("{:o}", meta.mode() & 0o777)])
                .arg(&own)
                .args(["c", &major, &minor])
                .output()?;
            mount(&[
                "--bind",
                &own.display().to_string(),
                &device.display().to_string(),
            ])?;
        }
        Ok(())
    }

    fn containerd(&self) -> Cmd {
        Cmd::new(self.bin.join("containerd"))
            .arg("--config")
            .arg(self.dir.join("containerd.toml"))
    }

    fn kubelet(&self) -> Cmd {
        Cmd::new(self.bin.join("kubelet")).args([
            format!("--config={}", self.dir.join("kubelet.json").display()),
            format!("--kubeconfig={}", self.config_of(&self.name)),
            format!("--hostname-override={}", self.name),
            format!("--node-ip={}", self.address),
            "--root-dir=/var/lib/kubelet".to_owned(),
        ])
    }

    fn proxy(&self) -> Cmd {
        Cmd::new(self.bin.join("kube-proxy")).args([
            format!("--kubeconfig={}", self.config_of("kube-proxy")),
            format!("--hostname-override={}", self.name),
            format!("--cluster-cidr={}", self.network),
            "--proxy-mode=iptables".to_owned(),
            "--conntrack-max-per-core=0".to_owned(),
            "--healthz-bind-address=".to_owned(),
            "--metrics-bind-address=127.0.0.1:10249".to_owned(),
        ])
    }

    fn config_of(&self, user: &str) -> String {
        let dir = self.dir.parent().unwrap_or(&self.dir);
        dir.join(format!("{user}.conf")).display().to_string()
    }

    fn start(&self, name: &'static str, command: Cmd) -> anyhow::Result<Service> {
        let child = self.spawn(name, &command)?;
        Ok(Service {
            name,
            command,
            child,
            started: Instant::now(),
        })
    }

    fn spawn(&self, name: &str, command: &Cmd) -> anyhow::Result<Child> {
        let path = format!(
            "{}:{}",
            self.bin.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let logs = self.dir.join("logs");
        command
            .command()
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(log_file(&logs, name)?)
            .stderr(log_file(&logs, name)?)
            .spawn()
            .with_context(|| format!("failed to start {name}"))
    }

    fn wait_for_containerd(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(20) {
            if UnixStream::connect(CONTAINERD_SOCKET).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        anyhow::bail!(
            "containerd does not listen; see {}/logs",
            self.dir.display()
        )
    }

    /// Waits for any child to end; orphans are only collected, our programs are started again.
    fn reap(&self, services: &mut [Service]) -> anyhow::Result<()> {
        let Some((pid, status)) = wait(WaitOptions::empty())? else {
            return Ok(());
        };
        let pid = pid.as_raw_nonzero().get().unsigned_abs();
        for service in services
            .iter_mut()
            .filter(|service| service.child.id() == pid)
        {
            say!("{} ended ({status:?}); starting it again", service.name);
            std::thread::sleep(LEAST_LIFE.saturating_sub(service.started.elapsed()));
            service.child = self.spawn(service.name, &service.command)?;
            service.started = Instant::now();
        }
        Ok(())
    }
}
