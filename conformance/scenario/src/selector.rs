//! Label selectors, the equality part of them: `kubevirt.io=virt-launcher,app!=x,key`.

use std::{fmt, str::FromStr};

use serde::Deserialize;
use serde_json::Value;

/// A parsed label selector.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Selector {
    text: String,
    terms: Vec<Term>,
}

/// A text that is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a label selector: expected key=value, key!=value, key or !key, joined by commas"
)]
pub struct SelectorError(String);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Equals(String, String),
    Differs(String, String),
    Has(String),
    Lacks(String),
}

impl Selector {
    /// Whether the labels of this object are selected.
    pub fn selects(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        let label = |key: &str| {
            labels
                .and_then(|labels| labels.get(key))
                .and_then(Value::as_str)
        };
        self.terms.iter().all(|term| match term {
            Term::Equals(key, value) => label(key) == Some(value),
            Term::Differs(key, value) => label(key) != Some(value),
            Term::Has(key) => label(key).is_some(),
            Term::Lacks(key) => label(key).is_none(),
        })
    }

    /// The text for a `labelSelector` query.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let terms: Option<Vec<Term>> = text
            .split(',')
            .map(|term| parse_term(term.trim()))
            .collect();
        let terms = terms.ok_or_else(|| SelectorError(text.to_owned()))?;
        Ok(Self {
            text: text.to_owned(),
            terms,
        })
    }
}

fn parse_term(term: &str) -> Option<Term> {
    let good =
        |key: &str| (!key.is_empty() && !key.contains([' ', '=', '!'])).then(|| key.to_owned());
    if let Some((key, value)) = term.split_once("!=") {
        return Some(Term::Differs(good(key)?, value.to_owned()));
    }
    if let Some((key, value)) = term.split_once('=') {
        return Some(Term::Equals(good(key)?, value.to_owned()));
    }
    match term.strip_prefix('!') {
        Some(key) => Some(Term::Lacks(good(key)?)),
        None => Some(Term::Has(good(term)?)),
    }
}

impl TryFrom<String> for Selector {
    type Error = SelectorError;

    fn try_from(text: String) -> Result<Self, SelectorError> {
        text.parse()
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("a=1", true)]
    #[case("a=2", false)]
    #[case("a!=2", true)]
    #[case("b!=2", true)]
    #[case("a", true)]
    #[case("b", false)]
    #[case("!b,a=1", true)]
    fn selects_by_labels(#[case] text: &str, #[case] wanted: bool) {
        let object = json!({"metadata": {"labels": {"a": "1"}}});
        assert_eq!(text.parse::<Selector>().unwrap().selects(&object), wanted);
    }

    #[rstest]
    #[case("")]
    #[case("=1")]
    #[case("a,,b")]
    #[case("a b")]
    fn refuses(#[case] text: &str) {
        assert!(text.parse::<Selector>().is_err());
    }
}
