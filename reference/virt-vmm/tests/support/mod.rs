//! What the tests with a real guest share: the probe, a machine that records its events, and a console to talk on.
//!
//! The probe comes from `PROBE_ELF`, else it is built here. Without `/dev/kvm` the tests say so and pass: they are about
//! a machine that such a host cannot make.
#![allow(dead_code, reason = "each test program uses its part")]
#![expect(
    clippy::expect_used,
    clippy::unwrap_in_result,
    reason = "what fails here fails the test"
)]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use virt_vmm::{ConsoleReader, CreateError, Ending, Event, Machine, MachineConfig, Stamped};

/// Longest wait for anything a guest does; on a loaded host even an idle guest may be slow.
const PATIENCE: Duration = Duration::from_secs(20);

/// The probe's kernel.
pub fn probe() -> &'static Path {
    static PROBE: OnceLock<PathBuf> = OnceLock::new();
    PROBE.get_or_init(|| std::env::var_os("PROBE_ELF").map_or_else(build_probe, PathBuf::from))
}

fn build_probe() -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("probe");
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--target",
            "x86_64-unknown-none",
            "--bin",
            "probe",
        ])
        .arg("--manifest-path")
        .arg(repository.join("conformance/probe/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the probe does not build");
    target.join("x86_64-unknown-none/release/probe")
}

/// Whether this host can make machines; says so if not.
pub fn no_kvm() -> bool {
    let absent = !Path::new("/dev/kvm").exists();
    if absent {
        eprintln!("skipped: /dev/kvm is absent");
    }
    absent
}

/// A plain machine for the probe.
pub fn config(cmdline: &str) -> MachineConfig {
    let mut config = MachineConfig::new(probe(), 64 << 20);
    config.cmdline = cmdline.to_owned();
    config
}

/// A machine and what can be seen of it.
pub struct Guest {
    pub machine: Machine,
    events: Mutex<Receiver<Stamped>>,
    reader: ConsoleReader,
    heard: Vec<u8>,
}

impl Guest {
    /// Makes a machine without starting it.
    pub fn create(config: &MachineConfig) -> Result<Self, CreateError> {
        let (sender, events) = channel();
        let sink = move |stamped| drop(sender.send(stamped));
        let machine = Machine::create(config, Box::new(sink))?;
        let reader = machine.console().reader().expect("an eventfd");
        Ok(Self {
            machine,
            events: Mutex::new(events),
            reader,
            heard: Vec::new(),
        })
    }

    /// Makes and starts one.
    pub fn start(config: &MachineConfig) -> Self {
        let guest = Self::create(config).expect("a machine");
        guest.machine.start().expect("a start");
        guest
    }

    /// The next event.
    pub fn event(&self) -> Stamped {
        let events = self.events.lock().expect("one reader");
        events.recv_timeout(PATIENCE).expect("an event in time")
    }

    /// Skips events until the wanted one.
    pub fn wait_for(&self, wanted: &Event) {
        while self.event().event != *wanted {}
    }

    /// Everything told so far and until the end, without stamps.
    pub fn remaining_events(&self) -> Vec<Event> {
        let mut found = Vec::new();
        while !matches!(found.last(), Some(Event::Ended { .. })) {
            found.push(self.event().event);
        }
        found
    }

    /// Waits until the guest no longer comes out: it keeps its CPU to itself, or is halted for good.
    pub fn wait_until_silent(&self) {
        // An idle probe looks at its devices 50 times a second.
        const QUIET: Duration = Duration::from_millis(300);
        let events = self.events.lock().expect("one reader");
        let end = Instant::now() + PATIENCE;
        let mut exits = self.machine.stats().exits;
        loop {
            let event = events.recv_timeout(QUIET);
            let now = self.machine.stats().exits;
            if event.is_err() && now == exits {
                return;
            }
            assert!(Instant::now() < end, "silence in time");
            exits = now;
        }
    }

    /// Sends a line and returns the answer.
    pub fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.line()
    }

    /// Sends a line.
    pub fn say(&self, line: &str) {
        let bytes = format!("{line}\n");
        assert_eq!(
            self.machine.console().write(bytes.as_bytes()),
            bytes.len(),
            "room for a line"
        );
    }

    /// The guest's next line.
    pub fn line(&mut self) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=at).collect();
                return String::from_utf8_lossy(&line[..at]).into_owned();
            }
            let left = end
                .checked_duration_since(Instant::now())
                .expect("a line in time");
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).expect("short"),
                tv_nsec: 999_999,
            };
            poll(
                &mut [PollFd::new(&self.reader, PollFlags::IN)],
                Some(&timeout),
            )
            .expect("poll");
            let mut buffer = [0; 512];
            let chunk = self.reader.read(&mut buffer);
            assert!(!chunk.closed, "the machine ended before the line did");
            self.heard.extend_from_slice(&buffer[..chunk.length]);
        }
    }

    /// Reads what is left after the end: bytes that were kept, and bytes that were dropped.
    pub fn backlog(&mut self) -> (u64, u64) {
        let (mut kept, mut lost) = (0, 0);
        let mut buffer = [0; 4096];
        loop {
            let chunk = self.reader.read(&mut buffer);
            if chunk.closed {
                return (kept, lost);
            }
            kept += chunk.length as u64;
            lost += chunk.lost;
        }
    }

    /// Waits for the ready line.
    pub fn ready(&mut self) -> String {
        let line = self.line();
        assert!(line.starts_with("PROBE 1 ready "), "{line:?}");
        line
    }

    /// The end.
    pub fn ending(&self) -> Ending {
        self.machine.wait()
    }
}
