//! Certificates as files that the operator renews under us: identities and trust that follow the
//! files, so that no component restarts for a new certificate.

mod identity;
mod trust;

use std::{path::Path, sync::Arc};

pub use identity::{ServerIdentity, server_identity};
use rustls::{ClientConfig, ServerConfig};
use thiserror::Error;
pub use trust::TrustPool;

/// Why certificates cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("failed to read {path}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file holds no usable PEM.
    #[error("failed to use the PEM in {path}: {what}")]
    Pem {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// Key, certificate and protocol do not fit together.
    #[error("failed to set up TLS")]
    Rustls(#[source] rustls::Error),
}

/// Who must show a certificate to a server.
#[derive(Clone)]
pub enum ClientAuth {
    /// Nobody is asked.
    None,
    /// Clients without a certificate of this pool are turned away.
    Required(TrustPool),
    /// Clients may show a certificate of this pool; a wrong one is turned away.
    Optional(TrustPool),
}

/// TLS for a server: HTTP/1.1 only, since upgrades do not exist in HTTP/2 as the aggregator speaks it.
pub fn server_config(
    identity: Arc<ServerIdentity>,
    auth: ClientAuth,
) -> Result<ServerConfig, TlsError> {
    let builder = ServerConfig::builder();
    let builder = match auth {
        ClientAuth::None => builder.with_no_client_auth(),
        ClientAuth::Required(pool) => {
            builder.with_client_cert_verifier(Arc::new(trust::PoolVerifier::required(pool)))
        }
        ClientAuth::Optional(pool) => {
            builder.with_client_cert_verifier(Arc::new(trust::PoolVerifier::optional(pool)))
        }
    };
    let mut config = builder.with_cert_resolver(identity);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// TLS for a client that trusts the CA file and shows the certificate in `client_cert_dir`.
///
/// Files are read now; build a new configuration for a connection that must see renewed ones.
pub fn client_config(ca_file: &Path, client_cert_dir: &Path) -> Result<ClientConfig, TlsError> {
    let roots = trust::roots_from_file(ca_file)?;
    let (chain, key) = identity::read_pair(client_cert_dir)?;
    ClientConfig::builder()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(TlsError::Rustls)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read {
        path: path.display().to_string(),
        source,
    })
}
