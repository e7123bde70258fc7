//! HTTPS for axum routers: HTTP/1.1 with upgrades, and each request knows who its client proved to be.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::Request};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::{ServerConfig, pki_types::CertificateDer};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A client that does not finish its handshake or headers in this time is turned away.
const PATIENCE: Duration = Duration::from_secs(10);
/// Open connections get this long to finish when the server stops.
const DRAIN: Duration = Duration::from_secs(3);

/// Whom the client's certificate names; empty when it showed none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerIdentity {
    /// Common name of the subject.
    pub common_name: Option<String>,
    /// Organizations of the subject.
    pub organizations: Vec<String>,
}

/// Why a server cannot serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address is taken or not ours.
    #[error("failed to listen on {addr}")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Serves until the token is cancelled.
pub async fn https(
    addr: SocketAddr,
    tls: ServerConfig,
    router: Router,
    token: CancellationToken,
) -> Result<(), ServeError> {
    let listener = TcpListener::bind(addr)
        .await
        .map_err(|source| ServeError::Bind { addr, source })?;
    serve_on(listener, tls, router, token).await;
    Ok(())
}

/// Serves on a listener that is already bound, until the token is cancelled.
pub async fn serve_on(
    listener: TcpListener,
    tls: ServerConfig,
    router: Router,
    token: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = token.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(
                    stream,
                    acceptor.clone(),
                    router.clone(),
                    token.clone(),
                ));
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                // Out of descriptors, most likely: do not spin until one is free.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    connections.close();
    drop(tokio::time::timeout(DRAIN, connections.wait()).await);
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    router: Router,
    token: CancellationToken,
) {
    drop(stream.set_nodelay(true));
    let tls = match tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(tls)) => tls,
        Ok(Err(error)) => {
            tracing::debug!(%error, "failed TLS handshake");
            return;
        }
        Err(_) => return,
    };
    let peer = peer_identity(&tls);
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        let router = router.clone();
        async move { Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|e| match e {})) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(tls), service)
        .with_upgrades();
    let mut served = std::pin::pin!(served);
    let result = tokio::select! {
        result = served.as_mut() => result,
        () = token.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended early");
    }
}

fn peer_identity(tls: &TlsStream<TcpStream>) -> PeerIdentity {
    let (_, session) = tls.get_ref();
    session
        .peer_certificates()
        .and_then(|chain| chain.first())
        .map(identity_of)
        .unwrap_or_default()
}

fn identity_of(certificate: &CertificateDer<'_>) -> PeerIdentity {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return PeerIdentity::default();
    };
    let subject = certificate.subject();
    PeerIdentity {
        common_name: subject
            .iter_common_name()
            .next()
            .and_then(|name| name.as_str().ok())
            .map(str::to_owned),
        organizations: subject
            .iter_organization()
            .filter_map(|name| name.as_str().ok())
            .map(str::to_owned)
            .collect(),
    }
}
