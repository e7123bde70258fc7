//! The duties of PID 1: every dead child is collected, ours and the orphans that the kernel gives us.
//!
//! Collecting everything means that nobody else may wait for a child, so children are made here and
//! their exits are handed to whoever made them.
#![expect(
    unsafe_code,
    reason = "a child must be told to die with us between fork and exec"
)]

use std::{
    collections::BTreeMap,
    io,
    os::unix::process::CommandExt,
    process::{Child, Command},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, wait,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// By itself, with this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Makes children and collects them.
#[derive(Clone, Default)]
pub(crate) struct Reaper {
    children: Arc<Mutex<BTreeMap<i32, oneshot::Sender<Exit>>>>,
}

/// A running child.
pub(crate) struct Running {
    pub(crate) process: Child,
    pub(crate) exit: oneshot::Receiver<Exit>,
}

impl Reaper {
    /// Begins to collect. Needs a tokio runtime, and must be called on the thread that lives longest:
    /// children are told to die with the thread that made them.
    pub(crate) fn start() -> io::Result<Self> {
        // As PID 1 this changes nothing; elsewhere it gives us the same orphans.
        set_child_subreaper(Some(getpid()))?;
        let mut deaths = signal(SignalKind::child())?;
        let reaper = Self::default();
        let collector = reaper.clone();
        tokio::spawn(async move {
            while deaths.recv().await.is_some() {
                collector.collect();
            }
        });
        Ok(reaper)
    }

    /// Starts a child that does not survive us.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Running> {
        // SAFETY: between fork and exec only async-signal-safe calls are allowed; this is one prctl system call.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        // Held over the spawn: a child that dies at once must find its entry.
        let mut children = self.children();
        let process = command.spawn()?;
        let (died, exit) = oneshot::channel();
        children.insert(pid_of(&process), died);
        Ok(Running { process, exit })
    }

    /// Kills a child if it has not been collected yet, so that its number cannot belong to somebody else.
    pub(crate) fn kill(&self, pid: i32) {
        let children = self.children();
        if let (true, Some(pid)) = (children.contains_key(&pid), Pid::from_raw(pid)) {
            // It is alive or a zombie of ours: the only failure would be a missing right, and then it stays.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    fn collect(&self) {
        let mut children = self.children();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let Some(exit) = exit_of(status) else {
                continue;
            };
            match children.remove(&pid.as_raw_nonzero().get()) {
                Some(died) => drop(died.send(exit)),
                None => tracing::debug!(pid = pid.as_raw_nonzero(), "collected an orphan"),
            }
        }
    }

    fn children(&self) -> MutexGuard<'_, BTreeMap<i32, oneshot::Sender<Exit>>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of a process; Linux gives none above 2^22.
pub(crate) fn pid_of(process: &Child) -> i32 {
    i32::try_from(process.id()).unwrap_or(i32::MAX)
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    status
        .exit_status()
        .map(Exit::Code)
        .or_else(|| status.terminating_signal().map(Exit::Signal))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::{
        io::Errno,
        process::{WaitId, WaitIdOptions, waitid},
    };
    use tokio::{task::yield_now, time::timeout};

    use super::*;

    /// One test: collecting takes the children of every test in this process.
    #[tokio::test]
    async fn children_are_collected_and_orphans_too() {
        let reaper = Reaper::start().unwrap();
        let seven = reaper
            .spawn(Command::new("sh").args(["-c", "exit 7"]))
            .unwrap();
        assert_eq!(seven.exit.await, Ok(Exit::Code(7)));
        reaper.kill(pid_of(&seven.process));

        let sleeper = reaper.spawn(Command::new("sleep").arg("1000")).unwrap();
        reaper.kill(pid_of(&sleeper.process));
        assert_eq!(sleeper.exit.await, Ok(Exit::Signal(9)));

        // The inner shell outlives its parent and becomes ours; it is gone when no child is left, zombies included.
        let mut deaths = signal(SignalKind::child()).unwrap();
        let parent = reaper
            .spawn(Command::new("sh").args(["-c", "(sleep 0.2) & exit 0"]))
            .unwrap();
        assert_eq!(parent.exit.await, Ok(Exit::Code(0)));
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let all_gone = async {
            while !matches!(waitid(WaitId::All, look), Err(Errno::CHILD)) {
                deaths.recv().await;
                // The collector was woken too: its turn first.
                yield_now().await;
            }
        };
        timeout(Duration::from_secs(10), all_gone)
            .await
            .expect("the orphan is collected");
    }
}
