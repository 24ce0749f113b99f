//! Counters without members in SQLite: ids and the ledger go to their tables with their batch.

use rusqlite::OptionalExtension;

use super::SqliteStore;
use crate::store::counters::{AddChanges, CountersStore, RequestKey, Seen};
use crate::store::{Error, Saved};

/// Where the ledger says that adds come from; an import has its id there.
const SOURCE: &str = "adds";

impl CountersStore for SqliteStore {
    fn load_requests(&mut self, keys: &[RequestKey<'_>]) -> Result<Vec<Option<Seen>>, Error> {
        keys.iter().map(|key| self.seen(*key)).collect()
    }

    fn save_adds(&mut self, changes: &AddChanges<'_>) -> Result<Saved, Error> {
        for change in &changes.requests {
            if self.seen(change.key)? != change.before {
                return Ok(Saved::Conflict);
            }
            let (key, Seen { amount, added, decided_at_ms }) = (change.key, change.after);
            self.connection
                .prepare_cached(
                    "INSERT INTO counter_requests (item_id, request_id, amount, added, decided_at_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (item_id, request_id) DO UPDATE SET amount = ?3, added = ?4, decided_at_ms = ?5",
                )?
                .execute((key.counter.0, key.request, amount, added, decided_at_ms))?;
        }
        let mut add = self.connection.prepare_cached(
            "INSERT INTO base_ledger (shard, item_id, source, amount) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (shard, item_id, source) DO UPDATE SET amount = amount + excluded.amount",
        )?;
        for entry in &changes.ledger {
            add.execute((entry.key.shard, entry.key.item.0, SOURCE, entry.amount))?;
        }
        Ok(Saved::Done)
    }

    fn forget_requests(&mut self, decided_up_to_ms: i64, limit: u32) -> Result<u32, Error> {
        let forgotten = self
            .connection
            .prepare_cached(
                "DELETE FROM counter_requests WHERE (item_id, request_id) IN (
                   SELECT item_id, request_id FROM counter_requests WHERE decided_at_ms <= ?1
                   ORDER BY decided_at_ms LIMIT ?2)",
            )?
            .execute((decided_up_to_ms, limit))?;
        Ok(u32::try_from(forgotten).unwrap_or(u32::MAX))
    }
}

impl SqliteStore {
    fn seen(&self, key: RequestKey<'_>) -> Result<Option<Seen>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT amount, added, decided_at_ms FROM counter_requests WHERE item_id = ?1 AND request_id = ?2",
        )?;
        let seen = select.query_row((key.counter.0, key.request), |row| {
            Ok(Seen { amount: row.get(0)?, added: row.get(1)?, decided_at_ms: row.get(2)? })
        });
        Ok(seen.optional()?)
    }
}
