//! The lines of one scenario's journal, put in an order that questions can be asked of.
//!
//! Order is the order of lines. Time is only compared with deadlines: two lines may carry the same nanosecond.

use std::collections::BTreeMap;

use conformance_journal::{
    Entry, Event,
    entry::{Change, ConsoleWhat, Outcome, Phase, ScenarioOutcome},
};
use conformance_scenario::model::ObjectRef;
use serde_json::Value;

/// A position in the history and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) index: usize,
    pub(crate) t: u64,
}

/// A stretch of the history: what lies behind `from` and before `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: Moment,
    pub(crate) to: Moment,
    /// Whether `to` is fixed: a step, or the recorded end. Else more may come.
    pub(crate) closed: bool,
    /// Whether `to` is the end of recording rather than a moment that the scenario names.
    pub(crate) to_end: bool,
}

/// One change of one object that a question is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) index: usize,
    pub(crate) t: u64,
    pub(crate) key: &'a str,
    /// The object, or nothing when it is deleted or no longer selected.
    pub(crate) state: Option<&'a Value>,
}

/// What is known of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepSpan<'a> {
    pub(crate) begin: Moment,
    pub(crate) end: Option<Moment>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) detail: Option<&'a str>,
}

/// One thing on a console.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said<'a> {
    pub(crate) index: usize,
    pub(crate) t: u64,
    pub(crate) client: &'a str,
    pub(crate) vmi: &'a str,
    pub(crate) what: ConsoleWhat,
    pub(crate) text: &'a str,
}

/// An answer of the API server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) index: usize,
    pub(crate) t: u64,
    pub(crate) code: u16,
    pub(crate) body: &'a Value,
    pub(crate) error: Option<&'a str>,
}

struct Gap<'a> {
    kind: &'a str,
    from: u64,
    to: u64,
    reason: &'a str,
}

/// The history of one scenario.
pub(crate) struct History<'a> {
    pub(crate) entries: &'a [Entry],
    pub(crate) home: Option<&'a str>,
    pub(crate) digest: Option<&'a str>,
    pub(crate) start: Moment,
    /// The recorded end, or the last moment that is known.
    pub(crate) end: Moment,
    pub(crate) ended: Option<(ScenarioOutcome, Option<&'a str>)>,
    pub(crate) tries: u32,
    steps: BTreeMap<&'a str, StepSpan<'a>>,
    watches: BTreeMap<&'a str, Moment>,
    gaps: Vec<Gap<'a>>,
}

impl<'a> History<'a> {
    /// Reads the entries of one scenario. `now` is the latest moment that is known to have passed.
    pub(crate) fn read(entries: &'a [Entry], now: u64) -> Self {
        let last = entries.last().map_or(0, |entry| entry.t).max(now);
        let mut history = Self {
            entries,
            home: None,
            digest: None,
            start: Moment { index: 0, t: 0 },
            end: Moment {
                index: entries.len(),
                t: last,
            },
            ended: None,
            tries: 1,
            steps: BTreeMap::new(),
            watches: BTreeMap::new(),
            gaps: Vec::new(),
        };
        for (index, entry) in entries.iter().enumerate() {
            history.take(Moment { index, t: entry.t }, &entry.event);
        }
        history
    }

    fn take(&mut self, at: Moment, event: &'a Event) {
        match event {
            Event::ScenarioStart { digest, namespace } => {
                self.start = at;
                self.digest = Some(digest);
                self.home = namespace.as_deref();
            }
            Event::ScenarioEnd { outcome, reason } => {
                self.end = at;
                self.ended = Some((*outcome, reason.as_deref()));
            }
            Event::Step {
                step,
                phase: Phase::Begin,
                ..
            } => {
                self.steps.insert(
                    step,
                    StepSpan {
                        begin: at,
                        end: None,
                        outcome: None,
                        detail: None,
                    },
                );
            }
            Event::Step {
                step,
                phase: Phase::End,
                outcome,
                detail,
            } => {
                if let Some(span) = self.steps.get_mut(step.as_str()) {
                    *span = StepSpan {
                        end: Some(at),
                        outcome: *outcome,
                        detail: detail.as_deref(),
                        ..*span
                    };
                }
            }
            Event::Watch { kind, .. } => {
                self.watches.entry(kind).or_insert(at);
                // A window from the start begins where everything is watched, not while the watches are being opened.
                if self.steps.is_empty() {
                    self.start = at;
                }
            }
            Event::Gap {
                kind,
                from,
                to,
                reason,
                ..
            } => {
                self.gaps.push(Gap {
                    kind,
                    from: *from,
                    to: *to,
                    reason,
                });
            }
            Event::Try { number, .. } => self.tries = self.tries.max(*number),
            _ => {}
        }
    }

    pub(crate) fn step(&self, id: &str) -> Option<&StepSpan<'a>> {
        self.steps.get(id)
    }

    /// When the watch of this kind was opened.
    pub(crate) fn watched_since(&self, kind: &str) -> Option<Moment> {
        self.watches.get(kind).copied()
    }

    /// Every change of the objects meant, from the beginning.
    pub(crate) fn seen(&self, object: &ObjectRef) -> Vec<Seen<'a>> {
        let mut known: BTreeMap<&str, bool> = BTreeMap::new();
        let mut seen = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let Event::Observe {
                change,
                kind,
                object: version,
            } = &entry.event
            else {
                continue;
            };
            if *change == Change::Bookmark || *kind != object.kind {
                continue;
            }
            let key = version
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let covered = object.covers(kind, version, self.home);
            let was_known = known.get(key).copied().unwrap_or(false);
            if !covered && !was_known {
                continue;
            }
            let state = (covered && *change != Change::Deleted).then_some(version);
            known.insert(key, state.is_some());
            seen.push(Seen {
                index,
                t: entry.t,
                key,
                state,
            });
        }
        seen
    }

    /// The answers to a step's requests.
    pub(crate) fn answers(&self, id: &str) -> Vec<Answer<'a>> {
        let answer = |(index, entry): (usize, &'a Entry)| match &entry.event {
            Event::Response {
                step: Some(step),
                code,
                body,
                error,
                ..
            } if step == id => Some(Answer {
                index,
                t: entry.t,
                code: *code,
                body,
                error: error.as_deref(),
            }),
            _ => None,
        };
        self.entries.iter().enumerate().filter_map(answer).collect()
    }

    /// Everything on consoles.
    pub(crate) fn said(&self) -> Vec<Said<'a>> {
        let said = |(index, entry): (usize, &'a Entry)| match &entry.event {
            Event::Console {
                vmi,
                client,
                what,
                text,
            } => Some(Said {
                index,
                t: entry.t,
                client,
                vmi,
                what: *what,
                text,
            }),
            _ => None,
        };
        self.entries.iter().enumerate().filter_map(said).collect()
    }

    /// Where continuity of this kind was lost between two times: how long in all, and why first.
    pub(crate) fn lost(&self, kind: &str, from: u64, to: u64) -> Option<Lost<'a>> {
        let mut lost: Option<Lost<'a>> = None;
        for gap in self
            .gaps
            .iter()
            .filter(|gap| gap.kind == kind && gap.from <= to && gap.to >= from)
        {
            let length = gap.to.min(to).saturating_sub(gap.from.max(from));
            let found = lost.get_or_insert(Lost {
                total: 0,
                last: 0,
                reason: gap.reason,
            });
            found.total += length;
            found.last = found.last.max(gap.to);
        }
        lost
    }
}

/// A loss of continuity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost<'a> {
    pub(crate) total: u64,
    pub(crate) last: u64,
    pub(crate) reason: &'a str,
}

/// The states that stand at a moment: after all changes up to and including that line.
pub(crate) fn standing<'a>(seen: &[Seen<'a>], at: Moment) -> BTreeMap<&'a str, Seen<'a>> {
    let mut states = BTreeMap::new();
    for change in seen.iter().take_while(|change| change.index <= at.index) {
        if change.state.is_some() {
            states.insert(change.key, *change);
        } else {
            states.remove(change.key);
        }
    }
    states
}

/// The changes inside a window.
pub(crate) fn inside<'s, 'a>(
    seen: &'s [Seen<'a>],
    window: Window,
) -> impl Iterator<Item = &'s Seen<'a>> {
    seen.iter()
        .filter(move |change| change.index > window.from.index && change.index < window.to.index)
}
