//! The one way in which xtask runs other programs: every failure names the command and shows its
//! last words.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

use anyhow::Context as _;

/// A command that is being put together.
#[derive(Clone, Debug)]
pub struct Cmd {
    program: OsString,
    args: Vec<OsString>,
    envs: Vec<(OsString, OsString)>,
    dir: Option<PathBuf>,
    input: Option<Vec<u8>>,
}

impl Cmd {
    /// A program without arguments.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            envs: Vec::new(),
            dir: None,
            input: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, args: I) -> Self {
        self.args
            .extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Sets a variable of the program's environment.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs
            .push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Runs in this directory.
    #[must_use]
    pub fn dir(mut self, dir: &Path) -> Self {
        self.dir = Some(dir.to_owned());
        self
    }

    /// Text for the program's standard input; empty otherwise.
    #[must_use]
    pub fn input(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.input = Some(text.into());
        self
    }

    /// Program and arguments.
    pub fn words(&self) -> impl Iterator<Item = &OsString> {
        std::iter::once(&self.program).chain(&self.args)
    }

    /// The command as a reader would type it.
    #[must_use]
    pub fn shown(&self) -> String {
        self.words()
            .map(|w| w.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The standard library's form, for callers that keep the child.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        command.envs(self.envs.iter().map(|(k, v)| (k, v)));
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command
    }

    /// Runs with the terminal of this process; the child's exit status is the caller's to judge.
    pub fn status(&self) -> anyhow::Result<ExitStatus> {
        let mut command = self.command();
        command.stdin(Stdio::null());
        command
            .status()
            .with_context(|| format!("failed to start {}", self.shown()))
    }

    /// Runs with the terminal of this process; anything but success is an error.
    pub fn check(&self) -> anyhow::Result<()> {
        let status = self.status()?;
        anyhow::ensure!(status.success(), "failed ({status}): {}", self.shown());
        Ok(())
    }

    /// Runs silently and gives standard output; on failure the error holds the last lines of stderr.
    pub fn output(&self) -> anyhow::Result<String> {
        let output = self.captured()?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let stdout = String::from_utf8_lossy(&output.stdout);
            let words = if stderr.trim().is_empty() {
                stdout
            } else {
                stderr
            };
            anyhow::bail!(
                "failed ({}): {}\n{}",
                output.status,
                self.shown(),
                tail(&words, 20)
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs silently; only whether it succeeded matters.
    #[must_use]
    pub fn succeeds(&self) -> bool {
        self.captured().is_ok_and(|output| output.status.success())
    }

    fn captured(&self) -> anyhow::Result<std::process::Output> {
        let context = || format!("failed to start {}", self.shown());
        let mut command = self.command();
        let Some(input) = &self.input else {
            return command.stdin(Stdio::null()).output().with_context(context);
        };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().with_context(context)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A child that ends early closes the pipe; its exit status tells why.
            drop(std::io::Write::write_all(&mut stdin, input));
        }
        child.wait_with_output().with_context(context)
    }
}

/// The last `lines` lines of a text.
#[must_use]
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_input() {
        let cat = Cmd::new("cat").input("hello");
        assert_eq!(cat.output().unwrap(), "hello");
    }

    #[test]
    fn a_failure_names_the_command_and_its_last_words() {
        let error = Cmd::new("sh")
            .args(["-c", "echo oops >&2; exit 3"])
            .output()
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("sh -c") && text.contains("oops") && text.contains('3'),
            "{text}"
        );
    }

    #[test]
    fn tail_keeps_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 5), "a");
    }
}
