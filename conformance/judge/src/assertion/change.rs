//! Questions about how an object changes: in which order, how often, whether at all.

use std::{collections::BTreeMap, time::Duration};

use conformance_scenario::{
    Matcher, Path,
    model::{
        Deadline, ObjectRef,
        assertion::{Count, Counted, Field, Sequence, Times},
    },
};
use serde_json::Value;

use super::{Ask, is_in};
use crate::{
    explain::about,
    finding::Finding,
    history::{Seen, inside, standing},
    limits::nanos,
};

/// A value of a field and the line it first stood in.
type Step<'a> = (&'a Value, Seen<'a>);

/// The values of a field inside the window, each only when it differs from the one before it.
fn values<'a>(
    ask: &Ask<'_, 'a>,
    object: &ObjectRef,
    path: &Path,
) -> (Option<&'a Value>, Vec<Step<'a>>) {
    let seen = ask.seen(object);
    let value = |seen: &Seen<'a>| {
        seen.state
            .and_then(|state| path.get(state))
            .filter(|value| !value.is_null())
    };
    let at_start = standing(&seen, ask.window.from).values().find_map(value);
    // A name that was deleted and made again goes on with the same list: `before` is the last value that was there.
    let mut before = at_start.or_else(|| {
        seen.iter()
            .take_while(|seen| seen.index <= ask.window.from.index)
            .filter_map(value)
            .last()
    });
    let mut steps = Vec::new();
    for change in inside(&seen, ask.window) {
        if let Some(now) = value(change)
            && before != Some(now)
        {
            steps.push((now, *change));
            before = Some(now);
        }
    }
    (at_start, steps)
}

/// Values of a field follow an order.
pub(super) fn sequence(
    ask: Ask<'_, '_>,
    sequence: &Sequence,
    within: Option<&Deadline>,
) -> Finding {
    let object = &sequence.object;
    let (_, steps) = values(&ask, object, &sequence.path);
    let skippable = |value: &Value| sequence.skippable.contains(value);
    let mut place = 0;
    let mut complete = sequence
        .order
        .iter()
        .all(skippable)
        .then_some(ask.window.from);
    for (value, seen) in steps {
        let after = seen.t.saturating_sub(ask.window.from.t) / 1_000_000;
        let wrong = |what: String| {
            ask.refuted(
                object,
                format!("{}: {what} after {after} ms", sequence.path),
                None,
            )
        };
        if sequence.never.contains(value) {
            return wrong(format!("forbidden value {value}"));
        }
        let rest = &sequence.order[place..];
        let Some(ahead) = rest.iter().position(|wanted| wanted == value) else {
            let known = sequence.order.contains(value);
            return wrong(if known {
                format!("{value} out of order")
            } else {
                format!("unexpected value {value}")
            });
        };
        if let Some(left_out) = rest[..ahead].iter().find(|passed| !skippable(passed)) {
            return match ask.missed(&object.kind, seen.t) {
                Some(why) => Finding::unknown(why),
                None => wrong(format!("{value} came without {left_out} before it")),
            };
        }
        place += ahead + 1;
        if complete.is_none() && sequence.order[place..].iter().all(skippable) {
            complete = Some(crate::history::Moment {
                index: seen.index,
                t: seen.t,
            });
        }
    }
    let missing = || {
        let next = sequence.order[place..]
            .iter()
            .find(|value| !skippable(value));
        let next = next.map_or_else(String::new, Value::to_string);
        about(
            ask.history,
            object,
            ask.window,
            format!("{}: {next} was never seen", sequence.path),
            None,
        )
    };
    match (complete, within) {
        (Some(done), Some(within)) => {
            let (budget, deadline) = ask.deadline(within);
            if done.t <= deadline {
                ask.held_at(done.t, done.index, &budget)
            } else {
                ask.not_yet(object, within, missing)
            }
        }
        (Some(_), None) => ask.held_to_the_end(&object.kind),
        (None, Some(within)) => ask.not_yet(object, within, missing),
        (None, None) => match ask.held_to_the_end(&object.kind) {
            Finding::Held { .. } => Finding::Refuted(Box::new(missing())),
            undecided => undecided,
        },
    }
}

/// A field changes, or a state is entered, so many times.
pub(super) fn count(ask: Ask<'_, '_>, count: &Count, times: Times) -> Finding {
    let object = &count.object;
    let happened: Vec<Seen<'_>> = match &count.what {
        Counted::Changes(path) => changes_of(&ask, object, path),
        Counted::Entries(matcher) => entries_into(&ask, object, matcher),
    };
    let most = match times {
        Times::AtMostOnce => 1,
        Times::Exactly(n) => n,
    };
    if let Some(excess) = happened.get(most) {
        let after = excess.t.saturating_sub(ask.window.from.t) / 1_000_000;
        let summary = format!(
            "{object}: it happened {} times, the last excess after {after} ms",
            happened.len()
        );
        return ask.refuted(object, summary, None);
    }
    match (times, ask.held_to_the_end(&object.kind)) {
        (Times::Exactly(n), Finding::Held { .. }) if happened.len() < n => ask.refuted(
            object,
            format!("{object}: it happened {} times, not {n}", happened.len()),
            None,
        ),
        (_, finding) => finding,
    }
}

/// The moments at which the object comes into a state.
fn entries_into<'a>(ask: &Ask<'_, 'a>, object: &ObjectRef, matcher: &Matcher) -> Vec<Seen<'a>> {
    let seen = ask.seen(object);
    let mut within: BTreeMap<&str, bool> = BTreeMap::new();
    for (key, seen) in standing(&seen, ask.window.from) {
        within.insert(key, is_in(Some(matcher), &seen));
    }
    let mut entered = Vec::new();
    for change in inside(&seen, ask.window) {
        let now = is_in(Some(matcher), change);
        let before = within.insert(change.key, now).unwrap_or(false);
        if now && !before {
            entered.push(*change);
        }
    }
    entered
}

/// Changes from one value to another; the first value that is ever seen is none.
fn changes_of<'a>(ask: &Ask<'_, 'a>, object: &ObjectRef, path: &Path) -> Vec<Seen<'a>> {
    let (at_start, steps) = values(ask, object, path);
    let first_is_new = usize::from(at_start.is_none() && !has_earlier(ask, object, path));
    steps
        .into_iter()
        .skip(first_is_new)
        .map(|(_, seen)| seen)
        .collect()
}

fn has_earlier(ask: &Ask<'_, '_>, object: &ObjectRef, path: &Path) -> bool {
    let seen = ask.seen(object);
    let mut before = seen
        .iter()
        .take_while(|seen| seen.index <= ask.window.from.index);
    before.any(|seen| seen.state.and_then(|state| path.get(state)).is_some())
}

/// The value becomes another one.
pub(super) fn changes(ask: Ask<'_, '_>, field: &Field, within: &Deadline) -> Finding {
    let object = &field.object;
    let (at_start, steps) = values(&ask, object, &field.path);
    let Some(old) = at_start else {
        return ask.refuted(
            object,
            format!("{object} has no {} to begin with", field.path),
            None,
        );
    };
    let (budget, deadline) = ask.deadline(within);
    match steps.iter().find(|(value, _)| *value != old) {
        Some((_, seen)) if seen.t <= deadline => ask.held_at(seen.t, seen.index, &budget),
        _ => ask.not_yet(object, within, || {
            about(
                ask.history,
                object,
                ask.window,
                format!("{} is still {old}", field.path),
                None,
            )
        }),
    }
}

/// The object stays, and the value with it.
pub(super) fn unchanged(ask: Ask<'_, '_>, field: &Field) -> Finding {
    let object = &field.object;
    let seen = ask.seen(object);
    let value = |seen: &Seen<'_>| seen.state.and_then(|state| field.path.get(state)).cloned();
    let before: BTreeMap<&str, Option<Value>> = standing(&seen, ask.window.from)
        .into_iter()
        .map(|(key, seen)| (key, value(&seen)))
        .collect();
    if before.is_empty() {
        return ask.refuted(
            object,
            format!("{object} does not exist to begin with"),
            None,
        );
    }
    for change in inside(&seen, ask.window) {
        let Some(old) = before.get(change.key) else {
            continue;
        };
        let after = change.t.saturating_sub(ask.window.from.t) / 1_000_000;
        if change.state.is_none() {
            return ask.refuted(
                object,
                format!("{object} was deleted after {after} ms"),
                None,
            );
        }
        let now = value(change);
        if now != *old {
            let show = |value: &Option<Value>| {
                value
                    .as_ref()
                    .map_or_else(|| "absent".to_owned(), Value::to_string)
            };
            let what = format!(
                "{} changed from {} to {} after {after} ms",
                field.path,
                show(old),
                show(&now)
            );
            return ask.refuted(object, what, None);
        }
    }
    ask.held_to_the_end(&object.kind)
}

/// Nothing changes for so long, before the deadline.
pub(crate) fn settles(
    ask: Ask<'_, '_>,
    objects: &[ObjectRef],
    quiet: Duration,
    within: &Deadline,
) -> Finding {
    let (budget, deadline) = ask.deadline(within);
    let quiet = nanos(quiet);
    let mut changes: Vec<Seen<'_>> = objects.iter().flat_map(|object| ask.seen(object)).collect();
    changes.sort_by_key(|change| change.index);
    let mut since = ask.window.from;
    for change in inside(&changes, ask.window) {
        if change.t >= since.t.saturating_add(quiet) {
            break;
        }
        since = crate::history::Moment {
            index: change.index,
            t: change.t,
        };
    }
    let settled = since.t.saturating_add(quiet);
    let Some(first) = objects.first() else {
        return ask.held_at(ask.window.from.t, ask.window.from.index, &budget);
    };
    if let Some(why) = objects
        .iter()
        .find_map(|object| ask.missed(&object.kind, settled.min(ask.window.to.t)))
    {
        return Finding::unknown(why);
    }
    if settled <= deadline && settled <= ask.window.to.t {
        let index = changes
            .iter()
            .take_while(|change| change.t <= settled)
            .last()
            .map_or(since.index, |last| last.index);
        return ask.held_at(settled, index.max(since.index), &budget);
    }
    if settled <= deadline && !ask.window.closed {
        return Finding::Pending { until: settled };
    }
    ask.not_yet(first, within, || {
        about(
            ask.history,
            first,
            ask.window,
            format!("it never was quiet for {} ms", quiet / 1_000_000),
            None,
        )
    })
}
