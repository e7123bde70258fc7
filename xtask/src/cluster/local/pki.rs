//! The cluster's certificates: one CA for everything, one for the aggregator's front proxy, and a key
//! for service account tokens.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

use crate::cluster::{local::config, plan::Plan};

/// The directory of certificates and the CAs that issue into it.
pub struct Pki {
    dir: PathBuf,
    ca: Authority,
    front: Authority,
}

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// Whom a certificate is for.
struct Leaf<'a> {
    file: &'a str,
    common_name: &'a str,
    organization: Option<&'a str>,
    names: Vec<SanType>,
}

impl Pki {
    /// Makes all certificates of the cluster anew.
    pub fn create(plan: &Plan) -> anyhow::Result<Self> {
        let dir = plan.dir.join("pki");
        std::fs::create_dir_all(&dir)?;
        let ca = Authority::create("kubernetes")?;
        let front = Authority::create("front-proxy")?;
        let pki = Self { dir, ca, front };
        write(&pki.dir.join("ca.crt"), &pki.ca.pem)?;
        write(
            &pki.dir.join("ca.key"),
            &pki.ca.issuer.key().serialize_pem(),
        )?;
        write(&pki.dir.join("front-proxy-ca.crt"), &pki.front.pem)?;
        pki.service_account_key()?;
        let mut names = vec![
            ip(&plan.gateway())?,
            ip("127.0.0.1")?,
            ip(&plan.first_service())?,
        ];
        for name in ["kubernetes", "kubernetes.default", "kubernetes.default.svc"] {
            names.push(SanType::DnsName(name.try_into()?));
        }
        pki.issue(
            &pki.ca,
            Leaf::new("apiserver", "kube-apiserver").with_names(names),
        )?;
        let loopback = vec![ip("127.0.0.1")?];
        pki.issue(&pki.ca, Leaf::new("etcd", "etcd").with_names(loopback))?;
        pki.issue(&pki.ca, Leaf::new("etcd-client", "etcd-client"))?;
        pki.issue(&pki.front, Leaf::new("front-proxy", "front-proxy-client"))?;
        let kubelet_client = Leaf::new("kubelet-client", "kubelet-client");
        pki.issue(&pki.ca, kubelet_client.in_organization("system:masters"))?;
        pki.client(plan, "admin", Some("system:masters"), &plan.kubeconfig())?;
        for component in ["kube-controller-manager", "kube-scheduler", "kube-proxy"] {
            let file = plan.dir.join(format!("{component}.conf"));
            let user = format!("system:{component}");
            pki.client(plan, &user, None, &file)?;
        }
        for node in plan.node_plans() {
            let name = node.name();
            let user = format!("system:node:{name}");
            let names = vec![
                ip(&node.address())?,
                SanType::DnsName(name.as_str().try_into()?),
            ];
            let leaf = Leaf::new(&name, &user)
                .in_organization("system:nodes")
                .with_names(names);
            pki.issue(&pki.ca, leaf)?;
            pki.kubeconfig(plan, &name, &plan.dir.join(format!("{name}.conf")))?;
        }
        Ok(pki)
    }

    /// A client certificate and the kubeconfig that embeds it.
    fn client(
        &self,
        plan: &Plan,
        user: &str,
        organization: Option<&str>,
        to: &Path,
    ) -> anyhow::Result<()> {
        let file = user.replace(':', "-");
        let mut leaf = Leaf::new(&file, user);
        leaf.organization = organization;
        self.issue(&self.ca, leaf)?;
        self.kubeconfig(plan, &file, to)
    }

    fn kubeconfig(&self, plan: &Plan, file: &str, to: &Path) -> anyhow::Result<()> {
        let read = |ending: &str| std::fs::read(self.dir.join(format!("{file}.{ending}")));
        let name = format!("virtmark-{}", plan.name);
        let value = config::kubeconfig(
            &name,
            &plan.server(),
            &base64(self.ca.pem.as_bytes()),
            &base64(&read("crt")?),
            &base64(&read("key")?),
        );
        write(to, &format!("{value:#}\n"))
    }

    fn issue(&self, by: &Authority, leaf: Leaf<'_>) -> anyhow::Result<()> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, leaf.common_name);
        if let Some(organization) = leaf.organization {
            params
                .distinguished_name
                .push(DnType::OrganizationName, organization);
        }
        params.subject_alt_names = leaf.names;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ClientAuth,
            ExtendedKeyUsagePurpose::ServerAuth,
        ];
        let cert = params.signed_by(&key, &by.issuer)?;
        write(&self.dir.join(format!("{}.crt", leaf.file)), &cert.pem())?;
        write(
            &self.dir.join(format!("{}.key", leaf.file)),
            &key.serialize_pem(),
        )
    }

    /// Tokens are signed with an elliptic curve key, which the API server accepts as it does RSA.
    fn service_account_key(&self) -> anyhow::Result<()> {
        let key = KeyPair::generate()?;
        write(&self.dir.join("sa.key"), &key.serialize_pem())?;
        write(&self.dir.join("sa.pub"), &key.public_key_pem())
    }
}

impl Authority {
    fn create(name: &str) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key)?.pem();
        Ok(Self {
            pem,
            issuer: Issuer::new(params, key),
        })
    }
}

impl<'a> Leaf<'a> {
    fn new(file: &'a str, common_name: &'a str) -> Self {
        Self {
            file,
            common_name,
            organization: None,
            names: Vec::new(),
        }
    }

    fn in_organization(mut self, organization: &'a str) -> Self {
        self.organization = Some(organization);
        self
    }

    fn with_names(mut self, names: Vec<SanType>) -> Self {
        self.names = names;
        self
    }
}

fn ip(text: &str) -> anyhow::Result<SanType> {
    Ok(SanType::IpAddress(text.parse()?))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("failed to write {}", path.display()))?;
    file.write_all(text.as_bytes())?;
    Ok(())
}

fn base64(bytes: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.encode(bytes)
}
