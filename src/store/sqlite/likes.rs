//! Likes in SQLite.

use rusqlite::{OptionalExtension, Statement};

use super::SqliteStore;
use super::pending::{Found, Pending};
use crate::store::likes::{
    ChangePosition, ChangedCounter, Counter, CounterKey, ItemKey, LedgerChange, LikesChanges, LikesStore,
    Membership,
};
use crate::store::{Error, Saved};

impl LikesStore for SqliteStore {
    fn load_items(&mut self, names: &[&str]) -> Result<Vec<Option<ItemKey>>, Error> {
        let mut select = self.connection.prepare_cached("SELECT item_id FROM items WHERE name = ?1")?;
        names
            .iter()
            .map(|name| Ok(select.query_row([name], |row| row.get(0).map(ItemKey)).optional()?))
            .collect()
    }

    fn create_items(&mut self, names: &[&str]) -> Result<Vec<ItemKey>, Error> {
        let mut insert = self.connection.prepare_cached("INSERT INTO items (name) VALUES (?1)")?;
        names.iter().map(|name| Ok(ItemKey(insert.insert([name])?))).collect()
    }

    fn load_memberships(&mut self, keys: &[Membership<'_>]) -> Result<Vec<bool>, Error> {
        let mut select = self.connection.prepare_cached(SELECT_MEMBER)?;
        keys.iter().map(|key| is_member(&self.pending, &mut select, *key)).collect()
    }

    fn claim_memberships(&mut self, keys: &[Membership<'_>], now_s: i64) -> Result<Vec<bool>, Error> {
        let mut select = self.connection.prepare_cached(SELECT_MEMBER)?;
        let mut claim = |key: &Membership<'_>| {
            let found = is_member(&self.pending, &mut select, *key)?;
            if !found {
                self.pending.set_member(*key, Some(now_s));
            }
            Ok(found)
        };
        keys.iter().map(&mut claim).collect()
    }

    fn load_counters(&mut self, keys: &[CounterKey]) -> Result<Vec<Option<Counter>>, Error> {
        keys.iter().map(|key| self.counter(*key)).collect()
    }

    fn save_likes(&mut self, changes: &LikesChanges<'_>) -> Result<Saved, Error> {
        for row in &changes.added {
            if self.is_member(*row)? {
                return Ok(Saved::Conflict);
            }
            self.pending.set_member(*row, Some(changes.now_s));
        }
        for row in &changes.removed {
            if !self.is_member(*row)? {
                return Ok(Saved::Conflict);
            }
            self.pending.set_member(*row, None);
        }
        for change in &changes.counters {
            if self.counter(change.key)? != change.before {
                return Ok(Saved::Conflict);
            }
            if change.after.members < 0 {
                return Err(Error::Engine(format!("{:?}: fewer than no members", change.key)));
            }
            self.pending.set_counter(change.key, change.after);
        }
        self.save_ledger(&changes.ledger)?;
        Ok(Saved::Done)
    }

    fn newest_version(&mut self, shard: u32) -> Result<i64, Error> {
        let settled: Option<i64> = self
            .connection
            .prepare_cached(
                "SELECT max(version) FROM (
                   SELECT max(version) AS version FROM shard_counters WHERE shard = ?1
                   UNION ALL SELECT version FROM version_floors WHERE shard = ?1)",
            )?
            .query_row([shard], |row| row.get(0))?;
        let pending = self.pending.counters.current(|key| key.shard == shard);
        let pending = pending.map(|(_, counter)| counter.version).max();
        Ok(settled.max(pending).unwrap_or(0))
    }

    fn changed_counters(
        &mut self,
        shard: u32,
        after: ChangePosition,
        up_to: i64,
        limit: u32,
    ) -> Result<Vec<ChangedCounter>, Error> {
        let mut name = self.connection.prepare_cached("SELECT name FROM items WHERE item_id = ?1")?;
        let mut select = self.connection.prepare_cached(
            "SELECT version, item_id, members + base FROM shard_counters
             WHERE shard = ?1 AND (version, item_id) > (?2, ?3) AND version <= ?4 ORDER BY version, item_id",
        )?;
        let mut rows = select.query((shard, after.version, after.item.0, up_to))?;
        // A pending counter's row is out of date.
        let mut next_row = || -> Result<Option<(ChangePosition, i64)>, Error> {
            while let Some(row) = rows.next()? {
                let position = ChangePosition { version: row.get(0)?, item: ItemKey(row.get(1)?) };
                if self.pending.counters.get(&CounterKey { shard, item: position.item }).is_none() {
                    return Ok(Some((position, row.get(2)?)));
                }
            }
            Ok(None)
        };
        let mut pending = self.pending_changes(shard, after, up_to).into_iter().peekable();
        let mut row = next_row()?;
        let mut changed = Vec::new();
        while changed.len() < limit as usize {
            let (position, total) = match (row, pending.peek().copied()) {
                (Some(stored), waiting) if waiting.is_none_or(|waiting| stored.0 < waiting.0) => {
                    row = next_row()?;
                    stored
                }
                (_, Some(waiting)) => {
                    pending.next();
                    waiting
                }
                (_, None) => break,
            };
            // An item that was deleted has none.
            if let Some(item) = name.query_row([position.item.0], |row| row.get(0)).optional()? {
                changed.push(ChangedCounter { item, total, position });
            }
        }
        Ok(changed)
    }

    fn delete_item(&mut self, name: &str, deletion: i64, shards: &[u32]) -> Result<bool, Error> {
        self.settle()?;
        let first_time = self
            .connection
            .prepare_cached("INSERT INTO applied_deletions (deletion) VALUES (?1) ON CONFLICT DO NOTHING")?
            .execute([deletion])?;
        if first_time == 0 {
            return Ok(false);
        }
        let Some(item) = self
            .connection
            .prepare_cached("DELETE FROM items WHERE name = ?1 RETURNING item_id")?
            .query_row([name], |row| row.get::<_, i64>(0))
            .optional()?
        else {
            return Ok(false);
        };
        for sql in [
            "INSERT INTO version_floors (shard, version)
             SELECT shard, version FROM shard_counters WHERE shard = ?1 AND item_id = ?2
             ON CONFLICT (shard) DO UPDATE SET version = max(version, excluded.version)",
            "DELETE FROM shard_counters WHERE shard = ?1 AND item_id = ?2",
            "DELETE FROM base_ledger WHERE shard = ?1 AND item_id = ?2",
        ] {
            let mut delete = self.connection.prepare_cached(sql)?;
            for shard in shards {
                delete.execute((shard, item))?;
            }
        }
        self.connection.prepare_cached("INSERT INTO unswept_items (item_id) VALUES (?1)")?.execute([item])?;
        Ok(true)
    }

    fn unswept_items(&mut self) -> Result<Vec<ItemKey>, Error> {
        let mut select = self.connection.prepare_cached("SELECT item_id FROM unswept_items")?;
        let rows = select.query_map([], |row| row.get(0).map(ItemKey))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn sweep_memberships(
        &mut self,
        dead: &[ItemKey],
        after: Option<(String, ItemKey)>,
        limit: u32,
    ) -> Result<Option<(String, ItemKey)>, Error> {
        self.settle()?;
        let (user, item) = after.unwrap_or((String::new(), ItemKey(i64::MIN)));
        let mut select = self.connection.prepare_cached(
            "SELECT user, item_id FROM memberships WHERE (user, item_id) > (?1, ?2)
             ORDER BY user, item_id LIMIT ?3",
        )?;
        let seen = select
            .query_map((user, item.0, limit), |row| Ok((row.get::<_, String>(0)?, ItemKey(row.get(1)?))))?
            .collect::<Result<Vec<_>, _>>()?;
        let mut delete =
            self.connection.prepare_cached("DELETE FROM memberships WHERE user = ?1 AND item_id = ?2")?;
        for (user, item) in seen.iter().filter(|(_, item)| dead.contains(item)) {
            delete.execute((user, item.0))?;
        }
        Ok(if seen.len() < limit as usize { None } else { seen.into_iter().next_back() })
    }

    fn forget_swept(&mut self, items: &[ItemKey]) -> Result<(), Error> {
        let mut delete = self.connection.prepare_cached("DELETE FROM unswept_items WHERE item_id = ?1")?;
        items.iter().try_for_each(|item| delete.execute([item.0]).map(drop)).map_err(Error::from)
    }
}

/// Given to whoever asks for many, so that it is looked up once.
const SELECT_MEMBER: &str = "SELECT 1 FROM memberships WHERE user = ?1 AND item_id = ?2";

fn is_member(pending: &Pending, select: &mut Statement<'_>, key: Membership<'_>) -> Result<bool, Error> {
    match pending.member(key) {
        Found::Pending(liked_at) => Ok(liked_at.is_some()),
        Found::Nowhere => Ok(false),
        Found::AskTable => Ok(select.exists((key.user, key.item.0))?),
    }
}

impl SqliteStore {
    /// Positions and totals of what changed and is not in its table, in order.
    fn pending_changes(&self, shard: u32, after: ChangePosition, up_to: i64) -> Vec<(ChangePosition, i64)> {
        let of_shard = self.pending.counters.current(|key| key.shard == shard);
        let mut changes: Vec<_> = of_shard
            .map(|(key, counter)| {
                (ChangePosition { version: counter.version, item: key.item }, counter.total())
            })
            .filter(|(position, _)| *position > after && position.version <= up_to)
            .collect();
        changes.sort_unstable();
        changes
    }

    fn save_ledger(&self, changes: &[LedgerChange<'_>]) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut add = self.connection.prepare_cached(
            "INSERT INTO base_ledger (shard, item_id, source, amount) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (shard, item_id, source) DO UPDATE SET amount = amount + ?4",
        )?;
        for change in changes {
            add.execute((change.key.shard, change.key.item.0, change.source, change.amount))?;
        }
        Ok(())
    }

    pub(super) fn is_member(&self, key: Membership<'_>) -> Result<bool, Error> {
        let mut select = self.connection.prepare_cached(SELECT_MEMBER)?;
        is_member(&self.pending, &mut select, key)
    }

    fn counter(&self, key: CounterKey) -> Result<Option<Counter>, Error> {
        if let Some(counter) = self.pending.counters.get(&key) {
            return Ok(Some(counter));
        }
        let mut select = self.connection.prepare_cached(
            "SELECT members, base, version FROM shard_counters WHERE shard = ?1 AND item_id = ?2",
        )?;
        let row = select.query_row((key.shard, key.item.0), |row| {
            Ok(Counter { members: row.get(0)?, base: row.get(1)?, version: row.get(2)? })
        });
        Ok(row.optional()?)
    }
}
