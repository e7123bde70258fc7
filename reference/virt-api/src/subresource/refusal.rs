//! Refusals of calls, worded and coded as clients of the original know them.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use kubevirt_api::names::GROUP;
use serde_json::{Value, json};

/// The kind of the object that a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A VirtualMachine.
    Vm,
    /// A VirtualMachineInstance.
    Vmi,
}

impl Kind {
    /// The word in answers; the original writes the kind where the plural resource would belong.
    fn word(self) -> &'static str {
        match self {
            Self::Vm => "virtualmachine",
            Self::Vmi => "virtualmachineinstance",
        }
    }
}

/// Why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    code: StatusCode,
    reason: &'static str,
    message: String,
    details: Option<Value>,
}

impl Refusal {
    /// 404: there is no such object.
    #[must_use]
    pub fn not_found(kind: Kind, name: &str) -> Self {
        Self {
            code: StatusCode::NOT_FOUND,
            reason: "NotFound",
            message: format!("{}.{GROUP} {name:?} not found", kind.word()),
            details: Some(about(kind, name)),
        }
    }

    /// 409: the object is in a state in which this cannot be done.
    #[must_use]
    pub fn conflict(kind: Kind, name: &str, why: &str) -> Self {
        Self {
            code: StatusCode::CONFLICT,
            reason: "Conflict",
            message: format!(
                "Operation cannot be fulfilled on {}.{GROUP} {name:?}: {why}",
                kind.word()
            ),
            details: Some(about(kind, name)),
        }
    }

    /// 403: this is not done for such an object.
    #[must_use]
    pub fn forbidden(kind: Kind, name: &str, why: &str) -> Self {
        Self {
            code: StatusCode::FORBIDDEN,
            reason: "Forbidden",
            message: format!("{}.{GROUP} {name:?} is forbidden: {why}", kind.word()),
            details: Some(about(kind, name)),
        }
    }

    /// 400: the call itself is wrong.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self {
            code: StatusCode::BAD_REQUEST,
            reason: "BadRequest",
            message: message.into(),
            details: None,
        }
    }

    /// 500: it should have worked.
    #[must_use]
    pub fn internal(message: &str) -> Self {
        Self {
            code: StatusCode::INTERNAL_SERVER_ERROR,
            reason: "InternalError",
            message: format!("Internal error occurred: {message}"),
            details: Some(json!({"causes": [{"message": message}]})),
        }
    }

    /// The HTTP code.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.code.as_u16()
    }

    /// The text for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code(),
        });
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

fn about(kind: Kind, name: &str) -> Value {
    json!({"name": name, "group": GROUP, "kind": kind.word()})
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.code, Json(self.to_json())).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_read_as_recorded() {
        let refusal = Refusal::conflict(Kind::Vm, "vm-a", "VM is already running");
        insta::assert_json_snapshot!(refusal.to_json(), @r#"
        {
          "kind": "Status",
          "apiVersion": "v1",
          "metadata": {},
          "status": "Failure",
          "message": "Operation cannot be fulfilled on virtualmachine.kubevirt.io \"vm-a\": VM is already running",
          "reason": "Conflict",
          "code": 409,
          "details": {
            "name": "vm-a",
            "group": "kubevirt.io",
            "kind": "virtualmachine"
          }
        }
        "#);
        let missing = Refusal::not_found(Kind::Vmi, "x");
        assert_eq!(
            missing.message(),
            "virtualmachineinstance.kubevirt.io \"x\" not found"
        );
        let internal = Refusal::internal("no");
        assert_eq!(internal.to_json()["details"]["causes"][0]["message"], "no");
    }
}
