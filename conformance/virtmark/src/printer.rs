//! The one door to the terminal. Data goes to standard output, talk to standard error.

use std::io::{IsTerminal as _, Write as _};

use conformance_report::table::Look;

use crate::problem::Problem;

/// Columns when nobody says how many there are.
const WIDTH: u16 = 110;

/// Writes for people and pipes.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    colour: bool,
    terminal: bool,
}

impl Printer {
    pub(crate) fn new() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colour: std::io::stdout().is_terminal() && !plain,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Whether someone watches.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// How tables are to be drawn.
    pub(crate) fn look(&self) -> Look {
        let columns = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let width = columns.map(|size| size.ws_col).filter(|&width| width > 40);
        Look {
            width: width.unwrap_or(WIDTH),
            colour: self.colour,
        }
    }

    /// Data. A reader that has gone away is no error: `virtmark list | head`.
    pub(crate) fn data(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{}", text.trim_end_matches('\n'));
    }

    /// Talk.
    pub(crate) fn say(&self, text: &str) {
        let mut out = std::io::stderr().lock();
        let _ = writeln!(out, "{text}");
    }

    /// An error with its causes, and the advice last.
    pub(crate) fn problem(&self, problem: &Problem) {
        let mut said = problem.error.to_string();
        self.say(&format!("error: {said}"));
        for cause in problem.error.chain().skip(1).map(ToString::to_string) {
            // Some libraries repeat their cause in their own text.
            if !said.contains(&cause) {
                self.say(&format!("  because: {cause}"));
                said = cause;
            }
        }
        if let Some(remedy) = &problem.remedy {
            self.say(&format!("  help: {remedy}"));
        }
    }
}
