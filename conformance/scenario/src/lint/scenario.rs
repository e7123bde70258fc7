//! Rules about one scenario.

use std::{collections::BTreeSet, path::Path};

use serde_json::{Map, Value};

use super::Problems;
use crate::{
    ids::LocalId,
    kinds,
    library::{Library, Loaded},
    model::{
        Action, Assertion, Expectation, Point, Requirement, Scenario, Step, Word,
        step::{Source, Write},
    },
    template,
};

pub(super) fn lint(library: &Library, loaded: &Loaded<Scenario>, problems: &mut Problems) {
    let mut linter = Linter {
        library,
        scenario: &loaded.value,
        file: &loaded.file,
        problems,
    };
    linter.names();
    linter.clauses();
    linter.mutants();
    linter.control();
    linter.kinds();
    linter.moments();
    linter.bounds();
    linter.steps();
}

struct Linter<'l> {
    library: &'l Library,
    scenario: &'l Scenario,
    file: &'l Path,
    problems: &'l mut Problems,
}

impl Linter<'_> {
    fn error(&mut self, rule: &'static str, message: String) {
        self.problems.error(rule, self.file, message);
    }

    fn names(&mut self) {
        let id = self.scenario.id().to_string();
        if self
            .file
            .file_stem()
            .is_none_or(|stem| stem.to_string_lossy() != id)
        {
            self.error("L01", format!("the file of {id} must be called {id}.yaml"));
        }
        let mut seen = BTreeSet::new();
        let spec = &self.scenario.spec;
        for id in spec
            .steps
            .iter()
            .map(|step| &step.id)
            .chain(spec.assertions.iter().map(|assertion| &assertion.id))
        {
            if !seen.insert(id) {
                self.error("L05", format!("{id} names two steps or assertions"));
            }
        }
        let feature = &spec.feature;
        if !self
            .library
            .spec
            .features
            .iter()
            .any(|known| known.name == *feature)
        {
            self.error("L08", format!("feature {feature} does not exist"));
        }
        for requirement in &spec.requires {
            let Requirement::Image(image) = requirement else {
                continue;
            };
            for platform in self
                .library
                .spec
                .platforms
                .iter()
                .filter(|platform| !platform.images.contains_key(image))
            {
                let message = format!("platform {} has no image {image}", platform.name);
                self.problems.error("L11", self.file, message);
            }
        }
    }

    fn clauses(&mut self) {
        let spec = &self.scenario.spec;
        let of_steps = spec.steps.iter().filter_map(|step| step.clause.as_ref());
        let tested: BTreeSet<_> = of_steps
            .chain(spec.assertions.iter().map(|assertion| &assertion.clause))
            .collect();
        for clause in &spec.clauses {
            if !self
                .library
                .spec
                .clauses
                .iter()
                .any(|(_, known)| known.id == *clause)
            {
                self.error("L02", format!("clause {clause} does not exist"));
            }
            if !tested.contains(clause) {
                self.error(
                    "L02",
                    format!("clause {clause} is listed, but nothing here tests it"),
                );
            }
        }
        for clause in tested
            .into_iter()
            .filter(|clause| !spec.clauses.contains(clause))
        {
            self.error("L02", format!("clause {clause} is tested, but not listed"));
        }
        if spec.clauses.is_empty() {
            self.error("L02", "it tests no clause".to_owned());
        }
    }

    fn mutants(&mut self) {
        let spec = &self.scenario.spec;
        let steps = spec
            .steps
            .iter()
            .map(|step| (&step.id, step.is_check(), &step.mutants));
        let assertions = spec
            .assertions
            .iter()
            .map(|assertion| (&assertion.id, true, &assertion.mutants));
        for (id, is_check, mutants) in steps.chain(assertions) {
            if is_check && mutants.is_empty() {
                self.error(
                    "L03",
                    format!("{id} names no mutant: nothing shows that it can fail"),
                );
            }
            if !is_check && !mutants.is_empty() {
                self.error(
                    "L03",
                    format!("{id} names mutants, but checks nothing they could break"),
                );
            }
            for mutant in mutants
                .iter()
                .filter(|mutant| self.library.mutant(mutant).is_none())
            {
                self.problems.error(
                    "L03",
                    self.file,
                    format!("{id}: mutant {mutant} does not exist"),
                );
            }
        }
    }

    fn control(&mut self) {
        let steps = &self.scenario.spec.steps;
        let control = |step: &Step| step.id.as_str().starts_with("control") && !step.is_negative();
        // A call in the wrong state has its control in the same scenario too: the call that is accepted.
        if steps.iter().any(Step::is_negative) && !steps.iter().any(control) {
            self.error(
                "L04",
                "something must be refused, but no step called control shows what is accepted"
                    .to_owned(),
            );
        }
        for step in steps
            .iter()
            .filter(|step| step.is_negative() && step.clause.is_none())
        {
            self.problems.error(
                "L02",
                self.file,
                format!("{} must be refused, but names no clause", step.id),
            );
        }
    }

    fn kinds(&mut self) {
        let spec = &self.scenario.spec;
        let recorded: BTreeSet<&str> = spec
            .record
            .iter()
            .map(|record| record.kind.as_str())
            .collect();
        let mut looked_at: Vec<(&LocalId, &str)> = Vec::new();
        for step in &spec.steps {
            match &step.action {
                Action::WaitFor(wait) => looked_at.push((&step.id, &wait.object.kind)),
                Action::Settle(settle) => {
                    looked_at.extend(settle.kinds.iter().map(|kind| (&step.id, kind.as_str())))
                }
                Action::Patch(patch) => self.known_kind(&patch.kind),
                Action::Delete(delete) => self.known_kind(&delete.kind),
                Action::Get(get) => self.known_kind(&get.kind),
                _ => {}
            }
        }
        looked_at.extend(
            spec.assertions
                .iter()
                .map(|assertion| (&assertion.id, assertion.word.object().kind.as_str())),
        );
        for (id, kind) in looked_at {
            if !recorded.contains(kind) {
                self.error(
                    "L06",
                    format!("{id} looks at {kind}, which is not recorded"),
                );
            }
        }
        for kind in recorded {
            self.known_kind(kind);
        }
    }

    fn known_kind(&mut self, kind: &str) {
        if kinds::find(kind).is_none() {
            self.error("L06", format!("kind {kind} does not exist"));
        }
    }

    fn moments(&mut self) {
        for assertion in &self.scenario.spec.assertions {
            for point in [&assertion.from, &assertion.to] {
                if let Some(message) = self.wrong_point(assertion, point) {
                    self.error("L07", message);
                }
            }
            if let (Some(from), Some(to)) = (
                self.step_place(&assertion.from),
                self.step_place(&assertion.to),
            ) && from >= to
            {
                self.error(
                    "L07",
                    format!(
                        "{}: {} does not come before {}",
                        assertion.id, assertion.from, assertion.to
                    ),
                );
            }
        }
    }

    fn wrong_point(&self, assertion: &Assertion, point: &Point) -> Option<String> {
        let scenario = self.scenario;
        let id = &assertion.id;
        match point {
            Point::Start | Point::End => None,
            Point::After(step) if scenario.step(step).is_some() => None,
            Point::After(step) => Some(format!("{id}: there is no step {step}")),
            Point::At(name) if scenario.step(name).is_some() => None,
            Point::At(name) => match scenario.assertion(name) {
                None => Some(format!("{id}: there is no step or assertion {name}")),
                Some(other) if !other.word.has_moment() => Some(format!(
                    "{id}: {name} ({}) does not come true at a certain moment",
                    other.word.name()
                )),
                Some(_) if self.waits_for(name, id, 0) => Some(format!("{id} waits for itself")),
                Some(_) => None,
            },
        }
    }

    /// Whether the assertion `name` leads back to `id`.
    fn waits_for(&self, name: &LocalId, id: &LocalId, depth: usize) -> bool {
        if name == id || depth > self.scenario.spec.assertions.len() {
            return true;
        }
        let Some(assertion) = self.scenario.assertion(name) else {
            return false;
        };
        [&assertion.from, &assertion.to]
            .into_iter()
            .any(|point| match point {
                Point::At(next) => self.waits_for(next, id, depth + 1),
                _ => false,
            })
    }

    /// The place of a moment among the steps: begin and end of each step are two places.
    fn step_place(&self, point: &Point) -> Option<usize> {
        let place = |id: &LocalId| {
            self.scenario
                .spec
                .steps
                .iter()
                .position(|step| step.id == *id)
        };
        match point {
            Point::Start => Some(0),
            Point::At(id) => place(id).map(|place| 2 * place + 1),
            Point::After(id) => place(id).map(|place| 2 * place + 2),
            Point::End => None,
        }
    }

    fn bounds(&mut self) {
        for assertion in &self.scenario.spec.assertions {
            let id = &assertion.id;
            match &assertion.word {
                Word::Sequence { sequence, within } => {
                    if within.is_none() && assertion.to == Point::End {
                        self.problems.error(
                            "L09",
                            self.file,
                            format!("{id}: a sequence needs within, or between"),
                        );
                    }
                    if sequence.object.name.is_none() {
                        self.problems.error(
                            "L09",
                            self.file,
                            format!("{id}: a sequence needs one object by name"),
                        );
                    }
                    if sequence.order.is_empty() {
                        self.problems
                            .error("L12", self.file, format!("{id}: the order is empty"));
                    }
                }
                Word::Always { state, .. } if state.matching.is_none() => {
                    self.problems.warning(
                        "L12",
                        self.file,
                        format!("{id}: always without match only wants existence"),
                    );
                }
                _ => {}
            }
        }
    }

    fn steps(&mut self) {
        if let Some(base) = &self.scenario.spec.base {
            self.source(&"base", base);
        }
        for step in &self.scenario.spec.steps {
            match &step.action {
                Action::Apply(write) | Action::Create(write) => self.write(&step.id, write),
                Action::Patch(patch) if patch.merge.is_some() == patch.json.is_some() => {
                    self.error(
                        "L12",
                        format!("{}: a patch is either merge or json", step.id),
                    );
                }
                Action::Delete(delete) if delete.name.is_some() == delete.selector.is_some() => {
                    self.error(
                        "L12",
                        format!("{}: a delete wants either name or selector", step.id),
                    );
                }
                Action::WaitFor(wait) if wait.gone && wait.matching.is_some() => {
                    self.error(
                        "L12",
                        format!("{}: gone and match exclude each other", step.id),
                    );
                }
                _ => {}
            }
            if let Expectation::Refused(rejection) = &step.expectation
                && rejection.code < 400
            {
                self.error(
                    "L12",
                    format!("{}: {} is no refusal", step.id, rejection.code),
                );
            }
        }
        if self.scenario.spec.steps.is_empty() {
            self.error("L12", "it has no steps".to_owned());
        }
    }

    fn write(&mut self, id: &LocalId, write: &Write) {
        let sources = usize::from(write.template.is_some())
            + usize::from(write.base)
            + usize::from(write.manifest.is_some());
        if sources != 1 {
            self.error(
                "L12",
                format!("{id}: it wants exactly one of template, base, manifest"),
            );
        }
        if write.base && self.scenario.spec.base.is_none() {
            self.error("L12", format!("{id}: the scenario has no base"));
        }
        if let Some(template) = &write.template {
            self.source(
                id,
                &Source {
                    template: template.clone(),
                    with: write.with.clone(),
                },
            );
        } else if !write.with.is_empty() {
            self.error("L12", format!("{id}: with belongs to a template"));
        }
        for path in write.set.keys() {
            if let Err(error) = path.parse::<crate::Path>() {
                self.error("L12", format!("{id}: {error}"));
            }
        }
    }

    fn source(&mut self, id: &dyn std::fmt::Display, source: &Source) {
        let Some(template) = self.library.templates.get(&source.template) else {
            self.error(
                "L11",
                format!("{id}: there is no template {}", source.template),
            );
            return;
        };
        match template::fill(template, &source.with, &self.ambient()) {
            Err(error) => self.error("L11", format!("{id}: {}: {error}", source.template)),
            Ok(manifest) => {
                let kind = manifest
                    .get("kind")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned();
                self.known_kind(&kind);
            }
        }
    }

    /// What the run will provide: only images that the scenario requires.
    fn ambient(&self) -> Map<String, Value> {
        let required =
            self.scenario
                .spec
                .requires
                .iter()
                .filter_map(|requirement| match requirement {
                    Requirement::Image(image) => Some(format!("image.{image}")),
                    _ => None,
                });
        let always = ["namespace", "run"].map(str::to_owned);
        required
            .chain(always)
            .map(|name| (name, Value::String("x".to_owned())))
            .collect()
    }
}
