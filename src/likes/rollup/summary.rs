//! Rolled-up totals for readers: from memory, bounded, backed by the summary table.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::sync::Semaphore;

use super::live::{Listener, Live};
use crate::likes::types::ItemId;
use crate::partition::Refusal;
use crate::store;
use crate::store::sqlite::summary::SummaryReader;
use crate::store::summary::Progress;

/// Threads that wait for the table at a time; more reads wait for one of those, as tasks.
const MAX_TABLE_READS: usize = 8;

/// A cached read's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolledUp {
    /// The total.
    pub total: i64,
    /// The run that last changed it; of an item without likes, the last run. Never falls.
    pub version: u64,
    /// Everything acknowledged before this time is counted, in ms since 1970.
    pub as_of_ms: i64,
}

/// A cheap clone's view of the summary.
#[derive(Clone)]
pub struct Summary(Arc<Inner>);

struct Inner {
    /// Total and version by item; `None` for an item that has none, so that misses are cached too.
    cache: Cache<Arc<str>, Option<(i64, u64)>>,
    reader: Mutex<SummaryReader>,
    table_reads: Semaphore,
    /// Readers that fill the cache hold it shared; a run that changes table and cache holds it alone, so
    /// that nobody puts an older row over a newer one.
    filling: RwLock<()>,
    run: AtomicU64,
    as_of_ms: AtomicI64,
    live: Live,
    /// `server.request_timeout_ms`
    patience: Duration,
}

impl Summary {
    /// A view with at most `cache_items` items in memory.
    #[must_use]
    pub fn new(reader: SummaryReader, cache_items: usize, progress: &Progress, patience: Duration) -> Self {
        Self(Arc::new(Inner {
            cache: Cache::new(cache_items),
            reader: Mutex::new(reader),
            table_reads: Semaphore::new(MAX_TABLE_READS),
            filling: RwLock::new(()),
            run: AtomicU64::new(progress.run),
            as_of_ms: AtomicI64::new(progress.as_of_ms),
            live: Live::default(),
            patience,
        }))
    }

    /// When the shards were last read for a finished run, in ms since 1970; 0 before the first.
    #[must_use]
    pub fn as_of_ms(&self) -> i64 {
        self.0.as_of_ms.load(Ordering::Acquire)
    }

    /// The rolled-up totals of items, in the order of the question.
    ///
    /// # Errors
    /// [`Refusal::Overloaded`] when the table was not free in time, [`Refusal::Unavailable`] when it cannot
    /// be read.
    pub async fn get(&self, items: &[ItemId]) -> Result<Vec<RolledUp>, Refusal> {
        // Age and run are read before the totals: an answer may be fresher than it says, never staler.
        let (as_of_ms, run) = (self.as_of_ms(), self.0.run.load(Ordering::Acquire));
        let mut found: Vec<_> = items.iter().map(|item| self.0.cache.get(item.as_str())).collect();
        let missing = items.iter().zip(&found).filter(|(_, row)| row.is_none());
        let missing: Vec<ItemId> = missing.map(|(item, _)| item.clone()).collect();
        if !missing.is_empty() {
            let mut read = self.read_table(&missing).await?.into_iter();
            found.iter_mut().filter(|row| row.is_none()).for_each(|row| *row = read.next());
        }
        let answer = |row: Option<(i64, u64)>| {
            let (total, version) = row.unwrap_or((0, run));
            RolledUp { total, version, as_of_ms }
        };
        Ok(found.into_iter().map(Option::flatten).map(answer).collect())
    }

    /// Listens to an item, unless `most` listen to something already.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn listen(&self, item: &ItemId, most: usize) -> Result<Option<Listener>, Refusal> {
        // Before the total is read: what changes in between is heard of.
        let Some(mut listener) = self.0.live.listen(item.shared(), most) else { return Ok(None) };
        let read = async {
            let now = self.get(std::slice::from_ref(item)).await?;
            now.first().copied().ok_or(Refusal::Unavailable)
        };
        listener.begin(self.as_of_ms(), read).await?;
        Ok(Some(listener))
    }

    async fn read_table(&self, items: &[ItemId]) -> Result<Vec<Option<(i64, u64)>>, Refusal> {
        let turn = tokio::time::timeout(self.0.patience, self.0.table_reads.acquire()).await;
        let _turn = turn.map_err(|_| Refusal::Overloaded)?.map_err(|_| Refusal::Unavailable)?;
        let inner = Arc::clone(&self.0);
        let items = items.to_vec();
        let read = tokio::task::spawn_blocking(move || inner.fill(&items));
        match read.await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => {
                tracing::error!(%error, "the summary cannot be read");
                Err(Refusal::Unavailable)
            }
            Err(_) => Err(Refusal::Unavailable),
        }
    }

    /// Does `write` to the table and, if it succeeds, brings the cache in line, unseen by readers that
    /// fill it. `None` stands for an item that is gone.
    pub(super) fn change<'a>(
        &self,
        write: impl FnOnce() -> Result<(), store::Error>,
        rows: impl Iterator<Item = (&'a str, Option<(i64, u64)>)>,
        run: u64,
    ) -> Result<(), store::Error> {
        let _alone = self.0.filling.write().unwrap_or_else(PoisonError::into_inner);
        write()?;
        for (item, row) in rows {
            self.0.cache.insert(Arc::from(item), row);
            let (total, version) = row.unwrap_or((0, run));
            self.0.live.changed(item, total, version);
        }
        self.0.run.store(run, Ordering::Release);
        Ok(())
    }

    /// Everything acknowledged before this time is now counted. Whoever listens is told what has changed.
    pub(super) fn now_as_of(&self, as_of_ms: i64) {
        self.0.as_of_ms.store(as_of_ms, Ordering::Release);
        self.0.live.tell(as_of_ms);
    }

    /// An item is deleted: whoever listens is told so, with what it has now.
    pub(super) fn deleted(&self, item: &ItemId, total: i64, version: u64) {
        let now = RolledUp { total, version, as_of_ms: self.as_of_ms() };
        self.0.live.deleted(item.as_str(), now);
    }
}

impl Inner {
    fn fill(&self, items: &[ItemId]) -> Result<Vec<Option<(i64, u64)>>, store::Error> {
        let _shared = self.filling.read().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<&str> = items.iter().map(ItemId::as_str).collect();
        let found = self.reader.lock().unwrap_or_else(PoisonError::into_inner).totals(&names)?;
        for (item, row) in items.iter().zip(&found) {
            self.cache.insert(item.shared(), *row);
        }
        Ok(found)
    }
}

impl std::fmt::Debug for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summary").field("cached", &self.0.cache.len()).finish_non_exhaustive()
    }
}
