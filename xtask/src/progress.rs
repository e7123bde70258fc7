//! What the user sees while something takes time: one line per step when it starts and ends, and on
//! a terminal a running clock. Talk goes to standard error, so that output can be piped.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// Without a terminal, a step that takes longer says so as often as this.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// Prints one line of talk.
macro_rules! say {
    ($($arg:tt)*) => { $crate::progress::line(&format!($($arg)*)) };
}
/// Prints one line of data.
macro_rules! print_data {
    ($($arg:tt)*) => { $crate::progress::data(&format!($($arg)*)) };
}
pub(crate) use {print_data, say};

/// The macros' door to standard error.
pub fn line(text: &str) {
    // Nobody is left to tell when stderr is closed.
    drop(writeln!(std::io::stderr(), "{text}"));
}

/// The macros' door to standard output.
pub fn data(text: &str) {
    // A closed pipe is how `head` says that it has enough.
    drop(writeln!(std::io::stdout(), "{text}"));
}

/// One step that takes time.
pub struct Step {
    what: String,
    started: Instant,
    bar: Option<ProgressBar>,
    /// Ends the thread that gives signs of life when it is dropped.
    _alive: Option<Sender<()>>,
}

impl Step {
    /// Announces the step.
    pub fn start(what: impl Into<String>) -> Self {
        let what = what.into();
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner().with_message(what.clone());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let alive = bar.is_none().then(|| {
            line(&format!("       {what} ..."));
            signs_of_life(what.clone())
        });
        Self {
            what,
            started: Instant::now(),
            bar,
            _alive: alive,
        }
    }

    /// Says what is being waited for now.
    pub fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(format!("{}: {text}", self.what)),
            None => line(&format!("       {}: {text}", self.what)),
        }
    }

    /// Ends the step with its time.
    pub fn done(self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        line(&format!(
            "{:>5.1}s {}",
            self.started.elapsed().as_secs_f64(),
            self.what
        ));
    }

    /// Runs `work` as a step; a failed step is announced as failed.
    pub fn of<T>(
        what: impl Into<String>,
        work: impl FnOnce(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let step = Self::start(what);
        match work(&step) {
            Ok(value) => {
                step.done();
                Ok(value)
            }
            Err(error) => {
                if let Some(bar) = &step.bar {
                    bar.finish_and_clear();
                }
                line(&format!("FAILED {}", step.what));
                Err(error)
            }
        }
    }
}

/// Prints the elapsed time now and then until the sender is dropped.
fn signs_of_life(what: String) -> Sender<()> {
    let (sender, receiver) = mpsc::channel();
    let started = Instant::now();
    std::thread::spawn(move || {
        while receiver.recv_timeout(SIGN_OF_LIFE) == Err(RecvTimeoutError::Timeout) {
            line(&format!("       {what}: {} s", started.elapsed().as_secs()));
        }
    });
    sender
}
