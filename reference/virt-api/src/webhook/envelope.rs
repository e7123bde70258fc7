//! The AdmissionReview around an object, read and written as plain JSON: a typed reader would turn an
//! object that it does not like into a failure of the webhook.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kubevirt_api::review::{Denial, Operation, Review};
use serde_json::{Value, json};
use thiserror::Error;

/// Why a body is no request.
#[derive(Debug, Error)]
pub enum EnvelopeError {
    /// It is no JSON.
    #[error("failed to read the body as JSON: {0}")]
    Json(serde_json::Error),
    /// It is JSON of another kind.
    #[error("the body is no AdmissionReview with a request")]
    NoRequest,
}

/// A request of the API server.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Id of the request.
    pub uid: String,
    /// Who asks.
    pub user: String,
    operation: String,
    object: Value,
    old: Value,
}

/// What to answer.
#[derive(Clone, Debug)]
pub struct Answer {
    outcome: Result<Value, Denial>,
    warnings: Vec<String>,
}

impl Envelope {
    /// Reads the body of a call.
    pub fn read(body: &[u8]) -> Result<Self, EnvelopeError> {
        let mut review: Value = serde_json::from_slice(body).map_err(EnvelopeError::Json)?;
        let mut request = review["request"].take();
        let uid = request["uid"].as_str().ok_or(EnvelopeError::NoRequest)?;
        Ok(Self {
            uid: uid.to_owned(),
            user: request["userInfo"]["username"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            operation: request["operation"].as_str().unwrap_or_default().to_owned(),
            object: request["object"].take(),
            old: request["oldObject"].take(),
        })
    }

    /// The review that is asked for; a refusal when there is none of that kind.
    pub fn review(&self, by_system: bool) -> Result<Review<'_>, Denial> {
        let operation = match self.operation.as_str() {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            other => {
                return Err(Denial {
                    code: 400,
                    message: format!("operation {other:?} is not reviewed here"),
                    causes: Vec::new(),
                });
            }
        };
        Ok(Review {
            operation,
            object: &self.object,
            old: &self.old,
            by_system,
        })
    }

    /// The answer of a mutating webhook.
    #[must_use]
    pub fn changed(&self, outcome: Result<Value, Denial>) -> Answer {
        Answer {
            outcome,
            warnings: Vec::new(),
        }
    }

    /// The answer of a validating webhook.
    #[must_use]
    pub fn judged(&self, outcome: Result<Vec<String>, Denial>) -> Answer {
        match outcome {
            Ok(warnings) => Answer {
                outcome: Ok(self.object.clone()),
                warnings,
            },
            Err(denial) => Answer {
                outcome: Err(denial),
                warnings: Vec::new(),
            },
        }
    }
}

impl Answer {
    /// The same answer, but never a refusal: what `accept-everything` breaks.
    #[must_use]
    pub fn without_refusal(mut self, envelope: &Envelope) -> Self {
        if self.outcome.is_err() {
            self.outcome = Ok(envelope.object.clone());
        }
        self
    }

    /// The AdmissionReview to send back.
    #[must_use]
    pub fn to_json(&self, envelope: &Envelope) -> Value {
        let mut response = json!({"uid": envelope.uid, "allowed": self.outcome.is_ok()});
        match &self.outcome {
            Ok(object) => {
                let patch = json_patch::diff(&envelope.object, object);
                if !patch.0.is_empty() {
                    // A patch is plain data, so that writing it cannot fail.
                    let text = serde_json::to_vec(&patch).unwrap_or_default();
                    response["patch"] = json!(BASE64_STANDARD.encode(text));
                    response["patchType"] = json!("JSONPatch");
                }
            }
            Err(denial) => response["status"] = denial.to_status(),
        }
        if !self.warnings.is_empty() {
            response["warnings"] = json!(self.warnings);
        }
        json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": response,
        })
    }
}
