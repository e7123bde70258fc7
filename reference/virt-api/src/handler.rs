//! Calls to virt-handler on a machine's node, over HTTPS with our client certificate.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, api::ListParams};
use kubevirt_api::v1::VirtualMachineInstance;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;
use virt_kit::{args::CertArgs, tls};

/// What a node gets to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest error text that is passed on.
const MAX_TEXT: usize = 4096;

/// Why a node could not be asked, or what it answered.
#[derive(Debug, Error)]
pub enum HandlerError {
    /// The machine is on no node.
    #[error("the VirtualMachineInstance is not assigned to a node")]
    NoNode,
    /// The node has no agent that could be asked.
    #[error("no virt-handler is running on node {node}")]
    NoAgent {
        /// The node.
        node: String,
    },
    /// The API server could not tell.
    #[error("failed to look for virt-handler on node {node}: {source}")]
    Lookup {
        /// The node.
        node: String,
        /// Why.
        source: kube::Error,
    },
    /// Our own certificates cannot be used.
    #[error("failed to prepare the connection to virt-handler: {0}")]
    Tls(String),
    /// The agent did not answer. The wording is that of clients of the original.
    #[error("{verb} \"{url}\": {what}")]
    Unreachable {
        /// `Put` or `Get`.
        verb: &'static str,
        /// What was called.
        url: String,
        /// What went wrong.
        what: String,
    },
    /// The agent refused.
    #[error("unexpected return code {} ({code}), message: {text}", code.as_u16())]
    Refused {
        /// Its code.
        code: StatusCode,
        /// Its text.
        text: String,
    },
}

/// The agents of all nodes.
#[derive(Clone)]
pub struct Handlers {
    client: Client,
    namespace: String,
    port: u16,
    ca_file: PathBuf,
    client_cert_dir: PathBuf,
}

impl Handlers {
    /// Agents that run in a namespace, listen on a port, and know us by our client certificate.
    #[must_use]
    pub fn new(client: Client, namespace: &str, port: u16, certs: &CertArgs) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            port,
            ca_file: certs.ca_file.clone(),
            client_cert_dir: certs.client_cert_dir.clone(),
        }
    }

    /// `PUT …/{verb}` on the node of a machine; 200 is the only success.
    pub async fn put(&self, vmi: &VirtualMachineInstance, verb: &str) -> Result<(), HandlerError> {
        let response = self.send(vmi, verb, Method::PUT, HeaderMap::new()).await?;
        accepted(response, StatusCode::OK).await.map(drop)
    }

    /// `GET …/{call}` with a handshake; returns the answer that agrees to it.
    pub async fn upgrade(
        &self,
        vmi: &VirtualMachineInstance,
        call: &str,
        handshake: HeaderMap,
    ) -> Result<Response<Incoming>, HandlerError> {
        let response = self.send(vmi, call, Method::GET, handshake).await?;
        accepted(response, StatusCode::SWITCHING_PROTOCOLS).await
    }

    async fn send(
        &self,
        vmi: &VirtualMachineInstance,
        call: &str,
        method: Method,
        headers: HeaderMap,
    ) -> Result<Response<Incoming>, HandlerError> {
        let address = self.address_of(vmi).await?;
        let name = |text: &Option<String>| text.clone().unwrap_or_default();
        let path = format!(
            "/v1/namespaces/{}/virtualmachineinstances/{}/{call}",
            name(&vmi.metadata.namespace),
            name(&vmi.metadata.name)
        );
        let verb = if method == Method::PUT { "Put" } else { "Get" };
        let failed = |what: String| HandlerError::Unreachable {
            verb,
            url: format!("https://{address}{path}"),
            what,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path.as_str())
            .header("host", &address)
            .body(Empty::<Bytes>::new())
            .map_err(|error| failed(error.to_string()))?;
        request.headers_mut().extend(headers);
        let tls = tls::client_config(&self.ca_file, &self.client_cert_dir)
            .map_err(|error| HandlerError::Tls(error.to_string()))?;
        let server = ServerName::try_from(format!("virt-handler.{}.svc", self.namespace))
            .map_err(|error| HandlerError::Tls(error.to_string()))?;
        let exchange = exchange(&address, server, TlsConnector::from(Arc::new(tls)), request);
        match timeout(PATIENCE, exchange).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(failed(format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }

    async fn address_of(&self, vmi: &VirtualMachineInstance) -> Result<String, HandlerError> {
        let node = vmi
            .status
            .as_ref()
            .and_then(|status| status.node_name.clone());
        let node = node
            .filter(|node| !node.is_empty())
            .ok_or(HandlerError::NoNode)?;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = ListParams::default()
            .labels("kubevirt.io=virt-handler")
            .fields(&format!("spec.nodeName={node}"));
        let list = pods
            .list(&params)
            .await
            .map_err(|source| HandlerError::Lookup {
                node: node.clone(),
                source,
            })?;
        let address = list
            .items
            .iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
            .find_map(|pod| pod.status.as_ref()?.pod_ip.clone());
        match address {
            Some(ip) if ip.contains(':') => Ok(format!("[{ip}]:{}", self.port)),
            Some(ip) => Ok(format!("{ip}:{}", self.port)),
            None => Err(HandlerError::NoAgent { node }),
        }
    }
}

async fn exchange(
    address: &str,
    server: ServerName<'static>,
    tls: TlsConnector,
    request: Request<Empty<Bytes>>,
) -> Result<Response<Incoming>, String> {
    let stream = TcpStream::connect(address)
        .await
        .map_err(|error| format!("dial tcp {address}: {}", reason(&error)))?;
    drop(stream.set_nodelay(true));
    let stream = tls
        .connect(server, stream)
        .await
        .map_err(|error| error.to_string())?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    // Ends when the answer is read, or when the upgraded connection is closed.
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to virt-handler ended early");
        }
    });
    sender
        .send_request(request)
        .await
        .map_err(|error| error.to_string())
}

/// The words that clients of the original look for.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        _ => error.to_string(),
    }
}

async fn accepted(
    response: Response<Incoming>,
    wanted: StatusCode,
) -> Result<Response<Incoming>, HandlerError> {
    let code = response.status();
    if code == wanted {
        return Ok(response);
    }
    let text = match timeout(
        PATIENCE,
        Limited::new(response.into_body(), MAX_TEXT).collect(),
    )
    .await
    {
        Ok(Ok(body)) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        _ => String::new(),
    };
    Err(HandlerError::Refused { code, text })
}
