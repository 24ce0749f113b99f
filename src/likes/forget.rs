//! Forgetting one user's likes, a few at a time, each few in one transaction: the membership goes, and its count with it or
//! into the base.

use super::actor::LikesActors;
use super::decide::forget_member;
use super::types::shard_of;
use crate::store::likes::{
    ANONYMISED, CounterChange, CounterKey, ItemKey, LedgerChange, LikesChanges, Membership,
};
use crate::store::people::Policy;
use crate::store::{Error, LikersStore, LikesStore, Saved};

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForgottenLikes {
    /// Likes forgotten.
    pub likes: u64,
    /// Whether there may be more.
    pub more: bool,
}

impl LikesActors {
    /// Forgets up to `limit` likes of a user whose shard, one of `shards`, is placed here. `None` is a conflict.
    ///
    /// # Errors
    /// The store's.
    pub fn forget_likes<S: LikesStore + LikersStore>(
        &mut self,
        store: &mut S,
        user: &str,
        policy: Policy,
        (shards, limit): (u32, u32),
    ) -> Result<Option<ForgottenLikes>, Error> {
        let rows = store.likes_of(user, ItemKey(0), limit)?;
        let more = rows.len() >= limit as usize;
        if rows.is_empty() {
            return Ok(Some(ForgottenLikes { likes: 0, more }));
        }
        let shard = shard_of(user, shards);
        let version = self.version(store, shard)?;
        let mut changes = LikesChanges {
            removed: rows.iter().map(|row| Membership { user, item: row.item }).collect(),
            ..LikesChanges::default()
        };
        // Rows of deleted items count nowhere.
        let counted = rows.iter().filter(|row| row.name.is_some());
        let keys: Vec<CounterKey> = counted.map(|row| CounterKey { shard, item: row.item }).collect();
        for (key, stored) in keys.iter().zip(store.load_counters(&keys)?) {
            let before = self.counters.get(key).copied().or(stored);
            let after = forget_member(before.unwrap_or_default(), policy == Policy::Anonymise, version);
            changes.counters.push(CounterChange { key: *key, before, after });
            if policy == Policy::Anonymise {
                changes.ledger.push(LedgerChange { key: *key, source: ANONYMISED, amount: 1 });
            }
        }
        if store.save_likes(&changes)? == Saved::Conflict {
            return Ok(None);
        }
        for change in &changes.counters {
            self.counters.insert(change.key, change.after);
            self.check.changed(shard, user, change.key.item, false);
        }
        Ok(Some(ForgottenLikes { likes: keys.len() as u64, more }))
    }
}
