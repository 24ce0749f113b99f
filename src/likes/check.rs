//! The drift check: counts the memberships of some items again, a few rows at a time, and compares.
//!
//! It walks through the memberships in their order, and is told of every change behind its back; so what it has counted is, at
//! any time, what there is up to where it is. At the end that must be what the counters say. It costs a bounded number of rows
//! a step, and memory for a few items.

use foldhash::{HashMap, HashSet};

use super::actor::LikesActors;
use super::command::Checked;
use super::types::shard_of;
use crate::store::likers::Place;
use crate::store::likes::{CounterKey, ItemKey};
use crate::store::{Error, LikersStore, LikesStore};

/// Items that one walk counts.
const SAMPLE: u32 = 64;

/// What a step may look through beside its rows, for each of them.
const BESIDE_A_ROW: usize = 64;

/// Where the check is. Lost on a restart or a failure, which starts it again.
#[derive(Debug, Default)]
pub(super) struct Check {
    walk: Option<Walk>,
    /// Steps that were put off, for the next one to make up for.
    put_off: u32,
}

#[derive(Debug)]
struct Walk {
    items: HashSet<ItemKey>,
    counted: HashMap<CounterKey, i64>,
    /// Everything up to here is counted; `None` at the beginning.
    at: Option<Place>,
}

impl Check {
    pub(super) fn is_counting(&self) -> bool {
        self.walk.is_some()
    }

    /// A membership of such an item came, or went.
    pub(super) fn changed(&mut self, shard: u32, user: &str, item: ItemKey, liked: bool) {
        let Some(walk) = &mut self.walk else { return };
        let is_behind = walk.at.as_ref().is_some_and(|(at, key)| (user, item) <= (at.as_str(), *key));
        if is_behind && walk.items.contains(&item) {
            *walk.counted.entry(CounterKey { shard, item }).or_default() += if liked { 1 } else { -1 };
        }
    }
}

impl LikesActors {
    /// Goes on with the check by so many rows; with a new walk, if the last one has come to its end.
    pub(super) fn check_rows<S: LikesStore + LikersStore>(
        &mut self,
        store: &mut S,
        shards: u32,
        rows: u32,
        now_ms: i64,
    ) -> Result<Checked, Error> {
        // The more stands beside the table, the rarer and longer the steps are.
        let beside = store.unsettled_memberships() / BESIDE_A_ROW;
        let rows = rows.saturating_mul(self.check.put_off + 1);
        if beside > rows as usize {
            self.check.put_off += 1;
            return Ok(Checked::default());
        }
        self.check.put_off = 0;
        let mut walk = match self.check.walk.take() {
            Some(walk) => walk,
            None => {
                let seed = xxhash_rust::xxh3::xxh3_64(&now_ms.to_le_bytes());
                let items: HashSet<ItemKey> = store.sample_items(seed, SAMPLE)?.into_iter().collect();
                if items.is_empty() {
                    return Ok(Checked::default());
                }
                Walk { items, counted: HashMap::default(), at: None }
            }
        };
        let items: Vec<ItemKey> = walk.items.iter().copied().collect();
        let walked = store.walk_memberships(walk.at.as_ref(), &items, rows)?;
        for (user, item) in &walked.rows {
            let key = CounterKey { shard: shard_of(user, shards), item: *item };
            *walk.counted.entry(key).or_default() += 1;
        }
        if walked.at.is_some() {
            walk.at = walked.at;
            self.check.walk = Some(walk);
            return Ok(Checked::default());
        }
        self.compare(store, &walk, &items)
    }

    fn compare<S: LikesStore + LikersStore>(
        &mut self,
        store: &mut S,
        walk: &Walk,
        items: &[ItemKey],
    ) -> Result<Checked, Error> {
        let of_shard = |shard: &u32| {
            let shard = *shard;
            items.iter().map(move |item| CounterKey { shard, item: *item })
        };
        let keys: Vec<CounterKey> = self.shards.iter().flat_map(of_shard).collect();
        let (counters, ledgers) = (store.load_counters(&keys)?, store.ledger_sums(&keys)?);
        let mut checked = Checked::default();
        for ((key, counter), ledger) in keys.iter().zip(counters).zip(ledgers) {
            // What memory holds is what deciding goes by.
            let counter = self.counters.get(key).copied().or(counter).unwrap_or_default();
            let counted = walk.counted.get(key).copied().unwrap_or(0);
            checked.compared += 1;
            if (counter.members, counter.base) != (counted, ledger) {
                checked.wrong.push(format!(
                    "item id {}, shard {}: members is {}, there are {counted}; base is {}, its ledger adds up to {ledger}",
                    key.item.0, key.shard, counter.members, counter.base
                ));
            }
        }
        Ok(checked)
    }
}
