//! Rolled-up totals for readers: from memory, bounded, backed by the summary table.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::sync::oneshot;

use super::live::{Listener, Live};
use crate::likes::types::ItemId;
use crate::partition::Refusal;
use crate::store;
use crate::store::sqlite::summary::SummaryReader;
use crate::store::summary::Progress;

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

/// A row of the table, as far as readers ask: total and version.
type Found = Option<(i64, u64)>;

/// Questions for the table. Whoever finds nobody reading begins to, and goes on until none is left: what comes meanwhile shares
/// the next snapshot.
#[derive(Default)]
struct Waiting {
    questions: Vec<Question>,
    is_somebody_reading: bool,
}

struct Question {
    items: Vec<ItemId>,
    answer: oneshot::Sender<Vec<Found>>,
}

/// A cheap clone's view of the summary.
#[derive(Clone)]
pub struct Summary(Arc<Inner>);

struct Inner {
    /// Total and version by item; `None` for an item that has none, so that misses are cached too.
    cache: Cache<Arc<str>, Found>,
    reader: Mutex<SummaryReader>,
    waiting: Mutex<Waiting>,
    /// Times that a run has brought the cache in line with the table. Readers that fill the cache hold it shared, and leave
    /// alone what they read before it grew: nobody puts an older row over a newer one, and nobody waits for a run's writes.
    brought_in_line: RwLock<u64>,
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
            waiting: Mutex::default(),
            brought_in_line: RwLock::new(0),
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
            let mut read = self.read_table(missing).await?.into_iter();
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

    async fn read_table(&self, items: Vec<ItemId>) -> Result<Vec<Found>, Refusal> {
        let (answer, answered) = oneshot::channel();
        let begins = {
            let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.questions.push(Question { items, answer });
            !std::mem::replace(&mut waiting.is_somebody_reading, true)
        };
        if begins {
            let inner = Arc::clone(&self.0);
            tokio::task::spawn_blocking(move || inner.read_what_waits());
        }
        let answered = tokio::time::timeout(self.0.patience, answered).await;
        answered.map_err(|_| Refusal::Overloaded)?.map_err(|_| Refusal::Unavailable)
    }

    /// Does `write` to the table and, if it succeeds, brings the cache in line. `None` stands for an item that is gone.
    pub(super) fn change<'a>(
        &self,
        write: impl FnOnce() -> Result<(), store::Error>,
        rows: impl Iterator<Item = (&'a str, Option<(i64, u64)>)>,
        run: u64,
    ) -> Result<(), store::Error> {
        write()?;
        let mut brought_in_line = self.0.brought_in_line.write().unwrap_or_else(PoisonError::into_inner);
        *brought_in_line += 1;
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
    /// Answers questions until there are none. One that cannot be answered is dropped.
    fn read_what_waits(&self) {
        let _reading = Reading(self);
        loop {
            let questions = {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                if waiting.questions.is_empty() {
                    waiting.is_somebody_reading = false;
                    return;
                }
                std::mem::take(&mut waiting.questions)
            };
            let asked: Vec<&ItemId> = questions.iter().flat_map(|question| &question.items).collect();
            match self.fill(&asked) {
                Ok(found) => {
                    let mut found = found.into_iter();
                    for question in questions {
                        let answer = found.by_ref().take(question.items.len()).collect();
                        // Who asked may have gone.
                        let _ = question.answer.send(answer);
                    }
                }
                Err(error) => tracing::error!(%error, "the summary cannot be read"),
            }
        }
    }

    fn fill(&self, items: &[&ItemId]) -> Result<Vec<Found>, store::Error> {
        let brought_in_line = || self.brought_in_line.read().unwrap_or_else(PoisonError::into_inner);
        let before = *brought_in_line();
        let names: Vec<&str> = items.iter().map(|item| item.as_str()).collect();
        let found = self.reader.lock().unwrap_or_else(PoisonError::into_inner).totals(&names)?;
        let now = brought_in_line();
        if *now == before {
            for (item, row) in items.iter().zip(&found) {
                self.cache.insert(item.shared(), *row);
            }
        }
        Ok(found)
    }
}

/// Whoever reads for all. Should reading panic, what waits is dropped and the next question begins anew.
struct Reading<'a>(&'a Inner);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Waiting::default();
        }
    }
}

impl std::fmt::Debug for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summary").field("cached", &self.0.cache.len()).finish_non_exhaustive()
    }
}
