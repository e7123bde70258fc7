//! Builds scenarios and histories of a few lines.

use std::path::Path;

use conformance_journal::{
    Entry, Event, Pace,
    entry::{Change, ConsoleWhat, Outcome, Phase, ScenarioOutcome},
};
use conformance_judge::{CheckStatus, Limits, Verdict};
use conformance_scenario::{
    Scenario,
    library::parse_scenario,
    spec::{Class, Timeouts},
    yaml::parse_words,
};
use serde_json::{Value, json};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// A scenario with one accepted step and one assertion.
pub(crate) fn scenario(assertion: &str) -> Scenario {
    with_steps(
        "    - {id: s1, get: {kind: Pod, name: p}}",
        &format!("  assertions:\n    - {{id: a1, clause: VM-LIFE-R001, {assertion}}}\n"),
    )
}

pub(crate) fn with_steps(steps: &str, rest: &str) -> Scenario {
    let text = format!(
        "apiVersion: virtmark.dev/v1\nkind: Scenario\nmetadata: {{id: VM-LIFE-0001, title: t, since: '1'}}\nspec:\n  \
         clauses: []\n  level: MUST\n  feature: F\n  steps:\n{steps}\n{rest}"
    );
    parse_scenario(Path::new("x.yaml"), &text).unwrap().value
}

/// Every class: nominal 2 s, hard 10 s.
pub(crate) fn limits(factor: f64) -> Limits {
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
pub(crate) struct History {
    pub(crate) entries: Vec<Entry>,
    t: u64,
}

impl History {
    pub(crate) fn new() -> Self {
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
    pub(crate) fn after_s1() -> Self {
        Self::new()
            .begin("s1")
            .answer("s1", 200, json!({}))
            .end("s1")
    }

    pub(crate) fn put(&mut self, event: Event) {
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

    pub(crate) fn at(mut self, millis: u64) -> Self {
        self.t = millis * 1_000_000;
        self
    }

    pub(crate) fn begin(mut self, step: &str) -> Self {
        self.put(Event::Step {
            step: step.into(),
            phase: Phase::Begin,
            outcome: None,
            detail: None,
        });
        self
    }

    pub(crate) fn end(mut self, step: &str) -> Self {
        self.put(Event::Step {
            step: step.into(),
            phase: Phase::End,
            outcome: Some(Outcome::Ok),
            detail: None,
        });
        self
    }

    pub(crate) fn answer(mut self, step: &str, code: u16, body: Value) -> Self {
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

    pub(crate) fn vmi(self, change: Change, uid: &str, phase: &str) -> Self {
        self.object(change, "VirtualMachineInstance", "vm", uid, phase)
    }

    pub(crate) fn object(
        mut self,
        change: Change,
        kind: &str,
        name: &str,
        uid: &str,
        phase: &str,
    ) -> Self {
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

    pub(crate) fn gap(mut self, kind: &str, from: u64, to: u64) -> Self {
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

    pub(crate) fn console(mut self, client: &str, what: ConsoleWhat, text: &str) -> Self {
        self.put(Event::Console {
            vmi: "vm".into(),
            client: client.into(),
            what,
            text: text.into(),
        });
        self
    }

    pub(crate) fn finish(mut self) -> Vec<Entry> {
        self.put(Event::ScenarioEnd {
            outcome: ScenarioOutcome::Completed,
            reason: None,
        });
        self.entries
    }
}

pub(crate) fn status_of(verdict: &Verdict, id: &str) -> CheckStatus {
    verdict.check(&format!("VM-LIFE-0001.{id}")).unwrap().status
}

/// The VMI runs at last.
pub(crate) const RUNNING: &str = "after: s1, eventually: {object: {kind: VirtualMachineInstance, name: vm}, \
                       match: {status: {phase: Running}}}, within: {class: boot}";
