//! The one door to the terminal: results to standard output, talk to standard error.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the printer"
)]

/// A line of the result.
pub fn result(line: &str) {
    println!("{line}");
}

/// A line about what is going on.
pub fn note(line: &str) {
    eprintln!("{line}");
}
