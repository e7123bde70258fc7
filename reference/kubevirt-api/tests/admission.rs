//! Requests recorded on the original, replayed: same verdict, same causes, same defaults.

use kubevirt_api::{
    config::ClusterConfig,
    review::{self, Denial, Operation, Review},
};
use serde_json::{Value, json};

const SERVED: &str = include_str!("fixtures/admission/served.json");
const REMAINDER: &str = include_str!("fixtures/admission/remainder.json");

fn rows(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// What both webhooks make of a new object, with the name of the one that refuses.
fn admit(kind: &str, sent: &Value) -> Result<(Value, Vec<String>), (&'static str, Denial)> {
    let config = ClusterConfig::default();
    let mut id = || "00000000-0000-0000-0000-000000000000".to_owned();
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH);
    let request = |object| Review {
        operation: Operation::Create,
        object,
        old: &Value::Null,
        by_system: false,
    };
    if kind == "VirtualMachine" {
        let object = review::mutate_vm(&request(sent), &config, &mut id)
            .map_err(|denial| ("virtualmachines-mutator.kubevirt.io", denial))?;
        let warnings = review::validate_vm(&request(&object), &config)
            .map_err(|denial| ("virtualmachine-validator.kubevirt.io", denial))?;
        Ok((object, warnings))
    } else {
        let object = review::mutate_vmi(&request(sent), &config, &mut id, &now)
            .map_err(|denial| ("virtualmachineinstances-mutator.kubevirt.io", denial))?;
        let warnings = review::validate_new_vmi(&request(&object), &config).map_err(|denial| {
            (
                "virtualmachineinstances-create-validator.kubevirt.io",
                denial,
            )
        })?;
        Ok((object, warnings))
    }
}

#[test]
fn recorded_requests_get_the_recorded_answer() {
    let rows = rows(SERVED);
    assert!(rows.len() > 100, "the recording is there");
    let problems: Vec<String> = rows.iter().filter_map(problem).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn problem(row: &Value) -> Option<String> {
    let case = &row["case"];
    let answer = admit(row["kind"].as_str().unwrap_or_default(), &row["sent"]);
    match (row["code"].as_u64(), answer) {
        (Some(201), Ok((object, warnings))) => {
            let (expected, found) = (shown(&row["accepted_spec"]), shown(&object["spec"]));
            let told: Vec<Value> = warnings.into_iter().map(Value::from).collect();
            // Unknown fields are the API server's to warn of.
            let mut expected_told = row["warnings"].as_array().cloned().unwrap_or_default();
            expected_told.retain(|w| !w.as_str().is_some_and(|w| w.starts_with("unknown field")));
            (expected != found || told != expected_told).then(|| {
                format!("{case}: expected {expected} {expected_told:?}\n   found {found} {told:?}")
            })
        }
        (Some(201), Err((by, denial))) => {
            Some(format!("{case}: refused by {by}: {}", denial.message))
        }
        (_, Ok(_)) => Some(format!("{case}: accepted")),
        (code, Err((by, denial))) => {
            let causes = json!(denial.causes);
            let same = code == Some(u64::from(denial.code))
                && sorted(&causes) == sorted(&row["causes"])
                && by == row["by"];
            (!same).then(|| {
                format!(
                    "{case}: {} {by} {causes}\n  expected {} {} {}",
                    denial.code, row["code"], row["by"], row["causes"]
                )
            })
        }
    }
}

/// The original's order of causes has no rule that a client could rely on.
fn sorted(causes: &Value) -> Vec<String> {
    let causes = causes.as_array().into_iter().flatten();
    let mut texts: Vec<String> = causes.map(Value::to_string).collect();
    texts.sort();
    texts
}

/// Random identities look alike, and a field that the schema does not know has been pruned.
fn shown(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for at in ["/domain", "/template/spec/domain"] {
        if let Some(Value::Object(domain)) = spec.pointer_mut(at) {
            domain.remove("bananas");
            for name in ["uuid", "serial"] {
                let identity = domain.get_mut("firmware").and_then(|f| f.get_mut(name));
                if let Some(identity) =
                    identity.filter(|id| id.as_str().is_some_and(|id| id.len() == 36))
                {
                    *identity = json!("random");
                }
            }
        }
    }
    spec
}

#[test]
fn what_is_left_out_has_a_reason() {
    for row in rows(REMAINDER) {
        assert!(
            row["reason"]
                .as_str()
                .is_some_and(|reason| reason.len() > 10),
            "{row}"
        );
    }
}
