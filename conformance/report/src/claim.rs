//! What a platform may say of itself: nothing is green unless it was shown.
//!
//! A profile holds when every MUST scenario of every feature in it, and of every optional feature that is claimed, is there
//! and passed. A feature without scenarios shows nothing.

use std::collections::BTreeMap;

use conformance_judge::{Status, Verdict};
use conformance_scenario::{
    Library,
    model::{Level, Scenario},
    spec::{Feature, FeatureLevel, Profile},
};
use serde::{Deserialize, Serialize};

/// The word for a profile or a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Everything required was shown.
    Conformant,
    /// Something required was shown not to hold.
    NonConformant,
    /// Something required was not shown.
    Incomplete,
    /// Something required could not be told; running again may help.
    Inconclusive,
}

/// A profile and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileResult {
    /// Its name.
    pub name: String,
    /// The word.
    pub verdict: Word,
    /// Scenarios of the features that everyone must have.
    pub core: Tally,
    /// Scenarios of the optional features that are claimed.
    pub extended: Tally,
    /// What keeps it from being conformant, one line each.
    pub missing: Vec<String>,
    /// SHOULD scenarios that did not pass. They do not change the word.
    pub deviations: Vec<String>,
}

/// Counts of required scenarios.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tally {
    /// In all.
    pub required: usize,
    /// Passed.
    pub passed: usize,
    /// Failed, an unexpected pass and an expected failure included.
    pub failed: usize,
    /// A prerequisite is missing.
    pub blocked: usize,
    /// Left out by the operator, not applicable, or simply not there.
    pub not_run: usize,
    /// Could not be told, or went wrong in our hands.
    pub inconclusive: usize,
}

/// A feature and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FeatureResult {
    /// Its name.
    pub name: String,
    /// Whether everyone must have it.
    pub level: FeatureLevel,
    /// Whether the platform claims it.
    pub claimed: bool,
    /// Its MUST scenarios.
    pub tally: Tally,
    /// The word.
    pub verdict: Word,
}

/// Whether this history may carry a claim at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// It is a run, not a plan or a conversion.
    pub is_run: bool,
    /// It has no end.
    pub interrupted: bool,
}

/// Every feature and what came of it.
pub fn features(library: &Library, claims: &[String], verdicts: &[Verdict]) -> Vec<FeatureResult> {
    let one = |feature: &Feature| {
        let tally = tally(library, verdicts, &feature.name);
        FeatureResult {
            name: feature.name.clone(),
            level: feature.level,
            claimed: claims.contains(&feature.name),
            tally,
            verdict: word(tally),
        }
    };
    library.spec.features.iter().map(one).collect()
}

/// A profile and what came of it.
pub fn profile(
    library: &Library,
    profile: &Profile,
    claims: &[String],
    verdicts: &[Verdict],
    standing: Standing,
) -> ProfileResult {
    let optional: Vec<&String> = profile
        .optional
        .iter()
        .filter(|feature| claims.contains(feature))
        .collect();
    let mut missing = Vec::new();
    if !standing.is_run {
        missing.push("the history is not that of a run".to_owned());
    }
    if standing.interrupted {
        missing.push("the run was interrupted".to_owned());
    }
    let mut core = Tally::default();
    let mut extended = Tally::default();
    let mut words = vec![if missing.is_empty() {
        Word::Conformant
    } else {
        Word::Incomplete
    }];
    for (feature, sum) in profile
        .features
        .iter()
        .map(|feature| (feature, true))
        .chain(optional.iter().map(|feature| (*feature, false)))
    {
        let of_feature = tally(library, verdicts, feature);
        (if sum { &mut core } else { &mut extended }).add(of_feature);
        let known = library
            .spec
            .features
            .iter()
            .any(|known| known.name == *feature);
        words.push(if known {
            word(of_feature)
        } else {
            Word::Incomplete
        });
        if !known {
            missing.push(format!("feature {feature} does not exist"));
        } else if of_feature.required == 0 {
            missing.push(format!(
                "feature {feature} has no scenario that could show it"
            ));
        }
        missing.extend(not_passed(library, verdicts, feature, Level::Must));
    }
    for claim in claims.iter().filter(|claim| {
        !library
            .spec
            .features
            .iter()
            .any(|known| known.name == **claim)
    }) {
        missing.push(format!("claimed feature {claim} does not exist"));
        words.push(Word::Incomplete);
    }
    let in_profile = profile.features.iter().chain(optional);
    let deviations = in_profile
        .flat_map(|feature| not_passed(library, verdicts, feature, Level::Should))
        .collect();
    ProfileResult {
        name: profile.name.clone(),
        verdict: worst(&words),
        core,
        extended,
        missing,
        deviations,
    }
}

/// Our own doubt goes before a mere lack, a shown failure before both.
fn worst(words: &[Word]) -> Word {
    [Word::NonConformant, Word::Inconclusive, Word::Incomplete]
        .into_iter()
        .find(|word| words.contains(word))
        .unwrap_or(Word::Conformant)
}

fn word(tally: Tally) -> Word {
    if tally.failed + tally.blocked > 0 {
        Word::NonConformant
    } else if tally.inconclusive > 0 {
        Word::Inconclusive
    } else if tally.required == 0 || tally.passed < tally.required {
        Word::Incomplete
    } else {
        Word::Conformant
    }
}

fn tally(library: &Library, verdicts: &[Verdict], feature: &str) -> Tally {
    let results = by_id(verdicts);
    let mut tally = Tally::default();
    for scenario in required(library, feature, Level::Must) {
        tally.required += 1;
        match results
            .get(scenario.id().as_str())
            .map(|verdict| verdict.status)
        {
            Some(Status::Pass) => tally.passed += 1,
            Some(Status::Fail | Status::ExpectedFail | Status::UnexpectedPass) => tally.failed += 1,
            Some(Status::Blocked) => tally.blocked += 1,
            Some(Status::Inconclusive | Status::Error) => tally.inconclusive += 1,
            Some(Status::Skipped | Status::NotApplicable) | None => tally.not_run += 1,
        }
    }
    tally
}

fn not_passed(library: &Library, verdicts: &[Verdict], feature: &str, level: Level) -> Vec<String> {
    let results = by_id(verdicts);
    let line = |scenario: &Scenario| {
        let status = results
            .get(scenario.id().as_str())
            .map(|verdict| verdict.status);
        match status {
            Some(Status::Pass) => None,
            Some(status) => Some(format!("{} {status}", scenario.id())),
            None => Some(format!("{} not run", scenario.id())),
        }
    };
    required(library, feature, level).filter_map(line).collect()
}

fn required<'l>(
    library: &'l Library,
    feature: &'l str,
    level: Level,
) -> impl Iterator<Item = &'l Scenario> {
    let wanted = move |scenario: &&Scenario| {
        scenario.spec.feature == feature && scenario.spec.level == level
    };
    library
        .scenarios
        .iter()
        .map(|loaded| &loaded.value)
        .filter(wanted)
}

fn by_id(verdicts: &[Verdict]) -> BTreeMap<&str, &Verdict> {
    verdicts
        .iter()
        .map(|verdict| (verdict.id.as_str(), verdict))
        .collect()
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.required += other.required;
        self.passed += other.passed;
        self.failed += other.failed;
        self.blocked += other.blocked;
        self.not_run += other.not_run;
        self.inconclusive += other.inconclusive;
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Conformant => "conformant",
            Self::NonConformant => "non-conformant",
            Self::Incomplete => "incomplete",
            Self::Inconclusive => "inconclusive",
        })
    }
}
