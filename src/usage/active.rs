//! Time added up over all that is active: ten rooms awake for a second are ten seconds.

use std::sync::{Mutex, PoisonError};

use crate::partition::Clock;

/// How many are active, and for how long all of them together were. Exact: it is brought up to date at each
/// change, and nothing ticks in between.
#[derive(Debug)]
pub struct Active {
    clock: Clock,
    sum: Mutex<Sum>,
}

#[derive(Debug)]
struct Sum {
    at_ms: i64,
    /// Signed: of two changes that cross, the end may be noted before the beginning.
    active: i64,
    total_ms: u64,
}

impl Active {
    /// Nothing is active yet.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let sum = Mutex::new(Sum { at_ms: clock.now_ms(), active: 0, total_ms: 0 });
        Self { clock, sum }
    }

    /// One more is active.
    pub fn begin(&self) {
        self.change(1);
    }

    /// One fewer is.
    pub fn end(&self) {
        self.change(-1);
    }

    /// So many more or fewer are.
    pub fn change(&self, by: i64) {
        self.up_to_date(|sum| sum.active += by);
    }

    /// How many are active now.
    #[must_use]
    pub fn now(&self) -> usize {
        self.up_to_date(|sum| usize::try_from(sum.active).unwrap_or(0))
    }

    /// Milliseconds of all of them together. Never falls.
    #[must_use]
    pub fn total_ms(&self) -> u64 {
        self.up_to_date(|sum| sum.total_ms)
    }

    fn up_to_date<T>(&self, then: impl FnOnce(&mut Sum) -> T) -> T {
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock: of two that come at once, neither goes back.
        let now_ms = self.clock.now_ms().max(sum.at_ms);
        let elapsed_ms = now_ms.abs_diff(sum.at_ms);
        sum.total_ms += elapsed_ms * u64::try_from(sum.active).unwrap_or(0);
        sum.at_ms = now_ms;
        then(&mut sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_adds_up_over_all_that_is_active() {
        let clock = Clock::system(0, i64::MAX).unwrap();
        let active = Active::new(clock.clone());
        // Far more than the test itself can take.
        let hour = 3_600_000;
        clock.advance(hour);
        assert!(active.total_ms() < u64::from(hour), "nothing was active");
        active.change(2);
        clock.advance(hour);
        active.end();
        clock.advance(hour);
        assert_eq!((active.now(), active.total_ms() / u64::from(hour)), (1, 3));
        active.end();
        active.end();
        active.begin();
        let before = active.total_ms();
        clock.advance(hour);
        assert_eq!((active.now(), active.total_ms()), (0, before));
    }
}
