//! What a person at a terminal sees: one line per scenario, and a block per failure that says where to look.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table};
use conformance_judge::{Check, CheckStatus, Status, Verdict};

use crate::report::ConformanceReport;

/// How a terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns.
    pub width: u16,
    /// Whether colours are wanted.
    pub colour: bool,
}

/// The table of results.
pub fn results(report: &ConformanceReport, look: Look) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(look.width);
    if look.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.set_header(["scenario", "result", "time", "what"]);
    for verdict in &report.results {
        let marks: String = verdict
            .marks
            .iter()
            .map(|mark| format!(" {mark}"))
            .collect();
        let what = match (&verdict.reason, verdict.status) {
            (Some(reason), status) if status != Status::Pass => {
                format!("{}\n{reason}", verdict.title)
            }
            _ => verdict.title.clone(),
        };
        table.add_row([
            Cell::new(&verdict.id),
            word(verdict.status, look),
            Cell::new(format!("{}{marks}", seconds(verdict.duration_ms))),
            Cell::new(what),
        ]);
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

/// The last lines: counts, profiles, what green is worth.
pub fn summary(report: &ConformanceReport) -> String {
    let mut counts: Vec<(Status, usize)> = Vec::new();
    for verdict in &report.results {
        match counts
            .iter_mut()
            .find(|(status, _)| *status == verdict.status)
        {
            Some((_, count)) => *count += 1,
            None => counts.push((verdict.status, 1)),
        }
    }
    counts.sort_unstable();
    let counts: Vec<String> = counts
        .iter()
        .map(|(status, count)| format!("{count} {status}"))
        .collect();
    let counts = if counts.is_empty() {
        "nothing ran".to_owned()
    } else {
        counts.join(", ")
    };
    let mut text = format!("{} scenarios: {counts}\n", report.results.len());
    if report.run.interrupted {
        text.push_str("the run was interrupted: this is not a result\n");
    }
    for profile in &report.profiles {
        let _ = writeln!(
            text,
            "profile {}: {} ({} of {} required scenarios passed)",
            profile.name,
            profile.verdict,
            profile.core.passed + profile.extended.passed,
            profile.core.required + profile.extended.required
        );
    }
    let worth = &report.sensitivity;
    let _ = writeln!(
        text,
        "sensitivity: {} of {} mutants of this history were noticed",
        worth.killed, worth.tried
    );
    for survivor in &worth.survivors {
        let _ = writeln!(text, "  not noticed: {survivor}");
    }
    for leaked in &report.cleanup.leaked {
        let _ = writeln!(text, "left behind: {leaked}");
    }
    text
}

/// A block about one scenario that did not pass; empty for one that did.
pub fn failure(verdict: &Verdict) -> String {
    let mut text = String::new();
    if verdict.status == Status::Pass {
        return text;
    }
    let blame = verdict
        .blame
        .map(|blame| format!(" (blame: {blame})"))
        .unwrap_or_default();
    let _ = writeln!(
        text,
        "{} {}{blame}: {}",
        verdict.id, verdict.status, verdict.title
    );
    let shown = verdict
        .not_held()
        .filter(|check| check.status != CheckStatus::NotReached);
    for check in shown {
        explain(&mut text, check);
    }
    let not_reached: Vec<&str> = verdict
        .checks
        .iter()
        .filter(|check| check.status == CheckStatus::NotReached)
        .map(|check| check.id.as_str())
        .collect();
    if !not_reached.is_empty() {
        let _ = writeln!(text, "  not reached: {}", not_reached.join(", "));
    }
    let _ = writeln!(text, "  again: virtmark run --id {}", verdict.id);
    text
}

fn explain(text: &mut String, check: &Check) {
    let clause = check
        .clause
        .as_deref()
        .map(|clause| format!(" [{clause}]"))
        .unwrap_or_default();
    let Some(explanation) = &check.explanation else {
        return;
    };
    let _ = writeln!(
        text,
        "  {} {} {}{clause}: {}",
        check.id, check.word, check.status, explanation.summary
    );
    for found in &explanation.mismatches {
        let _ = writeln!(
            text,
            "    {}: expected {}, is {}",
            found.path, found.expected, found.actual
        );
    }
    if let Some(deadline) = &explanation.deadline {
        let _ = writeln!(
            text,
            "    deadline: class {}, {} at factor {:.1}",
            deadline.class,
            seconds(deadline.limit_ms),
            deadline.factor
        );
    }
    for row in &explanation.timeline {
        let _ = writeln!(
            text,
            "    {:>9} {} {} {}",
            seconds(row.t_ms),
            row.change,
            row.object,
            row.fields.join("; ")
        );
    }
}

fn word(status: Status, look: Look) -> Cell {
    let cell = Cell::new(status);
    if !look.colour {
        return cell;
    }
    match status {
        Status::Pass => cell.fg(Color::Green),
        Status::Fail | Status::Blocked | Status::UnexpectedPass => {
            cell.fg(Color::Red).add_attribute(Attribute::Bold)
        }
        Status::Error | Status::Inconclusive => cell.fg(Color::Yellow),
        Status::Skipped | Status::NotApplicable | Status::ExpectedFail => cell.fg(Color::Cyan),
    }
}

fn seconds(millis: u64) -> String {
    format!("{}.{:01}s", millis / 1000, millis % 1000 / 100)
}
