//! `explain`: one scenario for someone who has never seen it: what it promises, does, expects, and what would break it.

use std::fmt::Write as _;

use conformance_journal::Journal;
use conformance_judge::judge_run;
use conformance_report::ExitCode;
use conformance_scenario::{Library, MutantId, Scenario, library::Loaded, model::Action};

use crate::{
    cli::ExplainArgs, command::select::known, folder::Folder, printer::Printer, problem::Outcome,
    suite,
};

pub(super) fn run(args: &ExplainArgs, printer: &Printer) -> Outcome {
    let library = suite::load(&args.suite)?;
    let loaded = known(&library, &args.id)?;
    let mut text = explain(&library, loaded);
    if let Some(last) = last_result(&library, &args.id) {
        let _ = writeln!(text, "\nlast result: {last}");
    }
    let _ = write!(text, "\nrun it: virtmark run --id {}", args.id);
    printer.data(&text);
    Ok(ExitCode::Holds)
}

/// Writing to a String cannot fail, so results of `writeln!` are dropped here.
fn explain(library: &Library, loaded: &Loaded<Scenario>) -> String {
    let scenario = &loaded.value;
    let spec = &scenario.spec;
    let mut text = String::new();
    let _ = writeln!(text, "{}  {}", scenario.id(), scenario.metadata.title);
    if let Some(description) = &spec.description {
        let _ = writeln!(text, "{}", description.trim());
    }
    let _ = writeln!(
        text,
        "feature {}, file {}",
        spec.feature,
        loaded.file.display()
    );
    let _ = writeln!(text, "\nit tests");
    for id in &spec.clauses {
        let clause = library
            .spec
            .clauses
            .iter()
            .find(|(_, clause)| clause.id == *id);
        let words = clause.map_or("(no such clause)", |(_, clause)| clause.text.as_str());
        let _ = writeln!(text, "  {id}  {words}");
    }
    let _ = writeln!(text, "\nit does");
    for step in &spec.steps {
        let kind = if step.is_negative() {
            ", which must be refused"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "  {:<16} {}{kind}",
            step.id.to_string(),
            describe(&step.action)
        );
        mutants(library, &step.mutants, &mut text);
    }
    if !spec.assertions.is_empty() {
        let _ = writeln!(text, "\nit expects of the history");
    }
    for assertion in &spec.assertions {
        let (from, to) = (&assertion.from, &assertion.to);
        let object = assertion.word.object();
        let id = assertion.id.to_string();
        let _ = writeln!(
            text,
            "  {id:<16} {} {object} from {from} to {to}  ({})",
            assertion.word.name(),
            assertion.clause
        );
        mutants(library, &assertion.mutants, &mut text);
    }
    text
}

/// A step in a few words.
fn describe(action: &Action) -> String {
    let word = action.word();
    match action {
        Action::Apply(write) | Action::Create(write) => {
            let what = write.template.as_deref();
            let what = what.unwrap_or(if write.base { "the base" } else { "a manifest" });
            let but: Vec<String> = write
                .set
                .iter()
                .map(|(path, value)| format!("{path}={value}"))
                .collect();
            let but = if but.is_empty() {
                String::new()
            } else {
                format!(" with {}", but.join(", "))
            };
            let dry = if write.dry_run.is_some() {
                ", dry run"
            } else {
                ""
            };
            format!("{word} {what}{but}{dry}")
        }
        Action::Patch(patch) => format!("{word} {}/{}", patch.kind, patch.name),
        Action::Delete(delete) => {
            format!(
                "{word} {}/{}",
                delete.kind,
                delete.name.as_deref().unwrap_or("*")
            )
        }
        Action::Subresource(call) => format!("{} {:?}/{}", call.verb, call.resource, call.name),
        Action::Console(talk) => {
            let mut text = format!("{word} of {}, client {}", talk.vmi, talk.client);
            if let Some(send) = &talk.send {
                let _ = write!(text, ": say \"{}\"", send.trim_end());
            }
            if let Some(expect) = &talk.expect {
                let _ = write!(text, ", hear /{expect}/");
            }
            if talk.expect_closed {
                text.push_str(": closed by the other side");
            }
            text
        }
        Action::Get(get) => format!("{word} {}/{}", get.kind, get.name),
        Action::WaitFor(wait) => {
            format!(
                "wait for {}{}",
                wait.object,
                if wait.gone { " to be gone" } else { "" }
            )
        }
        Action::Settle(settle) => format!("wait until {} is quiet", settle.kinds.join(", ")),
        Action::KillMachine(kill) => format!("kill the machine process of {}", kill.vmi),
    }
}

fn mutants(library: &Library, named: &[MutantId], text: &mut String) {
    for id in named {
        let breaks = library
            .mutant(id)
            .map_or("(no such mutant)", |mutant| mutant.breaks.as_str());
        let _ = writeln!(text, "  {:<16} fails when {breaks} ({id})", "");
    }
}

/// From the newest run at the usual place, if there is one.
fn last_result(library: &Library, id: &str) -> Option<String> {
    let journal = Journal::open(&Folder::open("latest").journal()).ok()?;
    let verdicts = judge_run(library, &journal);
    let verdict = verdicts.verdicts.iter().find(|verdict| verdict.id == id)?;
    let reason = verdict
        .reason
        .as_deref()
        .map(|reason| format!(": {reason}"))
        .unwrap_or_default();
    Some(format!(
        "{} in run {}{reason}",
        verdict.status, verdicts.run
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::SuiteArgs;

    #[test]
    fn every_scenario_can_be_explained() {
        let library = suite::load(&SuiteArgs {
            scenarios: None,
            spec: None,
        })
        .unwrap();
        for loaded in &library.scenarios {
            let text = explain(&library, loaded);
            assert!(
                text.contains("it tests") && !text.contains("(no such"),
                "{text}"
            );
        }
    }
}
