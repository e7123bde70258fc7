//! Plain HTTP to the API server: what was asked, what was answered, nothing in between.
//!
//! Scenarios see codes and bodies as they came, so no typed client stands here. Every call has a limit.

pub mod path;

use std::time::Duration;

use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use serde_json::Value;

/// How the body of a call is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A whole object, or options.
    Json,
    /// RFC 7396.
    MergePatch,
    /// RFC 6902.
    JsonPatch,
    /// Server-side apply; JSON is YAML.
    Apply,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// Path with query.
    pub path: String,
    /// The body and its kind.
    pub body: Option<(Content, Value)>,
}

/// One answer, whatever its code.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// HTTP code.
    pub code: u16,
    /// The body: JSON when it is JSON, text otherwise, null when there is none.
    pub body: Value,
    /// `Warning` headers.
    pub warnings: Vec<String>,
}

/// No answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The request never left: the server cannot be reached. Safe to try again.
    #[error("cannot reach the API server")]
    Unreachable(#[source] Box<kube::Error>),
    /// The request may have been carried out.
    #[error("the API server gave no answer")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The limit passed; the request may have been carried out.
    #[error("no answer within {0:?}")]
    Late(Duration),
    /// The request itself cannot be written.
    #[error("failed to write the request")]
    Request(#[from] http::Error),
}

impl Content {
    fn header(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::MergePatch => "application/merge-patch+json",
            Self::JsonPatch => "application/json-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

impl Call {
    /// A call without a body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body: None,
        }
    }

    /// A read.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// The same with a body.
    pub fn with_body(mut self, content: Content, body: Value) -> Self {
        self.body = Some((content, body));
        self
    }
}

impl Reply {
    /// Whether the code says yes.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// The message of a Status, or the text as it came.
    pub fn message(&self) -> String {
        match self.body.get("message").and_then(Value::as_str) {
            Some(message) => message.to_owned(),
            None => self.body.as_str().unwrap_or_default().to_owned(),
        }
    }
}

/// The API server.
#[derive(Clone)]
pub struct Wire {
    client: Client,
    limit: Duration,
}

impl Wire {
    /// `limit` is how long one call may take.
    pub fn new(client: Client, limit: Duration) -> Self {
        Self { client, limit }
    }

    /// The client underneath, for calls that stream.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Asks and waits for the whole answer.
    pub async fn call(&self, call: &Call) -> Result<Reply, CallError> {
        tokio::time::timeout(self.limit, self.unlimited(call))
            .await
            .unwrap_or(Err(CallError::Late(self.limit)))
    }

    async fn unlimited(&self, call: &Call) -> Result<Reply, CallError> {
        let response = self
            .client
            .send(request(call)?)
            .await
            .map_err(CallError::of)?;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all(header::WARNING);
        let warnings = warnings
            .iter()
            .filter_map(|warning| warning.to_str().ok().map(str::to_owned))
            .collect();
        let bytes = response.into_body().collect().await;
        let bytes = bytes
            .map_err(|source| CallError::Broken(source.into()))?
            .to_bytes();
        Ok(Reply {
            code,
            body: body_of(&bytes),
            warnings,
        })
    }
}

impl CallError {
    /// Sorts the client's errors: only a failed connection proves that nothing was sent.
    pub fn of(error: kube::Error) -> Self {
        let connect = match &error {
            kube::Error::Service(inner) => inner
                .downcast_ref::<hyper_util::client::legacy::Error>()
                .is_some_and(hyper_util::client::legacy::Error::is_connect),
            _ => false,
        };
        if connect {
            Self::Unreachable(Box::new(error))
        } else {
            Self::Broken(error.into())
        }
    }

    /// The chain of causes in one line.
    pub fn text(&self) -> String {
        let mut text = self.to_string();
        let mut next = std::error::Error::source(self);
        while let Some(cause) = next {
            let cause_text = cause.to_string();
            if !text.ends_with(&cause_text) {
                text.push_str(": ");
                text.push_str(&cause_text);
            }
            next = cause.source();
        }
        text
    }
}

fn request(call: &Call) -> Result<Request<Body>, http::Error> {
    // Aggregated actions answer with an empty body and refuse a narrow Accept; the API server itself gives JSON.
    let mut builder = Request::builder()
        .method(call.method.clone())
        .uri(&call.path)
        .header(header::ACCEPT, "*/*");
    let bytes = match &call.body {
        Some((content, body)) => {
            builder = builder.header(header::CONTENT_TYPE, content.header());
            body.to_string().into_bytes()
        }
        None => Vec::new(),
    };
    builder.body(Body::from(bytes))
}

fn body_of(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(b"", Value::Null)]
    #[case(b"{\"a\":1}", json!({"a": 1}))]
    #[case(b"404: Page Not Found", json!("404: Page Not Found"))]
    fn bodies_are_kept_as_they_came(#[case] bytes: &[u8], #[case] wanted: Value) {
        assert_eq!(body_of(bytes), wanted);
    }

    #[test]
    fn a_patch_says_what_it_is() {
        let call = Call::new(Method::PATCH, "/p").with_body(Content::MergePatch, json!({}));
        let request = request(&call).unwrap();
        assert_eq!(
            request.headers()[header::CONTENT_TYPE],
            "application/merge-patch+json"
        );
        assert_eq!(request.headers()[header::ACCEPT], "*/*");
    }

    #[test]
    fn the_message_of_a_status_is_found() {
        let status = json!({"kind": "Status", "message": "VM is already running"});
        let reply = Reply {
            code: 409,
            body: status,
            warnings: Vec::new(),
        };
        assert_eq!(reply.message(), "VM is already running");
        assert!(!reply.is_success());
    }
}
