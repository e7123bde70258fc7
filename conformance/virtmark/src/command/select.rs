//! Which scenarios are meant: a filter, names, or all. A name that does not exist is an error, never an empty run.

use conformance_report::ExitCode;
use conformance_scenario::{Library, Scenario, library::Loaded};

use crate::{cli::SelectArgs, problem::Problem};

/// The selected scenarios in the order of their ids.
pub(super) fn select<'l>(
    library: &'l Library,
    args: &SelectArgs,
) -> Result<Vec<&'l Loaded<Scenario>>, Problem> {
    let filtered = library
        .select(args.filter.as_deref())
        .map_err(|error| Problem::new(ExitCode::UnknownName, error))?;
    for id in &args.ids {
        known(library, id)?;
    }
    let named = |loaded: &&Loaded<Scenario>| {
        args.ids.is_empty() || args.ids.iter().any(|id| id == loaded.value.id().as_str())
    };
    Ok(filtered.into_iter().filter(named).collect())
}

/// The scenario of this name.
pub(super) fn known<'l>(library: &'l Library, id: &str) -> Result<&'l Loaded<Scenario>, Problem> {
    let found = library
        .scenarios
        .iter()
        .find(|loaded| loaded.value.id().as_str() == id);
    found.ok_or_else(|| {
        Problem::text(ExitCode::UnknownName, format!("there is no scenario {id}"))
            .remedy("`virtmark list --format ids` prints all of them")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::SuiteArgs, suite};

    fn args(filter: Option<&str>, ids: &[&str]) -> SelectArgs {
        SelectArgs {
            filter: filter.map(Into::into),
            ids: ids.iter().map(|&id| id.to_owned()).collect(),
        }
    }

    #[test]
    fn filters_and_names_narrow_each_other_down() {
        let library = suite::load(&SuiteArgs {
            scenarios: None,
            spec: None,
        })
        .unwrap();
        let count = |args: &SelectArgs| select(&library, args).map(|found| found.len()).ok();
        assert_eq!(count(&args(None, &[])), Some(library.scenarios.len()));
        assert_eq!(count(&args(None, &["VM-LIFE-0001"])), Some(1));
        assert_eq!(
            count(&args(Some("area(VM-SUB)"), &["VM-LIFE-0001"])),
            Some(0)
        );
    }

    #[test]
    fn a_typo_is_an_error() {
        let library = suite::load(&SuiteArgs {
            scenarios: None,
            spec: None,
        })
        .unwrap();
        for args in [
            args(None, &["VM-LIFE-9999"]),
            args(Some("feature(Nope)"), &[]),
        ] {
            assert_eq!(
                select(&library, &args).unwrap_err().code,
                ExitCode::UnknownName
            );
        }
    }
}
