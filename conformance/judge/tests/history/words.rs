//! What each word means.

use conformance_journal::entry::{Change, ConsoleWhat};
use conformance_judge::{CheckStatus, Status, judge, outlook};
use rstest::rstest;
use serde_json::json;

use crate::builder::{History, RUNNING, SECOND, limits, scenario, status_of, with_steps};

const REFUSAL: &str = "    - {id: control, get: {kind: Pod, name: p}}\n    \
     - {id: s1, clause: VM-ADM-R001, get: {kind: Pod, name: q}, expectRejection: {code: 422, reason: Invalid, by: admission}}";

/// Trap: a negative test without its webhook, or without its control, does not pass.
#[rstest]
#[case::right(
    200,
    422,
    "admission webhook \"w\" denied the request: no",
    CheckStatus::Pass
)]
#[case::accepted(200, 201, "", CheckStatus::Fail)]
#[case::webhook_down(200, 500, "failed calling webhook \"w\"", CheckStatus::Fail)]
#[case::by_schema(
    200,
    422,
    "Pod \"q\" is invalid: spec.x: Invalid value",
    CheckStatus::Fail
)]
#[case::control_refused(
    422,
    422,
    "admission webhook \"w\" denied the request: no",
    CheckStatus::Inconclusive
)]
#[case::no_answer(200, 0, "", CheckStatus::Error)]
fn a_refusal_proves_something_only_beside_its_control(
    #[case] control: u16,
    #[case] code: u16,
    #[case] message: &str,
    #[case] wanted: CheckStatus,
) {
    let reason = if code == 422 {
        "Invalid"
    } else {
        "InternalError"
    };
    let history = History::new()
        .begin("control")
        .answer("control", control, json!({}))
        .end("control")
        .begin("s1")
        .answer("s1", code, json!({"reason": reason, "message": message}))
        .end("s1")
        .finish();
    let verdict = judge(&with_steps(REFUSAL, ""), &history, &limits(1.0));
    assert_eq!(status_of(&verdict, "s1"), wanted);
}

const TWO_CLIENTS: &str = "    - {id: s1, console: {vmi: vm, client: a, send: echo hi, expect: \"hi\", within: {class: api}}}\n    \
     - {id: s2, console: {vmi: vm, client: b, send: echo ho, expect: \"ho\", within: {class: api}}}\n    \
     - {id: s3, console: {vmi: vm, client: a, expectClosed: true, within: {class: api}}}";

#[rstest]
#[case::replaced(true, "ho", [CheckStatus::Pass, CheckStatus::Pass, CheckStatus::Pass])]
#[case::both_stay(false, "ho", [CheckStatus::Pass, CheckStatus::Pass, CheckStatus::Fail])]
#[case::dumb(true, "", [CheckStatus::Pass, CheckStatus::Fail, CheckStatus::Pass])]
fn a_second_console_client_replaces_the_first(
    #[case] closed: bool,
    #[case] heard: &str,
    #[case] wanted: [CheckStatus; 3],
) {
    let mut history = History::new()
        .begin("s1")
        .console("a", ConsoleWhat::Opened, "")
        .console("a", ConsoleWhat::Sent, "echo hi\n")
        .console("a", ConsoleWhat::Received, "h")
        .console("a", ConsoleWhat::Received, "i\n")
        .end("s1")
        .begin("s2")
        .console("b", ConsoleWhat::Opened, "");
    if closed {
        history = history.console("a", ConsoleWhat::Closed, "replaced");
    }
    let history = history
        .console("b", ConsoleWhat::Sent, "echo ho\n")
        .console("b", ConsoleWhat::Received, heard)
        .end("s2")
        .begin("s3")
        .end("s3")
        .at(30_000)
        .finish();
    let verdict = judge(&with_steps(TWO_CLIENTS, ""), &history, &limits(1.0));
    assert_eq!(["s1", "s2", "s3"].map(|id| status_of(&verdict, id)), wanted);
}

const ORDER: &str = "after: s1, sequence: {object: {kind: VirtualMachineInstance, name: vm}, path: status.phase, \
                     order: [Pending, Scheduling, Running], skippable: [Scheduling], never: [Failed]}, within: {class: boot}";

#[rstest]
#[case::all(&["Pending", "Scheduling", "Running"], Status::Pass)]
#[case::repeated(&["Pending", "Pending", "Running", "Running"], Status::Pass)]
#[case::skippable_left_out(&["Pending", "Running"], Status::Pass)]
#[case::required_left_out(&["Scheduling", "Running"], Status::Fail)]
#[case::wrong_order(&["Running", "Pending"], Status::Fail)]
#[case::back_again(&["Pending", "Running", "Pending"], Status::Fail)]
#[case::forbidden(&["Pending", "Failed", "Running"], Status::Fail)]
#[case::forbidden_at_last(&["Pending", "Running", "Failed"], Status::Fail)]
#[case::unknown_value(&["Pending", "Odd", "Running"], Status::Fail)]
#[case::not_finished(&["Pending"], Status::Fail)]
fn a_sequence_has_an_order(#[case] phases: &[&str], #[case] wanted: Status) {
    let mut history = History::after_s1();
    for phase in phases {
        history = history.vmi(Change::Modified, "u1", phase);
    }
    let verdict = judge(&scenario(ORDER), &history.at(20_000).finish(), &limits(1.0));
    assert_eq!(verdict.status, wanted, "{:?}", verdict.reason);
}

const GONE: &str =
    "after: s1, gone: {object: {kind: VirtualMachineInstance, name: vm}}, within: {class: delete}";
const CHANGES: &str = "after: s1, changes: {object: {kind: VirtualMachineInstance, name: vm}, path: metadata.uid}, within: {class: boot}";
const ONCE: &str = "after: s1, exactly: {n: 1, object: {kind: VirtualMachineInstance, name: vm}, path: metadata.uid}";

#[rstest]
#[case::stays(&[("u1", false)], Status::Fail, Status::Fail, Status::Fail)]
#[case::deleted(&[("u1", true)], Status::Pass, Status::Fail, Status::Fail)]
#[case::made_again(&[("u1", true), ("u2", false)], Status::Pass, Status::Pass, Status::Pass)]
#[case::deletion_not_seen(&[("u2", false)], Status::Pass, Status::Pass, Status::Pass)]
#[case::made_twice(&[("u1", true), ("u2", false), ("u2", true), ("u3", false)], Status::Pass, Status::Pass, Status::Fail)]
fn one_name_may_have_several_lives(
    #[case] lives: &[(&str, bool)],
    #[case] gone: Status,
    #[case] changes: Status,
    #[case] once: Status,
) {
    let mut history = History::new()
        .vmi(Change::Added, "u1", "Running")
        .begin("s1")
        .answer("s1", 200, json!({}))
        .end("s1");
    for (uid, deleted) in lives {
        let change = if *deleted {
            Change::Deleted
        } else {
            Change::Modified
        };
        history = history.vmi(change, uid, "Running");
    }
    let history = history.at(20_000).finish();
    for (assertion, wanted) in [(GONE, gone), (CHANGES, changes), (ONCE, once)] {
        assert_eq!(
            judge(&scenario(assertion), &history, &limits(1.0)).status,
            wanted,
            "{assertion}"
        );
    }
}

#[rstest]
#[case::one_after_another(&[("a", "Running"), ("a", "Succeeded"), ("b", "Running")], Status::Pass)]
#[case::two_at_once(&[("a", "Running"), ("b", "Pending"), ("a", "Succeeded")], Status::Fail)]
fn never_two_launchers_alive(#[case] pods: &[(&str, &str)], #[case] wanted: Status) {
    let alive = "atMost: {n: 1, objects: {kind: Pod, selector: kubevirt.io=virt-launcher}, \
                 match: {status: {phase: {$not: {$in: [Succeeded, Failed]}}}}}";
    let mut history = History::after_s1();
    for (name, phase) in pods {
        history = history.object(Change::Modified, "Pod", name, name, phase);
    }
    assert_eq!(
        judge(&scenario(alive), &history.at(1_000).finish(), &limits(1.0)).status,
        wanted
    );
}

const SETTLES: &str = "after: s1, settles: {object: {kind: VirtualMachineInstance, name: vm}, quiet: 3s}, within: {class: settle}";

#[rstest]
#[case::quiet_at_once(&[], Status::Pass)]
#[case::quiet_later(&[1_000, 2_000], Status::Pass)]
#[case::never_quiet(&[2_000, 4_000, 6_000, 8_000, 10_000, 12_000], Status::Fail)]
fn settling_takes_a_quiet_while(#[case] changes: &[u64], #[case] wanted: Status) {
    let mut history = History::after_s1();
    for millis in changes {
        history = history.at(*millis).vmi(Change::Modified, "u1", "Running");
    }
    assert_eq!(
        judge(
            &scenario(SETTLES),
            &history.at(13_000).finish(),
            &limits(1.0)
        )
        .status,
        wanted
    );
}

#[test]
fn the_outlook_says_how_long_to_go_on() {
    let running = scenario(RUNNING);
    let history = History::after_s1()
        .at(500)
        .vmi(Change::Added, "u1", "Pending")
        .entries;
    let early = outlook(&running, &history, &limits(1.0), SECOND);
    assert_eq!(early.next(), Some(10 * SECOND));
    let late = outlook(&running, &history, &limits(1.0), 11 * SECOND);
    assert_eq!(
        (late.next(), late.refuted),
        (None, vec!["VM-LIFE-0001.a1".to_owned()])
    );
    let history = History::after_s1()
        .at(500)
        .vmi(Change::Added, "u1", "Running")
        .entries;
    assert_eq!(
        outlook(&running, &history, &limits(1.0), SECOND).next(),
        None
    );
}

#[test]
fn a_failure_says_what_was_expected_and_what_was_seen() {
    let history = History::after_s1()
        .at(500)
        .vmi(Change::Added, "u1", "Pending")
        .at(20_000)
        .finish();
    let verdict = judge(&scenario(RUNNING), &history, &limits(1.0));
    let explanation = verdict
        .check("VM-LIFE-0001.a1")
        .unwrap()
        .explanation
        .clone()
        .unwrap();
    insta::assert_yaml_snapshot!(explanation);
}
