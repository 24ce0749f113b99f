//! What a store does for the roll-up: totals by item with their history, and how far each shard has been carried.

use super::Error;
use super::history::{ChangedTotals, Kept};

/// An item's total, rolled up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRow {
    /// The sum of the parts.
    pub total: i64,
    /// The run that last changed it.
    pub version: u64,
    /// What each shard adds, by shard number.
    pub parts: Vec<i64>,
}

/// How far the roll-up has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The last run that changed something.
    pub run: u64,
    /// The shards were read at this time, in ms since 1970.
    pub as_of_ms: i64,
    /// The newest version carried, by shard number.
    pub watermarks: Vec<i64>,
}

/// Totals and watermarks change together, in one durable transaction a call.
pub trait SummaryStore: Send + 'static {
    /// The stored progress, with a watermark for each of `shards` shards.
    ///
    /// # Errors
    /// The engine's.
    fn progress(&mut self, shards: u32) -> Result<Progress, Error>;

    /// The rows of items, in the order of the question.
    ///
    /// # Errors
    /// The engine's.
    fn load(&mut self, items: &[&str]) -> Result<Vec<Option<SummaryRow>>, Error>;

    /// Stores rows, absolute and whole, with the progress that they make, and which of their totals changed: at the
    /// time given, or when the last save before it was, if that was later.
    ///
    /// # Errors
    /// The engine's.
    fn save(
        &mut self,
        rows: &[(&str, SummaryRow)],
        progress: &Progress,
        changes: &ChangedTotals<'_>,
    ) -> Result<(), Error>;

    /// Notes that an item is being deleted, under an id that no other deletion has. A later deletion of
    /// the same item takes the place of an unfinished one.
    ///
    /// # Errors
    /// The engine's.
    fn note_deletion(&mut self, item: &str, deletion: i64) -> Result<(), Error>;

    /// Deletions noted and not finished: item and id.
    ///
    /// # Errors
    /// The engine's.
    fn unfinished_deletions(&mut self) -> Result<Vec<(String, i64)>, Error>;

    /// Puts what the item has now in the place of its row (`None`: nothing) and removes the note, as run
    /// `run`. Its history is gone; what it has now, it gained `now`, which names no items.
    ///
    /// # Errors
    /// The engine's.
    fn finish_deletion(
        &mut self,
        item: &str,
        row: Option<&SummaryRow>,
        run: u64,
        now: &ChangedTotals<'_>,
    ) -> Result<(), Error>;

    /// Takes out of each window, at most `limit` items at a time, what it has left behind at `now_ms`, and then
    /// forgets what is no longer kept of the past, as much at a time. Whether there may be more to do; without, nothing
    /// is written.
    ///
    /// # Errors
    /// The engine's.
    fn tidy(&mut self, now_ms: i64, kept: &Kept, limit: u32) -> Result<bool, Error>;
}
