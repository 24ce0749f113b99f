//! Imports in SQLite.

use rusqlite::OptionalExtension;

use super::SqliteStore;
use crate::store::import::ImportStore;
use crate::store::likes::{ItemKey, Membership};
use crate::store::{Error, LikesStore};

impl ImportStore for SqliteStore {
    fn add_memberships(&mut self, rows: &[(Membership<'_>, i64)]) -> Result<Vec<bool>, Error> {
        let mut add = |(key, liked_at_s): &(Membership<'_>, i64)| {
            let found = self.is_member(*key)?;
            if !found {
                self.pending.set_member(*key, Some(*liked_at_s));
            }
            Ok(found)
        };
        rows.iter().map(&mut add).collect()
    }

    fn base_from(&mut self, item: &str, source: &str, shards: &[u32]) -> Result<Option<i64>, Error> {
        let Some(ItemKey(item)) = self.load_items(&[item])?.into_iter().next().flatten() else {
            return Ok(None);
        };
        let mut select = self.connection.prepare_cached(
            "SELECT amount FROM base_ledger WHERE shard = ?1 AND item_id = ?2 AND source = ?3",
        )?;
        let mut found: Option<i64> = None;
        for shard in shards {
            let amount: Option<i64> = select.query_row((shard, item, source), |row| row.get(0)).optional()?;
            found = amount.map_or(found, |amount| Some(found.unwrap_or(0).saturating_add(amount)));
        }
        Ok(found)
    }
}
