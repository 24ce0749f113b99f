//! The handle for many likes and unlikes at once: a run of them is one command a partition, decided in its order.
//!
//! Whoever brings them waits while there is no room: lines in flight are bounded over all streams, so that bulk
//! leaves single requests their places in the queues.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::Shards;
use super::types::{ItemId, UserId, partition_of_shard};
use crate::config;
use crate::metrics::BulkMetrics;
use crate::partition::{Answer, Refusal};

/// Before a full queue is tried again.
const PAUSE: Duration = Duration::from_millis(2);

/// A like or an unlike that somebody wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The user's shard.
    pub shard: u32,
    /// Who.
    pub user: UserId,
    /// What.
    pub item: ItemId,
    /// Like, or unlike.
    pub liked: bool,
}

/// A cheap clone's way in.
#[derive(Debug, Clone)]
pub struct Bulk {
    shards: Shards,
    /// Places of lines, over all streams.
    lines: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    metrics: Arc<BulkMetrics>,
}

/// A stream's place among the others; given up with it.
#[derive(Debug)]
pub struct Stream {
    metrics: Arc<BulkMetrics>,
    _place: OwnedSemaphorePermit,
}

/// Wanted likes on their way. They are decided whether or not anybody waits for it.
#[derive(Debug)]
pub struct Submitted(JoinHandle<Decided>);

/// Wanted likes of one partition, and whether each was different before.
type Run = (Arc<[Wanted]>, Result<Vec<bool>, Refusal>);

/// What came of wanted likes, each found by its place among them.
#[derive(Debug, Default)]
pub struct Decided {
    runs: Vec<Run>,
    /// Which run, and where in it.
    places: Vec<(usize, usize)>,
}

impl Bulk {
    /// Streams within the bounds of the `[bulk]` settings.
    #[must_use]
    pub fn new(shards: Shards, settings: &config::Bulk) -> Self {
        Self {
            shards,
            lines: Arc::new(Semaphore::new(settings.max_lines)),
            streams: Arc::new(Semaphore::new(settings.max_streams)),
            metrics: Arc::default(),
        }
    }

    /// A place for one more stream, if there is one.
    #[must_use]
    pub fn open(&self) -> Option<Stream> {
        let place = Arc::clone(&self.streams).try_acquire_owned().ok()?;
        self.metrics.streams.increment(1.0);
        Some(Stream { metrics: Arc::clone(&self.metrics), _place: place })
    }

    /// Counts lines that were answered.
    pub fn count(&self, done: u64, problems: u64) {
        self.metrics.done.increment(done);
        self.metrics.problems.increment(problems);
    }

    /// Who wants what, with the shard that it concerns.
    #[must_use]
    pub fn wanted(&self, user: UserId, item: ItemId, liked: bool) -> Wanted {
        Wanted { shard: user.shard(self.shards.count()), user, item, liked }
    }

    /// Puts them into their partitions' queues, in their order; waits while there is no room. At most
    /// `bulk.max_lines` of them: more have no room ever. Of two calls, one after the other, the first one's come
    /// first.
    pub async fn submit(&self, wanted: Vec<Wanted>) -> Submitted {
        let count = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        let places = Arc::clone(&self.lines).acquire_many_owned(count).await.ok();
        let partitions = self.shards.partitions();
        let mut runs = vec![Vec::new(); partitions as usize];
        let mut placed = Vec::with_capacity(wanted.len());
        for one in wanted {
            let partition = partition_of_shard(one.shard, partitions);
            if let Some(run) = runs.get_mut(partition as usize) {
                placed.push((partition as usize, run.len()));
                run.push(one);
            }
        }
        let mut asked = Vec::with_capacity(runs.len());
        for (partition, run) in (0..).zip(runs) {
            let run: Arc<[Wanted]> = run.into();
            let answer = self.ask(partition, &run).await;
            asked.push((run, answer));
        }
        let (shards, patience) = (self.shards.clone(), self.shards.patience());
        Submitted(tokio::spawn(async move {
            // Held until they are decided, also where nobody listens any more.
            let _places = places;
            let shards = &shards;
            let answers = asked.into_iter().map(|(run, answer)| async move {
                let answer = match answer {
                    Ok(Some(answer)) => answer.within(patience).await,
                    Ok(None) => Ok(Vec::new()),
                    Err(refusal) => Err(refusal),
                };
                if answer.is_err() {
                    shards.count_failed(&run);
                }
                (run, answer)
            });
            Decided { runs: join_all(answers).await, places: placed }
        }))
    }

    /// Until the queue has room, or for as long as an answer may take: then it is truly overloaded.
    async fn ask(&self, partition: u32, run: &Arc<[Wanted]>) -> Result<Option<Answer<Vec<bool>>>, Refusal> {
        if run.is_empty() {
            return Ok(None);
        }
        let patience = self.shards.patience();
        let started = Instant::now();
        loop {
            match self.shards.set_all(partition, run) {
                Err(Refusal::Overloaded) if started.elapsed() < patience => tokio::time::sleep(PAUSE).await,
                asked => return asked.map(Some),
            }
        }
    }
}

impl Submitted {
    /// What came of them.
    pub async fn decided(self) -> Decided {
        // It ends early only with the runtime.
        self.0.await.unwrap_or_default()
    }
}

impl Decided {
    /// What came of the one at a place: whether it was different before.
    ///
    /// # Errors
    /// The partition's refusal.
    pub fn get(&self, place: usize) -> Result<(&Wanted, bool), Refusal> {
        let lost = Refusal::OutcomeUnknown;
        let (run, at) = self.places.get(place).ok_or(lost)?;
        let (wanted, changed) = self.runs.get(*run).ok_or(lost)?;
        let changed = changed.as_ref().map_err(|refusal| *refusal)?.get(*at).ok_or(lost)?;
        Ok((wanted.get(*at).ok_or(lost)?, *changed))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.metrics.streams.decrement(1.0);
    }
}
