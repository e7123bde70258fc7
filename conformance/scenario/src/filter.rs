//! The words behind `-E`: `level(must) & feature(SerialConsole) & !tag(slow)`.
//!
//! A name that does not exist is an error and not an empty selection: a typo must not turn a red run green.

use std::collections::BTreeSet;

use crate::{
    ids::AREAS,
    library::{Library, Loaded},
    model::{Level, Scenario},
};

/// A parsed filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Scenario ids by a pattern with `*` and `?`.
    Id(String),
    /// The part of the id before the number.
    Area(String),
    /// The feature.
    Feature(String),
    /// The level.
    Level(Level),
    /// One of the tags.
    Tag(String),
    /// The opposite.
    Not(Box<Self>),
    /// Both.
    And(Box<Self>, Box<Self>),
    /// Either.
    Or(Box<Self>, Box<Self>),
}

/// A filter that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Not a word of the language.
    #[error("unknown filter word \"{0}\": known are id, area, feature, level, tag")]
    Word(String),
    /// A value that no scenario or data file knows.
    #[error("unknown {word} \"{value}\": known are {known}")]
    Value {
        /// The word.
        word: &'static str,
        /// What was given.
        value: String,
        /// What could have been given.
        known: String,
    },
    /// Something else was expected here.
    #[error("expected {expected} at \"{at}\"")]
    Syntax {
        /// What.
        expected: &'static str,
        /// The rest of the text.
        at: String,
    },
}

/// What values exist.
#[derive(Debug, Clone, Default)]
pub struct Known {
    features: BTreeSet<String>,
    tags: BTreeSet<String>,
}

impl Known {
    /// What a library knows.
    pub fn of(library: &Library) -> Self {
        let scenarios = || library.scenarios.iter().map(|loaded| &loaded.value.spec);
        Self {
            features: library
                .spec
                .features
                .iter()
                .map(|feature| feature.name.clone())
                .collect(),
            tags: scenarios()
                .flat_map(|spec| spec.tags.iter().cloned())
                .collect(),
        }
    }
}

impl Filter {
    /// Reads a filter.
    pub fn parse(text: &str, known: &Known) -> Result<Self, FilterError> {
        let mut parser = Parser {
            rest: text.trim(),
            known,
        };
        let filter = parser.or()?;
        if parser.rest.is_empty() {
            Ok(filter)
        } else {
            Err(parser.expected("&, | or the end"))
        }
    }

    /// Whether a scenario is selected.
    pub fn selects(&self, scenario: &Scenario) -> bool {
        match self {
            Self::Id(pattern) => glob(pattern.as_bytes(), scenario.id().as_str().as_bytes()),
            Self::Area(area) => scenario.id().area() == area,
            Self::Feature(feature) => scenario.spec.feature == *feature,
            Self::Level(level) => scenario.spec.level == *level,
            Self::Tag(tag) => scenario.spec.tags.contains(tag),
            Self::Not(inner) => !inner.selects(scenario),
            Self::And(a, b) => a.selects(scenario) && b.selects(scenario),
            Self::Or(a, b) => a.selects(scenario) || b.selects(scenario),
        }
    }
}

impl Library {
    /// The scenarios that a filter selects; all of them without one.
    pub fn select(&self, filter: Option<&str>) -> Result<Vec<&Loaded<Scenario>>, FilterError> {
        let filter = filter
            .map(|text| Filter::parse(text, &Known::of(self)))
            .transpose()?;
        let selected = |loaded: &&Loaded<Scenario>| {
            filter
                .as_ref()
                .is_none_or(|filter| filter.selects(&loaded.value))
        };
        Ok(self.scenarios.iter().filter(selected).collect())
    }
}

struct Parser<'t> {
    rest: &'t str,
    known: &'t Known,
}

impl<'t> Parser<'t> {
    fn or(&mut self) -> Result<Filter, FilterError> {
        let mut left = self.and()?;
        while self.eat('|') {
            left = Filter::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Filter, FilterError> {
        let mut left = self.not()?;
        while self.eat('&') {
            left = Filter::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Filter, FilterError> {
        // Counted rather than called again: a thousand ! must not exhaust the stack.
        let mut negations = 0;
        while self.eat('!') {
            negations += 1;
        }
        let inner = if self.eat('(') {
            let inner = self.or()?;
            self.close()?;
            inner
        } else {
            self.word()?
        };
        Ok(if negations % 2 == 1 {
            Filter::Not(Box::new(inner))
        } else {
            inner
        })
    }

    fn word(&mut self) -> Result<Filter, FilterError> {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(self.expected("a filter word"));
        }
        self.rest = rest.trim_start();
        if !self.eat('(') {
            return Err(self.expected("( and a value"));
        }
        let end = self
            .rest
            .find(')')
            .ok_or_else(|| self.expected("a value and )"))?;
        let (value, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.close()?;
        self.meaning(word, value.trim())
    }

    fn meaning(&self, word: &str, value: &str) -> Result<Filter, FilterError> {
        let unknown = |word, known: Vec<&str>| FilterError::Value {
            word,
            value: value.to_owned(),
            known: known.join(", "),
        };
        let listed = |set: &'t BTreeSet<String>| set.iter().map(String::as_str).collect::<Vec<_>>();
        match word {
            "id" if !value.is_empty() => Ok(Filter::Id(value.to_owned())),
            "id" => Err(unknown("id", vec!["patterns such as VM-LIFE-*"])),
            "area" if AREAS.contains(&value) => Ok(Filter::Area(value.to_owned())),
            "area" => Err(unknown("area", AREAS.to_vec())),
            "feature" if self.known.features.contains(value) => {
                Ok(Filter::Feature(value.to_owned()))
            }
            "feature" => Err(unknown("feature", listed(&self.known.features))),
            "tag" if self.known.tags.contains(value) => Ok(Filter::Tag(value.to_owned())),
            "tag" => Err(unknown("tag", listed(&self.known.tags))),
            "level" => match value.to_ascii_lowercase().as_str() {
                "must" => Ok(Filter::Level(Level::Must)),
                "should" => Ok(Filter::Level(Level::Should)),
                "may" => Ok(Filter::Level(Level::May)),
                _ => Err(unknown("level", vec!["must", "should", "may"])),
            },
            other => Err(FilterError::Word(other.to_owned())),
        }
    }

    fn close(&mut self) -> Result<(), FilterError> {
        if self.eat(')') {
            Ok(())
        } else {
            Err(self.expected(")"))
        }
    }

    fn eat(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expected(&self, expected: &'static str) -> FilterError {
        FilterError::Syntax {
            expected,
            at: self.rest.to_owned(),
        }
    }
}

/// `*` is any text, `?` any one byte. Linear: on a mismatch it goes back to the last star only.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, t) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::library::parse_scenario;

    fn known() -> Known {
        Known {
            features: ["Life".to_owned()].into(),
            tags: ["boot".to_owned(), "slow".to_owned()].into(),
        }
    }

    fn scenario() -> Scenario {
        let text = "
apiVersion: virtmark.dev/v1
kind: Scenario
metadata: {id: VM-LIFE-0007, title: t, since: '1'}
spec:
  clauses: []
  level: MUST
  feature: Life
  tags: [boot]
  steps: []
";
        parse_scenario(std::path::Path::new("x.yaml"), text)
            .unwrap()
            .value
    }

    #[rstest]
    #[case("id(VM-LIFE-0007)", true)]
    #[case("id(VM-*-000?)", true)]
    #[case("id(VM-LIFE)", false)]
    #[case("area(VM-LIFE)", true)]
    #[case("level(must) & feature(Life) & !tag(slow)", true)]
    #[case("tag(slow) | tag(boot)", true)]
    #[case("tag(slow) | tag(boot) & level(may)", false)]
    #[case("(tag(slow) | tag(boot)) & level(MUST)", true)]
    #[case("!!tag(boot)", true)]
    #[case("!(tag(boot) | tag(slow))", false)]
    fn selects(#[case] text: &str, #[case] wanted: bool) {
        assert_eq!(
            Filter::parse(text, &known()).unwrap().selects(&scenario()),
            wanted
        );
    }

    #[rstest]
    #[case("")]
    #[case("nope(x)")]
    #[case("feature(Lfe)")]
    #[case("tag(bot)")]
    #[case("level(maybe)")]
    #[case("area(VM-NOPE)")]
    #[case("id()")]
    #[case("tag(boot) tag(slow)")]
    #[case("(tag(boot)")]
    #[case("tag(boot")]
    #[case("tag boot")]
    #[case("tag(boot) &")]
    fn a_typo_is_an_error_and_not_an_empty_selection(#[case] text: &str) {
        assert!(Filter::parse(text, &known()).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_filter_or_an_error(text in "[a-z()&|! *?-]{0,40}") {
            let _ = Filter::parse(&text, &known());
        }
    }
}
