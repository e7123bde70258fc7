//! The interleaved boot bench: what was typed, and the order in which things happen.

mod candidate;
mod run;
mod statistics;
mod table;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;

use crate::boot::candidate::{Candidate, OWN, Setting};
use crate::boot::run::{Sample, run_once};
use crate::boot::statistics::{Row, row};
use crate::printer;

/// Rounds that count, and with `--quick`.
const ROUNDS: usize = 30;
const QUICK_ROUNDS: usize = 10;
/// Starts for the figure of starts per second, and how many are alive at once.
const STARTS: usize = 200;
const AT_ONCE: usize = 2;

/// What was typed.
#[derive(Debug, Args)]
pub struct BootArguments {
    /// The probe guest's kernel
    #[arg(long, env = "PROBE_ELF", value_name = "FILE")]
    probe: PathBuf,
    /// 10 rounds in place of 30, and no starts per second
    #[arg(long)]
    quick: bool,
    /// Write the rows as a JSON array
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Candidates, the own one is always among them
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_values_t = Candidate::usual())]
    candidates: Vec<Candidate>,
    /// Guest memory in MiB
    #[arg(long, default_value_t = 128, value_name = "MIB")]
    memory: u64,
}

/// Runs the bench and prints what it found.
///
/// # Errors
/// The own candidate does not run, a candidate that ran before fails, or the file cannot be written.
pub fn bench(arguments: &BootArguments) -> anyhow::Result<()> {
    let setting = Setting::new(&arguments.probe, arguments.memory)?;
    let mut candidates = vec![OWN];
    candidates.extend(
        arguments
            .candidates
            .iter()
            .filter(|candidate| **candidate != OWN),
    );
    let candidates = warm_up(&candidates, &setting)?;
    let rounds = if arguments.quick {
        QUICK_ROUNDS
    } else {
        ROUNDS
    };
    let samples = measure(&candidates, &setting, rounds)?;

    let Some(own) = samples.first() else {
        bail!("nothing was measured")
    };
    let rows: Vec<Row> = candidates
        .iter()
        .zip(&samples)
        .map(|(candidate, samples)| row(candidate.name(), samples, own))
        .collect();
    printer::result(&table::rows(&rows));
    printer::result(&table::phases(own));
    if !arguments.quick {
        printer::result(&format!(
            "own, start to exit, {AT_ONCE} at once: {:.0} per second",
            starts_per_second(&setting)?
        ));
    }
    if let Some(path) = &arguments.json {
        let json = serde_json::to_string_pretty(&rows)?;
        std::fs::write(path, json + "\n")
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

/// One start of each that does not count; who cannot run here is left out, with a word about why.
fn warm_up(candidates: &[Candidate], setting: &Setting) -> anyhow::Result<Vec<Candidate>> {
    let mut runnable = Vec::new();
    for candidate in candidates {
        match run_once(&candidate.command(setting)) {
            Ok(_) => runnable.push(*candidate),
            Err(error) if *candidate == OWN => {
                return Err(error.context("the own candidate does not run"));
            }
            Err(error) => printer::note(&format!("left out: {} ({error:#})", candidate.name())),
        }
    }
    Ok(runnable)
}

/// All rounds. Each starts with another candidate, so that none always runs after the same other.
fn measure(
    candidates: &[Candidate],
    setting: &Setting,
    rounds: usize,
) -> anyhow::Result<Vec<Vec<Sample>>> {
    let mut samples = vec![Vec::with_capacity(rounds); candidates.len()];
    for round in 0..rounds {
        for turn in 0..candidates.len() {
            let index = (round + turn) % candidates.len();
            let name = candidates[index].name();
            let sample = run_once(&candidates[index].command(setting));
            samples[index]
                .push(sample.with_context(|| format!("{name} failed in round {}", round + 1))?);
        }
        if (round + 1) % 10 == 0 {
            printer::note(&format!("round {} of {rounds}", round + 1));
        }
    }
    Ok(samples)
}

fn starts_per_second(setting: &Setting) -> anyhow::Result<f64> {
    let command = OWN.command(setting);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let worker = || (0..STARTS / AT_ONCE).try_for_each(|_| run_once(&command).map(drop));
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| anyhow::anyhow!("a worker panicked"))??;
        }
        anyhow::Ok(())
    })?;
    Ok(f64::from(u32::try_from(STARTS).unwrap_or(u32::MAX)) / start.elapsed().as_secs_f64())
}
