//! The system's own certificate authority and the certificates it issues.
//!
//! What to renew is decided by a pure function of the stored certificates and the time; a new CA
//! joins the bundle beside the old one, so that both are trusted while certificates change over.

use std::{collections::BTreeMap, time::Duration};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use thiserror::Error;
use x509_parser::pem::Pem;

/// How long the CA is valid.
pub const CA_LIFETIME: Duration = Duration::from_secs(168 * 3600);
/// How long an issued certificate is valid.
pub const LEAF_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// A certificate is renewed when less than this share of its life is left, in percent.
const RENEW_AT_PERCENT: i64 = 20;
/// Certificates are valid from some time before now, since clocks differ.
const CLOCK_SKEW: Duration = Duration::from_secs(600);

/// Why no certificate can be issued.
#[derive(Debug, Error)]
pub enum CertError {
    /// Key or certificate generation failed.
    #[error("failed to issue the certificate {name}")]
    Issue {
        /// Name of the Secret.
        name: String,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
}

/// A certificate with its private key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Certificate.
    pub cert: String,
    /// Private key.
    pub key: String,
}

/// One certificate that the system needs.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Secret that holds it.
    pub secret: &'static str,
    /// Common name of the subject.
    pub common_name: &'static str,
    /// Service or component whose DNS names it carries; none for a client certificate.
    pub service: Option<&'static str>,
}

/// Every certificate of the system; names as in the original.
pub const WANTED: &[Wanted] = &[
    Wanted {
        secret: "kubevirt-virt-api-certs",
        common_name: "virt-api",
        service: Some("virt-api"),
    },
    Wanted {
        secret: "kubevirt-controller-certs",
        common_name: "virt-controller",
        service: Some("virt-controller"),
    },
    Wanted {
        secret: "kubevirt-virt-handler-server-certs",
        common_name: "kubevirt.io:system:node:virt-handler",
        service: Some("virt-handler"),
    },
    Wanted {
        secret: "kubevirt-virt-handler-certs",
        common_name: "kubevirt.io:system:client:virt-handler",
        service: None,
    },
];

/// All of it, by the name of the Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Material {
    /// The CA that issues.
    pub ca: Option<Pair>,
    /// Certificates of all CAs that are still trusted, newest first.
    pub bundle: String,
    /// Issued certificates.
    pub leaves: BTreeMap<String, Pair>,
}

/// Seconds since 1970 between which a PEM certificate is valid.
fn validity(cert: &str) -> Option<(i64, i64)> {
    let pem = Pem::iter_from_buffer(cert.as_bytes()).next()?.ok()?;
    let cert = pem.parse_x509().ok()?;
    let validity = cert.validity();
    Some((
        validity.not_before.timestamp(),
        validity.not_after.timestamp(),
    ))
}

/// Whether a certificate has to be replaced: unreadable, or in the last fifth of its life.
fn is_due(cert: &str, now: i64) -> bool {
    match validity(cert) {
        Some((from, to)) => (to - now) * 100 < (to - from) * RENEW_AT_PERCENT,
        None => true,
    }
}

/// The material as it has to be now; equal to `old` when nothing is due.
pub fn renewed(old: &Material, namespace: &str, now: i64) -> Result<Material, CertError> {
    let mut next = old.clone();
    let ca = match &old.ca {
        Some(ca) if !is_due(&ca.cert, now) => ca.clone(),
        _ => {
            let ca = new_ca(now)?;
            next.leaves.clear();
            next.ca = Some(ca.clone());
            ca
        }
    };
    next.bundle = bundle(&ca.cert, &old.bundle, now);
    for wanted in WANTED {
        let keep = next
            .leaves
            .get(wanted.secret)
            .is_some_and(|pair| !is_due(&pair.cert, now));
        if !keep {
            let pair = new_leaf(wanted, &ca, namespace, now)?;
            next.leaves.insert(wanted.secret.to_owned(), pair);
        }
    }
    Ok(next)
}

/// The current CA first, then older ones that have not run out.
fn bundle(current: &str, old: &str, now: i64) -> String {
    let mut all = vec![current.trim().to_owned()];
    for block in old.split_inclusive("-----END CERTIFICATE-----") {
        let block = block.trim();
        let alive = validity(block).is_some_and(|(_, to)| to > now);
        if alive && !all.iter().any(|known| known == block) {
            all.push(block.to_owned());
        }
    }
    all.join("\n") + "\n"
}

fn params(common_name: &str, now: i64, lifetime: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    let now = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(now.max(0).unsigned_abs());
    params.not_before = now - CLOCK_SKEW;
    params.not_after = now + lifetime;
    params
}

fn new_ca(now: i64) -> Result<Pair, CertError> {
    let failed = |source| CertError::Issue {
        name: "kubevirt-ca".to_owned(),
        source,
    };
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = params(&format!("kubevirt.io@{now}"), now, CA_LIFETIME);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let cert = params.self_signed(&key).map_err(failed)?;
    Ok(Pair {
        cert: cert.pem(),
        key: key.serialize_pem(),
    })
}

fn new_leaf(wanted: &Wanted, ca: &Pair, namespace: &str, now: i64) -> Result<Pair, CertError> {
    let failed = |source| CertError::Issue {
        name: wanted.secret.to_owned(),
        source,
    };
    let ca_key = KeyPair::from_pem(&ca.key).map_err(failed)?;
    let issuer = Issuer::from_ca_cert_pem(&ca.cert, ca_key).map_err(failed)?;
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = params(wanted.common_name, now, LEAF_LIFETIME);
    // Strict verifiers refuse a certificate that does not name its issuer's key.
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    if let Some(service) = wanted.service {
        params
            .extended_key_usages
            .push(ExtendedKeyUsagePurpose::ServerAuth);
        for name in [
            service.to_owned(),
            format!("{service}.{namespace}"),
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
        ] {
            params
                .subject_alt_names
                .push(SanType::DnsName(name.try_into().map_err(failed)?));
        }
    }
    let cert = params.signed_by(&key, &issuer).map_err(failed)?;
    Ok(Pair {
        cert: cert.pem(),
        key: key.serialize_pem(),
    })
}

/// Seconds until the first certificate is due, for the next look.
#[must_use]
pub fn next_due(material: &Material, now: i64) -> i64 {
    material
        .ca
        .iter()
        .chain(material.leaves.values())
        .map(|pair| match validity(&pair.cert) {
            Some((from, to)) => to - (to - from) * RENEW_AT_PERCENT / 100 - now,
            None => 0,
        })
        .min()
        .unwrap_or(0)
        .max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_800_000_000;
    const HOUR: i64 = 3600;

    fn first() -> Material {
        renewed(&Material::default(), "kubevirt", START).unwrap()
    }

    #[test]
    fn everything_is_issued_once_and_then_kept() {
        let first = first();
        assert_eq!(first.leaves.len(), WANTED.len());
        assert_eq!(renewed(&first, "kubevirt", START + HOUR).unwrap(), first);
    }

    #[test]
    fn leaves_are_renewed_in_the_last_fifth_of_their_life_under_the_same_ca() {
        let first = first();
        let later = renewed(&first, "kubevirt", START + 20 * HOUR).unwrap();
        assert_eq!(later.ca, first.ca);
        assert_eq!(later.bundle, first.bundle);
        for wanted in WANTED {
            assert_ne!(later.leaves[wanted.secret], first.leaves[wanted.secret]);
        }
        assert!(next_due(&first, START) <= 20 * HOUR);
        assert!(next_due(&first, START) > 18 * HOUR);
    }

    #[test]
    fn a_new_ca_joins_the_bundle_and_the_old_one_leaves_when_it_has_run_out() {
        let first = first();
        let second = renewed(&first, "kubevirt", START + 140 * HOUR).unwrap();
        assert_ne!(second.ca, first.ca);
        assert_eq!(second.bundle.matches("BEGIN CERTIFICATE").count(), 2);
        let third = renewed(&second, "kubevirt", START + 170 * HOUR).unwrap();
        assert_eq!(third.bundle.matches("BEGIN CERTIFICATE").count(), 1);
        assert_eq!(third.ca, second.ca);
    }

    #[test]
    fn an_unreadable_secret_is_replaced() {
        let mut broken = first();
        let pair = broken.leaves.get_mut("kubevirt-virt-api-certs").unwrap();
        pair.cert = "nonsense".to_owned();
        let mended = renewed(&broken, "kubevirt", START).unwrap();
        assert!(validity(&mended.leaves["kubevirt-virt-api-certs"].cert).is_some());
    }

    #[test]
    fn server_certificates_name_their_service() {
        let first = first();
        let pem = &first.leaves["kubevirt-virt-api-certs"].cert;
        let pem = Pem::iter_from_buffer(pem.as_bytes())
            .next()
            .unwrap()
            .unwrap();
        let cert = pem.parse_x509().unwrap();
        let names = cert.subject_alternative_name().unwrap().unwrap();
        let text = format!("{:?}", names.value.general_names);
        assert!(text.contains("virt-api.kubevirt.svc"), "{text}");
    }
}
