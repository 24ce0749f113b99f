//! The one task that runs the roll-up, and everything else that changes the summary.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Summary;
use super::pace::Pace;
use super::run::{Error, Runner};
use crate::likes::{ItemId, Shards};
use crate::metrics::RollupMetrics;
use crate::partition::{Clock, Refusal};
use crate::store::history::Kept;
use crate::store::summary::{Progress, SummaryStore};

/// Deletions waiting for the task; more are told to come back.
const MAX_DELETIONS: usize = 64;
/// Rows that a sweep command looks at, and how many such commands follow a run at most.
const SWEEP_ROWS: u32 = 1000;
const SWEEPS_PER_RUN: u32 = 5;
/// The same of what windows leave behind and of buckets that are too old.
const TIDY_ROWS: u32 = 1000;
const TIDIES_PER_RUN: u32 = 50;

/// A cheap clone's way to the task.
#[derive(Debug, Clone)]
pub struct Rollup {
    knocks: mpsc::Sender<Instant>,
    deletions: mpsc::Sender<Deletion>,
    patience: Duration,
}

#[derive(Debug)]
struct Deletion {
    item: ItemId,
    /// Random, so that it is new also to a partition that outlived its summary.
    id: i64,
    done: oneshot::Sender<Result<bool, Refusal>>,
}

/// What the task needs.
#[derive(Debug)]
pub struct Start<S> {
    /// The shards to read.
    pub shards: Shards,
    /// Where totals go.
    pub store: S,
    /// Who reads them.
    pub summary: Summary,
    /// What the store has.
    pub progress: Progress,
    /// The service's time.
    pub clock: Clock,
    /// `rollup.page_items`
    pub page_items: u32,
    /// `rollup.gathered_items`
    pub gathered_items: usize,
    /// How much of the past is kept.
    pub kept: Kept,
    /// `rollup.check_rows`
    pub check_rows: u32,
    /// `rollup.max_share_percent`
    pub max_share_percent: u32,
    /// `server.request_timeout_ms`
    pub patience: Duration,
}

/// Starts the task. It ends after `stop` is cancelled and one last run is done.
pub fn start<S: SummaryStore>(start: Start<S>, stop: CancellationToken) -> (Rollup, JoinHandle<()>) {
    // Capacity one: a knock during a run is remembered once, and no run overlaps another.
    let (knocks, knocked) = mpsc::channel(1);
    let (deletions, to_delete) = mpsc::channel(MAX_DELETIONS);
    let partitions = start.shards.partitions();
    let task = Task {
        runner: Runner {
            shards: start.shards,
            store: Arc::new(Mutex::new(start.store)),
            summary: start.summary,
            clock: start.clock,
            progress: start.progress,
            page_items: start.page_items,
            gathered_items: start.gathered_items,
            kept: start.kept,
            tidied: None,
        },
        metrics: RollupMetrics::default(),
        check_rows: start.check_rows,
        pace: Pace::new(start.max_share_percent),
        deletions_unfinished: true,
        to_sweep: (0..partitions).collect(),
    };
    let handle = Rollup { knocks, deletions, patience: start.patience };
    (handle, tokio::spawn(task.work(knocked, to_delete, stop)))
}

impl Rollup {
    /// Asks for a run. Nothing happens if one is asked for already.
    pub fn knock(&self) {
        let _already_asked = self.knocks.try_send(Instant::now());
    }

    /// Deletes an item with its likes; whether it was there.
    ///
    /// # Errors
    /// [`Refusal::Overloaded`] if too many deletions wait; [`Refusal::OutcomeUnknown`] if it is not
    /// finished in time or a partition failed: once it is noted it goes on by itself, also after a restart;
    /// repeating it is harmless.
    pub async fn delete(&self, item: ItemId) -> Result<bool, Refusal> {
        let (done, answer) = oneshot::channel();
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(|_| Refusal::Unavailable)?;
        let id = i64::from_be_bytes(id);
        self.deletions.try_send(Deletion { item, id, done }).map_err(|_| Refusal::Overloaded)?;
        match tokio::time::timeout(self.patience, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(Refusal::OutcomeUnknown),
        }
    }
}

struct Task<S> {
    runner: Runner<S>,
    metrics: RollupMetrics,
    check_rows: u32,
    pace: Pace,
    deletions_unfinished: bool,
    /// Partitions that may hold rows of deleted items.
    to_sweep: Vec<u32>,
}

impl<S: SummaryStore> Task<S> {
    async fn work(
        mut self,
        mut knocked: mpsc::Receiver<Instant>,
        mut to_delete: mpsc::Receiver<Deletion>,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(deletion) = to_delete.recv() => self.delete(deletion).await,
                Some(knock) = knocked.recv() => {
                    let began = Instant::now();
                    if self.pace.rests(began) {
                        continue;
                    }
                    self.metrics.lag_seconds.set(knock.elapsed().as_secs_f64());
                    self.run().await;
                    self.tidy().await;
                    self.sweep().await;
                    self.check().await;
                    self.pace.ran(began, Instant::now());
                }
            }
        }
        self.run().await;
    }

    async fn run(&mut self) {
        let started = Instant::now();
        if self.deletions_unfinished {
            match self.runner.finish_deletions().await {
                Ok(finished) => {
                    self.deletions_unfinished = false;
                    if finished > 0 {
                        self.to_sweep = (0..self.runner.shards.partitions()).collect();
                    }
                }
                Err(error) => self.failed(&error),
            }
        }
        match self.runner.run().await {
            Ok(changed) => self.metrics.ran(changed, started.elapsed()),
            Err(error) => self.failed(&error),
        }
    }

    async fn delete(&mut self, deletion: Deletion) {
        let answer = match self.runner.delete(&deletion.item, deletion.id).await {
            Ok(deleted) => {
                self.to_sweep = (0..self.runner.shards.partitions()).collect();
                Ok(deleted)
            }
            Err(error) => {
                self.failed(&error);
                self.deletions_unfinished = true;
                Err(Refusal::OutcomeUnknown)
            }
        };
        let _gone = deletion.done.send(answer);
    }

    /// What no window counts any more, and what is too old to be kept. More than one run's share: the next one goes on.
    async fn tidy(&mut self) {
        for _ in 0..TIDIES_PER_RUN {
            match self.runner.tidy(TIDY_ROWS).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.failed(&error),
            }
        }
    }

    /// Rows of deleted items count no more; they go in chunks, as ordinary commands between others.
    async fn sweep(&mut self) {
        for partition in std::mem::take(&mut self.to_sweep) {
            let mut chunks = 0;
            let unfinished = loop {
                match self.runner.shards.sweep(partition, SWEEP_ROWS).await {
                    Ok(false) => break false,
                    Ok(true) if chunks < SWEEPS_PER_RUN => chunks += 1,
                    // More than one run's share, or the partition is busy: the next run goes on.
                    Ok(true) | Err(_) => break true,
                }
            };
            if unfinished {
                self.to_sweep.push(partition);
            }
        }
    }

    /// Some counters are counted again, a few rows of each partition a run.
    async fn check(&self) {
        let partitions = if self.check_rows == 0 { 0 } else { self.runner.shards.partitions() };
        for partition in 0..partitions {
            // One that is busy or down is checked another time.
            let Ok(checked) = self.runner.shards.check(partition, self.check_rows).await else { continue };
            self.metrics.checked.increment(checked.compared);
            self.metrics.drifted.increment(checked.wrong.len() as u64);
            for wrong in checked.wrong {
                tracing::error!(partition, %wrong, "a counter is not what it counts: see headcount verify --repair");
            }
        }
    }

    fn failed(&self, error: &Error) {
        self.metrics.failures.increment(1);
        tracing::warn!(%error, "the roll-up did not finish; the next run starts from the same place");
    }
}
