//! Reads an answer of the API server: was it a refusal, by which layer, and is that the one that was expected.

use conformance_scenario::{
    Matcher,
    model::step::{Layer, Rejection},
};
use serde_json::Value;

use crate::verdict::{Blame, Explanation, Mismatch};

/// What an unexpected answer says about whose doing it is.
pub(crate) fn blame(code: u16, body: &Value) -> Blame {
    let message = text(body, "message");
    match code {
        401 | 403 | 429 | 502 | 503 | 504 => Blame::Environment,
        // Only strict field validation answers so: a template of ours names a field that does not exist.
        400 if message.contains("strict decoding error") => Blame::Harness,
        500 if message.contains("failed calling webhook") => Blame::Environment,
        _ => Blame::Product,
    }
}

/// Which layer of the API refused. `subresource` tells whether the call went to the aggregated API.
pub fn refused_by(code: u16, body: &Value, subresource: bool) -> Option<Layer> {
    let message = text(body, "message");
    if code < 400 {
        return None;
    }
    if message.starts_with("admission webhook ") && message.contains("denied the request")
        || message.contains("ValidatingAdmissionPolicy")
    {
        return Some(Layer::Admission);
    }
    if code == 403 {
        return Some(if message.contains("exceeded quota") {
            Layer::Quota
        } else {
            Layer::Rbac
        });
    }
    if subresource {
        return Some(Layer::Subresource);
    }
    // The API server's own validation names the object; the decoder in front of it names itself.
    let own = message.contains(" is invalid: ") || message.contains("strict decoding error");
    (own && matches!(code, 400 | 422)).then_some(Layer::Schema)
}

/// Compares a refusal with the one that was expected; nothing when they agree.
pub(crate) fn compare(
    wanted: &Rejection,
    code: u16,
    body: &Value,
    subresource: bool,
) -> Option<Explanation> {
    if code < 400 {
        return Some(Explanation::new(format!(
            "accepted with {code}, though it must be refused with {}",
            wanted.code
        )));
    }
    let mut found = Vec::new();
    let mut differ = |path: &str, expected: String, actual: String| {
        if expected != actual {
            found.push(Mismatch {
                path: path.to_owned(),
                expected,
                actual,
            });
        }
    };
    differ("code", wanted.code.to_string(), code.to_string());
    let reason = body
        .get("reason")
        .and_then(Value::as_str)
        .filter(|reason| !reason.is_empty());
    let show = |reason: Option<&str>| reason.unwrap_or("none").to_owned();
    differ("reason", show(wanted.reason.as_deref()), show(reason));
    let layer = |layer: Option<Layer>| {
        let word = layer.and_then(|layer| serde_json::to_value(layer).ok());
        word.as_ref()
            .and_then(Value::as_str)
            .unwrap_or("no layer that we know")
            .to_owned()
    };
    differ(
        "refused by",
        layer(Some(wanted.by)),
        layer(refused_by(code, body, subresource)),
    );
    let causes = body
        .pointer("/details/causes")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    for cause in &wanted.causes {
        let fits = |found: &&Value| {
            text(found, "field") == cause.field
                && cause
                    .reason
                    .as_deref()
                    .is_none_or(|reason| text(found, "reason") == reason)
        };
        if !causes.iter().any(|found| fits(&found)) {
            let fields: Vec<&str> = causes.iter().map(|found| text(found, "field")).collect();
            found.push(Mismatch {
                path: "details.causes".to_owned(),
                expected: cause.field.clone(),
                actual: if fields.is_empty() {
                    "no causes".to_owned()
                } else {
                    fields.join(", ")
                },
            });
        }
    }
    let message = text(body, "message");
    if let Some(part) = wanted
        .message
        .as_deref()
        .filter(|part| !message.contains(part))
    {
        let (expected, actual) = (format!("text with {part:?}"), format!("{message:?}"));
        found.push(Mismatch {
            path: "message".to_owned(),
            expected,
            actual,
        });
    }
    let summary = format!("refused, but not as it must be: {message}");
    (!found.is_empty()).then(|| Explanation {
        mismatches: found,
        ..Explanation::new(summary)
    })
}

/// Compares an answer's code and body with what was expected; nothing when they agree.
pub(crate) fn compare_reply(
    wanted: Option<u16>,
    matcher: Option<&Matcher>,
    code: u16,
    body: &Value,
) -> Option<Explanation> {
    let code_is_right = wanted.map_or_else(|| (200..300).contains(&code), |wanted| wanted == code);
    if !code_is_right {
        let wanted = wanted.map_or_else(|| "2xx".to_owned(), |wanted| wanted.to_string());
        return Some(Explanation::new(format!(
            "answered {code}, not {wanted}: {}",
            text(body, "message")
        )));
    }
    let mismatches = matcher
        .map(|matcher| matcher.explain(body))
        .unwrap_or_default();
    (!mismatches.is_empty()).then(|| Explanation {
        mismatches: mismatches.into_iter().map(Into::into).collect(),
        ..Explanation::new("the answer's body is not as expected")
    })
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use conformance_scenario::model::step::Cause;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn webhook() -> Value {
        json!({"kind": "Status", "code": 422, "reason": "Invalid",
            "message": "admission webhook \"virtualmachine-validator.kubevirt.io\" denied the request: no",
            "details": {"causes": [{"reason": "FieldValueInvalid", "field": "spec.running"}]}})
    }

    #[rstest]
    #[case(422, webhook(), false, Some(Layer::Admission))]
    #[case(422, json!({"message": "VirtualMachine.kubevirt.io \"vm\" is invalid: spec.running: Invalid value"}), false, Some(Layer::Schema))]
    #[case(400, json!({"message": "strict decoding error: unknown field \"spec.x\""}), false, Some(Layer::Schema))]
    #[case(403, json!({"message": "virtualmachines is forbidden: User \"u\" cannot create"}), false, Some(Layer::Rbac))]
    #[case(403, json!({"message": "exceeded quota: q"}), false, Some(Layer::Quota))]
    #[case(409, json!({"message": "VM is not running"}), true, Some(Layer::Subresource))]
    #[case(500, json!({"message": "failed calling webhook"}), false, None)]
    #[case(201, json!({}), false, None)]
    fn tells_who_refused(
        #[case] code: u16,
        #[case] body: Value,
        #[case] sub: bool,
        #[case] wanted: Option<Layer>,
    ) {
        assert_eq!(refused_by(code, &body, sub), wanted);
    }

    fn wanted() -> Rejection {
        Rejection {
            code: 422,
            reason: Some("Invalid".into()),
            by: Layer::Admission,
            causes: vec![Cause {
                field: "spec.running".into(),
                reason: None,
            }],
            message: None,
        }
    }

    #[test]
    fn the_right_refusal_agrees() {
        assert_eq!(compare(&wanted(), 422, &webhook(), false), None);
    }

    /// Trap: with the webhook down, "an error came back" must not pass.
    #[rstest]
    #[case::accepted(201, json!({}))]
    #[case::webhook_down(500, json!({"reason": "InternalError", "message": "failed calling webhook \"x\""}))]
    #[case::by_schema(422, json!({"reason": "Invalid", "message": "VirtualMachine \"vm\" is invalid: spec.running",
        "details": {"causes": [{"field": "spec.running"}]}}))]
    #[case::other_field(422, json!({"reason": "Invalid", "message": "admission webhook \"w\" denied the request: no",
        "details": {"causes": [{"field": "spec.template"}]}}))]
    #[case::no_causes(422, json!({"reason": "Invalid", "message": "admission webhook \"w\" denied the request: no"}))]
    #[case::forbidden(403, json!({"reason": "Forbidden", "message": "virtualmachines is forbidden"}))]
    fn any_other_refusal_does_not(#[case] code: u16, #[case] body: Value) {
        assert!(compare(&wanted(), code, &body, false).is_some());
    }
}
