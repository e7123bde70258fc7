//! The text of the result.

use std::time::Duration;

use crate::boot::run::Sample;
use crate::boot::statistics::{Row, Spread, spread};

/// All candidates, one a line.
pub(crate) fn rows(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<18} {:>4}  {:>30}  {:>30}  {:>22}",
        "candidate",
        "n",
        "first byte ms min/p50/p95/p99",
        "exit ms min/p50/p95/p99",
        "first byte, x of own"
    );
    for row in rows {
        let ratio = row.ratio_to_own;
        let ratio = format!("{:.2} ({:.2}..{:.2})", ratio.median, ratio.low, ratio.high);
        let (first, exit) = (four(row.first_byte_ms), four(row.exit_ms));
        text.push_str(&format!(
            "\n{:<18} {:>4}  {first:>30}  {exit:>30}  {ratio:>22}",
            row.candidate, row.n
        ));
    }
    text
}

/// Where the own candidate's time goes: each step's share from the step before.
pub(crate) fn phases(own: &[Sample]) -> String {
    let mut text = format!("own, phase {:>34}", "microseconds min/p50/p95");
    let names: Vec<&str> = own
        .first()
        .map(|sample| {
            sample
                .phases
                .iter()
                .map(|(name, _)| name.as_str())
                .collect()
        })
        .unwrap_or_default();
    let steps = names.iter().enumerate().map(|(index, name)| {
        let previous = if index == 0 {
            "spawn"
        } else {
            names[index - 1]
        };
        (
            format!("{previous} -> {name}"),
            own.iter()
                .filter_map(|sample| step(sample, index))
                .collect::<Vec<_>>(),
        )
    });
    let last = own.iter().filter_map(|sample| {
        sample
            .phases
            .last()
            .map(|(_, at)| sample.exit.saturating_sub(*at))
    });
    let rest = names
        .last()
        .map(|name| (format!("{name} -> process gone"), last.collect::<Vec<_>>()));
    for (name, durations) in steps.chain(rest) {
        let spread = spread(durations.into_iter());
        let [min, p50, p95] = [spread.min, spread.p50, spread.p95].map(|ms| ms * 1e3);
        text.push_str(&format!(
            "\n  {name:<30} {:>12}",
            format!("{min:.0}/{p50:.0}/{p95:.0}")
        ));
    }
    text
}

fn step(sample: &Sample, index: usize) -> Option<Duration> {
    let at = |index: usize| sample.phases.get(index).map(|(_, at)| *at);
    let before = if index == 0 {
        Some(Duration::ZERO)
    } else {
        at(index - 1)
    };
    Some(at(index)?.saturating_sub(before?))
}

fn four(spread: Spread) -> String {
    format!(
        "{:.2}/{:.2}/{:.2}/{:.2}",
        spread.min, spread.p50, spread.p95, spread.p99
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_differences_and_end_with_the_process() {
        let phase = |name: &str, us| (name.to_owned(), Duration::from_micros(us));
        let sample = Sample {
            first_byte: Duration::from_micros(350),
            exit: Duration::from_micros(500),
            phases: vec![
                phase("main", 100),
                phase("created", 130),
                phase("ended", 400),
            ],
        };
        let text = phases(&[sample]);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0], ["spawn", "->", "main", "100/100/100"]);
        assert_eq!(lines[1], ["main", "->", "created", "30/30/30"]);
        assert_eq!(lines[3], ["ended", "->", "process", "gone", "100/100/100"]);
    }
}
