//! Chance that can be had again: the splitmix64 generator.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Shows as the setting that brings its numbers back.
pub struct Rng {
    seed: u64,
    state: u64,
}

/// Gives back the seed that a failed test printed.
const SEED: &str = "HEADCOUNT_SEED";

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// `HEADCOUNT_SEED`, or another one each time.
    pub fn seed() -> u64 {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
        std::env::var(SEED).map_or_else(|_| u64::from(now()), |seed| seed.parse().unwrap())
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

impl fmt::Display for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SEED}={}", self.seed)
    }
}
