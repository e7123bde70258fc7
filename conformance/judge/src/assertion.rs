//! One question for each assertion word. `state` asks about how an object is, `change` about how it changes.

mod change;
mod state;

use conformance_scenario::{
    Matcher,
    model::{Deadline, ObjectRef, Word},
};

use crate::{
    explain::{about, used},
    finding::Finding,
    history::{History, Seen, Window},
    limits::{Budget, Limits},
    verdict::{Blame, DeadlineUsed, Explanation},
};

/// Everything that a question is asked with.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'h, 'a> {
    pub(crate) history: &'h History<'a>,
    pub(crate) limits: &'h Limits,
    pub(crate) window: Window,
}

/// Asks the question of an assertion word.
pub(crate) fn ask(ask: Ask<'_, '_>, word: &Word) -> Finding {
    if let Some(broken) = ask.unrecorded(&word.object().kind) {
        return broken;
    }
    match word {
        Word::Eventually {
            state,
            fails_early,
            within,
        } => state::eventually(ask, state, fails_early.as_ref(), within),
        Word::Always { state, hold } => state::always(ask, state, hold.as_ref()),
        Word::Never { state } => state::never(ask, state),
        Word::AtMost {
            n,
            objects,
            matching,
        } => state::at_most(ask, *n, objects, matching.as_ref()),
        Word::Gone { object, within } => state::gone(ask, object, within),
        Word::Settles {
            object,
            quiet,
            within,
        } => change::settles(ask, std::slice::from_ref(object), *quiet, within),
        Word::Sequence { sequence, within } => change::sequence(ask, sequence, within.as_ref()),
        Word::Count { count, times } => change::count(ask, count, *times),
        Word::Changes { field, within } => change::changes(ask, field, within),
        Word::Unchanged { field } => change::unchanged(ask, field),
    }
}

pub(crate) use change::settles;
pub(crate) use state::{absent, eventually};

impl<'a> Ask<'_, 'a> {
    /// A kind without a watch tells nothing: that is our fault, or the author's, never the platform's.
    pub(crate) fn unrecorded(&self, kind: &str) -> Option<Finding> {
        match self.history.watched_since(kind) {
            Some(_) => None,
            None => Some(Finding::Broken {
                why: format!("{kind} was not recorded"),
                blame: Blame::Harness,
            }),
        }
    }

    pub(crate) fn seen(&self, object: &ObjectRef) -> Vec<Seen<'a>> {
        self.history.seen(object)
    }

    /// Where this question may have missed something between the window's start and `to`.
    pub(crate) fn missed(&self, kind: &str, to: u64) -> Option<String> {
        let from = self.window.from.t;
        if let Some(since) = self.history.watched_since(kind)
            && since.index > self.window.from.index
            && since.t > from
        {
            return Some(format!(
                "the watch of {kind} was opened only after the window began"
            ));
        }
        let lost = self.history.lost(kind, from, to)?;
        Some(format!(
            "the watch of {kind} lost continuity for {} ms: {}",
            lost.total / 1_000_000,
            lost.reason
        ))
    }

    /// True so far; the end of the window, or of the run, or a gap decides.
    pub(crate) fn held_to_the_end(&self, kind: &str) -> Finding {
        let to = self.window.to;
        if let Some(why) = self.missed(kind, to.t) {
            return Finding::unknown(why);
        }
        if self.window.closed {
            Finding::Held {
                at: to.t,
                index: to.index,
                used: None,
            }
        } else {
            Finding::Open
        }
    }

    /// It came true at this line.
    pub(crate) fn held_at(&self, at: u64, index: usize, budget: &Budget) -> Finding {
        Finding::Held {
            at,
            index,
            used: Some(self.used(budget, at)),
        }
    }

    pub(crate) fn used(&self, budget: &Budget, at: u64) -> DeadlineUsed {
        used(budget, self.window.from.t, at)
    }

    /// It has not come true: too late, too early to say, or not seen.
    pub(crate) fn not_yet(
        &self,
        object: &ObjectRef,
        within: &Deadline,
        failure: impl FnOnce() -> Explanation,
    ) -> Finding {
        let budget = self.limits.budget(within);
        let from = self.window.from.t;
        let deadline = from.saturating_add(budget.limit);
        let to = self.window.to;
        if to.t < deadline {
            if !self.window.closed {
                return Finding::Pending { until: deadline };
            }
            if self.window.to_end {
                return Finding::unknown("recording ended before the deadline");
            }
        }
        if let Some(lost) = self.history.lost(&object.kind, from, deadline) {
            // A short loss long before the deadline does not excuse: the watch has shown the present state since.
            let covers_deadline = lost.last >= deadline.min(to.t);
            if covers_deadline || lost.total > budget.limit / 10 {
                let lost = lost.total / 1_000_000;
                return Finding::unknown(format!(
                    "the watch was interrupted for {lost} ms while waiting"
                ));
            }
        }
        let mut explanation = failure();
        explanation.deadline = Some(self.used(&budget, deadline.min(to.t)));
        Finding::Refuted(Box::new(explanation))
    }

    pub(crate) fn deadline(&self, within: &Deadline) -> (Budget, u64) {
        let budget = self.limits.budget(within);
        let deadline = self.window.from.t.saturating_add(budget.limit);
        (budget, deadline)
    }

    /// Refuted by something that was seen.
    pub(crate) fn refuted(
        &self,
        object: &ObjectRef,
        summary: String,
        differs: Option<(&Matcher, Seen<'a>)>,
    ) -> Finding {
        let differs = differs.and_then(|(matcher, seen)| Some((matcher, seen.state?)));
        Finding::Refuted(Box::new(about(
            self.history,
            object,
            self.window,
            summary,
            differs,
        )))
    }
}

/// Whether an object is in a state; without a matcher, existence is enough.
pub(crate) fn is_in(matching: Option<&Matcher>, seen: &Seen<'_>) -> bool {
    seen.state
        .is_some_and(|state| matching.is_none_or(|matcher| matcher.matches(state)))
}
