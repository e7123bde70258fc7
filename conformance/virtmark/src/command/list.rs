//! `list`: what there is.

use comfy_table::{ContentArrangement, Table, presets};
use conformance_report::ExitCode;
use conformance_scenario::Library;
use serde_json::{Value, json};

use crate::{
    cli::{ListArgs, ListFormat, Listed},
    command::{json, select::select},
    printer::Printer,
    problem::{Outcome, Problem},
    suite,
};

/// Rows of named columns; the first column is the name.
struct Rows {
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

pub(super) fn run(args: &ListArgs, printer: &Printer) -> Outcome {
    let library = suite::load(&args.suite)?;
    let rows = rows(&library, args)?;
    match args.format {
        ListFormat::Ids => {
            let names: Vec<&str> = rows
                .rows
                .iter()
                .filter_map(|row| Some(row.first()?.as_str()))
                .collect();
            printer.data(&names.join("\n"));
        }
        ListFormat::Json => printer.data(&json(&rows.to_json())?),
        ListFormat::Table => printer.data(&rows.to_table(printer.look().width)),
    }
    Ok(ExitCode::Holds)
}

fn rows(library: &Library, args: &ListArgs) -> Result<Rows, Problem> {
    Ok(match args.what {
        Listed::Scenarios => Rows {
            columns: &["scenario", "level", "feature", "title"],
            rows: select(library, &args.select)?
                .into_iter()
                .map(|loaded| {
                    let spec = &loaded.value.spec;
                    vec![
                        loaded.value.id().to_string(),
                        word(&spec.level),
                        spec.feature.clone(),
                        loaded.value.metadata.title.clone(),
                    ]
                })
                .collect(),
        },
        Listed::Features => Rows {
            columns: &["feature", "level", "about"],
            rows: (library.spec.features.iter())
                .map(|feature| {
                    vec![
                        feature.name.clone(),
                        word(&feature.level),
                        feature.about.clone(),
                    ]
                })
                .collect(),
        },
        Listed::Profiles => Rows {
            columns: &["profile", "features", "about"],
            rows: (library.spec.profiles.iter())
                .map(|profile| {
                    vec![
                        profile.name.clone(),
                        profile.features.join(", "),
                        profile.about.clone(),
                    ]
                })
                .collect(),
        },
        Listed::Clauses => Rows {
            columns: &["clause", "level", "text"],
            rows: (library.spec.clauses.iter())
                .map(|(_, clause)| {
                    vec![
                        clause.id.to_string(),
                        word(&clause.level),
                        clause.text.clone(),
                    ]
                })
                .collect(),
        },
        Listed::Mutants => Rows {
            columns: &["mutant", "breaks"],
            rows: (library.spec.mutants.iter())
                .map(|mutant| vec![mutant.id.to_string(), mutant.breaks.clone()])
                .collect(),
        },
    })
}

impl Rows {
    fn to_table(&self, width: u16) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width);
        table.set_header(self.columns.iter().copied());
        table.add_rows(&self.rows);
        table.trim_fmt()
    }

    fn to_json(&self) -> Value {
        let row = |row: &Vec<String>| -> Value {
            self.columns
                .iter()
                .zip(row)
                .map(|(column, value)| ((*column).to_owned(), json!(value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        self.rows.iter().map(row).collect()
    }
}

/// The word that an enum has in the files.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}
