//! From samples to rows: order statistics, and ratios that are paired by round.

use std::time::Duration;

use serde::Serialize;

use crate::boot::run::Sample;

/// One candidate's result.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) candidate: &'static str,
    pub(crate) n: usize,
    pub(crate) first_byte_ms: Spread,
    pub(crate) exit_ms: Spread,
    /// Of the time to the first byte, each round's quotient against the own candidate's in the same round.
    pub(crate) ratio_to_own: Ratio,
}

/// Order statistics in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
}

/// A median and its 95 % bootstrap interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Makes the row of a candidate from its samples and the own candidate's of the same rounds.
pub(crate) fn row(candidate: &'static str, samples: &[Sample], own: &[Sample]) -> Row {
    let ratios: Vec<f64> = samples
        .iter()
        .zip(own)
        .map(|(sample, own)| sample.first_byte.as_secs_f64() / own.first_byte.as_secs_f64())
        .collect();
    Row {
        candidate,
        n: samples.len(),
        first_byte_ms: spread(samples.iter().map(|sample| sample.first_byte)),
        exit_ms: spread(samples.iter().map(|sample| sample.exit)),
        ratio_to_own: ratio(&ratios),
    }
}

/// Order statistics of durations.
pub(crate) fn spread(durations: impl Iterator<Item = Duration>) -> Spread {
    let sorted = sorted(durations.map(|duration| duration.as_secs_f64() * 1e3));
    let [min, p50, p95, p99] = [0, 50, 95, 99].map(|percent| percentile(&sorted, percent));
    Spread { min, p50, p95, p99 }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Nearest rank: the smallest value that so many percent of all do not exceed. NaN for no values.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

fn ratio(ratios: &[f64]) -> Ratio {
    const RESAMPLES: usize = 2000;
    let median = |values: &[f64]| percentile(values, 50);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let resample = |_| {
        median(&sorted((0..ratios.len()).filter_map(|_| {
            ratios.get(random.below(ratios.len())).copied()
        })))
    };
    let medians = sorted((0..RESAMPLES).map(resample));
    // 2.5 % and 97.5 % of the resampled medians.
    let [low, high] = [RESAMPLES / 40, RESAMPLES - RESAMPLES / 40 - 1].map(|at| medians[at]);
    Ratio {
        median: median(&sorted(ratios.iter().copied())),
        low,
        high,
    }
}

/// A fixed xorshift sequence, so that the same samples give the same interval.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[7.0], 99, 7.0)]
    #[case(&[1.0, 2.0], 50, 1.0)]
    #[case(&[1.0, 2.0, 3.0], 50, 2.0)]
    #[case(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0], 95, 10.0)]
    #[case(&[1.0, 2.0, 3.0], 0, 1.0)]
    fn percentiles_are_values_that_occurred(
        #[case] values: &[f64],
        #[case] percent: usize,
        #[case] expected: f64,
    ) {
        assert_eq!(percentile(values, percent).to_bits(), expected.to_bits());
    }

    fn samples(milliseconds: &[u64]) -> Vec<Sample> {
        let sample = |ms: &u64| Sample {
            first_byte: Duration::from_millis(*ms),
            exit: Duration::from_millis(ms + 1),
            phases: Vec::new(),
        };
        milliseconds.iter().map(sample).collect()
    }

    #[test]
    fn ratios_are_paired_by_round() {
        // Each round takes ten times as long as the one before; the ratio is three in every round.
        let row = row("x", &samples(&[3, 30, 300]), &samples(&[1, 10, 100]));
        let Ratio { median, low, high } = row.ratio_to_own;
        assert!(
            [median, low, high]
                .iter()
                .all(|ratio| (ratio - 3.0).abs() < 1e-9),
            "{row:?}"
        );
        assert_eq!(
            row.first_byte_ms,
            Spread {
                min: 3.0,
                p50: 30.0,
                p95: 300.0,
                p99: 300.0
            }
        );
        assert_eq!((row.n, row.exit_ms.p50), (3, 31.0));
    }

    #[test]
    fn the_interval_holds_the_median_and_is_reproducible() {
        let ratios: Vec<f64> = (1..=30).map(f64::from).collect();
        let first = ratio(&ratios);
        assert!(
            first.low < first.median && first.median < first.high,
            "{first:?}"
        );
        assert!(first.low > 5.0 && first.high < 26.0, "{first:?}");
        assert_eq!(first, ratio(&ratios));
    }
}
