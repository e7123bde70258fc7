//! What may be said on the command line.

use std::net::SocketAddr;

use clap::Parser;
use virt_kit::args::{CertArgs, ClientArgs};

/// Serves admission webhooks and the subresources of virtual machines.
#[derive(Clone, Debug, Parser)]
#[command(
    version,
    after_help = "Examples:\n  virt-api\n  virt-api --kubeconfig ~/.kube/config --listen 127.0.0.1:9443 --server-cert-dir ./server --client-cert-dir ./client --ca-file ./ca.crt"
)]
pub struct Args {
    /// How to reach the Kubernetes API server.
    #[command(flatten)]
    pub client: ClientArgs,

    /// Where certificates are.
    #[command(flatten)]
    pub certs: CertArgs,

    /// Address to listen on.
    #[arg(long, default_value = "0.0.0.0:8443")]
    pub listen: SocketAddr,

    /// Port on which virt-handler serves, on its pod's address.
    #[arg(long, default_value_t = 8186)]
    pub handler_port: u16,
}
