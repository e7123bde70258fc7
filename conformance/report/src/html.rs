//! One HTML file that opens from disk: no script, style or picture comes from anywhere else.

use askama::Template;
use conformance_journal::{Entry, Event, Journal, entry::ConsoleWhat};
use conformance_judge::{
    Verdict,
    timeline::{Row, rows},
};

use serde_json::Value;

use crate::report::ConformanceReport;

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'r> {
    report: &'r ConformanceReport,
    scenarios: Vec<ScenarioView<'r>>,
}

struct ScenarioView<'r> {
    verdict: &'r Verdict,
    lanes: Vec<Lane>,
    console: Vec<ConsoleLine>,
    evidence: Vec<EvidenceView>,
    open: bool,
}

/// The life of one object.
struct Lane {
    object: String,
    rows: Vec<Row>,
}

/// What was kept because the scenario did not pass.
struct EvidenceView {
    name: String,
    text: String,
}

struct ConsoleLine {
    at: String,
    client: String,
    what: &'static str,
    text: String,
}

/// The whole page.
pub fn html(report: &ConformanceReport, journal: &Journal) -> Result<String, askama::Error> {
    let scenarios = report
        .results
        .iter()
        .map(|verdict| view(verdict, journal))
        .collect();
    Page { report, scenarios }.render()
}

fn view<'r>(verdict: &'r Verdict, journal: &Journal) -> ScenarioView<'r> {
    let own = |entry: &&Entry| entry.scenario.as_deref() == Some(verdict.id.as_str());
    let entries: Vec<Entry> = journal.entries.iter().filter(own).cloned().collect();
    let mut lanes: Vec<Lane> = Vec::new();
    for row in rows(&entries, |_, _| true) {
        match lanes.iter_mut().find(|lane| lane.object == row.object) {
            Some(lane) => lane.rows.push(row),
            None => lanes.push(Lane {
                object: row.object.clone(),
                rows: vec![row],
            }),
        }
    }
    ScenarioView {
        verdict,
        lanes,
        console: entries.iter().filter_map(console_line).collect(),
        evidence: entries.iter().filter_map(evidence).collect(),
        open: verdict.status != conformance_judge::Status::Pass,
    }
}

fn evidence(entry: &Entry) -> Option<EvidenceView> {
    let Event::Evidence { name, content } = &entry.event else {
        return None;
    };
    let text = match content {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    Some(EvidenceView {
        name: name.clone(),
        text,
    })
}

fn console_line(entry: &Entry) -> Option<ConsoleLine> {
    let Event::Console {
        vmi,
        client,
        what,
        text,
    } = &entry.event
    else {
        return None;
    };
    let what = match what {
        ConsoleWhat::Opened => "opened",
        ConsoleWhat::Sent => "sent",
        ConsoleWhat::Received => "received",
        ConsoleWhat::Closed => "closed",
        ConsoleWhat::Failed => "failed",
    };
    Some(ConsoleLine {
        at: at(entry.millis()),
        client: format!("{vmi}/{client}"),
        what,
        text: text.clone(),
    })
}

/// Milliseconds as seconds, for the template.
fn at(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}
