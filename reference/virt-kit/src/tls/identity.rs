//! A server's certificate and key, read again when the files change.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{TlsError, read};

/// The pair of `tls.crt` and `tls.key` in a directory.
pub struct ServerIdentity {
    dir: PathBuf,
    current: Mutex<Current>,
}

struct Current {
    key: Arc<CertifiedKey>,
    modified: Option<SystemTime>,
}

impl fmt::Debug for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerIdentity")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

/// Reads the pair once; later handshakes read it again when `tls.crt` has a new time.
pub fn server_identity(dir: &Path) -> Result<Arc<ServerIdentity>, TlsError> {
    let current = Current {
        key: certified(dir)?,
        modified: modified(dir),
    };
    Ok(Arc::new(ServerIdentity {
        dir: dir.to_owned(),
        current: Mutex::new(current),
    }))
}

impl ResolvesServerCert for ServerIdentity {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let modified = modified(&self.dir);
        if modified != current.modified {
            match certified(&self.dir) {
                Ok(key) => *current = Current { key, modified },
                // The kubelet swaps both files in one step, but a bad renewal must not end service.
                Err(error) => tracing::warn!(%error, "failed to read the renewed certificate"),
            }
        }
        Some(current.key.clone())
    }
}

fn modified(dir: &Path) -> Option<SystemTime> {
    std::fs::metadata(dir.join("tls.crt")).ok()?.modified().ok()
}

fn certified(dir: &Path) -> Result<Arc<CertifiedKey>, TlsError> {
    let (chain, key) = read_pair(dir)?;
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, key, &provider)
        .map(Arc::new)
        .map_err(TlsError::Rustls)
}

/// Certificate chain and private key of a directory.
pub(super) fn read_pair(
    dir: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let (crt, key) = (dir.join("tls.crt"), dir.join("tls.key"));
    let bad = |path: &Path, what: String| TlsError::Pem {
        path: path.display().to_string(),
        what,
    };
    let chain = CertificateDer::pem_slice_iter(&read(&crt)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| bad(&crt, e.to_string()))?;
    if chain.is_empty() {
        return Err(bad(&crt, "no certificate".to_owned()));
    }
    let key_der =
        PrivateKeyDer::from_pem_slice(&read(&key)?).map_err(|e| bad(&key, e.to_string()))?;
    Ok((chain, key_der))
}
