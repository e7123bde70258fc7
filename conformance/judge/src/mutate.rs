//! Breaks a recorded history on purpose, as a mutant says.
//!
//! The end of recording is moved out by an hour afterwards: a run against a system that is broken in this way would have
//! gone on waiting until every deadline had passed.

use conformance_journal::{
    Entry, Event,
    entry::{Change, ConsoleWhat, Phase},
};
use conformance_scenario::{
    Matcher, Path, Scenario,
    model::{ObjectRef, Point},
    path::{PathError, SetError},
    spec::{
        Edit, Mutant,
        edit::{
            Appear, Change as EditChange, ConsoleEdit, Flash, Replay, Respond, Rewrite, Swap,
            Target, Which,
        },
    },
};
use serde_json::{Map, Value, json};

/// A mutant that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MutateError {
    /// A path in `set`.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A path that leads nowhere.
    #[error(transparent)]
    Set(#[from] SetError),
    /// An assertion's moment, which edits do not know.
    #[error("{0} is not a moment that an edit may use: only start and steps are")]
    Point(String),
}

const HOUR: u64 = 3_600_000_000_000;

/// Applies a mutant. Nothing comes back when it changed nothing: such a mutant proves nothing.
pub fn mutate(
    scenario: &Scenario,
    entries: &[Entry],
    mutant: &Mutant,
) -> Result<Option<Vec<Entry>>, MutateError> {
    let mut history = Mutable {
        scenario,
        entries: entries.to_vec(),
        home: home(entries),
    };
    let mut changed = false;
    for edit in &mutant.edits {
        changed |= history.apply(edit)?;
    }
    if !changed {
        return Ok(None);
    }
    history.wait_on();
    for (seq, entry) in (0..).zip(&mut history.entries) {
        entry.seq = seq;
    }
    Ok(Some(history.entries))
}

struct Mutable<'s> {
    scenario: &'s Scenario,
    entries: Vec<Entry>,
    home: Option<String>,
}

impl Mutable<'_> {
    fn apply(&mut self, edit: &Edit) -> Result<bool, MutateError> {
        match edit {
            Edit::Drop(target) => self.drop(target),
            Edit::Freeze(target) => self.freeze(target),
            Edit::Rewrite(rewrite) => self.rewrite(rewrite),
            Edit::Swap(swap) => self.swap(swap),
            Edit::Flash(flash) => self.flash(flash),
            Edit::Replay(replay) => Ok(self.replay(replay)),
            Edit::Twin(target) => self.twin(target),
            Edit::Delete(target) => self.delete(target),
            Edit::Appear(appear) => self.appear(appear),
            Edit::Respond(respond) => self.respond(respond),
            Edit::Console(console) => Ok(self.console(console)),
        }
    }

    fn drop(&mut self, target: &Target) -> Result<bool, MutateError> {
        let hit = self.targets(target)?;
        self.remove(|index, _| hit.contains(&index));
        Ok(!hit.is_empty())
    }

    fn freeze(&mut self, target: &Target) -> Result<bool, MutateError> {
        let Some(first) = self.targets(target)?.first().copied() else {
            return Ok(false);
        };
        let frozen = self.key(first);
        self.remove(|index, key| index >= first && key == frozen);
        Ok(true)
    }

    fn rewrite(&mut self, rewrite: &Rewrite) -> Result<bool, MutateError> {
        let mut hit = self.targets(&rewrite.target)?;
        match rewrite.only {
            Some(Which::First) => hit.truncate(1),
            Some(Which::Last) => hit = hit.last().copied().into_iter().collect(),
            None => {}
        }
        let mut changed = false;
        for index in hit {
            if let Event::Observe { object, .. } = &mut self.entries[index].event {
                let before = object.clone();
                change(object, &rewrite.set, &rewrite.unset)?;
                changed |= before != *object;
            }
        }
        Ok(changed)
    }

    fn swap(&mut self, swap: &Swap) -> Result<bool, MutateError> {
        let found = |matcher: &Matcher| Target {
            object: swap.object.clone(),
            matching: Some(matcher.clone()),
            after: swap.after.clone(),
            change: None,
        };
        let Some(first) = self.targets(&found(&swap.first))?.first().copied() else {
            return Ok(false);
        };
        let later = self.targets(&found(&swap.second))?;
        let Some(second) = later.into_iter().find(|index| *index > first) else {
            return Ok(false);
        };
        let (head, tail) = self.entries.split_at_mut(second);
        std::mem::swap(&mut head[first].event, &mut tail[0].event);
        Ok(true)
    }

    fn flash(&mut self, flash: &Flash) -> Result<bool, MutateError> {
        let Some(index) = self.targets(&flash.target)?.first().copied() else {
            return Ok(false);
        };
        let mut shown = self.entries[index].clone();
        let mut restored = self.entries[index].clone();
        let next = self
            .entries
            .get(index + 1)
            .map_or(u64::MAX, |entry| entry.t);
        let lasting = u64::try_from(flash.lasting.as_nanos()).unwrap_or(u64::MAX);
        restored.t = restored.t.saturating_add(lasting).min(next);
        for entry in [&mut shown, &mut restored] {
            if let Event::Observe { change, .. } = &mut entry.event {
                *change = Change::Modified;
            }
        }
        if let Event::Observe { object, .. } = &mut shown.event {
            change(object, &flash.set, &flash.unset)?;
        }
        self.entries.splice(index + 1..index + 1, [shown, restored]);
        Ok(true)
    }

    fn replay(&mut self, replay: &Replay) -> bool {
        let places = |matcher: &Matcher| -> Vec<usize> {
            let fits = |index: &usize| {
                self.version(*index, &replay.object)
                    .is_some_and(|(_, object)| matcher.matches(object))
            };
            (0..self.entries.len()).filter(fits).collect()
        };
        let (Some(again), Some(behind)) = (
            places(&replay.matching).first().copied(),
            places(&replay.behind).last().copied(),
        ) else {
            return false;
        };
        let mut entry = self.entries[again].clone();
        entry.t = self.entries[behind].t;
        if let Event::Observe { change, .. } = &mut entry.event {
            *change = Change::Modified;
        }
        self.entries.insert(behind + 1, entry);
        true
    }

    fn twin(&mut self, target: &Target) -> Result<bool, MutateError> {
        let Some(index) = self.targets(target)?.first().copied() else {
            return Ok(false);
        };
        let mut entry = self.entries[index].clone();
        if let Event::Observe { change, object, .. } = &mut entry.event {
            *change = Change::Added;
            if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                for key in ["name", "uid"] {
                    let twin = format!(
                        "{}-twin",
                        meta.get(key).and_then(Value::as_str).unwrap_or_default()
                    );
                    meta.insert(key.to_owned(), Value::String(twin));
                }
            }
        }
        self.entries.insert(index + 1, entry);
        Ok(true)
    }

    fn delete(&mut self, target: &Target) -> Result<bool, MutateError> {
        let Some(index) = self.targets(target)?.first().copied() else {
            return Ok(false);
        };
        let key = self.key(index);
        let mut entry = self.entries[index].clone();
        if let Event::Observe { change, .. } = &mut entry.event {
            *change = Change::Deleted;
        }
        self.remove(|at, other| at > index && other == key);
        self.entries.insert(index + 1, entry);
        Ok(true)
    }

    fn appear(&mut self, appear: &Appear) -> Result<bool, MutateError> {
        let index = match &appear.after {
            Some(point) => self.begin(point)?.map(|begin| begin + 1),
            None => Some(self.end()),
        };
        let Some(index) = index else { return Ok(false) };
        let mut object = appear.object.clone();
        if let (Some(home), Some(meta)) = (
            &self.home,
            object.get_mut("metadata").and_then(Value::as_object_mut),
        ) {
            meta.entry("namespace").or_insert_with(|| json!(home));
        }
        let Some(mut entry) = self.entries.get(index.saturating_sub(1)).cloned() else {
            return Ok(false);
        };
        let kind = object
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        entry.scenario = Some(self.scenario.id().to_string());
        entry.event = Event::Observe {
            change: Change::Added,
            kind,
            object,
        };
        self.entries.insert(index, entry);
        Ok(true)
    }

    fn respond(&mut self, respond: &Respond) -> Result<bool, MutateError> {
        let steps = &self.scenario.spec.steps;
        let checked = |id: &str| {
            steps
                .iter()
                .any(|step| step.id.as_str() == id && step.is_check())
        };
        let mut changed = false;
        for entry in &mut self.entries {
            let Event::Response {
                step: Some(step),
                code,
                body,
                ..
            } = &mut entry.event
            else {
                continue;
            };
            let meant = match &respond.step {
                Some(wanted) => wanted.as_str() == step,
                None => checked(step),
            };
            if !meant {
                continue;
            }
            *code = respond.code.unwrap_or(*code);
            if let Some(another) = &respond.body {
                *body = another.clone();
            }
            change(body, &respond.set, &respond.unset)?;
            changed = true;
        }
        Ok(changed)
    }

    fn console(&mut self, edit: &ConsoleEdit) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| {
            let Event::Console { client, what, .. } = &entry.event else {
                return true;
            };
            let meant = edit.client.as_ref().is_none_or(|wanted| wanted == client);
            let unheard = edit.silent && *what == ConsoleWhat::Received;
            let open = edit.never_closed && *what == ConsoleWhat::Closed;
            !(meant && (unheard || open))
        });
        self.entries.len() < before
    }

    /// Positions of the versions that are meant.
    fn targets(&self, target: &Target) -> Result<Vec<usize>, MutateError> {
        let from = match &target.after {
            Some(point) => match self.begin(point)? {
                Some(begin) => begin,
                None => return Ok(Vec::new()),
            },
            None => 0,
        };
        let fits = |index: &usize| {
            self.version(*index, &target.object)
                .is_some_and(|(change, object)| {
                    target.change.is_none_or(|wanted| same(wanted, change))
                        && target
                            .matching
                            .as_ref()
                            .is_none_or(|matcher| matcher.matches(object))
                })
        };
        Ok((from..self.entries.len()).filter(fits).collect())
    }

    fn version(&self, index: usize, wanted: &ObjectRef) -> Option<(Change, &Value)> {
        let Event::Observe {
            change,
            kind,
            object,
        } = &self.entries.get(index)?.event
        else {
            return None;
        };
        (*change != Change::Bookmark && wanted.covers(kind, object, self.home.as_deref()))
            .then_some((*change, object))
    }

    fn key(&self, index: usize) -> (String, String) {
        key(&self.entries[index]).unwrap_or_default()
    }

    fn remove(&mut self, unwanted: impl Fn(usize, (String, String)) -> bool) {
        let mut index = 0;
        self.entries.retain(|entry| {
            let keep = key(entry).is_none_or(|key| !unwanted(index, key));
            index += 1;
            keep
        });
    }

    /// Where a step begins.
    fn begin(&self, point: &Point) -> Result<Option<usize>, MutateError> {
        let (wanted, phase) = match point {
            Point::Start => return Ok(Some(0)),
            Point::At(id) if self.scenario.step(id).is_some() => (id, Phase::Begin),
            Point::After(id) => (id, Phase::End),
            other => return Err(MutateError::Point(other.to_string())),
        };
        let is_it = |entry: &Entry| matches!(&entry.event, Event::Step { step, phase: found, .. } if step == wanted.as_str() && *found == phase);
        Ok(self.entries.iter().position(is_it))
    }

    fn end(&self) -> usize {
        let is_end = |entry: &Entry| matches!(entry.event, Event::ScenarioEnd { .. });
        self.entries
            .iter()
            .position(is_end)
            .unwrap_or(self.entries.len())
    }

    fn wait_on(&mut self) {
        let end = self.end();
        for entry in &mut self.entries[end..] {
            entry.t = entry.t.saturating_add(HOUR);
        }
    }
}

fn key(entry: &Entry) -> Option<(String, String)> {
    let Event::Observe { kind, object, .. } = &entry.event else {
        return None;
    };
    let name = object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some((kind.clone(), name.to_owned()))
}

fn home(entries: &[Entry]) -> Option<String> {
    entries.iter().find_map(|entry| match &entry.event {
        Event::ScenarioStart { namespace, .. } => namespace.clone(),
        _ => None,
    })
}

fn same(wanted: EditChange, found: Change) -> bool {
    matches!(
        (wanted, found),
        (EditChange::Added, Change::Added)
            | (EditChange::Modified, Change::Modified)
            | (EditChange::Deleted, Change::Deleted)
    )
}

fn change(object: &mut Value, set: &Map<String, Value>, unset: &[Path]) -> Result<(), MutateError> {
    for (path, value) in set {
        path.parse::<Path>()?.set(object, value.clone())?;
    }
    for path in unset {
        path.remove(object);
    }
    Ok(())
}
