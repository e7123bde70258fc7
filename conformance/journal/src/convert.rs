//! Turns watch files that something else recorded (`{"t": "HH:MM:SS.mmm", "type": …, "o": object}` a line) into a journal.
//!
//! The steps of a scenario were not recorded, only what they did to objects; the caller says at which moments they
//! happened and what the answers were. A converted journal says so in its first line: it proves that scenarios and
//! judge fit a real system's history, it is no verdict about that system.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    entry::{Change, ConsoleWhat, Event, Mode, Outcome, Pace, Phase, ScenarioOutcome},
    reader::read_text,
    writer::{Stamp, WriteError, Writer},
};

/// One line of a watch file.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// Nanoseconds since the midnight before the recording began.
    pub t: u64,
    /// What the watch said.
    pub change: Change,
    /// The object.
    pub object: Value,
}

/// What is to be converted, as it is written in a file of its own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The scenario that the history is told as.
    pub scenario: String,
    /// The VM's name in the recording; the scenario calls it `vm`.
    pub vm: String,
    /// The namespace it lived in.
    pub namespace: String,
    /// Midnight before `from`.
    pub day: Timestamp,
    /// What stands at this moment is told as a watch's first list; what came before is not told.
    pub from: TimeOfDay,
    /// Nothing after this moment is told.
    pub to: TimeOfDay,
    /// The steps, in order.
    pub steps: Vec<Taken>,
}

/// A step that someone took while the watch was open, and what is known to have come of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// Its id in the scenario.
    pub step: String,
    /// When.
    pub at: TimeOfDay,
    /// The code of the answer.
    #[serde(default)]
    pub answer: Option<u16>,
    /// What was typed on the serial console.
    #[serde(default)]
    pub typed: Option<String>,
    /// What the guest said to that.
    #[serde(default)]
    pub heard: Option<String>,
}

/// Nanoseconds since midnight, written `HH:MM:SS.mmm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct TimeOfDay(u64);

impl TryFrom<String> for TimeOfDay {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        time_of_day(&text)
            .map(Self)
            .ok_or_else(|| format!("\"{text}\" is not a time of day"))
    }
}

/// A line that is not one of a watch file.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The file.
    #[error("failed to read {}", file.display())]
    Io {
        /// Which file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not JSON, or not of that shape.
    #[error("watch file line {line}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A time that is not `HH:MM:SS.mmm`.
    #[error("watch file line {line}: \"{text}\" is not a time of day")]
    Time {
        /// From 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// The journal could not be written.
    #[error("converted journal")]
    Write(#[from] WriteError),
}

#[derive(Deserialize)]
struct RawLine {
    t: String,
    #[serde(rename = "type")]
    change: Change,
    o: Value,
}

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 24 * 3600 * SECOND;

/// Reads a watch file from disk, `.zst` or plain.
pub fn open_watch(file: &Path) -> Result<Vec<Watched>, ConvertError> {
    let failed = |source| ConvertError::Io {
        file: file.to_owned(),
        source,
    };
    read_watch(&read_text(file).map_err(failed)?)
}

/// Reads one watch file. A time that falls behind by more than half a day is the next day's.
pub fn read_watch(text: &str) -> Result<Vec<Watched>, ConvertError> {
    let mut midnight = 0;
    let mut before = 0;
    let mut read = Vec::new();
    for (index, raw) in text
        .lines()
        .enumerate()
        .filter(|(_, raw)| !raw.trim().is_empty())
    {
        let line = index + 1;
        let raw: RawLine =
            serde_json::from_str(raw).map_err(|source| ConvertError::Line { line, source })?;
        let of_day = time_of_day(&raw.t).ok_or(ConvertError::Time { line, text: raw.t })?;
        if of_day + DAY / 2 < before {
            midnight += DAY;
        }
        before = of_day;
        read.push(Watched {
            t: midnight + of_day,
            change: raw.change,
            object: raw.o,
        });
    }
    Ok(read)
}

/// Writes a journal from watched lines of any number of kinds and objects. `digest` is that of the scenario's file.
pub fn convert(
    recording: &Recording,
    digest: &str,
    mut watched: Vec<Watched>,
) -> Result<String, ConvertError> {
    watched.retain(|line| concerns(&line.object, recording));
    // Stable: lines of one file keep their order, which is the order of resource versions.
    watched.sort_by_key(|line| line.t);
    for line in &mut watched {
        rename(&mut line.object, &recording.vm);
    }
    // A recording that began the day before counts on from there.
    let first = watched.first().map_or(0, |line| line.t);
    let midnight = if recording.from.0 + DAY / 2 < first {
        DAY
    } else {
        0
    };
    let from = midnight + recording.from.0;
    let to = midnight + recording.to.0;
    let mut watched = from_the_first_list(watched, from);
    watched.retain(|line| line.t <= to);
    let mut telling = Telling {
        writer: Writer::new(Vec::new(), "converted"),
        recording,
        digest,
        midnight,
    };
    telling.open(from, &watched)?;
    let mut steps = recording.steps.iter().peekable();
    for line in watched {
        while let Some(step) = steps.next_if(|step| midnight + step.at.0 <= line.t) {
            telling.step(step)?;
        }
        let kind = kind_of(&line.object);
        telling.put(
            line.t,
            Event::Observe {
                change: line.change,
                kind,
                object: line.object,
            },
        )?;
    }
    for step in steps {
        telling.step(step)?;
    }
    telling.close(to)?;
    Ok(String::from_utf8_lossy(&telling.writer.into_inner()).into_owned())
}

struct Telling<'a> {
    writer: Writer<Vec<u8>>,
    recording: &'a Recording,
    digest: &'a str,
    midnight: u64,
}

impl Telling<'_> {
    fn put(&mut self, t: u64, event: Event) -> Result<(), ConvertError> {
        let scenario = match event {
            Event::RunStart { .. } | Event::Env { .. } | Event::RunEnd { .. } => None,
            _ => Some(self.recording.scenario.as_str()),
        };
        let of_day = i64::try_from(t.saturating_sub(self.midnight)).unwrap_or(i64::MAX);
        let day = self.recording.day;
        let wall = day
            .checked_add(SignedDuration::from_nanos(of_day))
            .unwrap_or(day);
        let began = self.midnight + self.recording.from.0;
        self.writer.append(
            Stamp {
                t: t.saturating_sub(began),
                wall,
            },
            scenario,
            event,
        )?;
        Ok(())
    }

    fn open(&mut self, from: u64, watched: &[Watched]) -> Result<(), ConvertError> {
        self.put(
            from,
            Event::RunStart {
                suite: env!("CARGO_PKG_VERSION").to_owned(),
                scenarios_digest: String::new(),
                argv: Vec::new(),
                seed: 0,
                mode: Mode::Converted,
                claims: Vec::new(),
            },
        )?;
        self.put(
            from,
            Event::Env {
                pace: Pace::default(),
                facts: Value::Null,
            },
        )?;
        let namespace = Some(self.recording.namespace.clone());
        self.put(
            from,
            Event::ScenarioStart {
                digest: self.digest.to_owned(),
                namespace: namespace.clone(),
            },
        )?;
        let mut kinds: Vec<String> = watched.iter().map(|line| kind_of(&line.object)).collect();
        kinds.sort();
        kinds.dedup();
        for kind in kinds {
            let resource_version = "0".to_owned();
            self.put(
                from,
                Event::Watch {
                    kind,
                    namespace: namespace.clone(),
                    selector: None,
                    resource_version,
                },
            )?;
        }
        Ok(())
    }

    fn step(&mut self, taken: &Taken) -> Result<(), ConvertError> {
        let at = self.midnight + taken.at.0;
        let mark = |phase, outcome| Event::Step {
            step: taken.step.clone(),
            phase,
            outcome,
            detail: None,
        };
        self.put(at, mark(Phase::Begin, None))?;
        if let Some(code) = taken.answer {
            let step = Some(taken.step.clone());
            self.put(
                at,
                Event::Response {
                    step,
                    id: 0,
                    code,
                    body: Value::Null,
                    error: None,
                },
            )?;
        }
        let said = [
            (ConsoleWhat::Sent, &taken.typed),
            (ConsoleWhat::Received, &taken.heard),
        ];
        for (what, text) in said {
            let Some(text) = text.clone() else { continue };
            self.put(
                at,
                Event::Console {
                    vmi: "vm".to_owned(),
                    client: "main".to_owned(),
                    what,
                    text,
                },
            )?;
        }
        self.put(at, mark(Phase::End, Some(Outcome::Ok)))
    }

    fn close(&mut self, to: u64) -> Result<(), ConvertError> {
        self.put(
            to,
            Event::ScenarioEnd {
                outcome: ScenarioOutcome::Completed,
                reason: None,
            },
        )?;
        self.put(to, Event::RunEnd { scenarios: 1 })
    }
}

/// The VM itself, its instance, and its launcher pods.
fn concerns(object: &Value, recording: &Recording) -> bool {
    let meta = |key: &str| object.pointer(key).and_then(Value::as_str);
    let here = meta("/metadata/namespace") == Some(&recording.namespace);
    let of_vm = match kind_of(object).as_str() {
        "Pod" => meta("/metadata/labels/vm.kubevirt.io~1name") == Some(&recording.vm),
        _ => meta("/metadata/name") == Some(&recording.vm),
    };
    here && of_vm
}

/// What stood at `from` comes first, as a watch's list would show it; then everything later.
fn from_the_first_list(watched: Vec<Watched>, from: u64) -> Vec<Watched> {
    let mut listed: Vec<Watched> = Vec::new();
    let mut later = Vec::new();
    for line in watched {
        if line.t >= from {
            later.push(line);
            continue;
        }
        listed.retain(|known| !is_same(&known.object, &line.object));
        if line.change != Change::Deleted {
            listed.push(Watched {
                t: from,
                change: Change::Added,
                object: line.object,
            });
        }
    }
    listed.extend(later);
    listed
}

fn is_same(a: &Value, b: &Value) -> bool {
    kind_of(a) == kind_of(b) && a.pointer("/metadata/name") == b.pointer("/metadata/name")
}

/// Only the VM and its instance carry the VM's name; it is `vm` in every scenario.
fn rename(object: &mut Value, from: &str) {
    if let Some(name) = object
        .pointer_mut("/metadata/name")
        .filter(|name| name.as_str() == Some(from))
    {
        *name = Value::String("vm".to_owned());
    }
}

fn kind_of(object: &Value) -> String {
    object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn time_of_day(text: &str) -> Option<u64> {
    let (clock, millis) = text.split_once('.')?;
    let parts: Vec<u64> = clock
        .split(':')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let [hours, minutes, seconds] = parts[..] else {
        return None;
    };
    let millis: u64 = (millis.len() == 3).then(|| millis.parse().ok())??;
    let sound = hours < 24 && minutes < 60 && seconds < 61;
    sound.then_some((hours * 3600 + minutes * 60 + seconds) * SECOND + millis * 1_000_000)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::reader::{Ending, Journal};

    #[rstest]
    #[case("23:59:59.999", Some(86_399_999))]
    #[case("00:00:00.001", Some(1))]
    #[case("24:00:00.000", None)]
    #[case("1:2", None)]
    #[case("00:00:00.1", None)]
    fn reads_times_of_day(#[case] text: &str, #[case] millis: Option<u64>) {
        assert_eq!(time_of_day(text), millis.map(|millis| millis * 1_000_000));
    }

    #[test]
    fn midnight_does_not_turn_time_back() {
        let text = "{\"t\":\"23:59:59.000\",\"type\":\"ADDED\",\"o\":{}}\n{\"t\":\"00:00:01.000\",\"type\":\"MODIFIED\",\"o\":{}}\n";
        let read = read_watch(text).unwrap();
        assert_eq!(read[1].t - read[0].t, 2 * SECOND);
    }

    /// Two VMs; the one that is asked for lives after a midnight.
    const WATCHED: &str = concat!(
        r#"{"t":"23:59:59.000","type":"ADDED","o":{"kind":"VirtualMachine","metadata":{"name":"a","namespace":"ns"}}}"#,
        "\n",
        r#"{"t":"23:59:59.500","type":"ADDED","o":{"kind":"VirtualMachine","metadata":{"name":"b","namespace":"ns"}}}"#,
        "\n",
        r#"{"t":"00:00:02.000","type":"MODIFIED","o":{"kind":"VirtualMachine","metadata":{"name":"a","namespace":"ns"}}}"#,
        "\n",
        r#"{"t":"00:00:09.000","type":"DELETED","o":{"kind":"VirtualMachine","metadata":{"name":"a","namespace":"ns"}}}"#,
    );

    fn recording() -> Recording {
        serde_json::from_str(
            r#"{"scenario": "VM-LIFE-0001", "vm": "a", "namespace": "ns", "day": "2026-12-01T00:00:00Z",
                "from": "00:00:01.000", "to": "00:00:05.000",
                "steps": [{"step": "s1", "at": "00:00:01.500", "answer": 201}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_converted_journal_is_whole_and_says_what_it_is() {
        let text = convert(&recording(), "sha256:0", read_watch(WATCHED).unwrap()).unwrap();
        let journal = Journal::parse(&text).unwrap();
        assert_eq!(journal.ending, Ending::Complete);
        assert!(matches!(
            journal.entries[0].event,
            Event::RunStart {
                mode: Mode::Converted,
                ..
            }
        ));
    }

    #[test]
    fn one_vm_is_told_from_its_first_list_to_the_end() {
        let text = convert(&recording(), "sha256:0", read_watch(WATCHED).unwrap()).unwrap();
        let journal = Journal::parse(&text).unwrap();
        let told: Vec<(u64, Change, String)> = journal
            .entries
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Observe { change, object, .. } => {
                    assert_eq!(object.pointer("/metadata/name"), Some(&Value::from("vm")));
                    Some((entry.millis(), *change, entry.wall.to_string()))
                }
                _ => None,
            })
            .collect();
        assert_eq!(
            told,
            [
                (0, Change::Added, "2026-12-01T00:00:01Z".to_owned()),
                (1000, Change::Modified, "2026-12-01T00:00:02Z".to_owned())
            ]
        );
    }
}
