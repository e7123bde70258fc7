//! `boot-own KERNEL MEMORY_BYTES COMMAND_LINE`: the smallest program around virt-vmm, for the boot bench to start.
//!
//! What the guest says goes to standard output. At the end the stamped events go to standard error, one JSON object a
//! line, the first of them this program's own start.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, clock_gettime};
use virt_vmm::{ConsoleReader, Ending, Machine, MachineConfig, Stamped};

fn main() -> anyhow::Result<ExitCode> {
    let started = clock_gettime(ClockId::Monotonic);
    let mut arguments = std::env::args().skip(1);
    let (Some(kernel), Some(memory), Some(cmdline)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        bail!("usage: boot-own KERNEL MEMORY_BYTES COMMAND_LINE");
    };
    let mut config = MachineConfig::new(kernel, memory.parse().context("memory is no number")?);
    config.cmdline = cmdline;
    config.debug_exit = true;

    let events = Arc::new(Mutex::new(Vec::<Stamped>::with_capacity(16)));
    let sink = Arc::clone(&events);
    let machine = Machine::create(
        &config,
        Box::new(move |stamped| {
            sink.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(stamped)
        }),
    )?;
    let mut console = machine.console().reader()?;
    machine.start()?;
    copy(&mut console, &mut io::stdout().lock())?;
    let ending = machine.wait();

    let mut report = format!(
        "{{\"event\":\"main\",\"monotonic_ns\":{}{:09}}}\n",
        started.tv_sec, started.tv_nsec
    );
    for stamped in events.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        report.push_str(&serde_json::to_string(stamped)?);
        report.push('\n');
    }
    io::stderr().write_all(report.as_bytes())?;
    match ending {
        Ending::DebugExit { code } => Ok(ExitCode::from(code)),
        Ending::PoweredOff => Ok(ExitCode::SUCCESS),
        other => bail!("the guest ended as {other:?}"),
    }
}

/// Copies bytes as they come, until the machine is gone.
fn copy(console: &mut ConsoleReader, output: &mut impl Write) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        poll(&mut [PollFd::new(&*console, PollFlags::IN)], None)?;
        let chunk = console.read(&mut buffer);
        if chunk.closed {
            return Ok(());
        }
        output.write_all(&buffer[..chunk.length])?;
        output.flush()?;
    }
}
