//! The way to the cluster. The client's own retries are off: a retry that nobody records would hide what the
//! server answered first.

use std::path::PathBuf;

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// Which cluster, as whom.
#[derive(Debug, Clone, Default)]
pub struct Target {
    /// A file other than the usual ones.
    pub kubeconfig: Option<PathBuf>,
    /// A context other than the current one.
    pub context: Option<String>,
}

/// A cluster that cannot even be addressed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be read or does not hold the context.
    #[error("failed to read the kubeconfig{}", .file.as_ref().map(|file| format!(" {}", file.display())).unwrap_or_default())]
    Kubeconfig {
        /// The file, when one was named.
        file: Option<PathBuf>,
        /// What is wrong with it.
        source: Box<kube::config::KubeconfigError>,
    },
    /// Neither a kubeconfig nor a service account.
    #[error("found neither a kubeconfig nor a service account")]
    Infer(#[source] Box<kube::config::InferConfigError>),
    /// The client refused the configuration.
    #[error("failed to set up the client")]
    Client(#[source] Box<kube::Error>),
}

/// Builds a client.
pub async fn connect(target: &Target) -> Result<Client, ConnectError> {
    let mut config = config(target).await?;
    config.default_retry = false;
    Client::try_from(config).map_err(|source| ConnectError::Client(Box::new(source)))
}

async fn config(target: &Target) -> Result<Config, ConnectError> {
    if target.kubeconfig.is_none() && target.context.is_none() {
        return Config::infer()
            .await
            .map_err(|source| ConnectError::Infer(Box::new(source)));
    }
    let wrap = |source| ConnectError::Kubeconfig {
        file: target.kubeconfig.clone(),
        source: Box::new(source),
    };
    let file = match &target.kubeconfig {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    let options = KubeConfigOptions {
        context: target.context.clone(),
        ..KubeConfigOptions::default()
    };
    Config::from_custom_kubeconfig(file.map_err(wrap)?, &options)
        .await
        .map_err(wrap)
}
