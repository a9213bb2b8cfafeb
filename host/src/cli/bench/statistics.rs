//! Figures out of samples.

use std::time::Duration;

use serde::Serialize;

/// So many a second.
pub(super) fn rate(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// The middle of the samples, or the mean of the middle two; 0 without samples.
pub(super) fn median(samples: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = samples.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[len / 2],
        len => f64::midpoint(sorted[len / 2 - 1], sorted[len / 2]),
    }
}

/// How long something took, many times over, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) max_ms: f64,
    pub(super) samples: usize,
}

impl Percentiles {
    /// Of all of these; all zero without any.
    pub(super) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            times.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        Self { p50_ms: at(50), p99_ms: at(99), max_ms: at(100), samples: times.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([]), 0.0);
    }

    #[test]
    fn a_spread_ranks_its_samples() {
        let spread = Percentiles::of((1..=200).rev().map(Duration::from_millis).collect());
        assert_eq!((spread.p50_ms, spread.p99_ms, spread.max_ms, spread.samples), (100.0, 198.0, 200.0, 200));
        assert_eq!(Percentiles::of(vec![Duration::from_millis(7)]).p50_ms, 7.0);
        assert_eq!(Percentiles::of(Vec::new()).max_ms, 0.0);
    }
}
