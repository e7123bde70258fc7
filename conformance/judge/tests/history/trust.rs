//! Deadlines, gaps, ends that never came: what the judge must not claim to know.

use conformance_journal::{Event, entry::Change};
use conformance_judge::{Blame, Mark, Status, judge};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use crate::builder::{History, RUNNING, limits, scenario};

const NEVER_FAILED: &str = "after: s1, never: {object: {kind: VirtualMachineInstance, name: vm}, \
                            match: {status: {phase: Failed}}}";

#[rstest]
#[case::in_time(1_000, Status::Pass, vec![])]
#[case::slow(5_000, Status::Pass, vec![Mark::Slow])]
#[case::too_late(10_001, Status::Fail, vec![])]
fn a_deadline_has_a_nominal_and_a_hard_side(
    #[case] millis: u64,
    #[case] wanted: Status,
    #[case] marks: Vec<Mark>,
) {
    let history = History::after_s1()
        .at(millis)
        .vmi(Change::Added, "u1", "Running")
        .at(20_000)
        .finish();
    let verdict = judge(&scenario(RUNNING), &history, &limits(1.0));
    assert_eq!((verdict.status, verdict.marks), (wanted, marks));
}

/// Trap: a node that is ten times slower gives the same verdict, and says so.
#[rstest]
#[case(1.0, Status::Fail)]
#[case(10.0, Status::Pass)]
fn a_slow_machine_is_scaled_and_marked(#[case] factor: f64, #[case] wanted: Status) {
    let history = History::after_s1()
        .at(60_000)
        .vmi(Change::Added, "u1", "Running")
        .at(200_000)
        .finish();
    let verdict = judge(&scenario(RUNNING), &history, &limits(factor));
    assert_eq!(verdict.status, wanted);
    assert_eq!(verdict.marks.contains(&Mark::Scaled), factor > 1.0);
}

#[test]
fn a_limit_of_the_specification_is_never_scaled() {
    let fixed = RUNNING.replace("{class: boot}", "{fixed: 10s, because: grace period}");
    let history = History::after_s1()
        .at(60_000)
        .vmi(Change::Added, "u1", "Running")
        .at(200_000)
        .finish();
    assert_eq!(
        judge(&scenario(&fixed), &history, &limits(10.0)).status,
        Status::Fail
    );
}

/// Trap: a forbidden phase that is shown for 10 ms.
#[test]
fn ten_milliseconds_are_enough() {
    let history = History::after_s1()
        .vmi(Change::Added, "u1", "Running")
        .at(1_000)
        .vmi(Change::Modified, "u1", "Failed")
        .at(1_010)
        .vmi(Change::Modified, "u1", "Running")
        .at(2_000)
        .finish();
    assert_eq!(
        judge(&scenario(NEVER_FAILED), &history, &limits(1.0)).status,
        Status::Fail
    );
}

/// Trap: the API server is away in the middle. Never a pass for what was not seen, never a failure either.
#[rstest]
#[case::never(NEVER_FAILED, Status::Inconclusive)]
#[case::always(
    "after: s1, always: {object: {kind: VirtualMachineInstance, name: vm}, match: {status: {phase: Running}}}, \
                for: {class: settle}",
    Status::Inconclusive
)]
#[case::at_most(
    "after: s1, atMost: {n: 1, objects: {kind: VirtualMachineInstance}}",
    Status::Inconclusive
)]
#[case::unchanged(
    "after: s1.end, between: [s1.end, end], unchanged: {object: {kind: VirtualMachineInstance, name: vm}, \
                   path: metadata.uid}",
    Status::Inconclusive
)]
#[case::exactly(
    "after: s1, exactly: {n: 0, object: {kind: VirtualMachineInstance, name: vm}, path: metadata.uid}",
    Status::Inconclusive
)]
#[case::eventually_seen_anyway(RUNNING, Status::Pass)]
fn a_gap_makes_it_inconclusive(#[case] assertion: &str, #[case] wanted: Status) {
    let assertion = assertion.replace("after: s1.end, between", "between");
    let history = History::new()
        .vmi(Change::Added, "u1", "Running")
        .begin("s1")
        .answer("s1", 200, json!({}))
        .end("s1")
        .at(1_500)
        .gap("VirtualMachineInstance", 500, 1_500)
        .vmi(Change::Modified, "u1", "Running")
        .at(30_000)
        .finish();
    let verdict = judge(&scenario(&assertion), &history, &limits(1.0));
    assert_eq!(verdict.status, wanted, "{:?}", verdict.reason);
    if wanted == Status::Inconclusive {
        assert_eq!(verdict.blame, Some(Blame::Environment));
    }
}

#[rstest]
#[case::short_and_early(1_000, 1_500, Status::Fail)]
#[case::longer_than_a_tenth(1_000, 3_000, Status::Inconclusive)]
#[case::over_the_deadline(9_900, 10_200, Status::Inconclusive)]
#[case::another_kind_is_of_no_concern(0, 0, Status::Fail)]
fn a_deadline_that_passed_while_blind_is_not_held_against_anyone(
    #[case] from: u64,
    #[case] to: u64,
    #[case] wanted: Status,
) {
    let kind = if to == 0 {
        "Pod"
    } else {
        "VirtualMachineInstance"
    };
    let to = if to == 0 { 10_000 } else { to };
    let history = History::after_s1()
        .at(to)
        .gap(kind, from, to)
        .at(20_000)
        .finish();
    assert_eq!(
        judge(&scenario(RUNNING), &history, &limits(1.0)).status,
        wanted
    );
}

#[test]
fn a_shown_failure_stands_whatever_else_was_missed() {
    let history = History::after_s1()
        .vmi(Change::Added, "u1", "Failed")
        .at(1_500)
        .gap("VirtualMachineInstance", 500, 1_500)
        .at(2_000)
        .finish();
    assert_eq!(
        judge(&scenario(NEVER_FAILED), &history, &limits(1.0)).status,
        Status::Fail
    );
}

#[test]
fn a_kind_that_was_not_recorded_is_our_error() {
    let mut history = History::after_s1().at(2_000).finish();
    history.retain(|entry| !matches!(&entry.event, Event::Watch { kind, .. } if kind == "VirtualMachineInstance"));
    let verdict = judge(&scenario(NEVER_FAILED), &history, &limits(1.0));
    assert_eq!(
        (verdict.status, verdict.blame),
        (Status::Error, Some(Blame::Harness))
    );
}

/// Trap: the harness is killed. What it had seen so far is no result.
#[test]
fn without_an_end_there_is_no_pass() {
    let mut history = History::after_s1()
        .at(1_000)
        .vmi(Change::Added, "u1", "Running")
        .finish();
    assert_eq!(
        judge(&scenario(RUNNING), &history, &limits(1.0)).status,
        Status::Pass
    );
    history.pop();
    assert_eq!(
        judge(&scenario(RUNNING), &history, &limits(1.0)).status,
        Status::Inconclusive
    );
}

#[test]
fn an_unreachable_api_server_is_an_error_and_blames_the_environment() {
    let history = History::new()
        .begin("s1")
        .answer("s1", 0, Value::Null)
        .end("s1")
        .finish();
    let verdict = judge(&scenario(RUNNING), &history, &limits(1.0));
    assert_eq!(
        (verdict.status, verdict.blame),
        (Status::Error, Some(Blame::Environment))
    );
    assert!(verdict.reason.unwrap().contains("connection refused"));
}

proptest! {
    /// Wherever the harness is killed, what it had seen by then is never called a pass.
    #[test]
    fn a_history_cut_off_anywhere_never_passes(keep in 0usize..8) {
        let history = History::after_s1().at(1_000).vmi(Change::Added, "u1", "Running").finish();
        prop_assert_eq!(history.len(), 8);
        let verdict = judge(&scenario(RUNNING), &history[..keep], &limits(1.0));
        prop_assert_ne!(verdict.status, Status::Pass);
    }

    /// Wherever a watch was blind for a moment, nobody can say "never".
    #[test]
    fn a_gap_anywhere_takes_never_away(from in 0u64..3_000, length in 0u64..500) {
        let history = History::after_s1()
            .vmi(Change::Added, "u1", "Running")
            .at(4_000)
            .gap("VirtualMachineInstance", from, from + length)
            .finish();
        let verdict = judge(&scenario(NEVER_FAILED), &history, &limits(1.0));
        prop_assert_eq!(verdict.status, Status::Inconclusive);
    }
}
