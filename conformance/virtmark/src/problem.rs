//! An error on its way to the user: what went wrong, what to do about it, and the exit code that scripts see.

use conformance_report::ExitCode;

/// The one error of this program's upper half.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) code: ExitCode,
    pub(crate) error: anyhow::Error,
    pub(crate) remedy: Option<String>,
}

/// What every subcommand gives.
pub(crate) type Outcome = Result<ExitCode, Problem>;

impl Problem {
    pub(crate) fn new(code: ExitCode, error: impl Into<anyhow::Error>) -> Self {
        Self {
            code,
            error: error.into(),
            remedy: None,
        }
    }

    pub(crate) fn text(code: ExitCode, text: impl Into<String>) -> Self {
        Self::new(code, anyhow::Error::msg(text.into()))
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// Whatever has no better code is a fault of ours.
impl From<anyhow::Error> for Problem {
    fn from(error: anyhow::Error) -> Self {
        Self::new(ExitCode::HarnessFault, error)
    }
}
