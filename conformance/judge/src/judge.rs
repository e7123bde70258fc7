//! The pure function from a scenario and a history to a verdict.

use std::collections::BTreeSet;

use conformance_journal::{Entry, Event, entry::ScenarioOutcome};
use conformance_scenario::{
    LocalId, Scenario,
    model::{Assertion, Point},
};

use crate::{
    assertion::{Ask, ask},
    finding::Finding,
    history::{History, Moment, Window},
    limits::Limits,
    step::ask_step,
    verdict::{Blame, Check, CheckKind, CheckStatus, Mark, Status, Verdict},
};

/// Judges one scenario by its entries: those of the scenario and those of the whole run.
pub fn judge(scenario: &Scenario, entries: &[Entry], limits: &Limits) -> Verdict {
    let history = History::read(entries, 0);
    let asked = Asked {
        history: &history,
        limits,
        scenario,
    };
    let checks = asked.checks();
    let (status, blame, reason) = asked.status(&checks);
    let mut marks = Vec::new();
    let mut deadlines = checks.iter().filter_map(|check| check.deadline.as_ref());
    if history.tries > 1 && status == Status::Pass {
        marks.push(Mark::Flaky);
    }
    let in_time = checks
        .iter()
        .filter(|check| check.status == CheckStatus::Pass);
    if in_time
        .filter_map(|check| check.deadline.as_ref())
        .any(|used| used.is_slow())
    {
        marks.push(Mark::Slow);
    }
    if deadlines.any(|used| used.factor > 1.0) {
        marks.push(Mark::Scaled);
    }
    let leaked =
        |entry: &Entry| matches!(&entry.event, Event::Cleanup { leaked, .. } if !leaked.is_empty());
    if entries
        .iter()
        .any(|entry| entry.scenario.is_some() && leaked(entry))
    {
        marks.push(Mark::Leaked);
    }
    Verdict {
        id: scenario.id().to_string(),
        title: scenario.metadata.title.clone(),
        level: scenario.spec.level,
        feature: scenario.spec.feature.clone(),
        digest: history.digest.unwrap_or_default().to_owned(),
        status,
        blame,
        reason,
        marks,
        duration_ms: history.end.t.saturating_sub(history.start.t) / 1_000_000,
        tries: history.tries,
        checks,
    }
}

/// What is still undecided while a scenario runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Checks that time alone will decide, with the moment of each.
    pub waiting: Vec<Waiting>,
    /// Full ids of checks that are refuted already.
    pub refuted: Vec<String>,
}

/// A check that time will decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Full id.
    pub id: String,
    /// Its word.
    pub word: &'static str,
    /// Decided at this moment at the latest, in nanoseconds of the journal's clock.
    pub until: u64,
}

impl Outlook {
    /// The next moment at which something is decided by the mere passing of time.
    pub fn next(&self) -> Option<u64> {
        self.waiting.iter().map(|waiting| waiting.until).min()
    }
}

/// Tells how long recording has to go on, once all steps are done: until nothing is waiting any more.
/// `now` is the present moment on the journal's clock.
pub fn outlook(scenario: &Scenario, entries: &[Entry], limits: &Limits, now: u64) -> Outlook {
    let history = History::read(entries, now);
    let asked = Asked {
        history: &history,
        limits,
        scenario,
    };
    let mut outlook = Outlook::default();
    for assertion in &scenario.spec.assertions {
        let id = scenario.id().join(&assertion.id);
        match asked.assertion(assertion, &mut BTreeSet::new()) {
            Finding::Pending { until } => outlook.waiting.push(Waiting {
                id,
                word: assertion.word.name(),
                until,
            }),
            Finding::Refuted(_) => outlook.refuted.push(id),
            _ => {}
        }
    }
    outlook
}

/// Asks about one step while the scenario runs, so that a barrier means the same to the engine as to the judge.
pub fn step_finding(
    scenario: &Scenario,
    step: &LocalId,
    entries: &[Entry],
    limits: &Limits,
    now: u64,
) -> Finding {
    let history = History::read(entries, now);
    match scenario.step(step) {
        Some(step) => ask_step(&history, limits, scenario, step),
        None => Finding::Broken {
            why: format!("there is no step {step}"),
            blame: Blame::Harness,
        },
    }
}

struct Asked<'h, 'a> {
    history: &'h History<'a>,
    limits: &'h Limits,
    scenario: &'h Scenario,
}

impl Asked<'_, '_> {
    fn checks(&self) -> Vec<Check> {
        let steps = self.scenario.spec.steps.iter().map(|step| {
            let clause = step.clause.as_ref().map(ToString::to_string);
            let from = self
                .history
                .step(step.id.as_str())
                .map_or(self.history.start, |span| span.begin);
            let finding = ask_step(self.history, self.limits, self.scenario, step);
            self.check(
                &step.id,
                CheckKind::Step,
                step.action.word(),
                clause,
                from,
                finding,
            )
        });
        let assertions = self.scenario.spec.assertions.iter().map(|assertion| {
            let from = self
                .moment(&assertion.from, &mut BTreeSet::new())
                .unwrap_or(self.history.start);
            let finding = self.assertion(assertion, &mut BTreeSet::new());
            let clause = Some(assertion.clause.to_string());
            self.check(
                &assertion.id,
                CheckKind::Assertion,
                assertion.word.name(),
                clause,
                from,
                finding,
            )
        });
        steps.chain(assertions).collect()
    }

    fn check(
        &self,
        id: &LocalId,
        kind: CheckKind,
        word: &str,
        clause: Option<String>,
        from: Moment,
        finding: Finding,
    ) -> Check {
        let seq = |index: usize| {
            let last = self.history.entries.len().saturating_sub(1);
            self.history
                .entries
                .get(index.min(last))
                .map_or(0, |entry| entry.seq)
        };
        let mut check = Check {
            id: self.scenario.id().join(id),
            kind,
            word: word.to_owned(),
            clause,
            status: CheckStatus::Pass,
            blame: None,
            deadline: None,
            journal: [seq(from.index), seq(self.history.end.index)],
            explanation: None,
        };
        let mut say = |status, blame, why: String| {
            check.status = status;
            check.blame = blame;
            check.explanation = Some(crate::verdict::Explanation::new(why));
        };
        match finding {
            Finding::Held { index, used, .. } => {
                check.journal[1] = seq(index);
                check.deadline = used;
            }
            Finding::Refuted(mut explanation) => {
                explanation.rerun = format!("virtmark run --id {}", self.scenario.id());
                check.deadline.clone_from(&explanation.deadline);
                check.blame = Some(Blame::Product);
                check.status = CheckStatus::Fail;
                check.explanation = Some(*explanation);
            }
            Finding::Unknown { why, blame } => say(CheckStatus::Inconclusive, Some(blame), why),
            Finding::Pending { .. } | Finding::Open => {
                let why = "the recording was interrupted before this was decided".to_owned();
                say(CheckStatus::Inconclusive, Some(Blame::Harness), why);
            }
            Finding::NotReached { point } => say(
                CheckStatus::NotReached,
                None,
                format!("{point} was never reached"),
            ),
            Finding::Broken { why, blame } => say(CheckStatus::Error, Some(blame), why),
        }
        check
    }

    /// One word for the scenario. Our own fault goes before everything: it is never shown as the platform's.
    fn status(&self, checks: &[Check]) -> (Status, Option<Blame>, Option<String>) {
        let plain =
            |status, blame, reason: Option<&str>| (status, blame, reason.map(str::to_owned));
        match self.history.ended {
            Some((ScenarioOutcome::Skipped, reason)) => {
                return plain(Status::Skipped, None, reason);
            }
            Some((ScenarioOutcome::NotApplicable, reason)) => {
                return plain(Status::NotApplicable, None, reason);
            }
            Some((ScenarioOutcome::Blocked, reason)) => {
                return plain(Status::Blocked, Some(Blame::Environment), reason);
            }
            Some((ScenarioOutcome::Aborted, reason)) => {
                return plain(Status::Error, Some(Blame::Harness), reason);
            }
            _ => {}
        }
        let worst = |status| checks.iter().find(|check| check.status == status);
        let why = |check: &Check| {
            let summary = check
                .explanation
                .as_ref()
                .map_or("", |explanation| explanation.summary.as_str());
            Some(format!("{}: {summary}", check.id))
        };
        if let Some(check) = worst(CheckStatus::Error) {
            return (
                Status::Error,
                check.blame.or(Some(Blame::Harness)),
                why(check),
            );
        }
        if let Some(check) = worst(CheckStatus::Fail) {
            return (Status::Fail, Some(Blame::Product), why(check));
        }
        if self.history.ended.is_none() {
            let reason = "the run was interrupted before this scenario ended".to_owned();
            return (Status::Inconclusive, Some(Blame::Harness), Some(reason));
        }
        if let Some(check) =
            worst(CheckStatus::Inconclusive).or_else(|| worst(CheckStatus::NotReached))
        {
            return (
                Status::Inconclusive,
                check.blame.or(Some(Blame::Environment)),
                why(check),
            );
        }
        if checks.is_empty() {
            return (
                Status::Error,
                Some(Blame::Harness),
                Some("nothing was checked".to_owned()),
            );
        }
        (Status::Pass, None, None)
    }

    fn assertion(&self, assertion: &Assertion, asking: &mut BTreeSet<LocalId>) -> Finding {
        let not_reached = |point: &Point| Finding::NotReached {
            point: point.to_string(),
        };
        if !asking.insert(assertion.id.clone()) {
            return Finding::Broken {
                why: format!("{} waits for itself", assertion.id),
                blame: Blame::Harness,
            };
        }
        let from = self.moment(&assertion.from, asking);
        let to = self.moment(&assertion.to, asking);
        asking.remove(&assertion.id);
        let Some(from) = from else {
            return not_reached(&assertion.from);
        };
        let ended = self.history.ended.is_some();
        let (to, closed, to_end) = match (&assertion.to, to) {
            (Point::End, _) => (self.history.end, ended, true),
            (_, Some(to)) => (to, true, false),
            // The later moment has not come. While the scenario runs it still may.
            (point, None) if ended => return not_reached(point),
            (_, None) => (self.history.end, false, false),
        };
        let window = Window {
            from,
            to,
            closed,
            to_end,
        };
        ask(
            Ask {
                history: self.history,
                limits: self.limits,
                window,
            },
            &assertion.word,
        )
    }

    fn moment(&self, point: &Point, asking: &mut BTreeSet<LocalId>) -> Option<Moment> {
        match point {
            Point::Start => Some(self.history.start),
            Point::End => Some(self.history.end),
            Point::After(id) => self.history.step(id.as_str())?.end,
            Point::At(id) => match self.history.step(id.as_str()) {
                Some(span) => Some(span.begin),
                None => match self.assertion(self.scenario.assertion(id)?, asking) {
                    Finding::Held { at, index, .. } => Some(Moment { index, t: at }),
                    _ => None,
                },
            },
        }
    }
}
