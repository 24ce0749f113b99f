//! What each shard was asked from one second to the next, and how long its answers took.

use std::collections::VecDeque;
use std::time::Instant;

use super::rates::{REMEMBERED, tenths};
use super::snapshot::Shard;
use crate::likes::load::Load;

/// The loads of the last seconds, by shard, the newest last.
#[derive(Debug, Default)]
pub(super) struct Loads(VecDeque<(Instant, Vec<Load>)>);

impl Loads {
    /// The shards as of now, of which this was just read.
    pub(super) fn shards(&mut self, loads: Vec<Load>, partition_of: impl Fn(u32) -> u32) -> Vec<Shard> {
        let now = Instant::now();
        let before = self.0.back().map(|(at, loads)| (now.duration_since(*at).as_secs_f64(), loads));
        let oldest = self.0.front().map(|(_, loads)| loads);
        let shard = |(number, load): (u32, &Load)| {
            let index = number as usize;
            let before = before.and_then(|(seconds, loads)| Some((seconds, loads.get(index)?)));
            Shard {
                shard: number,
                partition: partition_of(number),
                per_s: before.and_then(|(seconds, before)| per_second(before, load, seconds)),
                answer_ms: oldest.and_then(|loads| answer_ms(loads.get(index)?, load)),
                failed: load.failed,
            }
        };
        let shards = (0..).zip(&loads).map(shard).collect();
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((now, loads));
        shards
    }
}

fn per_second(before: &Load, now: &Load, seconds: f64) -> Option<f64> {
    let asked = now.asked.saturating_sub(before.asked);
    (seconds > 0.0).then(|| tenths(whole(asked) / seconds))
}

/// The mean of what was answered in between.
fn answer_ms(before: &Load, now: &Load) -> Option<f64> {
    let answered = now.timed.saturating_sub(before.timed);
    let took_us = now.timed_us.saturating_sub(before.timed_us);
    // To a hundredth: a like takes a few of them at least.
    (answered > 0).then(|| (whole(took_us) / whole(answered) / 10.0).round() / 100.0)
}

#[expect(clippy::cast_precision_loss, reason = "what happens in ten seconds is far below 2^52")]
fn whole(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_a_mean_are_of_what_came_in_between() {
        let load = |asked, timed, timed_us| Load { asked, failed: 1, timed, timed_us };
        let (before, now) = (load(10, 4, 9_000), load(40, 24, 59_000));
        assert_eq!(per_second(&before, &now, 2.0), Some(15.0));
        assert_eq!(answer_ms(&before, &now), Some(2.5), "20 in 50 ms");
        assert_eq!((per_second(&before, &now, 0.0), answer_ms(&now, &now)), (None, None));
    }

    #[test]
    fn the_first_reading_has_no_rates_and_no_more_are_remembered_than_needed() {
        let mut loads = Loads::default();
        let of = |timed| vec![Load { asked: timed, failed: 0, timed, timed_us: 1_000 * timed }];
        let first = loads.shards(of(5), |_| 3);
        assert_eq!((first[0].per_s, first[0].answer_ms, first[0].partition), (None, None, 3));
        for timed in 6..40 {
            assert_eq!(loads.shards(of(timed), |_| 3)[0].answer_ms, Some(1.0));
        }
        assert_eq!(loads.0.len(), REMEMBERED);
    }
}
