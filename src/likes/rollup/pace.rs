//! How often a roll-up may run: one that took long is followed by a rest, so that carrying totals leaves the machine and the
//! disk to what is being counted. What waits meanwhile is carried together, and shares its pages.

use std::time::{Duration, Instant};

/// No rest is longer: whatever a run took, totals are to be about as old as that.
const LONGEST_REST: Duration = Duration::from_secs(5);

/// Lets runs take a share of the time.
#[derive(Debug)]
pub(super) struct Pace {
    max_share_percent: u32,
    rests_until: Option<Instant>,
}

impl Pace {
    /// `rollup.max_share_percent`
    pub(super) fn new(max_share_percent: u32) -> Self {
        Self { max_share_percent, rests_until: None }
    }

    /// Whether it is too early for the next run.
    pub(super) fn rests(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| now < until)
    }

    /// A run is over.
    pub(super) fn ran(&mut self, began: Instant, now: Instant) {
        let rest =
            (now - began) * (100_u32.saturating_sub(self.max_share_percent)) / self.max_share_percent.max(1);
        self.rests_until = Some(now + rest.min(LONGEST_REST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_take_their_share_of_the_time() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let mut pace = Pace::new(25);
        assert!(!pace.rests(began), "the first run comes at once");
        pace.ran(began, at(800));
        assert!(pace.rests(at(801)) && pace.rests(at(3_199)) && !pace.rests(at(3_200)));
        pace.ran(began, at(100_000));
        assert!(pace.rests(at(104_999)) && !pace.rests(at(105_000)), "no rest goes on for ever");
        let mut pace = Pace::new(100);
        pace.ran(began, at(800));
        assert!(!pace.rests(at(800)));
    }
}
