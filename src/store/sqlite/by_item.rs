//! Memberships by item, kept while `likes.index_by_item` is on.
//!
//! Triggers keep it from the moment it is switched on, so it is right whoever changes a membership; what was there before is
//! put in a few rows at a time. What waits in the journal is not in it, and is looked at beside it.

use std::collections::{BTreeMap, BinaryHeap};

use foldhash::HashSet;
use rusqlite::OptionalExtension;

use super::SqliteStore;
use super::pending::LikedAt;
use crate::store::likers::{LikedItem, Likers, LikersStore, Place, Walked};
use crate::store::likes::{CounterKey, ItemKey};
use crate::store::{Error, Transactions};

/// What switches it on.
const ON: &str = "
    INSERT INTO item_index (singleton, user, item_id, complete) VALUES (1, '', 0, 0);
    CREATE TRIGGER item_members_add AFTER INSERT ON memberships BEGIN
      INSERT INTO item_members (item_id, user) VALUES (new.item_id, new.user) ON CONFLICT DO NOTHING;
    END;
    CREATE TRIGGER item_members_remove AFTER DELETE ON memberships BEGIN
      DELETE FROM item_members WHERE item_id = old.item_id AND user = old.user;
    END;";

/// What switches it off, also where it is only half there.
const OFF: &str = "
    DROP TRIGGER IF EXISTS item_members_add;
    DROP TRIGGER IF EXISTS item_members_remove;
    DELETE FROM item_index;
    DELETE FROM item_members;";

/// Whether nothing of it is there, or all.
const PARTS: &str = "
    SELECT (SELECT count(*) FROM item_index)
         + (SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'memberships'
            AND name IN ('item_members_add', 'item_members_remove'))";

impl SqliteStore {
    /// Switches the index by item on or off. Switched on, it still has to be built.
    ///
    /// # Errors
    /// The engine's.
    pub fn keep_index_by_item(&mut self, wanted: bool) -> Result<(), Error> {
        let parts: i64 = self.connection.query_row(PARTS, [], |row| row.get(0))?;
        if parts == if wanted { 3 } else { 0 } {
            return Ok(());
        }
        self.begin()?;
        self.connection.execute_batch(OFF)?;
        if wanted {
            self.connection.execute_batch(ON)?;
        }
        let _lost_it_is_done_again = self.commit(0)?;
        Ok(())
    }

    /// The pending state of each membership that is wanted, by what its key is known by.
    fn pending_members<K: Ord>(&self, wanted: impl Fn(&str, ItemKey) -> Option<K>) -> BTreeMap<K, LikedAt> {
        let members = self.pending.members.all();
        // Newer ones come later.
        members.filter_map(|(key, liked_at)| Some((wanted(&key.user, key.item)?, liked_at))).collect()
    }
}

/// How many rows of a table to read for a page: some may turn out to be gone.
fn rows_for<K>(limit: u32, pending: &BTreeMap<K, LikedAt>) -> i64 {
    let gone = pending.values().filter(|liked_at| liked_at.is_none()).count();
    i64::from(limit).saturating_add(i64::try_from(gone).unwrap_or(i64::MAX))
}

impl LikersStore for SqliteStore {
    fn likes_of(&mut self, user: &str, after: ItemKey, limit: u32) -> Result<Vec<LikedItem>, Error> {
        let pending = self.pending_members(|who, item| (who == user && item > after).then_some(item));
        let mut select = self.connection.prepare_cached(
            "SELECT item_id, liked_at FROM memberships WHERE user = ?1 AND item_id > ?2
             ORDER BY item_id LIMIT ?3",
        )?;
        let mut likes: BTreeMap<ItemKey, LikedAt> = select
            .query_map((user, after.0, rows_for(limit, &pending)), |row| {
                Ok((ItemKey(row.get(0)?), Some(row.get(1)?)))
            })?
            .collect::<Result<_, _>>()?;
        likes.extend(pending);
        let mut name = self.connection.prepare_cached("SELECT name FROM items WHERE item_id = ?1")?;
        let liked = likes.into_iter().filter_map(|(item, liked_at)| Some((item, liked_at?)));
        let named = liked.take(limit as usize).map(|(item, liked_at_s)| {
            let name = name.query_row([item.0], |row| row.get(0)).optional()?;
            Ok(LikedItem { item, name, liked_at_s })
        });
        named.collect()
    }

    fn likers(&mut self, item: ItemKey, after: &str, limit: u32) -> Result<Likers, Error> {
        let complete: Option<bool> = self
            .connection
            .prepare_cached("SELECT complete FROM item_index")?
            .query_row([], |row| row.get(0))
            .optional()?;
        match complete {
            None => return Ok(Likers::Off),
            Some(false) => return Ok(Likers::Building),
            Some(true) => {}
        }
        let pending = self.pending_members(|user, of| (of == item && user > after).then(|| user.to_owned()));
        let mut select = self.connection.prepare_cached(
            "SELECT user FROM item_members WHERE item_id = ?1 AND user > ?2 ORDER BY user LIMIT ?3",
        )?;
        let mut users: BTreeMap<String, LikedAt> = select
            .query_map((item.0, after, rows_for(limit, &pending)), |row| Ok((row.get(0)?, Some(0))))?
            .collect::<Result<_, _>>()?;
        users.extend(pending);
        let users = users.into_iter().filter_map(|(user, liked_at)| liked_at.map(|_| user));
        Ok(Likers::Users(users.take(limit as usize).collect()))
    }

    fn build_index(&mut self, limit: u32) -> Result<bool, Error> {
        let at: Option<(String, i64)> = self
            .connection
            .prepare_cached("SELECT user, item_id FROM item_index WHERE complete = 0")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((user, item)) = at else { return Ok(false) };
        let mut rows = self
            .connection
            .prepare_cached(
                "SELECT user, item_id FROM memberships WHERE (user, item_id) > (?1, ?2)
                 ORDER BY user, item_id LIMIT ?3",
            )?
            .query_map((user, item, limit), |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?
            .collect::<Result<Vec<_>, _>>()?;
        let last = if rows.len() < limit as usize { None } else { rows.last().cloned() };
        rows.sort_unstable_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO item_members (item_id, user) VALUES (?2, ?1) ON CONFLICT DO NOTHING",
        )?;
        for row in &rows {
            insert.execute((&row.0, row.1))?;
        }
        match &last {
            Some((user, item)) => self
                .connection
                .prepare_cached("UPDATE item_index SET user = ?1, item_id = ?2")?
                .execute((user, item))?,
            None => self
                .connection
                .prepare_cached("UPDATE item_index SET user = '', item_id = 0, complete = 1")?
                .execute([])?,
        };
        Ok(last.is_some())
    }

    fn sample_items(&mut self, seed: u64, limit: u32) -> Result<Vec<ItemKey>, Error> {
        let last: Option<i64> = self
            .connection
            .prepare_cached("SELECT max(item_id) FROM items")?
            .query_row([], |row| row.get(0))?;
        let Some(last) = last else { return Ok(Vec::new()) };
        let from = i64::try_from(seed % (last.unsigned_abs().max(1))).unwrap_or(0);
        let mut select = self
            .connection
            .prepare_cached("SELECT item_id FROM items WHERE item_id > ?1 ORDER BY item_id LIMIT ?2")?;
        let rows = select.query_map((from, limit), |row| row.get(0).map(ItemKey))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn unsettled_memberships(&self) -> usize {
        self.pending.members.len()
    }

    fn walk_memberships(
        &mut self,
        after: Option<&Place>,
        items: &[ItemKey],
        limit: u32,
    ) -> Result<Walked, Error> {
        let (user, item) = after.map_or(("", ItemKey(0)), |(user, item)| (user.as_str(), *item));
        let mut select = self.connection.prepare_cached(
            "SELECT user, item_id FROM memberships WHERE (user, item_id) > (?1, ?2)
             ORDER BY user, item_id LIMIT ?3",
        )?;
        let items: HashSet<ItemKey> = items.iter().copied().collect();
        let (mut seen, mut at) = (0, None);
        // With each state its age; that of the table is the oldest.
        let mut states: Vec<(Place, usize, LikedAt)> = Vec::new();
        let mut found = select.query((user, item.0, limit))?;
        while let Some(row) = found.next()? {
            let user = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
            let item = ItemKey(row.get(1)?);
            seen += 1;
            if seen == limit {
                at = Some((user.to_owned(), item));
            }
            if items.contains(&item) {
                states.push(((user.to_owned(), item), 0, Some(0)));
            }
        }
        drop(found);
        let is_ahead = |place: &(&str, ItemKey)| {
            *place > (user, item) && at.as_ref().is_none_or(|(last, key)| *place <= (last.as_str(), *key))
        };
        let recent = (1..).zip(self.pending.members.recent());
        let recent = recent.filter(|(_, (key, _))| items.contains(&key.item));
        let recent = recent.map(|(age, (key, liked_at))| ((&*key.user, key.item), age, liked_at));
        let (mut first, mut is_all) = (BinaryHeap::new(), true);
        for state in recent.filter(|(place, ..)| is_ahead(place)) {
            // A membership has two such states at most, so that the last one can go whole and enough are left.
            if first.len() < limit as usize + 2 {
                first.push(state);
                continue;
            }
            is_all = false;
            if let Some(mut last) = first.peek_mut()
                && state < *last
            {
                *last = state;
            }
        }
        let mut first = first.into_sorted_vec();
        if let Some((beyond, ..)) = first.last().copied().filter(|_| !is_all) {
            first.retain(|(place, ..)| *place != beyond);
            if let Some((last, ..)) = first.last() {
                at = Some((last.0.to_owned(), last.1));
                states.retain(|((user, item), ..)| (user.as_str(), *item) <= *last);
            }
        }
        let first = first.into_iter();
        states.extend(first.map(|((user, item), age, liked_at)| ((user.to_owned(), item), age, liked_at)));
        states.sort_unstable();
        // The newest state of a membership is the one that holds.
        let of_one = states.chunk_by(|(a, ..), (b, ..)| a == b).filter_map(<[_]>::last);
        let there = of_one.filter(|(_, _, liked_at)| liked_at.is_some());
        Ok(Walked { rows: there.map(|(place, ..)| place.clone()).collect(), at })
    }

    fn ledger_sums(&mut self, keys: &[CounterKey]) -> Result<Vec<i64>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT coalesce(sum(amount), 0) FROM base_ledger WHERE shard = ?1 AND item_id = ?2",
        )?;
        let sum = |key: &CounterKey| Ok(select.query_row((key.shard, key.item.0), |row| row.get(0))?);
        keys.iter().map(sum).collect()
    }
}
