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

/// A step that someone took while the watch was open.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// Its id in the scenario.
    pub step: String,
    /// When, as `Watched::t`.
    pub t: u64,
    /// What is known to have come of it.
    pub came: Came,
}

/// What is known to have come of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// Nothing that the judge would look for.
    Nothing,
    /// An answer with this code.
    Answer(u16),
    /// Talk on the serial console of this VMI.
    Talk {
        /// The VMI.
        vmi: String,
        /// What was typed.
        sent: String,
        /// What the guest said.
        heard: String,
    },
}

/// What is to be converted.
#[derive(Debug, Clone)]
pub struct Recording<'a> {
    /// The scenario that the history is told as.
    pub scenario: &'a str,
    /// Digest of its file.
    pub digest: &'a str,
    /// The namespace the objects lived in.
    pub namespace: &'a str,
    /// The day the recording began.
    pub day: Timestamp,
    /// The VM's name in the recording; the scenario calls it `vm`.
    pub vm: &'a str,
    /// The steps, in order.
    pub steps: &'a [Taken],
    /// What stands at this moment is told as a watch's first list; what came before is not told.
    pub from: u64,
    /// Nothing after this moment is told.
    pub to: u64,
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

/// Writes a journal from watched lines of any number of kinds.
pub fn convert(
    recording: &Recording<'_>,
    mut watched: Vec<Watched>,
) -> Result<String, ConvertError> {
    // Stable: lines of one file keep their order, which is the order of resource versions.
    watched.sort_by_key(|line| line.t);
    for line in &mut watched {
        rename(&mut line.object, recording.vm);
    }
    let mut watched = from_the_first_list(watched, recording.from);
    watched.retain(|line| line.t <= recording.to);
    let mut telling = Telling {
        writer: Writer::new(Vec::new(), "converted"),
        recording,
    };
    telling.open(&watched)?;
    let mut steps = recording.steps.iter().peekable();
    for line in watched {
        while let Some(step) = steps.next_if(|step| step.t <= line.t) {
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
    telling.close()?;
    Ok(String::from_utf8_lossy(&telling.writer.into_inner()).into_owned())
}

struct Telling<'a> {
    writer: Writer<Vec<u8>>,
    recording: &'a Recording<'a>,
}

impl Telling<'_> {
    fn put(&mut self, t: u64, event: Event) -> Result<(), ConvertError> {
        let scenario = match event {
            Event::RunStart { .. } | Event::Env { .. } | Event::RunEnd { .. } => None,
            _ => Some(self.recording.scenario),
        };
        let since = i64::try_from(t).unwrap_or(i64::MAX);
        let wall = self
            .recording
            .day
            .checked_add(SignedDuration::from_nanos(since))
            .unwrap_or(self.recording.day);
        let stamp = Stamp {
            t: t.saturating_sub(self.recording.from),
            wall,
        };
        self.writer.append(stamp, scenario, event)?;
        Ok(())
    }

    fn open(&mut self, watched: &[Watched]) -> Result<(), ConvertError> {
        let from = self.recording.from;
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
        let namespace = Some(self.recording.namespace.to_owned());
        self.put(
            from,
            Event::ScenarioStart {
                digest: self.recording.digest.to_owned(),
                namespace: namespace.clone(),
            },
        )?;
        let mut kinds: Vec<String> = watched.iter().map(|line| kind_of(&line.object)).collect();
        kinds.sort();
        kinds.dedup();
        for kind in kinds {
            let watch = Event::Watch {
                kind,
                namespace: namespace.clone(),
                selector: None,
                resource_version: "0".into(),
            };
            self.put(from, watch)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Taken) -> Result<(), ConvertError> {
        let mark = |phase, outcome| Event::Step {
            step: step.step.clone(),
            phase,
            outcome,
            detail: None,
        };
        self.put(step.t, mark(Phase::Begin, None))?;
        match &step.came {
            Came::Nothing => {}
            Came::Answer(code) => {
                let (id, name) = (0, Some(step.step.clone()));
                self.put(
                    step.t,
                    Event::Response {
                        step: name,
                        id,
                        code: *code,
                        body: Value::Null,
                        error: None,
                    },
                )?;
            }
            Came::Talk { vmi, sent, heard } => {
                let said = [
                    (ConsoleWhat::Opened, ""),
                    (ConsoleWhat::Sent, sent),
                    (ConsoleWhat::Received, heard),
                ];
                for (what, text) in said {
                    let (vmi, client, text) = (vmi.clone(), "main".to_owned(), text.to_owned());
                    self.put(
                        step.t,
                        Event::Console {
                            vmi,
                            client,
                            what,
                            text,
                        },
                    )?;
                }
            }
        }
        self.put(step.t, mark(Phase::End, Some(Outcome::Ok)))
    }

    fn close(&mut self) -> Result<(), ConvertError> {
        let to = self.recording.to;
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

    #[test]
    fn a_converted_journal_is_whole_and_says_what_it_is() {
        let text =
            "{\"t\":\"10:00:01.000\",\"type\":\"ADDED\",\"o\":{\"kind\":\"VirtualMachine\"}}\n";
        let steps = [Taken {
            step: "s1".into(),
            t: 36_000 * SECOND,
            came: Came::Answer(201),
        }];
        let recording = Recording {
            scenario: "VM-LIFE-0001",
            digest: "sha256:0",
            namespace: "default",
            vm: "demo",
            day: "2026-01-01T00:00:00Z".parse().unwrap(),
            steps: &steps,
            from: 36_000 * SECOND,
            to: 36_002 * SECOND,
        };
        let journal =
            Journal::parse(&convert(&recording, read_watch(text).unwrap()).unwrap()).unwrap();
        assert_eq!(journal.ending, Ending::Complete);
        assert!(matches!(
            journal.entries[0].event,
            Event::RunStart {
                mode: Mode::Converted,
                ..
            }
        ));
        let observed = journal
            .entries
            .iter()
            .find(|entry| matches!(entry.event, Event::Observe { .. }))
            .unwrap();
        assert_eq!(
            (observed.millis(), observed.wall.to_string()),
            (1000, "2026-01-01T10:00:01Z".to_owned())
        );
    }
}
