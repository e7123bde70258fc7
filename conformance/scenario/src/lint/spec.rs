//! Rules about the data files and about the library as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::Problems;
use crate::{library::Library, model::Level};

pub(super) fn lint(library: &Library, problems: &mut Problems) {
    unique(library, problems);
    features(library, problems);
    unused(library, problems);
}

fn unique(library: &Library, problems: &mut Problems) {
    let mut scenarios = BTreeMap::new();
    for loaded in &library.scenarios {
        if let Some(other) = scenarios.insert(loaded.value.id(), &loaded.file) {
            let message = format!(
                "{} is also the id of {}",
                loaded.value.id(),
                other.display()
            );
            problems.error("L01", &loaded.file, message);
        }
    }
    let mut clauses = BTreeSet::new();
    for (file, clause) in &library.spec.clauses {
        if !clauses.insert(&clause.id) {
            problems.error(
                "L01",
                file,
                format!(
                    "clause {} stands here twice, or in another file too",
                    clause.id
                ),
            );
        }
    }
    let mut mutants = BTreeSet::new();
    for mutant in &library.spec.mutants {
        if !mutants.insert(&mutant.id) {
            problems.error(
                "L01",
                "mutants.yaml",
                format!("mutant {} stands here twice", mutant.id),
            );
        }
    }
    let mut features = BTreeSet::new();
    for feature in &library.spec.features {
        if !features.insert(&feature.name) {
            problems.error(
                "L01",
                "features.yaml",
                format!("feature {} stands here twice", feature.name),
            );
        }
    }
}

fn features(library: &Library, problems: &mut Problems) {
    let known: BTreeSet<&str> = library
        .spec
        .features
        .iter()
        .map(|feature| feature.name.as_str())
        .collect();
    let mut check = |file: std::path::PathBuf, name: &str| {
        if !known.contains(name) {
            problems.error("L08", file, format!("feature {name} does not exist"));
        }
    };
    for (file, clause) in &library.spec.clauses {
        check(file.clone(), &clause.feature);
    }
    for profile in &library.spec.profiles {
        for name in profile.features.iter().chain(&profile.optional) {
            check(format!("profiles/{}.yaml", profile.name).into(), name);
        }
    }
    for platform in &library.spec.platforms {
        for name in &platform.claims {
            check(format!("platforms/{}.yaml", platform.name).into(), name);
        }
    }
}

fn unused(library: &Library, problems: &mut Problems) {
    let specs = || library.scenarios.iter().map(|loaded| &loaded.value.spec);
    let tested: BTreeSet<_> = specs().flat_map(|spec| &spec.clauses).collect();
    for (file, clause) in &library.spec.clauses {
        match (
            tested.contains(&clause.id),
            &clause.untestable,
            clause.level,
        ) {
            (true, Some(_), _) => {
                problems.error(
                    "L10",
                    file,
                    format!("clause {} is tested, yet said to be untestable", clause.id),
                );
            }
            (false, None, Level::Must) => {
                problems.error(
                    "L10",
                    file,
                    format!("no scenario tests clause {}", clause.id),
                );
            }
            (false, None, _) => problems.warning(
                "L10",
                file,
                format!("no scenario tests clause {}", clause.id),
            ),
            _ => {}
        }
    }
    let of_steps = specs()
        .flat_map(|spec| &spec.steps)
        .flat_map(|step| &step.mutants);
    let of_assertions = specs()
        .flat_map(|spec| &spec.assertions)
        .flat_map(|assertion| &assertion.mutants);
    let used: BTreeSet<_> = of_steps.chain(of_assertions).collect();
    for mutant in &library.spec.mutants {
        if !used.contains(&mutant.id) {
            problems.warning(
                "L10",
                "mutants.yaml",
                format!("no check names mutant {}", mutant.id),
            );
        }
    }
}
