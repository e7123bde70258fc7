//! Questions about how an object is: at some time, at all times, at no time, and how many at once.

use std::collections::BTreeMap;

use conformance_scenario::{
    Matcher,
    model::{Deadline, ObjectRef, assertion::State},
};

use super::{Ask, is_in};
use crate::{
    explain::about,
    finding::Finding,
    history::{Seen, inside, standing},
    verdict::Explanation,
};

/// Some version matches in time. What stands at the window's start counts.
pub(crate) fn eventually(
    ask: Ask<'_, '_>,
    state: &State,
    fails_early: Option<&Matcher>,
    within: &Deadline,
) -> Finding {
    let seen = ask.seen(&state.object);
    let matching = state.matching.as_ref();
    let (budget, deadline) = ask.deadline(within);
    let start = ask.window.from;
    let standing = standing(&seen, start);
    if standing.values().any(|seen| is_in(matching, seen)) {
        return ask.held_at(start.t, start.index, &budget);
    }
    let mut last = standing.into_values().next_back();
    let mut came_late = None;
    for change in inside(&seen, ask.window) {
        if is_in(matching, change) {
            if change.t <= deadline {
                return ask.held_at(change.t, change.index, &budget);
            }
            came_late = Some(change.t);
            break;
        }
        if change.t > deadline {
            break;
        }
        if fails_early.is_some() && is_in(fails_early, change) {
            let summary = format!(
                "{} came into a state that makes waiting pointless",
                state.object
            );
            return ask.refuted(
                &state.object,
                summary,
                matching.map(|matcher| (matcher, *change)),
            );
        }
        last = Some(*change);
    }
    ask.not_yet(&state.object, within, || {
        eventually_failed(ask, state, last, came_late)
    })
}

fn eventually_failed(
    ask: Ask<'_, '_>,
    state: &State,
    last: Option<Seen<'_>>,
    came_late: Option<u64>,
) -> Explanation {
    let object = &state.object;
    let summary = match (came_late, last) {
        (Some(at), _) => {
            let took = at.saturating_sub(ask.window.from.t) / 1_000_000;
            format!("{object} came into the wanted state only after {took} ms")
        }
        (None, Some(Seen { state: Some(_), .. })) => {
            format!("{object} did not come into the wanted state")
        }
        (None, Some(_)) => format!("{object} was deleted"),
        (None, None) => format!("{object} was never seen"),
    };
    let differs = state
        .matching
        .as_ref()
        .zip(last.and_then(|last| last.state));
    about(ask.history, object, ask.window, summary, differs)
}

/// The object is absent at some moment before the deadline: the barrier `waitFor … gone`.
pub(crate) fn absent(ask: Ask<'_, '_>, object: &ObjectRef, within: &Deadline) -> Finding {
    let seen = ask.seen(object);
    let (budget, deadline) = ask.deadline(within);
    let start = ask.window.from;
    let mut present: BTreeMap<&str, Seen<'_>> = standing(&seen, start);
    if present.is_empty() {
        return ask.held_at(start.t, start.index, &budget);
    }
    for change in inside(&seen, ask.window).take_while(|change| change.t <= deadline) {
        match change.state {
            Some(_) => present.insert(change.key, *change),
            None => present.remove(change.key),
        };
        if present.is_empty() {
            return ask.held_at(change.t, change.index, &budget);
        }
    }
    ask.not_yet(object, within, || {
        about(
            ask.history,
            object,
            ask.window,
            format!("{object} still exists"),
            None,
        )
    })
}

/// Every version matches, and the object exists all the time.
pub(super) fn always(mut ask: Ask<'_, '_>, state: &State, hold: Option<&Deadline>) -> Finding {
    let object = &state.object;
    let matching = state.matching.as_ref();
    let seen = ask.seen(object);
    let standing = standing(&seen, ask.window.from);
    if standing.is_empty() {
        return ask.refuted(
            object,
            format!("{object} does not exist when it should hold"),
            None,
        );
    }
    if let Some(wrong) = standing.values().find(|seen| !is_in(matching, seen)) {
        let summary = format!("{object} is not in the state that should hold");
        return ask.refuted(object, summary, matching.map(|matcher| (matcher, *wrong)));
    }
    let until = hold.map(|hold| ask.window.from.t.saturating_add(ask.limits.stretch(hold)));
    let stretch = |change: &&Seen<'_>| until.is_none_or(|until| change.t <= until);
    if let Some(wrong) = inside(&seen, ask.window)
        .take_while(stretch)
        .find(|change| !is_in(matching, change))
    {
        let after = wrong.t.saturating_sub(ask.window.from.t) / 1_000_000;
        let what = if wrong.state.is_some() {
            "left the state that should hold"
        } else {
            "was deleted"
        };
        return ask.refuted(
            object,
            format!("{object} {what} after {after} ms"),
            matching.map(|m| (m, *wrong)),
        );
    }
    let Some(until) = until else {
        return ask.held_to_the_end(&object.kind);
    };
    if ask.window.to.t < until {
        return match (ask.window.closed, ask.missed(&object.kind, ask.window.to.t)) {
            (false, _) => Finding::Pending { until },
            (true, Some(why)) => Finding::unknown(why),
            (true, None) => Finding::unknown("the window ended before the stretch was over"),
        };
    }
    ask.window.to.t = until;
    match ask.missed(&object.kind, until) {
        Some(why) => Finding::unknown(why),
        None => Finding::Held {
            at: until,
            index: ask.window.to.index,
            used: None,
        },
    }
}

/// No version matches.
pub(super) fn never(ask: Ask<'_, '_>, state: &State) -> Finding {
    let object = &state.object;
    let matching = state.matching.as_ref();
    let seen = ask.seen(object);
    let at_start = standing(&seen, ask.window.from);
    let wrong = at_start
        .values()
        .chain(inside(&seen, ask.window))
        .find(|seen| is_in(matching, seen));
    if let Some(wrong) = wrong {
        let after = wrong.t.saturating_sub(ask.window.from.t) / 1_000_000;
        let what = if matching.is_some() {
            "was in a forbidden state"
        } else {
            "existed, which it must not"
        };
        return ask.refuted(object, format!("{object} {what} after {after} ms"), None);
    }
    ask.held_to_the_end(&object.kind)
}

/// Never more than `n` of them at once.
pub(super) fn at_most(
    ask: Ask<'_, '_>,
    n: usize,
    objects: &ObjectRef,
    matching: Option<&Matcher>,
) -> Finding {
    let seen = ask.seen(objects);
    let mut alive: BTreeMap<&str, Seen<'_>> = standing(&seen, ask.window.from);
    alive.retain(|_, seen| is_in(matching, seen));
    let mut changes = inside(&seen, ask.window);
    loop {
        if alive.len() > n {
            let names: Vec<&str> = alive.keys().copied().collect();
            let summary = format!(
                "{} at once, at most {n} allowed: {}",
                names.len(),
                names.join(", ")
            );
            return ask.refuted(objects, summary, None);
        }
        let Some(change) = changes.next() else { break };
        if is_in(matching, change) {
            alive.insert(change.key, *change);
        } else {
            alive.remove(change.key);
        }
    }
    ask.held_to_the_end(&objects.kind)
}

/// The object that stands at the window's start is deleted, by uid.
pub(super) fn gone(ask: Ask<'_, '_>, object: &ObjectRef, within: &Deadline) -> Finding {
    let seen = ask.seen(object);
    let (budget, deadline) = ask.deadline(within);
    let start = ask.window.from;
    let uid = |seen: &Seen<'_>| {
        seen.state
            .and_then(|state| state.pointer("/metadata/uid").cloned())
    };
    let mut left: BTreeMap<&str, _> = standing(&seen, start)
        .into_iter()
        .map(|(key, seen)| (key, uid(&seen)))
        .collect();
    if left.is_empty() {
        return if seen.iter().any(|change| change.index <= start.index) {
            ask.held_at(start.t, start.index, &budget)
        } else {
            ask.refuted(
                object,
                format!("{object} did not exist, so it cannot be deleted"),
                None,
            )
        };
    }
    for change in inside(&seen, ask.window).take_while(|change| change.t <= deadline) {
        if left
            .get(change.key)
            .is_some_and(|old| change.state.is_none() || uid(change) != *old)
        {
            left.remove(change.key);
        }
        if left.is_empty() {
            return ask.held_at(change.t, change.index, &budget);
        }
    }
    ask.not_yet(object, within, || {
        let names: Vec<&str> = left.keys().copied().collect();
        about(
            ask.history,
            object,
            ask.window,
            format!("still there: {}", names.join(", ")),
            None,
        )
    })
}
