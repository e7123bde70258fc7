//! The HTTPS server against real TLS clients: who gets in, and that renewed certificates are used.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::{net::SocketAddr, path::Path, sync::Arc};

use axum::{Extension, Router, routing::get};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, SanType,
};
use rustls::pki_types::ServerName;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use virt_kit::{
    serve::{self, PeerIdentity},
    tls::{self, ClientAuth, TrustPool},
};

struct Ca {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn ca(name: &str) -> Ca {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    Ca {
        pem,
        issuer: Issuer::new(params, key),
    }
}

impl Ca {
    fn issue(&self, common_name: &str, dir: &Path) {
        std::fs::create_dir_all(dir).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        params.subject_alt_names = vec![SanType::DnsName("server.test".try_into().unwrap())];
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(dir.join("tls.crt"), cert.pem()).unwrap();
        std::fs::write(dir.join("tls.key"), key.serialize_pem()).unwrap();
    }
}

async fn whoami(Extension(peer): Extension<PeerIdentity>) -> String {
    peer.common_name.unwrap_or_else(|| "nobody".to_owned())
}

async fn server(dir: &Path, auth: ClientAuth, token: CancellationToken) -> SocketAddr {
    drop(rustls::crypto::ring::default_provider().install_default());
    let identity = tls::server_identity(dir).unwrap();
    let config = tls::server_config(identity, auth).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(whoami));
    tokio::spawn(serve::serve_on(listener, config, router, token));
    addr
}

/// Answer body and the server's certificate, or the error that the client met.
async fn ask(
    addr: SocketAddr,
    ca: &Path,
    client: &Path,
) -> Result<(String, Vec<u8>), std::io::Error> {
    let config = tls::client_config(ca, client).unwrap();
    let stream = TcpStream::connect(addr).await?;
    let name = ServerName::try_from("server.test").unwrap();
    let mut tls = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?;
    let certificate = tls.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    tls.write_all(b"GET / HTTP/1.1\r\nHost: server.test\r\nConnection: close\r\n\r\n")
        .await?;
    let mut text = String::new();
    tls.read_to_string(&mut text).await?;
    let body = text.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned();
    Ok((body, certificate))
}

#[tokio::test]
async fn only_certificates_of_the_pool_get_in_and_their_name_is_known() {
    let dir = TempDir::new().unwrap();
    let (ours, theirs) = (ca("ours"), ca("theirs"));
    ours.issue("server", &dir.path().join("server"));
    ours.issue("friend", &dir.path().join("friend"));
    theirs.issue("friend", &dir.path().join("stranger"));
    let ca_file = dir.path().join("ca");
    std::fs::write(&ca_file, &ours.pem).unwrap();
    let token = CancellationToken::new();
    let pool = TrustPool::from_file(&ca_file).unwrap();
    let addr = server(
        &dir.path().join("server"),
        ClientAuth::Required(pool.clone()),
        token.clone(),
    )
    .await;

    let (body, _) = ask(addr, &ca_file, &dir.path().join("friend"))
        .await
        .unwrap();
    assert_eq!(body, "friend");
    assert!(
        ask(addr, &ca_file, &dir.path().join("stranger"))
            .await
            .is_err()
    );

    pool.replace_pem(&theirs.pem).unwrap();
    let (body, _) = ask(addr, &ca_file, &dir.path().join("stranger"))
        .await
        .unwrap();
    assert_eq!(
        body, "friend",
        "a replaced pool is in force for new connections"
    );
    assert!(
        ask(addr, &ca_file, &dir.path().join("friend"))
            .await
            .is_err()
    );
    token.cancel();
}

#[tokio::test]
async fn an_empty_pool_lets_nobody_in() {
    let dir = TempDir::new().unwrap();
    let ours = ca("ours");
    ours.issue("server", &dir.path().join("server"));
    ours.issue("friend", &dir.path().join("friend"));
    let ca_file = dir.path().join("ca");
    std::fs::write(&ca_file, &ours.pem).unwrap();
    let token = CancellationToken::new();
    let auth = ClientAuth::Optional(TrustPool::empty());
    let addr = server(&dir.path().join("server"), auth, token.clone()).await;
    assert!(
        ask(addr, &ca_file, &dir.path().join("friend"))
            .await
            .is_err()
    );
    token.cancel();
}

#[tokio::test]
async fn a_renewed_certificate_is_served_without_a_restart() {
    let dir = TempDir::new().unwrap();
    let ours = ca("ours");
    let server_dir = dir.path().join("server");
    ours.issue("server", &server_dir);
    ours.issue("friend", &dir.path().join("friend"));
    let ca_file = dir.path().join("ca");
    std::fs::write(&ca_file, &ours.pem).unwrap();
    let token = CancellationToken::new();
    let addr = server(&server_dir, ClientAuth::None, token.clone()).await;
    let (_, before) = ask(addr, &ca_file, &dir.path().join("friend"))
        .await
        .unwrap();

    ours.issue("server", &server_dir);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    std::fs::File::open(server_dir.join("tls.crt"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    let (body, after) = ask(addr, &ca_file, &dir.path().join("friend"))
        .await
        .unwrap();
    assert_eq!(body, "nobody");
    assert_ne!(before, after);
    token.cancel();
}
