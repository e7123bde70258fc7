//! Command-line words that all components share.

use std::path::PathBuf;

use clap::Args;

/// How to reach the API server.
#[derive(Args, Clone, Debug, Default)]
pub struct ClientArgs {
    /// kubeconfig file; inside a pod the ServiceAccount is used when this is not given.
    #[arg(long, env = "KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,

    /// Namespace that the system is installed in.
    #[arg(long, env = "POD_NAMESPACE", default_value = "kubevirt")]
    pub namespace: String,
}

/// Where the operator mounts certificates.
#[derive(Args, Clone, Debug)]
pub struct CertArgs {
    /// Bundle of the CAs that signed the other components' certificates, PEM.
    #[arg(long, default_value = "/etc/virt/ca/ca-bundle")]
    pub ca_file: PathBuf,

    /// Directory with the server's `tls.crt` and `tls.key`.
    #[arg(long, default_value = "/etc/virt/server")]
    pub server_cert_dir: PathBuf,

    /// Directory with the client's `tls.crt` and `tls.key`.
    #[arg(long, default_value = "/etc/virt/client")]
    pub client_cert_dir: PathBuf,
}
