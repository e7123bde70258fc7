//! One start of one candidate: spawn, first byte on the pipe, end of the process.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;

use crate::boot::candidate::CommandLine;

/// No candidate needs this long, not even firmware under an emulated KVM on a busy host.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one start took.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// From before the spawn to the guest's first byte on the pipe.
    pub(crate) first_byte: Duration,
    /// From before the spawn to the end of the process.
    pub(crate) exit: Duration,
    /// When things happened inside, counted from the spawn; only the own candidate tells.
    pub(crate) phases: Vec<(String, Duration)>,
}

/// An event as the own candidate reports it.
#[derive(Debug, Deserialize)]
struct Reported {
    event: String,
    monotonic_ns: u64,
}

/// Starts the candidate and waits for its end.
pub(crate) fn run_once(line: &CommandLine) -> anyhow::Result<Sample> {
    let spawned_ns = monotonic_ns();
    let start = Instant::now();
    let mut child = Command::new(&line.program)
        .args(&line.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("failed to start {}", line.program.display()))?;
    let first_byte = read_all(&mut child, start);
    if first_byte.is_err() {
        // The process may have ended already; there is nothing more to do about it.
        let _ended = child.kill();
    }
    let status = child.wait().context("failed to wait for the process")?;
    let exit = start.elapsed();
    let mut talk = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _unreadable = stderr.read_to_string(&mut talk);
    }
    let first_byte = first_byte.with_context(|| talk.trim().to_owned())?;
    ensure!(
        status.code() == Some(line.good_status),
        "it ended with {status}: {}",
        talk.trim()
    );
    Ok(Sample {
        first_byte,
        exit,
        phases: phases(&talk, spawned_ns),
    })
}

/// Reads the guest's line to the end of the pipe and returns when its first byte came.
fn read_all(child: &mut Child, start: Instant) -> anyhow::Result<Duration> {
    let mut stdout = child.stdout.take().context("no pipe")?;
    let mut first = None;
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = PATIENCE.saturating_sub(start.elapsed());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: 0,
        };
        if poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&timeout))? == 0 {
            bail!("nothing was heard within {PATIENCE:?}");
        }
        let length = stdout.read(&mut buffer)?;
        let now = start.elapsed();
        if length == 0 {
            break;
        }
        first.get_or_insert(now);
        heard.extend_from_slice(&buffer[..length]);
    }
    let heard = String::from_utf8_lossy(&heard);
    ensure!(
        heard.starts_with("PROBE 1 ready "),
        "the guest said {heard:?}"
    );
    first.context("the guest said nothing")
}

/// The own candidate's events, relative to the spawn; anything else on standard error is no event.
fn phases(talk: &str, spawned_ns: u64) -> Vec<(String, Duration)> {
    let reported = talk
        .lines()
        .filter_map(|line| serde_json::from_str::<Reported>(line).ok());
    reported
        .map(|reported| {
            (
                reported.event,
                Duration::from_nanos(reported.monotonic_ns.saturating_sub(spawned_ns)),
            )
        })
        .collect()
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |value: i64| u64::try_from(value).unwrap_or_default();
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, good_status: i32) -> CommandLine {
        CommandLine {
            program: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            good_status,
        }
    }

    #[test]
    fn takes_the_first_byte_before_the_exit() {
        let sample =
            run_once(&shell("printf 'PROBE 1 ready boot=x\\n'; exit 3", 3)).expect("a sample");
        assert!(sample.first_byte <= sample.exit);
        assert!(sample.phases.is_empty());
    }

    #[test]
    fn another_status_or_another_word_is_an_error() {
        let status = run_once(&shell("echo PROBE 1 ready boot=x; echo why >&2; exit 4", 0))
            .expect_err("wrong status");
        assert!(
            format!("{status:#}").contains("exit status: 4: why"),
            "{status:#}"
        );
        let word = run_once(&shell("echo hello", 0)).expect_err("wrong word");
        assert!(format!("{word:#}").contains("hello"), "{word:#}");
        assert!(run_once(&shell("exit 0", 0)).is_err());
    }

    #[test]
    fn phases_count_from_the_spawn() {
        let talk = "warning: x\n{\"event\":\"main\",\"monotonic_ns\":1500}\n{\"event\":\"ended\",\"cause\":{},\"monotonic_ns\":2500}";
        let expected = [
            ("main".to_owned(), Duration::from_nanos(500)),
            ("ended".to_owned(), Duration::from_nanos(1500)),
        ];
        assert_eq!(phases(talk, 1000), expected);
    }
}
