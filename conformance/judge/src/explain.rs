//! Fills in what someone needs who has to find out why a check did not hold.

use conformance_scenario::{Matcher, model::ObjectRef};

use crate::{
    history::{History, Window},
    limits::Budget,
    timeline::{Row, rows},
    verdict::{DeadlineUsed, Explanation},
};

/// Lines of an object's life that are shown around a failure.
const MOST_ROWS: usize = 30;
/// Lines before the window that are shown, so that a reader sees where it came from.
const ROWS_BEFORE: usize = 3;

/// The life of the object in the window and shortly before.
pub(crate) fn life(history: &History<'_>, object: &ObjectRef, window: Window) -> Vec<Row> {
    let all = rows(history.entries, |kind, version| {
        object.covers(kind, version, history.home)
    });
    let seq = |index: usize| {
        history
            .entries
            .get(index)
            .map_or(u64::MAX, |entry| entry.seq)
    };
    let first = all
        .iter()
        .position(|row| row.seq > seq(window.from.index))
        .unwrap_or(all.len());
    let start = first.saturating_sub(ROWS_BEFORE);
    let end = seq(window.to.index);
    let shown: Vec<Row> = all
        .into_iter()
        .skip(start)
        .filter(|row| row.seq <= end)
        .collect();
    let skip = shown.len().saturating_sub(MOST_ROWS);
    shown.into_iter().skip(skip).collect()
}

/// A failure about an object, with its life and where its last version differs.
pub(crate) fn about(
    history: &History<'_>,
    object: &ObjectRef,
    window: Window,
    summary: String,
    differs: Option<(&Matcher, &serde_json::Value)>,
) -> Explanation {
    let mismatches = differs
        .map(|(matcher, version)| matcher.explain(version))
        .unwrap_or_default();
    Explanation {
        summary,
        object: Some(object.to_string()),
        mismatches: mismatches.into_iter().map(Into::into).collect(),
        timeline: life(history, object, window),
        ..Explanation::default()
    }
}

/// How much of a budget was used between two times.
pub(crate) fn used(budget: &Budget, from: u64, at: u64) -> DeadlineUsed {
    const MILLI: u64 = 1_000_000;
    DeadlineUsed {
        class: budget.class.clone(),
        factor: budget.factor,
        nominal_ms: budget.nominal / MILLI,
        limit_ms: budget.limit / MILLI,
        used_ms: at.saturating_sub(from) / MILLI,
    }
}
