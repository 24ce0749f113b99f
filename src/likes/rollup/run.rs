//! One run: read what changed from every shard, add it up, store it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::try_join_all;

use super::Summary;
use crate::likes::command::Changes;
use crate::likes::{ItemId, Shards};
use crate::partition::{Clock, Refusal};
use crate::store::history::{Change, ChangedTotals, Kept, Step};
use crate::store::likes::{ChangePosition, ItemKey};
use crate::store::summary::{Progress, SummaryRow, SummaryStore};
use crate::store::{self};

/// Why a run stopped. The next one starts from the same watermarks.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("a shard did not answer: {0}")]
    Shard(#[from] Refusal),
    #[error("the summary: {0}")]
    Store(#[from] store::Error),
    #[error("the summary's writer ended")]
    Writer,
}

/// What the runs share.
pub(super) struct Runner<S> {
    pub shards: Shards,
    pub store: Arc<Mutex<S>>,
    pub summary: Summary,
    pub clock: Clock,
    pub progress: Progress,
    /// `rollup.page_items`: counters read from a shard at a time.
    pub page_items: u32,
    /// `rollup.gathered_items`: items stored together, which bounds a run's memory.
    pub gathered_items: usize,
    /// How much of the past is kept.
    pub kept: Kept,
    /// The minute that the past was last tidied up for; nothing gets too old before the next.
    pub tidied: Option<i64>,
}

/// How far the run has read one shard.
struct Reading {
    shard: u32,
    at: ChangePosition,
    up_to: Option<i64>,
    done: bool,
}

/// What some shards say now of the items that changed there.
type Parts = BTreeMap<String, Vec<(u32, i64)>>;

impl<S: SummaryStore> Runner<S> {
    /// Carries everything acknowledged before now; how many items' totals were stored. Writes nothing
    /// when nothing changed.
    pub(super) async fn run(&mut self) -> Result<usize, Error> {
        let began_ms = self.clock.now_ms();
        let mut readings: Vec<Reading> = (0..)
            .zip(&self.progress.watermarks)
            .map(|(shard, version)| Reading::after(shard, *version))
            .collect();
        let mut stored = 0;
        while readings.iter().any(|reading| !reading.done) {
            let parts = self.gather(&mut readings).await?;
            let watermarks = self.watermarks(&readings);
            // A last page may be empty and still be what completes its shard.
            if parts.is_empty() && watermarks == self.progress.watermarks {
                continue;
            }
            stored += parts.len();
            let run = self.progress.run + u64::from(!parts.is_empty());
            // Until its last page a run has not counted what it is to claim; a restart must not claim it either.
            let last = readings.iter().all(|reading| reading.done);
            let as_of_ms = if last { began_ms } else { self.progress.as_of_ms };
            let progress = Progress { run, as_of_ms, watermarks };
            self.store_parts(parts, &progress, began_ms).await?;
            self.progress = progress;
        }
        self.summary.now_as_of(began_ms);
        Ok(stored)
    }

    /// How far each shard is carried once its page is stored: a shard that is not read to its end, not at all.
    fn watermarks(&self, readings: &[Reading]) -> Vec<i64> {
        let carried = |(watermark, reading): (&i64, &Reading)| match reading.done {
            true => reading.carried(),
            false => *watermark,
        };
        self.progress.watermarks.iter().zip(readings).map(carried).collect()
    }

    /// Pages until there are no more, or so many items that they are to be stored: together and in the order of their names,
    /// so that those which share a page are written with it once.
    async fn gather(&self, readings: &mut [Reading]) -> Result<Parts, Error> {
        let mut parts = Parts::new();
        while parts.len() < self.gathered_items && readings.iter().any(|reading| !reading.done) {
            self.read_pages(readings, &mut parts).await?;
        }
        Ok(parts)
    }

    /// The next page of every shard that has one, all asked at once.
    async fn read_pages(&self, readings: &mut [Reading], parts: &mut Parts) -> Result<(), Error> {
        let asked = readings.iter_mut().filter(|reading| !reading.done).map(|reading| async {
            let page = self.shards.changes(reading.shard, reading.at, reading.up_to, self.page_items).await?;
            Ok::<_, Refusal>((reading, page))
        });
        for (reading, page) in try_join_all(asked).await? {
            reading.advance(&page, self.page_items);
            for counter in page.counters {
                parts.entry(counter.item).or_default().push((reading.shard, counter.total));
            }
        }
        Ok(())
    }

    async fn store_parts(&self, parts: Parts, progress: &Progress, at_ms: i64) -> Result<(), Error> {
        let (store, summary, progress) = (Arc::clone(&self.store), self.summary.clone(), progress.clone());
        let ranked = self.kept.ranked;
        let write = move || {
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            let names: Vec<&str> = parts.keys().map(String::as_str).collect();
            let earlier = store.load(&names)?;
            let before: Vec<i64> =
                earlier.iter().map(|row| row.as_ref().map_or(0, |row| row.total)).collect();
            let rows: Vec<(&str, SummaryRow)> = parts
                .iter()
                .zip(earlier)
                .map(|((item, parts), row)| (item.as_str(), add_up(row, parts, &progress)))
                .collect();
            let items: Vec<Change<'_>> = rows
                .iter()
                .zip(before)
                .map(|((item, row), before)| Change { item, before, total: row.total })
                // Counters without members are ranked nowhere: what is added to them is no interest in an item.
                .filter(|change| change.before != change.total && ItemId::counter_in(change.item).is_none())
                .collect();
            let changes = ChangedTotals { at_ms, items: &items, ranked };
            let cached = rows.iter().map(|(item, row)| (*item, Some((row.total, row.version))));
            summary.change(|| store.save(&rows, &progress, &changes), cached, progress.run)
        };
        Ok(tokio::task::spawn_blocking(write).await.map_err(|_| Error::Writer)??)
    }

    /// Deletes an item everywhere: noted first, so that a restart finishes it.
    pub(super) async fn delete(&mut self, item: &ItemId, deletion: i64) -> Result<bool, Error> {
        self.write({
            let item = item.clone();
            move |store, _| store.note_deletion(item.as_str(), deletion)
        })
        .await?;
        self.finish_deletion(item, deletion).await
    }

    /// Deletions that an earlier process, or an earlier attempt, left unfinished; how many there were.
    pub(super) async fn finish_deletions(&mut self) -> Result<usize, Error> {
        let store = Arc::clone(&self.store);
        let unfinished = tokio::task::spawn_blocking(move || {
            store.lock().unwrap_or_else(PoisonError::into_inner).unfinished_deletions()
        });
        let unfinished = unfinished.await.map_err(|_| Error::Writer)??;
        for (item, deletion) in &unfinished {
            if let Some(item) = ItemId::parse(item, usize::MAX) {
                self.finish_deletion(&item, *deletion).await?;
            }
        }
        Ok(unfinished.len())
    }

    /// Likes may have come to a partition that did its part long before another one could, and may have
    /// been carried: what the shards count now takes the place of the row.
    async fn finish_deletion(&mut self, item: &ItemId, deletion: i64) -> Result<bool, Error> {
        let deleted = self.shards.delete(item, deletion).await?;
        let parts = self.shards.parts(item).await?;
        let run = self.progress.run + 1;
        let (at_ms, ranked) = (self.clock.now_ms(), self.kept.ranked);
        let total: i64 = parts.iter().sum();
        self.write({
            let item = item.clone();
            move |store, summary| {
                let row =
                    parts.iter().any(|part| *part != 0).then_some(SummaryRow { total, version: run, parts });
                let cached = row.as_ref().map(|row| (row.total, row.version));
                let now = ChangedTotals { at_ms, items: &[], ranked };
                let write = || store.finish_deletion(item.as_str(), row.as_ref(), run, &now);
                summary.change(write, std::iter::once((item.as_str(), cached)), run)
            }
        })
        .await?;
        self.progress.run = run;
        if deleted {
            self.summary.deleted(item, total, run);
        }
        Ok(deleted)
    }

    /// Moves the windows of rankings on and removes buckets that are too old, at most `rows` at a time; whether there
    /// may be more to do. Looks for them once a minute.
    pub(super) async fn tidy(&mut self, rows: u32) -> Result<bool, Error> {
        let now_ms = self.summary.as_of_ms();
        let minute = Some(Step::Minute.bucket(now_ms));
        if self.tidied == minute {
            return Ok(false);
        }
        let (store, kept) = (Arc::clone(&self.store), self.kept);
        let tidy = move || store.lock().unwrap_or_else(PoisonError::into_inner).tidy(now_ms, &kept, rows);
        let more = tokio::task::spawn_blocking(tidy).await.map_err(|_| Error::Writer)??;
        if !more {
            self.tidied = minute;
        }
        Ok(more)
    }

    async fn write(
        &self,
        write: impl FnOnce(&mut S, &Summary) -> Result<(), store::Error> + Send + 'static,
    ) -> Result<(), Error> {
        let (store, summary) = (Arc::clone(&self.store), self.summary.clone());
        let write = move || write(&mut store.lock().unwrap_or_else(PoisonError::into_inner), &summary);
        Ok(tokio::task::spawn_blocking(write).await.map_err(|_| Error::Writer)??)
    }
}

impl Reading {
    /// Everything of `version` and before has been carried.
    fn after(shard: u32, version: i64) -> Self {
        Self { shard, at: ChangePosition { version, item: ItemKey(i64::MAX) }, up_to: None, done: false }
    }

    fn advance(&mut self, page: &Changes, page_items: u32) {
        self.up_to = Some(page.up_to);
        if let Some(last) = page.counters.last() {
            self.at = last.position;
        }
        self.done = page.counters.len() < page_items as usize;
    }

    /// The version that is carried whole at the end. Later pages may hold some of the next one, not all.
    fn carried(&self) -> i64 {
        self.up_to.map_or(self.at.version, |up_to| self.at.version.min(up_to))
    }
}

/// A row with some of its parts replaced. Absolute values: doing it twice changes nothing.
fn add_up(row: Option<SummaryRow>, parts: &[(u32, i64)], progress: &Progress) -> SummaryRow {
    let mut row = row.unwrap_or(SummaryRow { total: 0, version: 0, parts: Vec::new() });
    row.parts.resize(progress.watermarks.len(), 0);
    for (shard, total) in parts {
        if let Some(part) = row.parts.get_mut(*shard as usize) {
            *part = *total;
        }
    }
    row.total = row.parts.iter().fold(0, |sum: i64, part| sum.saturating_add(*part));
    row.version = progress.run;
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carrying_a_part_twice_changes_no_total() {
        let progress = Progress { run: 7, as_of_ms: 0, watermarks: vec![0; 4] };
        let once = add_up(None, &[(1, 5), (3, 2)], &progress);
        assert_eq!((once.total, once.version, once.parts.clone()), (7, 7, vec![0, 5, 0, 2]));
        let twice = add_up(Some(once.clone()), &[(1, 5)], &progress);
        assert_eq!(twice, once);
        let fewer = add_up(Some(twice), &[(1, 4)], &progress);
        assert_eq!(fewer.total, 6);
    }
}
