//! Bytes stored by each namespace: measured now and then, never at each question.
//!
//! Measuring walks every page of every tree (SQLite's `dbstat`), a tree at a time, on a thread for blocking
//! work and through connections of its own: no partition waits for it, but the disk is read. So an answer
//! tells how old it is, and `storage.usage_age_ms` bounds how often that is done.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::Namespace;
use crate::data_dir::{DataDir, Manifest};
use crate::partition::Clock;
use crate::store::Error;
use crate::store::sqlite::PARTITION_SCHEMA;
use crate::store::sqlite::size::{self, Size};
use crate::store::sqlite::summary::SUMMARY_SCHEMA;

/// What a measurement found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// Bytes of the likes' tables and indices, the roll-up's summary among them.
    pub likes: u64,
    /// Of the workshops'.
    pub workshops: u64,
    /// Of the rooms'.
    pub rooms: u64,
    /// Nobody's: free pages, write-ahead logs, what the files say about themselves.
    pub shared: u64,
    /// When it was begun, ms since 1970.
    pub as_of_ms: i64,
}

impl Stored {
    /// A namespace's bytes.
    #[must_use]
    pub fn of(&self, namespace: Namespace) -> u64 {
        match namespace {
            Namespace::Likes => self.likes,
            Namespace::Workshops => self.workshops,
            Namespace::Rooms => self.rooms,
        }
    }

    fn add(&mut self, size: &Size) {
        self.shared += size.beside;
        for (table, bytes) in &size.tables {
            *match owner(table) {
                Some(Namespace::Likes) => &mut self.likes,
                Some(Namespace::Workshops) => &mut self.workshops,
                Some(Namespace::Rooms) => &mut self.rooms,
                None => &mut self.shared,
            } += bytes;
        }
    }
}

/// Whose a table is.
fn owner(table: &str) -> Option<Namespace> {
    match table {
        "items" | "memberships" | "shard_counters" | "version_floors" | "base_ledger" | "unswept_items"
        | "applied_deletions" | "counter_requests" | "item_members" | "item_index" | "summary"
        | "watermarks" | "progress" | "deletions" | "history" | "history_since" | "trending"
        | "trending_missed" => Some(Namespace::Likes),
        "workshops"
        | "attempts"
        | "holders"
        | "bookings"
        | "events"
        | "workshop_tombstones"
        | "unswept_workshops"
        | "sets"
        | "set_lines" => Some(Namespace::Workshops),
        "rooms" | "room_messages" => Some(Namespace::Rooms),
        _ => None,
    }
}

/// The last measurement, and how to make another; a cheap clone.
#[derive(Debug, Clone)]
pub struct Measured(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    manifest: Manifest,
    max_age_ms: i64,
    clock: Clock,
    last: watch::Sender<Option<Stored>>,
    /// Since when one is being made.
    measuring: Mutex<bool>,
}

impl Measured {
    /// Nothing is measured yet. `max_age_ms` is `storage.usage_age_ms`.
    #[must_use]
    pub fn new(data: &DataDir, directory: PathBuf, max_age_ms: u64, clock: Clock) -> Self {
        Self(Arc::new(Shared {
            directory,
            manifest: data.manifest().clone(),
            max_age_ms: i64::try_from(max_age_ms).unwrap_or(i64::MAX),
            clock,
            last: watch::Sender::new(None),
            measuring: Mutex::new(false),
        }))
    }

    /// What was measured last, if anything was; if that is too old, a new measurement begins beside. Call it
    /// on a tokio runtime.
    #[must_use]
    pub fn latest(&self) -> Option<Stored> {
        let last = *self.0.last.borrow();
        let is_old = |last: Stored| self.0.clock.now_ms().saturating_sub(last.as_of_ms) >= self.0.max_age_ms;
        if last.is_none_or(is_old) {
            self.begin();
        }
        last
    }

    /// The same, waiting for the first measurement. `None` if it fails.
    pub async fn first(&self) -> Option<Stored> {
        let mut changes = self.0.last.subscribe();
        if let Some(last) = self.latest() {
            return Some(last);
        }
        // A failed one says so, too, and changes nothing.
        changes.changed().await.ok()?;
        *changes.borrow()
    }

    fn begin(&self) {
        let mut measuring = self.0.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *measuring, true) {
            return;
        }
        drop(measuring);
        let this = self.clone();
        tokio::task::spawn_blocking(move || {
            let measured = this.0.measure();
            *this.0.measuring.lock().unwrap_or_else(PoisonError::into_inner) = false;
            match measured {
                Ok(stored) => drop(this.0.last.send_replace(Some(stored))),
                Err(error) => {
                    tracing::warn!(%error, "the bytes stored could not be measured");
                    this.0.last.send_modify(|_| {});
                }
            }
        });
    }
}

impl Shared {
    fn measure(&self) -> Result<Stored, Error> {
        let mut stored = Stored { as_of_ms: self.clock.now_ms(), ..Stored::default() };
        for partition in 0..self.manifest.partitions {
            let file = self.manifest.partition_file(&self.directory, partition);
            stored.add(&size::measure(&file, &PARTITION_SCHEMA)?);
        }
        stored.add(&size::measure(&self.manifest.summary_file(&self.directory), &SUMMARY_SCHEMA)?);
        Ok(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table that is added is somebody's, or said to be nobody's here.
    #[test]
    fn every_table_is_somebody_s() {
        for schema in [PARTITION_SCHEMA, SUMMARY_SCHEMA] {
            let connection = rusqlite::Connection::open_in_memory().unwrap();
            schema.steps.iter().for_each(|step| connection.execute_batch(step).unwrap());
            let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'";
            let mut tables = connection.prepare(sql).unwrap();
            for table in tables.query_map([], |row| row.get::<_, String>(0)).unwrap() {
                let table = table.unwrap();
                let nobody_s =
                    ["identity", "sqlite_sequence", "journal", "forgetting", "forgotten"].contains(&&*table);
                assert_eq!(owner(&table).is_none(), nobody_s, "{table}");
            }
        }
    }
}
