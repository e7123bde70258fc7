//! The CAs that a server accepts clients of; the set can be replaced while the server runs.

use std::{
    fmt,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime, pem::PemObject},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};

use super::{TlsError, read};

/// A set of CAs. Clones share the set.
#[derive(Clone, Default)]
pub struct TrustPool {
    verifier: Arc<RwLock<Option<Arc<dyn ClientCertVerifier>>>>,
}

impl TrustPool {
    /// Trusts nobody.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The CAs of a PEM file.
    pub fn from_file(path: &Path) -> Result<Self, TlsError> {
        let pool = Self::empty();
        pool.set(roots_from_file(path)?)?;
        Ok(pool)
    }

    /// Replaces the set by the CAs in a PEM text.
    pub fn replace_pem(&self, pem: &str) -> Result<(), TlsError> {
        self.set(roots(pem.as_bytes(), "the new bundle")?)
    }

    fn set(&self, roots: RootCertStore) -> Result<(), TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|e| TlsError::Pem {
                path: "the CA bundle".to_owned(),
                what: e.to_string(),
            })?;
        *self
            .verifier
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(verifier);
        Ok(())
    }

    fn get(&self) -> Option<Arc<dyn ClientCertVerifier>> {
        self.verifier
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

pub(super) fn roots_from_file(path: &Path) -> Result<RootCertStore, TlsError> {
    roots(&read(path)?, &path.display().to_string())
}

fn roots(pem: &[u8], origin: &str) -> Result<RootCertStore, TlsError> {
    let bad = |what: String| TlsError::Pem {
        path: origin.to_owned(),
        what,
    };
    let mut roots = RootCertStore::empty();
    for cert in CertificateDer::pem_slice_iter(pem) {
        let cert = cert.map_err(|e| bad(e.to_string()))?;
        roots.add(cert).map_err(|e| bad(e.to_string()))?;
    }
    if roots.is_empty() {
        return Err(bad("no certificate".to_owned()));
    }
    Ok(roots)
}

/// Verifies clients against whatever the pool holds at that moment.
pub(super) struct PoolVerifier {
    pool: TrustPool,
    mandatory: bool,
}

impl PoolVerifier {
    pub(super) fn required(pool: TrustPool) -> Self {
        Self {
            pool,
            mandatory: true,
        }
    }

    pub(super) fn optional(pool: TrustPool) -> Self {
        Self {
            pool,
            mandatory: false,
        }
    }

    fn inner(&self) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        self.pool
            .get()
            .ok_or_else(|| Error::General("no client CA is known yet".to_owned()))
    }
}

impl fmt::Debug for PoolVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolVerifier")
            .field("mandatory", &self.mandatory)
            .finish_non_exhaustive()
    }
}

impl ClientCertVerifier for PoolVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // The set may change, so no hints: clients send what they have.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.inner()?
            .verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner()?.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner()?.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
