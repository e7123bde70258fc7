//! The judge on small hand-written histories: what it must notice, and what it must not claim to know.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has to stop")]

use std::path::Path;

use conformance_journal::{
    Entry, Event, Pace,
    entry::{Change, ConsoleWhat, Outcome, Phase, ScenarioOutcome},
};
use conformance_judge::{Blame, CheckStatus, Limits, Mark, Status, Verdict, judge, outlook};
use conformance_scenario::{
    Scenario,
    library::parse_scenario,
    spec::{Class, Timeouts},
    yaml::parse_words,
};
use rstest::rstest;
use serde_json::{Value, json};

const SECOND: u64 = 1_000_000_000;

/// A scenario with one accepted step and one assertion.
fn scenario(assertion: &str) -> Scenario {
    with_steps(
        "    - {id: s1, get: {kind: Pod, name: p}}",
        &format!("  assertions:\n    - {{id: a1, clause: VM-LIFE-R001, {assertion}}}\n"),
    )
}

fn with_steps(steps: &str, rest: &str) -> Scenario {
    let text = format!(
        "apiVersion: virtmark.dev/v1\nkind: Scenario\nmetadata: {{id: VM-LIFE-0001, title: t, since: '1'}}\nspec:\n  \
         clauses: []\n  level: MUST\n  feature: F\n  steps:\n{steps}\n{rest}"
    );
    parse_scenario(Path::new("x.yaml"), &text).unwrap().value
}

/// Every class: nominal 2 s, hard 10 s.
fn limits(factor: f64) -> Limits {
    let rows: String = Class::ALL
        .iter()
        .map(|class| format!("  {class}: {{nominal: 2s, hard: 10s}}\n"))
        .collect();
    let timeouts: Timeouts =
        parse_words(Path::new("t.yaml"), &format!("classes:\n{rows}")).unwrap();
    Limits {
        timeouts,
        pace: Pace::uniform(factor, Class::ALL.iter().map(ToString::to_string)),
    }
}

/// Builds a history line by line; `at` sets the clock in milliseconds.
struct History {
    entries: Vec<Entry>,
    t: u64,
}

impl History {
    fn new() -> Self {
        let mut history = Self {
            entries: Vec::new(),
            t: 0,
        };
        history.put(Event::ScenarioStart {
            digest: "d".into(),
            namespace: Some("ns".into()),
        });
        for kind in ["Pod", "VirtualMachineInstance"] {
            let watch = Event::Watch {
                kind: kind.into(),
                namespace: None,
                selector: None,
                resource_version: "1".into(),
            };
            history.put(watch);
        }
        history
    }

    /// With step s1 begun, answered and ended at once.
    fn after_s1() -> Self {
        Self::new()
            .begin("s1")
            .answer("s1", 200, json!({}))
            .end("s1")
    }

    fn put(&mut self, event: Event) {
        let seq = u64::try_from(self.entries.len()).unwrap();
        let wall = "2026-01-01T00:00:00Z".parse().unwrap();
        self.entries.push(Entry {
            seq,
            t: self.t,
            wall,
            run: "r".into(),
            scenario: Some("VM-LIFE-0001".into()),
            event,
        });
    }

    fn at(mut self, millis: u64) -> Self {
        self.t = millis * 1_000_000;
        self
    }

    fn begin(mut self, step: &str) -> Self {
        self.put(Event::Step {
            step: step.into(),
            phase: Phase::Begin,
            outcome: None,
            detail: None,
        });
        self
    }

    fn end(mut self, step: &str) -> Self {
        self.put(Event::Step {
            step: step.into(),
            phase: Phase::End,
            outcome: Some(Outcome::Ok),
            detail: None,
        });
        self
    }

    fn answer(mut self, step: &str, code: u16, body: Value) -> Self {
        let error = (code == 0).then(|| "connection refused".to_owned());
        self.put(Event::Response {
            step: Some(step.into()),
            id: 0,
            code,
            body,
            error,
        });
        self
    }

    fn vmi(self, change: Change, uid: &str, phase: &str) -> Self {
        self.object(change, "VirtualMachineInstance", "vm", uid, phase)
    }

    fn object(mut self, change: Change, kind: &str, name: &str, uid: &str, phase: &str) -> Self {
        let labels = json!({"kubevirt.io": "virt-launcher"});
        let object = json!({"kind": kind, "status": {"phase": phase},
            "metadata": {"name": name, "namespace": "ns", "uid": uid, "labels": labels}});
        self.put(Event::Observe {
            change,
            kind: kind.into(),
            object,
        });
        self
    }

    fn gap(mut self, kind: &str, from: u64, to: u64) -> Self {
        let (from, to) = (from * 1_000_000, to * 1_000_000);
        self.put(Event::Gap {
            kind: kind.into(),
            namespace: None,
            from,
            to,
            reason: "connection lost".into(),
        });
        self
    }

    fn console(mut self, client: &str, what: ConsoleWhat, text: &str) -> Self {
        self.put(Event::Console {
            vmi: "vm".into(),
            client: client.into(),
            what,
            text: text.into(),
        });
        self
    }

    fn finish(mut self) -> Vec<Entry> {
        self.put(Event::ScenarioEnd {
            outcome: ScenarioOutcome::Completed,
            reason: None,
        });
        self.entries
    }
}

fn status_of(verdict: &Verdict, id: &str) -> CheckStatus {
    verdict.check(&format!("VM-LIFE-0001.{id}")).unwrap().status
}

const RUNNING: &str = "after: s1, eventually: {object: {kind: VirtualMachineInstance, name: vm}, \
                       match: {status: {phase: Running}}}, within: {class: boot}";
const NEVER_FAILED: &str = "after: s1, never: {object: {kind: VirtualMachineInstance, name: vm}, \
                            match: {status: {phase: Failed}}}";

#[rstest]
#[case::in_time(1_000, Status::Pass, vec![])]
#[case::slow(5_000, Status::Pass, vec![Mark::Slow])]
#[case::too_late(10_001, Status::Fail, vec![Mark::Slow])]
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
