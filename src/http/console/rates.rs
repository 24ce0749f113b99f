//! What happened between two readings: so many a second, and how long it took.

use std::collections::VecDeque;

use super::reading::{Histogram, Reading};

/// Readings that are remembered, a second each: over so long latencies and batches are looked at, because one second of a
/// quiet service holds too few of them.
pub(super) const REMEMBERED: usize = 10;

/// The last readings.
#[derive(Debug, Default)]
pub(super) struct Readings(VecDeque<Reading>);

impl Readings {
    /// The newest from now on.
    pub(super) fn push(&mut self, reading: Reading) {
        if self.0.len() > REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(reading);
    }

    /// What a counter grew by each second, from the reading before to the newest; `None` while there is one alone.
    pub(super) fn per_second(&self, counter: impl Fn(&Reading) -> f64) -> Option<f64> {
        let mut newest = self.0.iter().rev();
        let (now, before) = (newest.next()?, newest.next()?);
        let seconds = now.at.duration_since(before.at).as_secs_f64();
        // A counter begins at 0 with its process, and never falls.
        (seconds > 0.0).then(|| tenths((counter(now) - counter(before)).max(0.0) / seconds))
    }

    /// The oldest that is remembered and the newest; `None` while there is one alone.
    pub(super) fn span(&self) -> Option<(&Reading, &Reading)> {
        (self.0.len() > 1).then_some(())?;
        Some((self.0.front()?, self.0.back()?))
    }
}

/// The value that so large a part of what came between two states of a histogram did not pass (from 0 to 1), found in its
/// bucket by its place there; of the last bucket, where it begins. `None` if nothing came.
pub(super) fn quantile(before: &Histogram, now: &Histogram, part: f64) -> Option<f64> {
    let since = |index: usize| before.buckets.get(index).map_or(0.0, |(_, count)| *count);
    let grown: Vec<(f64, f64)> = now
        .buckets
        .iter()
        .enumerate()
        .map(|(index, (bound, count))| (*bound, count - since(index)))
        .collect();
    let all = grown.last().map(|(_, count)| *count).filter(|count| *count > 0.0)?;
    let wanted = part * all;
    let (mut below, mut counted) = (0.0, 0.0);
    for (bound, count) in grown {
        if count >= wanted && count > counted {
            let place = (wanted - counted) / (count - counted);
            return Some(if bound.is_finite() { below + (bound - below) * place } else { below });
        }
        (below, counted) = (bound, count);
    }
    None
}

/// To one place after the point: what nobody reads is not sent.
pub(super) fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_in_its_bucket() {
        let of = |counts: [f64; 4]| Histogram {
            buckets: [0.001, 0.01, 0.1, f64::INFINITY].into_iter().zip(counts).collect(),
        };
        let (before, now) = (of([5.0, 5.0, 5.0, 5.0]), of([15.0, 24.0, 24.0, 25.0]));
        // 10 up to a millisecond, 9 up to ten, and one beyond all bounds.
        assert_eq!(quantile(&before, &now, 0.5), Some(0.001));
        assert_eq!(quantile(&before, &now, 0.25), Some(0.0005));
        let in_second = quantile(&before, &now, 0.725).unwrap();
        assert!((in_second - 0.0055).abs() < 1e-9, "{in_second}");
        assert_eq!(quantile(&before, &now, 1.0), Some(0.1), "where the last one begins");
        assert_eq!(quantile(&now, &now, 0.5), None, "nothing came");
        assert_eq!(quantile(&Histogram::default(), &Histogram::default(), 0.5), None);
    }

    #[test]
    fn a_rate_needs_two_readings() {
        let mut readings = Readings::default();
        let reading =
            |likes: u32| Reading::of(&format!("headcount_likes_total{{outcome=\"liked\"}} {likes}\n"), 1);
        readings.push(reading(1));
        assert_eq!(readings.per_second(|reading| reading.likes), None);
        assert!(readings.span().is_none());
        std::thread::sleep(std::time::Duration::from_millis(20));
        readings.push(reading(101));
        assert!(readings.per_second(|reading| reading.likes).unwrap() > 0.0);
        for _ in 0..50 {
            readings.push(reading(101));
        }
        assert_eq!(readings.0.len(), REMEMBERED + 1);
    }
}
