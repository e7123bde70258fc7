//! A refusal, with the code and causes that clients of the original know.

use serde_json::{Value, json};

use crate::{admit::Cause, default::BadQuantity};

/// The most causes that an answer lists.
const MOST_CAUSES: usize = 10;

/// Why an object is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// HTTP code: 422 for faults of the object, 400 when it cannot be read at all.
    pub code: u16,
    /// For people.
    pub message: String,
    /// For programs; at most ten.
    pub causes: Vec<Cause>,
}

impl Denial {
    /// A refusal for these faults; none when there are none.
    pub fn unless_empty(causes: Vec<Cause>) -> Result<(), Self> {
        if causes.is_empty() {
            Ok(())
        } else {
            Err(Self::of(causes))
        }
    }

    fn of(mut causes: Vec<Cause>) -> Self {
        let more = causes.len().saturating_sub(MOST_CAUSES);
        causes.truncate(MOST_CAUSES);
        let mut messages: Vec<String> = causes.iter().map(|cause| cause.message.clone()).collect();
        if more > 0 {
            messages.push(format!("and {more} more validation errors"));
        }
        Self {
            code: 422,
            message: messages.join(", "),
            causes,
        }
    }

    /// A refusal of something that is no such object.
    pub fn unreadable(error: &serde_json::Error) -> Self {
        Self {
            code: 400,
            message: format!("failed to read the object: {error}"),
            causes: Vec::new(),
        }
    }

    /// The answer's `status`.
    #[must_use]
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if self.code == 422 {
            status["reason"] = json!("Invalid");
            status["details"] = json!({"causes": self.causes});
        }
        status
    }
}

impl From<BadQuantity> for Denial {
    fn from(bad: BadQuantity) -> Self {
        Self {
            code: 400,
            message: format!("{}: {}", bad.field, bad.source),
            causes: Vec::new(),
        }
    }
}
