//! Every directory, socket and file that handler and launcher agree on.
//!
//! The launcher sees them under `/var/run`; the handler sees the same emptyDir volumes under the
//! kubelet's directory. Node paths are longer than a socket address may be: open them with
//! [`crate::socket`].

use std::path::{Path, PathBuf};

/// Where a pod's `/var/run` is, inside the pod.
pub const POD_RUN_DIR: &str = "/var/run";
/// Where the kubelet keeps the volumes of its pods.
pub const KUBELET_DIR: &str = "/var/lib/kubelet";
/// Mount point of the kernelBoot container's image, inside the pod.
pub const KERNEL_BOOT_DIR: &str = "/var/run/kubevirt-kernel-boot";
/// Where a container's last words go.
pub const TERMINATION_LOG: &str = "/dev/termination-log";

/// Name of the volume that holds the consoles.
pub const PRIVATE_VOLUME: &str = "private";
/// Name of the volume that holds what other containers may see.
pub const PUBLIC_VOLUME: &str = "public";
/// Name of the volume that holds the command socket.
pub const SOCKETS_VOLUME: &str = "sockets";
/// Name of the volume that holds throw-away disk contents.
pub const EPHEMERAL_VOLUME: &str = "ephemeral-disks";

/// Mount point of the image of the `index`-th volume in the VMI's `spec.volumes` (a containerDisk).
#[must_use]
pub fn image_volume(index: usize) -> PathBuf {
    Path::new("/var/run/kubevirt-image-volume").join(format!("disk_{index}"))
}

/// The directories of one launcher, from either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LauncherPaths {
    private: PathBuf,
    public: PathBuf,
    sockets: PathBuf,
    ephemeral: PathBuf,
}

impl LauncherPaths {
    /// As the launcher sees them; `run_dir` is [`POD_RUN_DIR`] except in tests.
    #[must_use]
    pub fn in_pod(run_dir: &Path) -> Self {
        Self {
            private: run_dir.join("kubevirt-private"),
            public: run_dir.join("kubevirt"),
            sockets: run_dir.join("kubevirt/sockets"),
            ephemeral: run_dir.join("kubevirt-ephemeral-disks"),
        }
    }

    /// As the handler sees those of the pod with this uid; `kubelet_dir` is usually [`KUBELET_DIR`].
    #[must_use]
    pub fn on_node(kubelet_dir: &Path, pod_uid: &str) -> Self {
        let volumes = kubelet_dir
            .join("pods")
            .join(pod_uid)
            .join("volumes/kubernetes.io~empty-dir");
        Self {
            private: volumes.join(PRIVATE_VOLUME),
            public: volumes.join(PUBLIC_VOLUME),
            sockets: volumes.join(SOCKETS_VOLUME),
            ephemeral: volumes.join(EPHEMERAL_VOLUME),
        }
    }

    /// All directories, parents first.
    #[must_use]
    pub fn directories(&self) -> [&Path; 4] {
        [&self.public, &self.private, &self.sockets, &self.ephemeral]
    }

    /// gRPC server of the launcher.
    #[must_use]
    pub fn command_socket(&self) -> PathBuf {
        self.sockets.join("launcher-sock")
    }

    /// Last state of the domain, readable after the launcher is gone.
    #[must_use]
    pub fn state_file(&self) -> PathBuf {
        self.sockets.join("domain-state.json")
    }

    /// First serial port of the guest: raw bytes both ways, the newest client wins.
    #[must_use]
    pub fn serial_console(&self) -> PathBuf {
        self.private.join("virt-serial0")
    }

    /// Directory for what only the launcher uses.
    #[must_use]
    pub fn private_dir(&self) -> &Path {
        &self.private
    }

    /// Directory for throw-away disk contents.
    #[must_use]
    pub fn ephemeral_dir(&self) -> &Path {
        &self.ephemeral
    }
}
