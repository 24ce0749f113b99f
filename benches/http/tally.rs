//! What a run counts.

use std::time::Duration;

use crate::histogram::Histogram;

/// Answers by outcome.
#[derive(Clone)]
pub struct Counts {
    by_status: Vec<u64>,
    /// Answers that were the work asked for.
    pub met: u64,
}

impl Counts {
    fn new() -> Self {
        Self { by_status: vec![0; 600], met: 0 }
    }

    fn add(&mut self, status: u16, met: bool) {
        self.by_status[usize::from(status)] += 1;
        self.met += u64::from(met);
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.by_status.iter_mut().zip(&other.by_status) {
            *mine += theirs;
        }
        self.met += other.met;
    }

    pub fn status(&self, status: u16) -> u64 {
        self.by_status[usize::from(status)]
    }

    pub fn answers(&self) -> u64 {
        self.by_status.iter().sum()
    }

    /// Each status that was answered, and how often.
    pub fn statuses(&self) -> impl Iterator<Item = (usize, u64)> {
        self.by_status.iter().copied().enumerate().filter(|&(_, count)| count > 0)
    }
}

/// The result of one run, or of several merged.
#[derive(Clone)]
pub struct Tally {
    /// Every answer, the warm-up's too: what the server must agree with.
    pub all: Counts,
    /// The answers within the measured time.
    pub measured: Counts,
    pub latency: Histogram,
    /// Of each item, the answers that were the work asked for, the warm-up's too.
    pub met_by_item: Vec<u64>,
    /// The measured time.
    pub elapsed: Duration,
}

impl Tally {
    pub fn new(items: usize) -> Self {
        Self {
            all: Counts::new(),
            measured: Counts::new(),
            latency: Histogram::new(),
            met_by_item: vec![0; items],
            elapsed: Duration::ZERO,
        }
    }

    /// Counts an answer, to a read where there is no item; `measured` is its latency if it fell within the measured time.
    pub fn add(&mut self, item: Option<usize>, status: u16, met: bool, measured: Option<Duration>) {
        self.all.add(status, met);
        if let Some(item) = item {
            self.met_by_item[item] += u64::from(met);
        }
        if let Some(latency) = measured {
            self.measured.add(status, met);
            self.latency.record(latency);
        }
    }

    /// Adds the counts of `other`. The longer of the two times stands: it is for threads that ran side by side.
    pub fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        self.measured.merge(&other.measured);
        self.latency.merge(&other.latency);
        for (mine, theirs) in self.met_by_item.iter_mut().zip(&other.met_by_item) {
            *mine += theirs;
        }
        self.elapsed = self.elapsed.max(other.elapsed);
    }

    /// Answers a second that were the work asked for.
    pub fn rate(&self) -> f64 {
        self.measured.met as f64 / self.elapsed.as_secs_f64()
    }
}
