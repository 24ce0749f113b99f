//! Likes and base counts from elsewhere, many at a time, by the rule by which every like is decided. Who likes what already
//! stays as it is: an import that is repeated, whole or in part, changes nothing.

use std::sync::Arc;

use foldhash::HashMap;

use super::decide::{View, set_like};
use super::types::shard_of;
use crate::partition::Resident;
use crate::store::import::ImportStore;
use crate::store::likes::{
    Counter, CounterChange, CounterKey, ItemKey, LedgerChange, LikesChanges, Membership,
};
use crate::store::{Error, LikesStore, Saved};

/// Items whose keys are kept in memory.
const MAX_ITEMS: usize = 200_000;

/// A like to bring in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLike {
    /// What.
    pub item: Box<str>,
    /// Who.
    pub user: Box<str>,
    /// When, in whole seconds since 1970.
    pub liked_at_s: i64,
}

/// A base count to bring in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBase {
    /// Of what.
    pub item: Box<str>,
    /// How many likes without members.
    pub amount: i64,
}

/// Brings rows into one partition that nobody serves from.
#[derive(Debug)]
pub struct Importer {
    /// `likes.shards`
    shards: u32,
    items: Resident<Arc<str>, ItemKey>,
    /// What a change of each shard is stamped with: above everything that a roll-up has carried.
    versions: HashMap<u32, i64>,
}

/// Counters as loaded and as they are to be.
type Touched = HashMap<CounterKey, (Option<Counter>, Counter)>;

impl Importer {
    /// Of a directory with so many shards.
    #[must_use]
    pub fn new(shards: u32) -> Self {
        Self { shards, items: Resident::new(MAX_ITEMS), versions: HashMap::default() }
    }

    /// Brings in likes of users whose shards are placed here; how many are new.
    ///
    /// # Errors
    /// The store's.
    pub fn likes<S: LikesStore + ImportStore>(
        &mut self,
        store: &mut S,
        likes: &[NewLike],
    ) -> Result<u64, Error> {
        let items = self.item_keys(store, likes.iter().map(|like| &*like.item))?;
        let rows: Vec<(Membership<'_>, i64)> = likes
            .iter()
            .zip(items)
            .map(|(like, item)| (Membership { user: &like.user, item }, like.liked_at_s))
            .collect();
        let found = store.add_memberships(&rows)?;
        let new = rows
            .iter()
            .zip(&found)
            .filter(|(_, found)| !**found)
            .map(|((row, _), _)| CounterKey { shard: shard_of(row.user, self.shards), item: row.item });
        let new: Vec<CounterKey> = new.collect();
        let mut touched = load(store, &new)?;
        for key in &new {
            let version = self.version(store, key.shard)?;
            let Some((_, counter)) = touched.get_mut(key) else { continue };
            let view = View { member: false, counter: *counter };
            *counter = set_like(view, true, version).map_or(view.counter, |after| after.counter);
        }
        save(store, &touched, Vec::new())?;
        Ok(new.len() as u64)
    }

    /// Brings in base counts that nothing has come of yet from this source, of items whose base is placed here.
    ///
    /// # Errors
    /// The store's; also when a base would not fit into 64 bits.
    pub fn bases<S: LikesStore + ImportStore>(
        &mut self,
        store: &mut S,
        bases: &[NewBase],
        source: &str,
    ) -> Result<(), Error> {
        let items = self.item_keys(store, bases.iter().map(|base| &*base.item))?;
        let shards = self.shards;
        let keyed = bases.iter().zip(items);
        let keyed =
            keyed.map(|(base, item)| (CounterKey { shard: base_shard(&base.item, shards), item }, base));
        let keyed: Vec<(CounterKey, &NewBase)> = keyed.collect();
        let keys: Vec<CounterKey> = keyed.iter().map(|(key, _)| *key).collect();
        let mut touched = load(store, &keys)?;
        let mut ledger = Vec::with_capacity(bases.len());
        for (key, base) in &keyed {
            let version = self.version(store, key.shard)?;
            let Some((_, counter)) = touched.get_mut(key) else { continue };
            let too_much = || Error::Engine(format!("the base of {} is too large", base.item));
            counter.base = counter.base.checked_add(base.amount).ok_or_else(too_much)?;
            counter.version = version;
            ledger.push(LedgerChange { key: *key, source, amount: base.amount });
        }
        save(store, &touched, ledger)
    }

    fn item_keys<'a, S: LikesStore>(
        &mut self,
        store: &mut S,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<ItemKey>, Error> {
        let names: Vec<&str> = names.collect();
        let known: Vec<Option<ItemKey>> = names.iter().map(|name| self.items.get(*name).copied()).collect();
        // In the order of their index, so that names which share a page are found, and written, together.
        let mut asked: Vec<&str> =
            names.iter().zip(&known).filter(|(_, key)| key.is_none()).map(|(name, _)| *name).collect();
        asked.sort_unstable();
        asked.dedup();
        let stored = store.load_items(&asked)?;
        let unknown: Vec<&str> =
            asked.iter().zip(&stored).filter(|(_, key)| key.is_none()).map(|(name, _)| *name).collect();
        let mut created = store.create_items(&unknown)?.into_iter();
        let mut keys: HashMap<&str, ItemKey> = HashMap::default();
        for (name, stored) in asked.into_iter().zip(stored) {
            let key = stored.or_else(|| created.next());
            let key = key.ok_or_else(|| Error::Engine("an item was created without a key".to_owned()))?;
            keys.insert(name, key);
            self.items.insert(name.into(), key);
        }
        let key = |(name, known): (&&str, Option<ItemKey>)| known.or_else(|| keys.get(name).copied());
        let all = names.iter().zip(known).map(key);
        all.collect::<Option<_>>().ok_or_else(|| Error::Engine("an item has no key".to_owned()))
    }

    fn version<S: LikesStore>(&mut self, store: &mut S, shard: u32) -> Result<i64, Error> {
        if let Some(version) = self.versions.get(&shard) {
            return Ok(*version);
        }
        let version = store.newest_version(shard)? + 1;
        self.versions.insert(shard, version);
        Ok(version)
    }
}

/// The shard that an item's imported base counts stand in, which has no user to place it by. A stored fact.
#[must_use]
pub fn base_shard(item: &str, shards: u32) -> u32 {
    shard_of(item, shards)
}

fn load<S: LikesStore>(store: &mut S, keys: &[CounterKey]) -> Result<Touched, Error> {
    let mut keys = keys.to_vec();
    keys.sort_unstable_by_key(|key| (key.shard, key.item));
    keys.dedup();
    let counters = store.load_counters(&keys)?;
    Ok(keys.into_iter().zip(counters).map(|(key, found)| (key, (found, found.unwrap_or_default()))).collect())
}

fn save<S: LikesStore>(store: &mut S, touched: &Touched, ledger: Vec<LedgerChange<'_>>) -> Result<(), Error> {
    let change = |(key, (before, after)): (&CounterKey, &(Option<Counter>, Counter))| CounterChange {
        key: *key,
        before: *before,
        after: *after,
    };
    let changes =
        LikesChanges { counters: touched.iter().map(change).collect(), ledger, ..LikesChanges::default() };
    match store.save_likes(&changes)? {
        Saved::Done => Ok(()),
        Saved::Conflict => Err(Error::Engine("somebody else changed a counter".to_owned())),
    }
}
