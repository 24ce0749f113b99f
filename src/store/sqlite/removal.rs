//! Removing all likes from a partition's file, before anybody is served from it.
//!
//! Whatever is committed in between is a whole: an item goes with its counters in one transaction, and the memberships of
//! items that are gone count no more. So an interrupted removal goes on at the next start, and would do no harm if it did
//! not.

use rusqlite::{Connection, OptionalExtension};

use super::SqliteStore;
use crate::store::{Error, Transactions};

/// What is left once no item is there, table by table, with its key.
const REST: [(&str, &str); 5] = [
    ("memberships", "user, item_id"),
    ("shard_counters", "shard, item_id"),
    ("base_ledger", "shard, item_id, source"),
    ("counter_requests", "item_id, request_id"),
    ("unswept_items", "item_id"),
];

impl SqliteStore {
    /// Has SQLite overwrite what it deletes, so that nothing of it stays behind in the file; or leave it, which is
    /// faster.
    ///
    /// # Errors
    /// The engine's.
    pub fn overwrite_deleted(&self, overwrite: bool) -> Result<(), Error> {
        let word = if overwrite { "ON" } else { "OFF" };
        Ok(self.connection.pragma_update_and_check(None, "secure_delete", word, |_| Ok(()))?)
    }

    /// Removes every like of the shards placed here, about `chunk` rows a transaction. Versions go on from where they are.
    ///
    /// # Errors
    /// The engine's.
    pub fn remove_likes(&mut self, shards: &[u32], chunk: u32) -> Result<(), Error> {
        // Nothing waits outside the tables after this.
        self.checkpoint()?;
        self.in_transaction(|file| {
            file.execute(
                "INSERT INTO version_floors (shard, version)
                 SELECT shard, max(version) FROM shard_counters WHERE true GROUP BY shard
                 ON CONFLICT (shard) DO UPDATE SET version = max(version, excluded.version)",
                [],
            )
        })?;
        let items = chunk.div_ceil(u32::try_from(shards.len()).unwrap_or(u32::MAX).max(1));
        while self.in_transaction(|file| remove_items(file, shards, items))? > 0 {}
        for (table, key) in REST {
            let sql = format!("DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} LIMIT ?1)");
            while self.in_transaction(|file| file.prepare_cached(&sql)?.execute([chunk]))? > 0 {}
        }
        self.checkpoint()
    }

    fn in_transaction<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.begin()?;
        let done = change(&self.connection)?;
        let _synced_by_the_checkpoint = self.commit(0)?;
        Ok(done)
    }
}

/// Up to `limit` items with their counters and ledgers; how many there were.
fn remove_items(file: &Connection, shards: &[u32], limit: u32) -> rusqlite::Result<u32> {
    let mut first = file.prepare_cached(
        "DELETE FROM items WHERE item_id = (SELECT min(item_id) FROM items) RETURNING item_id",
    )?;
    let mut unswept = file.prepare_cached("INSERT INTO unswept_items (item_id) VALUES (?1)")?;
    let mut counter = file.prepare_cached("DELETE FROM shard_counters WHERE shard = ?1 AND item_id = ?2")?;
    let mut ledger = file.prepare_cached("DELETE FROM base_ledger WHERE shard = ?1 AND item_id = ?2")?;
    for removed in 0..limit {
        let Some(item) = first.query_row([], |row| row.get::<_, i64>(0)).optional()? else {
            return Ok(removed);
        };
        unswept.execute([item])?;
        for shard in shards {
            counter.execute((shard, item))?;
            ledger.execute((shard, item))?;
        }
    }
    Ok(limit)
}
