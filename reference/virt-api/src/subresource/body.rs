//! The options in a call's body: JSON or YAML, or nothing at all.

use serde::de::DeserializeOwned;

use super::refusal::Refusal;

/// Reads the options; none are given by an empty body.
pub(super) fn options<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, Refusal> {
    let wrong = |what: String| {
        Refusal::bad_request(format!(
            "Can not unmarshal Request body to struct, error: {what}"
        ))
    };
    let text = str::from_utf8(body).map_err(|error| wrong(error.to_string()))?;
    if text.trim().is_empty() {
        return Ok(T::default());
    }
    // JSON first: its messages are shorter, and nearly all clients send it.
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| wrong(error.to_string()));
    }
    serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))
}

/// Whether the call is to be checked only.
pub(super) fn is_dry_run(words: Option<&Vec<String>>) -> Result<bool, Refusal> {
    let words = words.map(Vec::as_slice).unwrap_or_default();
    match words.iter().find(|word| *word != "All") {
        Some(word) => Err(Refusal::internal(&format!(
            "PatchOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: {word:?}: supported values: \"All\""
        ))),
        None => Ok(!words.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::v1::StartOptions;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing("", None)]
    #[case::blanks(" \n", None)]
    #[case::json(r#"{"paused": true}"#, Some(true))]
    #[case::yaml("paused: true\n", Some(true))]
    #[case::other_fields(r#"{"kind": "StartOptions"}"#, None)]
    fn options_are_read(#[case] body: &str, #[case] paused: Option<bool>) {
        assert_eq!(
            options::<StartOptions>(body.as_bytes()).unwrap().paused,
            paused
        );
    }

    #[rstest]
    #[case(br#"{"paused": "banana"}"#.as_slice())]
    #[case(b"{")]
    #[case(b"garbage")]
    #[case(b"\xff")]
    fn other_bodies_are_bad_requests(#[case] body: &[u8]) {
        let refusal = options::<StartOptions>(body).unwrap_err();
        assert_eq!(refusal.code(), 400);
        assert!(
            refusal
                .message()
                .starts_with("Can not unmarshal Request body to struct")
        );
    }

    #[rstest]
    #[case(None, Some(false))]
    #[case(Some(vec![]), Some(false))]
    #[case(Some(vec!["All".to_owned()]), Some(true))]
    #[case(Some(vec!["Banana".to_owned()]), None)]
    fn only_all_is_a_dry_run(#[case] words: Option<Vec<String>>, #[case] dry: Option<bool>) {
        assert_eq!(is_dry_run(words.as_ref()).ok(), dry);
    }
}
