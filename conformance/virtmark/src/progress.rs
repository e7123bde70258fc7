//! What is going on, for whoever watches: a line per running scenario on a terminal, a line per result elsewhere.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use conformance_engine::{Listener, News, progress::Silence};
use conformance_judge::Status;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::{cli::ProgressWord, printer::Printer};

/// The listener that was asked for.
pub(crate) fn listener(word: ProgressWord, total: usize, printer: &Printer) -> Box<dyn Listener> {
    match word {
        ProgressWord::None => Box::new(Silence),
        ProgressWord::Auto if printer.is_terminal() => Box::new(Live::new(total)),
        ProgressWord::Auto | ProgressWord::Lines => Box::new(Lines {
            printer: printer.clone(),
            total,
            done: Mutex::new(0),
        }),
    }
}

/// One line per result.
struct Lines {
    printer: Printer,
    total: usize,
    done: Mutex<usize>,
}

impl Listener for Lines {
    fn hear(&self, news: News) {
        match news {
            News::Finished { id, status, took } => {
                let mut done = lock(&self.done);
                *done += 1;
                let (total, took) = (self.total, seconds(took));
                self.printer
                    .say(&format!("[{done:>2}/{total}] {id:<14} {status:<14} {took}"));
            }
            News::Remark(text) => self.printer.say(&text),
            News::Started { .. } | News::Waiting { .. } => {}
        }
    }
}

/// A live view.
struct Live {
    bars: MultiProgress,
    sum: ProgressBar,
    running: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Live {
    fn new(total: usize) -> Self {
        let bars = MultiProgress::new();
        let sum = ProgressBar::new(u64::try_from(total).unwrap_or(u64::MAX));
        sum.set_style(style("{pos}/{len} scenarios, {elapsed}"));
        Self {
            sum: bars.add(sum),
            bars,
            running: Mutex::default(),
        }
    }

    fn line(&self, text: &str) {
        // A terminal that has gone away is no reason to stop.
        let _ = self.bars.println(text);
    }
}

impl Listener for Live {
    fn hear(&self, news: News) {
        match news {
            News::Started { id } => {
                let bar = self
                    .bars
                    .insert_before(&self.sum, ProgressBar::new_spinner());
                bar.set_style(style("  {spinner} {prefix:14} {elapsed:>4}  {wide_msg}"));
                bar.set_prefix(id.to_string());
                bar.enable_steady_tick(Duration::from_millis(200));
                lock(&self.running).insert(id.to_string(), bar);
            }
            News::Waiting { id, what, limit } => {
                let limit = limit
                    .map(|limit| format!(" (at most {})", seconds(limit)))
                    .unwrap_or_default();
                if let Some(bar) = lock(&self.running).get(id.as_str()) {
                    bar.set_message(format!("{what}{limit}"));
                }
            }
            News::Finished { id, status, took } => {
                if let Some(bar) = lock(&self.running).remove(id.as_str()) {
                    bar.finish_and_clear();
                    self.bars.remove(&bar);
                }
                self.sum.inc(1);
                if status != Status::Pass {
                    self.line(&format!("{id:<14} {status}  {}", seconds(took)));
                }
            }
            News::Remark(text) => self.line(&text),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.sum.finish_and_clear();
    }
}

/// A style with a mistake in it is still a style.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
