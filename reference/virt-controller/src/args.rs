//! What is typed on the command line.

use std::net::SocketAddr;

use clap::Parser;
use virt_kit::args::{CertArgs, ClientArgs};

const EXAMPLES: &str = "\
Examples:
  In a pod, as virt-operator starts it:
    virt-controller --launcher-image registry.virtmark.dev/virt-launcher:v0.1.0

  Against a cluster from outside, for development:
    virt-controller --kubeconfig ~/.kube/config --server-cert-dir ./certs \\
      --launcher-image registry.virtmark.dev/virt-launcher:v0.1.0 --listen 127.0.0.1:8443";

/// Makes VMIs from VMs and launcher pods from VMIs, and keeps their status true.
#[derive(Parser, Debug)]
#[command(version, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) client: ClientArgs,

    #[command(flatten)]
    pub(crate) certs: CertArgs,

    /// Image of the launcher pods that are made from now on.
    #[arg(long, env = "VIRT_LAUNCHER_IMAGE")]
    pub(crate) launcher_image: String,

    /// Address of /healthz, /readyz and /metrics.
    #[arg(long, default_value = "0.0.0.0:8443")]
    pub(crate) listen: SocketAddr,

    /// Name of this replica in the leader election; its pod's name.
    #[arg(long, env = "POD_NAME", default_value_t = unique_name())]
    pub(crate) identity: String,
}

fn unique_name() -> String {
    format!("virt-controller-{}", uuid::Uuid::new_v4())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
