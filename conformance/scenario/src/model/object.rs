//! What steps and assertions share: which object, which moment, how long.

use std::{fmt, time::Duration};

use serde::Deserialize;
use serde_json::Value;

use crate::{duration, ids::LocalId, selector::Selector, spec::timeouts::Class};

/// One object by name, or some objects by label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ObjectRef {
    /// Its kind.
    pub kind: String,
    /// Its name; without it any object that the selector takes.
    #[serde(default)]
    pub name: Option<String>,
    /// Labels it must carry.
    #[serde(default)]
    pub selector: Option<Selector>,
    /// A namespace other than the scenario's own.
    #[serde(default)]
    pub namespace: Option<String>,
}

impl ObjectRef {
    /// Whether this object, recorded under this kind, is meant. `home` is the scenario's own namespace.
    pub fn covers(&self, kind: &str, object: &Value, home: Option<&str>) -> bool {
        let meta = |key: &str| {
            object
                .pointer(&format!("/metadata/{key}"))
                .and_then(Value::as_str)
        };
        let wanted_namespace = self.namespace.as_deref().or(home);
        self.kind == kind
            && self
                .name
                .as_deref()
                .is_none_or(|name| meta("name") == Some(name))
            && self
                .selector
                .as_ref()
                .is_none_or(|selector| selector.selects(object))
            && wanted_namespace
                .is_none_or(|wanted| meta("namespace").is_none_or(|found| found == wanted))
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if let Some(name) = &self.name {
            write!(f, "/{name}")?;
        }
        if let Some(selector) = &self.selector {
            write!(f, " with {selector}")?;
        }
        Ok(())
    }
}

/// A moment of the run that other words refer to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Point {
    /// Before the first step.
    Start,
    /// When recording ended.
    End,
    /// The start of a step, or the moment an assertion with a moment (`eventually`, `gone`, …) came true.
    At(LocalId),
    /// The end of a step, written `s1.end`.
    After(LocalId),
}

/// A text that names no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a moment: expected start, end, a step, a step with .end, or an assertion")]
pub struct PointError(String);

impl TryFrom<String> for Point {
    type Error = PointError;

    fn try_from(text: String) -> Result<Self, PointError> {
        let local = |id: &str| id.parse::<LocalId>().map_err(|_| PointError(text.clone()));
        match text.as_str() {
            "start" => Ok(Self::Start),
            "end" => Ok(Self::End),
            other => match other.strip_suffix(".end") {
                Some(step) => Ok(Self::After(local(step)?)),
                None => Ok(Self::At(local(other)?)),
            },
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::End => f.write_str("end"),
            Self::At(id) => write!(f, "{id}"),
            Self::After(id) => write!(f, "{id}.end"),
        }
    }
}

/// How long a wait may take: a class from `timeouts.yaml`, scaled to the machine; or a limit of the specification
/// itself, which is never scaled.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawDeadline")]
pub enum Deadline {
    /// Nominal and hard limit of the class, times the measured factor.
    Class(Class),
    /// Exactly this long, for a reason that the specification gives.
    Fixed {
        /// The limit.
        limit: Duration,
        /// Where it comes from.
        because: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDeadline {
    class: Option<Class>,
    fixed: Option<String>,
    because: Option<String>,
}

impl TryFrom<RawDeadline> for Deadline {
    type Error = String;

    fn try_from(raw: RawDeadline) -> Result<Self, String> {
        match (raw.class, raw.fixed, raw.because) {
            (Some(class), None, None) => Ok(Self::Class(class)),
            (None, Some(limit), Some(because)) => Ok(Self::Fixed {
                limit: duration::parse(&limit).map_err(|error| error.to_string())?,
                because,
            }),
            _ => Err("a deadline is either {class: …} or {fixed: …, because: …}".to_owned()),
        }
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(class) => write!(f, "class {class}"),
            Self::Fixed { limit, because } => write!(f, "fixed at {limit:?} ({because})"),
        }
    }
}
