//! One way to reach the API server: a kubeconfig file when it is named, else the pod's own account.

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use thiserror::Error;

use crate::args::ClientArgs;

/// Why there is no client.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("failed to read the kubeconfig {path}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong with it.
        #[source]
        source: kube::config::KubeconfigError,
    },
    /// Neither a kubeconfig nor a ServiceAccount is there.
    #[error("failed to find credentials: pass --kubeconfig, or run in a pod with a ServiceAccount")]
    Infer(#[source] kube::config::InferConfigError),
    /// The client cannot be built from the credentials.
    #[error("failed to build a client")]
    Build(#[source] kube::Error),
}

/// Builds a client; does not talk to the server yet.
pub async fn connect(args: &ClientArgs) -> Result<Client, ConnectError> {
    let config = match &args.kubeconfig {
        Some(path) => {
            let failed = |source| ConnectError::Kubeconfig {
                path: path.display().to_string(),
                source,
            };
            let file = Kubeconfig::read_from(path).map_err(failed)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .map_err(failed)?
        }
        None => Config::infer().await.map_err(ConnectError::Infer)?,
    };
    Client::try_from(config).map_err(ConnectError::Build)
}
