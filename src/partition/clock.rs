//! The service's time: wall time at start plus monotonic elapsed, never below what is stored.
//!
//! A wall clock that is set back while the service runs changes nothing; one that was set back between
//! two runs is noticed at the start (`clock.max_step_ms`).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch, never falling. Clones share one time.
#[derive(Debug, Clone)]
pub struct Clock {
    wall_at_start_ms: i64,
    started: Instant,
    /// What tests have added.
    advanced_ms: Arc<AtomicI64>,
}

/// The wall clock lies too far behind the last time that was stored.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the clock says {wall_ms} ms since 1970, but decisions were stored at {mark_ms} ms: {behind_ms} ms later. \
     Set the clock right, or accept time going on from there, ahead of the clock, with clock.allow_step_back = true"
)]
pub struct SteppedBack {
    /// The machine's wall time.
    pub wall_ms: i64,
    /// The latest time in the data directory.
    pub mark_ms: i64,
    /// The difference.
    pub behind_ms: i64,
}

impl Clock {
    /// The machine's clock, held at or above `mark_ms`, the latest time stored.
    ///
    /// # Errors
    /// [`SteppedBack`] when the wall clock is more than `max_step_ms` behind the mark.
    pub fn system(mark_ms: i64, max_step_ms: i64) -> Result<Self, SteppedBack> {
        let wall_ms = wall_ms();
        let behind_ms = mark_ms.saturating_sub(wall_ms);
        if behind_ms > max_step_ms {
            return Err(SteppedBack { wall_ms, mark_ms, behind_ms });
        }
        Ok(Self {
            wall_at_start_ms: wall_ms.max(mark_ms),
            started: Instant::now(),
            advanced_ms: Arc::default(),
        })
    }

    /// The time now.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        let elapsed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let advanced_ms = self.advanced_ms.load(Ordering::Relaxed);
        self.wall_at_start_ms.saturating_add(elapsed).saturating_add(advanced_ms)
    }

    /// Makes it later, for tests that do not want to wait. Not in a release build.
    #[cfg(any(test, debug_assertions))]
    pub fn advance(&self, ms: u32) {
        self.advanced_ms.fetch_add(i64::from(ms), Ordering::Relaxed);
    }
}

fn wall_ms() -> i64 {
    // A clock before 1970 reads as 1970, which any stored mark then overrules.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_step_back_is_absorbed() {
        let mark = wall_ms() + 30_000;
        let clock = Clock::system(mark, 60_000).unwrap();
        assert!(clock.now_ms() >= mark);
    }

    #[test]
    fn a_large_step_back_is_refused_naming_both_times() {
        let mark = wall_ms() + 120_000;
        let refused = Clock::system(mark, 60_000).unwrap_err();
        assert_eq!(refused.mark_ms, mark);
        assert!(refused.to_string().contains(&mark.to_string()));
        assert!(refused.to_string().contains(&refused.wall_ms.to_string()));
    }
}
