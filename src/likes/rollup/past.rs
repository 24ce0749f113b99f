//! What became of totals over time, and which items gained most: read from what the roll-up stores, with a
//! connection of its own. No shard is asked.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::Summary;
use crate::likes::ItemId;
use crate::partition::Refusal;
use crate::store;
use crate::store::history::{Bucket, Kept, Ranked, Step, Window, fill, shown};
use crate::store::sqlite::summary::SummaryReader;

/// What is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    /// What was gained in a window.
    Gains(Window),
    /// Totals.
    Totals,
}

/// An item's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// When the first bucket begins, in ms since 1970.
    pub from_ms: i64,
    /// When the last one ends.
    pub to_ms: i64,
    /// Everything acknowledged before this time is counted.
    pub as_of_ms: i64,
    /// Every bucket in between, in order.
    pub buckets: Vec<Bucket>,
}

/// Items, the first first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    /// What was rolled up from this time on counts, in ms since 1970; `None` of totals.
    pub from_ms: Option<i64>,
    /// Everything acknowledged before this time is counted.
    pub as_of_ms: i64,
    /// No item that is not ranked has gained more than this. Of totals all are ranked.
    pub missed: i64,
    /// Which they are.
    pub items: Vec<Ranked>,
}

/// Why there is no history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoHistory {
    /// It would have so many buckets, more than was allowed.
    TooManyBuckets(usize),
    /// It could not be read.
    Refusal(Refusal),
}

/// A cheap clone's view of the past.
#[derive(Debug, Clone)]
pub struct Past(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    summary: Summary,
    reader: Mutex<SummaryReader>,
    /// One reads at a time; the others wait as tasks.
    turn: Semaphore,
    kept: Kept,
    since_ms: i64,
    /// `server.request_timeout_ms`
    patience: Duration,
}

impl Past {
    /// A view through a reader of its own, as fresh as `summary`.
    ///
    /// # Errors
    /// The store's.
    pub fn new(
        reader: SummaryReader,
        summary: Summary,
        kept: Kept,
        patience: Duration,
    ) -> Result<Self, store::Error> {
        let since_ms = reader.history_since_ms()?;
        let (reader, turn) = (Mutex::new(reader), Semaphore::new(1));
        Ok(Self(Arc::new(Inner { summary, reader, turn, kept, since_ms, patience })))
    }

    /// An item's history in buckets of a step, from the one that `from_ms` lies in to the one before `to_ms`, as far as
    /// it is kept and has begun.
    ///
    /// # Errors
    /// [`NoHistory`].
    pub async fn history(
        &self,
        item: ItemId,
        step: Step,
        (from_ms, to_ms): (Option<i64>, Option<i64>),
        most: usize,
    ) -> Result<History, NoHistory> {
        // Before the file is read: an answer may be fresher than it says, never staler.
        let as_of_ms = self.0.summary.as_of_ms();
        let first = self.0.kept.first(step, as_of_ms).max(step.bucket(self.0.since_ms));
        let buckets = shown(step, from_ms, to_ms, first, as_of_ms);
        let Range { start, end } = buckets;
        let length = usize::try_from(end - start).unwrap_or(usize::MAX);
        if length > most {
            return Err(NoHistory::TooManyBuckets(length));
        }
        let minutes = start.saturating_mul(step.minutes())..end.saturating_mul(step.minutes());
        let stored = self.read(move |reader| reader.past(item.as_str(), minutes)).await;
        let buckets = fill(step, start..end, &stored.map_err(NoHistory::Refusal)?);
        Ok(History { from_ms: step.begins_ms(start), to_ms: step.begins_ms(end), as_of_ms, buckets })
    }

    /// The first `limit` items of a ranking; equal ones by name, byte by byte.
    ///
    /// # Errors
    /// [`Refusal::Overloaded`] when it was not this one's turn in time, [`Refusal::Unavailable`] when the file cannot be
    /// read.
    pub async fn top(&self, ranking: Ranking, limit: u32) -> Result<Top, Refusal> {
        let as_of_ms = self.0.summary.as_of_ms();
        match ranking {
            Ranking::Totals => {
                let items = self.read(move |reader| reader.top_totals(limit)).await?;
                Ok(Top { from_ms: None, as_of_ms, missed: 0, items })
            }
            Ranking::Gains(window) => {
                let gains = self.read(move |reader| reader.top_gains(window, as_of_ms, limit)).await?;
                let first = window.first(as_of_ms).max(0);
                let first = gains.first.map_or(first, |counted| counted.min(first));
                let from_ms = Some(Step::Minute.begins_ms(first));
                Ok(Top { from_ms, as_of_ms, missed: gains.missed, items: gains.top })
            }
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&SummaryReader) -> Result<T, store::Error> + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = tokio::time::timeout(self.0.patience, self.0.turn.acquire()).await;
        let _turn = turn.map_err(|_| Refusal::Overloaded)?.map_err(|_| Refusal::Unavailable)?;
        let inner = Arc::clone(&self.0);
        let read = move || read(&inner.reader.lock().unwrap_or_else(PoisonError::into_inner));
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => {
                tracing::error!(%error, "the history cannot be read");
                Err(Refusal::Unavailable)
            }
            Err(_) => Err(Refusal::Unavailable),
        }
    }
}
