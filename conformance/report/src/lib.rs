//! Verdicts to readers: JSON, JUnit, HTML and the terminal's table.
