//! Lines of a watch, from bytes to meaning. Bytes come in any pieces; a line counts when its end is there.

use conformance_journal::entry::Change;
use serde_json::Value;

/// What one line says.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A version of an object.
    Seen(Change, Value),
    /// Only the resource version moved on.
    Bookmark(String),
    /// The server has forgotten where we were: list again.
    Expired(String),
    /// Something else is wrong with this watch.
    Trouble(String),
}

/// Collects bytes until lines are complete.
#[derive(Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    /// Takes bytes; gives the lines that they complete.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Line> {
        self.pending.extend_from_slice(bytes);
        let mut found = Vec::new();
        let mut start = 0;
        while let Some(length) = self.pending[start..].iter().position(|&byte| byte == b'\n') {
            let line = &self.pending[start..start + length];
            if !line.iter().all(u8::is_ascii_whitespace) {
                found.push(decode(line));
            }
            start += length + 1;
        }
        self.pending.drain(..start);
        found
    }
}

/// The resource version of an object or a list.
pub fn resource_version(object: &Value) -> Option<&str> {
    object.pointer("/metadata/resourceVersion")?.as_str()
}

fn decode(line: &[u8]) -> Line {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else {
        return Line::Trouble("a line that is not an object".to_owned());
    };
    let object = fields.remove("object").unwrap_or_default();
    match fields.get("type").and_then(Value::as_str) {
        Some("ADDED") => Line::Seen(Change::Added, object),
        Some("MODIFIED") => Line::Seen(Change::Modified, object),
        Some("DELETED") => Line::Seen(Change::Deleted, object),
        Some("BOOKMARK") => match resource_version(&object) {
            Some(version) => Line::Bookmark(version.to_owned()),
            None => Line::Trouble("a bookmark without a resource version".to_owned()),
        },
        Some("ERROR") => trouble(&object),
        other => Line::Trouble(format!("unknown type {other:?}")),
    }
}

fn trouble(status: &Value) -> Line {
    let message = status.get("message").and_then(Value::as_str);
    let message = message.unwrap_or("no message").to_owned();
    let code = status.get("code").and_then(Value::as_u64);
    let reason = status.get("reason").and_then(Value::as_str);
    if code == Some(410) || matches!(reason, Some("Expired" | "Gone")) {
        Line::Expired(message)
    } else {
        Line::Trouble(message)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const STREAM: &str = concat!(
        r#"{"type":"ADDED","object":{"metadata":{"name":"ä"}}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}"#,
        "\n",
        r#"{"type":"ERROR","object":{"code":410,"message":"too old"}}"#,
        "\n",
    );

    fn wanted() -> Vec<Line> {
        vec![
            Line::Seen(Change::Added, json!({"metadata": {"name": "ä"}})),
            Line::Bookmark("7".to_owned()),
            Line::Expired("too old".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(cuts in prop::collection::vec(0..STREAM.len(), 0..8)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut lines = Lines::default();
            let (mut at, mut found) = (0, Vec::new());
            for cut in cuts.into_iter().chain([STREAM.len()]) {
                found.extend(lines.take(&STREAM.as_bytes()[at..cut]));
                at = cut;
            }
            prop_assert_eq!(found, wanted());
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            Lines::default().take(&bytes);
        }
    }

    #[rstest]
    #[case(r#"{"type":"ERROR","object":{"reason":"Expired"}}"#, Line::Expired("no message".into()))]
    #[case(r#"{"type":"ERROR","object":{"code":500,"message":"oops"}}"#, Line::Trouble("oops".into()))]
    #[case(r#"{"type":"BOOKMARK","object":{}}"#, Line::Trouble("a bookmark without a resource version".into()))]
    #[case("garbage", Line::Trouble("a line that is not an object".into()))]
    fn trouble_is_told_apart(#[case] text: &str, #[case] wanted: Line) {
        assert_eq!(
            Lines::default().take(format!("{text}\n").as_bytes()),
            [wanted]
        );
    }

    #[test]
    fn an_unfinished_line_says_nothing() {
        assert!(Lines::default().take(br#"{"type":"ADDED"}"#).is_empty());
    }
}
