//! Whether a node's virt-handler still gives signs of life.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::Node,
    jiff::{SignedDuration, Timestamp},
};
use kube::ResourceExt as _;
use kubevirt_api::names;

/// A node without a heartbeat for so long takes no more VMs.
const LONGEST_SILENCE: SignedDuration = SignedDuration::from_mins(5);

/// What there is to do about a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It never had a virt-handler, or it is marked already.
    NotOurs,
    /// It lives; the silence would be too long after this time.
    Alive { look_again: Duration },
    /// It has been silent for too long.
    Silent,
}

/// Decides. A heartbeat that cannot be read counts as none at all, like a node that never had one.
pub(super) fn decide(node: &Node, now: Timestamp) -> Verdict {
    let schedulable = node.labels().get(names::LABEL_SCHEDULABLE);
    let beat = node
        .annotations()
        .get(names::ANNOTATION_HEARTBEAT)
        .map(|text| text.trim_matches('"'))
        .and_then(|text| text.parse::<Timestamp>().ok());
    let (Some("true"), Some(beat)) = (schedulable.map(String::as_str), beat) else {
        return Verdict::NotOurs;
    };
    let left = LONGEST_SILENCE - now.duration_since(beat);
    if left.is_positive() {
        // A clock that runs ahead on the node must not postpone the next look for long.
        let look_again = left.min(LONGEST_SILENCE).unsigned_abs();
        Verdict::Alive { look_again }
    } else {
        Verdict::Silent
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-12-01T00:10:00Z";

    #[rstest]
    #[case::fresh("true", Some("2026-12-01T00:09:00Z"), Verdict::Alive { look_again: Duration::from_secs(240) })]
    #[case::just_in_time("true", Some("2026-12-01T00:05:01Z"), Verdict::Alive { look_again: Duration::from_secs(1) })]
    #[case::silent("true", Some("2026-12-01T00:05:00Z"), Verdict::Silent)]
    #[case::quoted("true", Some("\"2026-12-01T00:05:00Z\""), Verdict::Silent)]
    #[case::clock_ahead("true", Some("2026-12-02T00:00:00Z"), Verdict::Alive { look_again: Duration::from_secs(300) })]
    #[case::marked_already("false", Some("2026-12-01T00:00:00Z"), Verdict::NotOurs)]
    #[case::never_had_one("true", None, Verdict::NotOurs)]
    #[case::unreadable("true", Some("yesterday"), Verdict::NotOurs)]
    fn judges(#[case] label: &str, #[case] beat: Option<&str>, #[case] want: Verdict) {
        let mut node =
            json!({"metadata": {"name": "n", "labels": {"kubevirt.io/schedulable": label}}});
        if let Some(beat) = beat {
            node["metadata"]["annotations"] = json!({"kubevirt.io/heartbeat": beat});
        }
        let node = serde_json::from_value(node).unwrap();
        assert_eq!(decide(&node, NOW.parse().unwrap()), want);
    }
}
