//! Keeps secrets out of the journal. It runs in the writer, so that no caller can forget it.

use serde_json::Value;

/// What stands where a secret was.
pub const REDACTED: &str = "[redacted]";

const SECRET_KEYS: [&str; 14] = [
    "authorization",
    "token",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "password",
    "kubeconfig",
    "client-key-data",
    "userdata",
    "userdatabase64",
    "networkdata",
    "networkdatabase64",
    "tls.key",
    "privatekey",
];

/// Replaces what looks like a secret, in place: values of telling keys, `data` of Secrets, and bearer tokens in any text.
pub fn redact(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let is_secret = map.get("kind").and_then(Value::as_str) == Some("Secret");
            for (key, inner) in map.iter_mut() {
                let telling = SECRET_KEYS.contains(&key.to_ascii_lowercase().as_str());
                if telling && !inner.is_object() && !inner.is_array() {
                    hide(inner);
                } else if is_secret && (key == "data" || key == "stringData") {
                    hide_all(inner);
                } else {
                    redact(inner);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(redact),
        Value::String(text) => {
            if let Some(clean) = without_tokens(text) {
                *text = clean;
            }
        }
        _ => {}
    }
}

fn hide(value: &mut Value) {
    if !value.is_null() {
        *value = Value::String(REDACTED.to_owned());
    }
}

fn hide_all(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(hide),
        other => hide(other),
    }
}

/// A JSON Web Token begins with `eyJ` and has two dots; private keys carry their own banner.
fn without_tokens(text: &str) -> Option<String> {
    if text.contains("PRIVATE KEY-----") {
        return Some(REDACTED.to_owned());
    }
    if !text.contains("eyJ") {
        return None;
    }
    let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut found = false;
    while let Some(start) = rest.find("eyJ") {
        let length = rest[start..]
            .find(|c| !belongs(c))
            .unwrap_or(rest.len() - start);
        let candidate = &rest[start..start + length];
        out.push_str(&rest[..start]);
        if candidate.matches('.').count() >= 2 {
            out.push_str(REDACTED);
            found = true;
        } else {
            out.push_str(candidate);
        }
        rest = &rest[start + length..];
    }
    out.push_str(rest);
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const CANARY: &str = "c4n4ry";

    #[rstest]
    #[case(json!({"kind": "Secret", "data": {"a": CANARY}}))]
    #[case(json!({"kind": "Secret", "stringData": {"a": CANARY}}))]
    #[case(json!({"status": {"token": CANARY}}))]
    #[case(json!({"headers": {"Authorization": CANARY}}))]
    #[case(json!({"volumes": [{"cloudInitNoCloud": {"userData": CANARY}}]}))]
    #[case(json!({"volumes": [{"cloudInitNoCloud": {"userDataBase64": CANARY}}]}))]
    #[case(json!(format!("Bearer eyJhbGci.{CANARY}.sig and more")))]
    #[case(json!({"x": format!("-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----")}))]
    fn a_planted_canary_does_not_survive(#[case] mut value: Value) {
        redact(&mut value);
        assert!(!value.to_string().contains(CANARY), "{value}");
        assert!(value.to_string().contains(REDACTED));
    }

    #[rstest]
    #[case(json!({"kind": "ConfigMap", "data": {"a": "b"}}))]
    #[case(json!({"spec": {"automountServiceAccountToken": false}}))]
    #[case(json!({"volumes": [{"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]}))]
    #[case(json!("eyJ is how a token begins"))]
    fn what_is_no_secret_stays(#[case] value: Value) {
        let mut redacted = value.clone();
        redact(&mut redacted);
        assert_eq!(redacted, value);
    }
}
