//! Reads a journal back and tells whether it is whole.
//!
//! A changed, missing or added line breaks the chain and is an error with its line number. A journal that just stops,
//! even in the middle of a line, is what a killed run leaves: it is read up to there and says so.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    entry::{Entry, Event},
    writer::{ORIGIN, line_hash},
};

/// A journal that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// All lines.
    pub entries: Vec<Entry>,
    /// How it ends.
    pub ending: Ending,
    /// The hash of the last whole line.
    pub head: String,
}

/// How a journal ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With `run.end`.
    Complete,
    /// Without: the run was interrupted, or the end was cut off.
    Interrupted,
}

/// A journal that cannot be trusted, or not be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file.
    #[error("failed to read {}", file.display())]
    Io {
        /// Which file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line that is no entry.
    #[error("journal line {line} is not an entry")]
    Entry {
        /// From 1.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A line that does not continue the one before.
    #[error("journal line {line}: {what}")]
    Chain {
        /// From 1.
        line: usize,
        /// What does not fit.
        what: &'static str,
    },
}

impl Journal {
    /// Reads a file, `.zst` or plain.
    pub fn open(file: &Path) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Io {
            file: file.to_owned(),
            source,
        };
        Self::parse(&read_text(file).map_err(failed)?)
    }

    /// Reads text.
    pub fn parse(text: &str) -> Result<Self, JournalError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut head = ORIGIN.to_owned();
        let mut lines = text.split_inclusive('\n').enumerate();
        for (index, raw) in &mut lines {
            let Some(content) = raw.strip_suffix('\n') else {
                // A torn last line: the writer was killed in the middle of it.
                break;
            };
            let entry = link(content, index + 1, &head, entries.last())?;
            head = line_hash(content);
            entries.push(entry);
        }
        let complete = entries
            .last()
            .is_some_and(|last| matches!(last.event, Event::RunEnd { .. }));
        let ending = if complete && text.ends_with('\n') {
            Ending::Complete
        } else {
            Ending::Interrupted
        };
        Ok(Self {
            entries,
            ending,
            head,
        })
    }

    /// The lines that judge one scenario: its own, and those of the whole run.
    pub fn of_scenario(&self, id: &str) -> Vec<Entry> {
        let concerns = |entry: &&Entry| {
            entry
                .scenario
                .as_deref()
                .is_none_or(|scenario| scenario == id)
        };
        self.entries.iter().filter(concerns).cloned().collect()
    }
}

/// A whole file as text, unpacked when its name ends in `.zst`.
pub(crate) fn read_text(file: &Path) -> io::Result<String> {
    let bytes = std::fs::read(file)?;
    if file.extension().is_some_and(|ending| ending == "zst") {
        let mut text = String::new();
        zstd::Decoder::new(bytes.as_slice())?.read_to_string(&mut text)?;
        return Ok(text);
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn link(
    content: &str,
    line: usize,
    head: &str,
    before: Option<&Entry>,
) -> Result<Entry, JournalError> {
    let broken = |what| JournalError::Chain { line, what };
    let mut value: Value =
        serde_json::from_str(content).map_err(|source| JournalError::Entry { line, source })?;
    let fields = value
        .as_object_mut()
        .ok_or_else(|| broken("not an object"))?;
    match fields.shift_remove("prev") {
        Some(Value::String(previous)) if previous == head => {}
        Some(_) => return Err(broken("it does not hold the hash of the line before")),
        None => return Err(broken("it holds no hash")),
    }
    let entry: Entry =
        serde_json::from_value(value).map_err(|source| JournalError::Entry { line, source })?;
    let wanted = before.map_or(0, |before| before.seq + 1);
    if entry.seq != wanted {
        return Err(broken("the sequence number does not follow"));
    }
    if before.is_some_and(|before| before.t > entry.t) {
        return Err(broken("time runs backwards"));
    }
    if before.is_some_and(|before| before.run != entry.run) {
        return Err(broken("it belongs to another run"));
    }
    if before.is_some_and(|before| matches!(before.event, Event::RunEnd { .. })) {
        return Err(broken("it stands behind the end of the run"));
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::{
        entry::{Change, Mode},
        writer::{Stamp, Writer},
    };

    fn sample() -> String {
        let mut writer = Writer::new(Vec::new(), "r1");
        let at = |t| Stamp {
            t,
            wall: "2026-01-01T00:00:00Z".parse().unwrap(),
        };
        let start = Event::RunStart {
            suite: "0.1.0".into(),
            scenarios_digest: "sha256:0".into(),
            argv: vec![],
            seed: 1,
            mode: Mode::Run,
            claims: vec![],
        };
        writer.append(at(0), None, start).unwrap();
        for n in 1..4 {
            let object = json!({"metadata": {"name": "vm", "resourceVersion": n.to_string()}});
            let event = Event::Observe {
                change: Change::Modified,
                kind: "VirtualMachine".into(),
                object,
            };
            writer
                .append(at(n * 10), Some("VM-LIFE-0001"), event)
                .unwrap();
        }
        writer
            .append(at(50), None, Event::RunEnd { scenarios: 1 })
            .unwrap();
        String::from_utf8(writer.into_inner()).unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let journal = Journal::parse(&sample()).unwrap();
        assert_eq!(journal.entries.len(), 5);
        assert_eq!(journal.ending, Ending::Complete);
        assert_eq!(journal.of_scenario("VM-LIFE-0001").len(), 5);
        assert_eq!(journal.of_scenario("VM-LIFE-0002").len(), 2);
    }

    #[test]
    fn a_late_stamp_does_not_turn_time_back() {
        let mut writer = Writer::new(Vec::new(), "r1");
        let at = |t| Stamp {
            t,
            wall: "2026-01-01T00:00:00Z".parse().unwrap(),
        };
        writer
            .append(at(20), None, Event::RunEnd { scenarios: 0 })
            .unwrap();
        assert_eq!(
            writer
                .append(at(10), None, Event::RunEnd { scenarios: 0 })
                .unwrap()
                .t,
            20
        );
    }

    #[test]
    fn secrets_never_reach_the_file() {
        let mut writer = Writer::new(Vec::new(), "r1");
        let at = Stamp {
            t: 0,
            wall: "2026-01-01T00:00:00Z".parse().unwrap(),
        };
        let object = json!({"kind": "Secret", "data": {"x": "c4n4ry"}});
        let event = Event::Observe {
            change: Change::Added,
            kind: "Secret".into(),
            object,
        };
        writer.append(at, None, event).unwrap();
        assert!(
            !String::from_utf8(writer.into_inner())
                .unwrap()
                .contains("c4n4ry")
        );
    }

    #[rstest]
    #[case::line_taken_out(|lines: &mut Vec<String>| { lines.remove(2); })]
    #[case::lines_swapped(|lines: &mut Vec<String>| { lines.swap(1, 2); })]
    #[case::first_line_taken_out(|lines: &mut Vec<String>| { lines.remove(0); })]
    #[case::line_doubled(|lines: &mut Vec<String>| { let line = lines[1].clone(); lines.insert(2, line); })]
    #[case::value_changed(|lines: &mut Vec<String>| { lines[1] = lines[1].replace("\"vm\"", "\"wm\""); })]
    fn tampering_breaks_the_chain(#[case] tamper: fn(&mut Vec<String>)) {
        let mut lines: Vec<String> = sample().lines().map(|line| format!("{line}\n")).collect();
        tamper(&mut lines);
        assert!(Journal::parse(&lines.concat()).is_err());
    }

    #[test]
    fn a_journal_of_another_run_cannot_be_joined_on() {
        let other = sample().replace("\"r1\"", "\"r2\"");
        assert!(Journal::parse(&format!("{}{other}", sample())).is_err());
    }

    #[test]
    fn the_shortened_log_of_a_killed_run_is_interrupted() {
        let text = sample();
        let without_end: String = text.split_inclusive('\n').take(4).collect();
        assert_eq!(
            Journal::parse(&without_end).unwrap().ending,
            Ending::Interrupted
        );
        let torn = &text[..text.len() - 7];
        let journal = Journal::parse(torn).unwrap();
        assert_eq!(
            (journal.entries.len(), journal.ending),
            (4, Ending::Interrupted)
        );
    }

    proptest! {
        /// Trap: one byte flipped anywhere never goes unnoticed.
        #[test]
        fn one_flipped_byte_is_noticed(position in 0usize..1000, bit in 0u8..7) {
            let text = sample();
            let position = position % text.len();
            let mut bytes = text.clone().into_bytes();
            bytes[position] ^= 1 << bit;
            let read = String::from_utf8(bytes).ok().map(|text| Journal::parse(&text));
            let original = Journal::parse(&text).unwrap();
            let unnoticed = matches!(&read, Some(Ok(journal)) if journal.head == original.head);
            prop_assert!(!unnoticed);
        }
    }
}
