//! What each shard is asked, what of it fails, and how long it takes: counted where shards are asked, so that a partition pays
//! nothing for it.
//!
//! A question pays one relaxed addition, and one more if it fails. Only while somebody looks it pays two looks at the clock and
//! two additions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a shard was asked since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Likes, unlikes, adds and questions about a user.
    pub asked: u64,
    /// Those that its partition refused, or did not answer in time.
    pub failed: u64,
    /// Those that were answered while somebody looked; without the ones in bulk, which wait for each other.
    pub timed: u64,
    /// How long these took, together, from question to answer: microseconds.
    pub timed_us: u64,
}

/// The loads of all shards; a cheap clone.
#[derive(Debug, Clone)]
pub(super) struct Loads(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    watched: AtomicBool,
    shards: Box<[Counted]>,
}

/// A cache line each, so that threads which ask different shards do not meet.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Counted {
    asked: AtomicU64,
    failed: AtomicU64,
    timed: AtomicU64,
    timed_us: AtomicU64,
}

/// A question on its way, and since when if that is of interest.
pub(super) struct Asked(Option<Instant>);

impl Loads {
    /// Of so many shards, of which nobody has asked anything.
    pub(super) fn new(shards: u32) -> Self {
        let shards = (0..shards).map(|_| Counted::default()).collect();
        Self(Arc::new(Inner { watched: AtomicBool::new(false), shards }))
    }

    /// Whether somebody looks: questions are timed from now on, or not any more.
    pub(super) fn watch(&self, watched: bool) {
        self.0.watched.store(watched, Ordering::Relaxed);
    }

    /// By shard number.
    pub(super) fn read(&self) -> Vec<Load> {
        let load = |counted: &Counted| Load {
            asked: counted.asked.load(Ordering::Relaxed),
            failed: counted.failed.load(Ordering::Relaxed),
            timed: counted.timed.load(Ordering::Relaxed),
            timed_us: counted.timed_us.load(Ordering::Relaxed),
        };
        self.0.shards.iter().map(load).collect()
    }

    /// A shard is asked, among others: nobody measures how long that takes.
    pub(super) fn asked_in_bulk(&self, shard: u32) {
        if let Some(of) = self.of(shard) {
            of.asked.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A shard is asked.
    pub(super) fn asked(&self, shard: u32) -> Asked {
        self.asked_in_bulk(shard);
        Asked(self.0.watched.load(Ordering::Relaxed).then(Instant::now))
    }

    /// It has answered.
    pub(super) fn answered(&self, shard: u32, asked: &Asked) {
        let Some((of, took)) = self.of(shard).zip(asked.0.as_ref().map(Instant::elapsed)) else { return };
        of.timed.fetch_add(1, Ordering::Relaxed);
        of.timed_us.fetch_add(micros(took), Ordering::Relaxed);
    }

    /// It has refused, or not answered in time.
    pub(super) fn failed(&self, shard: u32) {
        if let Some(of) = self.of(shard) {
            of.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn of(&self, shard: u32) -> Option<&Counted> {
        self.0.shards.get(shard as usize)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_timed_only_while_somebody_looks() {
        let loads = Loads::new(2);
        let before = loads.asked(1);
        loads.watch(true);
        loads.answered(1, &before);
        assert_eq!(loads.read()[1], Load { asked: 1, ..Load::default() }, "nobody looked when it was asked");
        let asked = loads.asked(1);
        std::thread::sleep(Duration::from_millis(2));
        loads.answered(1, &asked);
        let read = loads.read()[1];
        assert_eq!((read.asked, read.failed, read.timed), (2, 0, 1));
        assert!(read.timed_us >= 2_000, "{read:?}");
        loads.watch(false);
        assert!(loads.asked(1).0.is_none());
        loads.failed(1);
        assert_eq!((loads.read()[1].asked, loads.read()[1].failed), (3, 1));
        assert_eq!(loads.read()[0], Load::default(), "the other one");
        loads.failed(7);
        assert_eq!(loads.read().len(), 2, "there is no such shard");
    }
}
