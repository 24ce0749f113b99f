//! Putting right what an audit of likes has found wrong, in files that nobody serves from.

use rusqlite::OptionalExtension;

use super::SqliteStore;
use crate::store::likes::{CounterKey, ItemKey};
use crate::store::{Error, LikesStore, Transactions};

/// What a counter should be; `None` where there should be none.
pub type Right = (CounterKey, Option<(i64, i64)>);

/// What one shard counts of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The shard.
    pub shard: u32,
    /// Members and base.
    pub total: i64,
    /// When it changed, by the shard's count of roll-ups.
    pub version: i64,
}

/// An item with what each shard here counts of it.
pub type NamedParts = (String, Vec<Part>);

impl SqliteStore {
    /// Makes counters what they should be: members and base. Their shards' versions move on, so that the roll-up carries them.
    ///
    /// # Errors
    /// The engine's.
    pub fn repair_counters(&mut self, rights: &[Right]) -> Result<(), Error> {
        self.checkpoint()?;
        self.begin()?;
        for (CounterKey { shard, item: ItemKey(item) }, right) in rights {
            let version = self.newest_version(*shard)? + 1;
            match right {
                Some((members, base)) => self
                    .connection
                    .prepare_cached(
                        "INSERT INTO shard_counters (shard, item_id, members, base, version)
                         VALUES (?1, ?2, ?3, ?4, ?5)
                         ON CONFLICT (shard, item_id) DO UPDATE SET members = ?3, base = ?4, version = ?5",
                    )?
                    .execute((shard, item, members, base, version))?,
                None => {
                    self.connection
                        .prepare_cached(
                            "INSERT INTO version_floors (shard, version) VALUES (?1, ?2)
                             ON CONFLICT (shard) DO UPDATE SET version = max(version, ?2)",
                        )?
                        .execute((shard, version))?;
                    self.connection
                        .prepare_cached("DELETE FROM shard_counters WHERE shard = ?1 AND item_id = ?2")?
                        .execute((shard, item))?
                }
            };
        }
        let _synced_by_the_checkpoint = self.commit(0)?;
        self.checkpoint()
    }

    /// Has a shard's versions go on above one that was carried: what changes must not hide behind it.
    ///
    /// # Errors
    /// The engine's.
    pub fn raise_version(&mut self, shard: u32, carried: i64) -> Result<(), Error> {
        self.begin()?;
        self.connection
            .prepare_cached(
                "INSERT INTO version_floors (shard, version) VALUES (?1, ?2)
                 ON CONFLICT (shard) DO UPDATE SET version = max(version, ?2)",
            )?
            .execute((shard, carried))?;
        let _synced_by_the_next_checkpoint = self.commit(0)?;
        Ok(())
    }

    /// Items by name, after a name, with what each shard here counts. Nothing may wait in the journal.
    ///
    /// # Errors
    /// The engine's.
    pub fn parts_page(&self, after: &str, limit: u32, shards: &[u32]) -> Result<Vec<NamedParts>, Error> {
        let mut select = self
            .connection
            .prepare_cached("SELECT name, item_id FROM items WHERE name > ?1 ORDER BY name LIMIT ?2")?;
        let mut part = self.connection.prepare_cached(
            "SELECT members + base, version FROM shard_counters WHERE shard = ?1 AND item_id = ?2",
        )?;
        let rows = select.query_map((after, limit), |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))?;
        let mut page = Vec::new();
        for row in rows {
            let (name, item): (String, i64) = row?;
            let mut parts = Vec::with_capacity(shards.len());
            for shard in shards {
                let found = part.query_row((shard, item), |row| {
                    Ok(Part { shard: *shard, total: row.get(0)?, version: row.get(1)? })
                });
                parts.extend(found.optional()?);
            }
            page.push((name, parts));
        }
        Ok(page)
    }
}
