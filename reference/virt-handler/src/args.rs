//! The command line.

use std::{net::IpAddr, path::PathBuf};

use clap::Parser;
use virt_kit::args::{CertArgs, ClientArgs};

/// The node agent: advertises virtualisation devices, labels the node, and drives the launchers of its VMs.
///
/// Runs as a privileged pod with hostPID on every node; stopping it leaves running VMs alone.
#[derive(Clone, Debug, Parser)]
#[command(
    version,
    after_help = "Examples:\n  virt-handler                             in its DaemonSet: everything comes from the environment\n  virt-handler --node-name node-1 --pod-ip 10.1.0.7 --kubeconfig admin.conf   by hand"
)]
pub struct Args {
    /// How to reach the API server.
    #[command(flatten)]
    pub client: ClientArgs,

    /// Certificates.
    #[command(flatten)]
    pub certs: CertArgs,

    /// The node that this handler is responsible for.
    #[arg(long, env = "NODE_NAME")]
    pub node_name: String,

    /// Address to listen on.
    #[arg(long, env = "POD_IP", default_value = "0.0.0.0")]
    pub pod_ip: IpAddr,

    /// Port for virt-api's calls.
    #[arg(long, default_value_t = 8186)]
    pub console_port: u16,

    /// Port for health and metrics.
    #[arg(long, default_value_t = 8443)]
    pub health_port: u16,

    /// How many launchers may hold each device at once.
    #[arg(long, default_value_t = 1000)]
    pub max_devices: usize,

    /// The kubelet's directory on the node, mounted at the same path.
    #[arg(long, default_value = virt_cmd::paths::KUBELET_DIR)]
    pub kubelet_dir: PathBuf,

    /// Where the node's root file system is seen from here.
    #[arg(long, default_value = "/proc/1/root")]
    pub host_root: PathBuf,
}
