//! What a store does for likes.

use super::{Error, Saved};

/// An item's interned id within a partition, new at each creation and never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey(pub i64);

/// One shard's count of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CounterKey {
    /// The shard.
    pub shard: u32,
    /// The item.
    pub item: ItemKey,
}

/// A shard's count: its members, and a base from a ledger of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    /// Users of this shard who like the item. Never negative.
    pub members: i64,
    /// Likes without a member: imported, anonymised.
    pub base: i64,
    /// The shard's version when it last changed; the roll-up carries what is newer than its watermark.
    pub version: i64,
}

impl Counter {
    /// What this shard adds to the item's total.
    #[must_use]
    pub fn total(&self) -> i64 {
        self.members.saturating_add(self.base)
    }
}

/// A changed counter, with what it was when it was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterChange {
    /// Which.
    pub key: CounterKey,
    /// As loaded; `None` if there was none.
    pub before: Option<Counter>,
    /// As decided.
    pub after: Counter,
}

/// A change of a counter's base, in its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerChange<'a> {
    /// Whose base.
    pub key: CounterKey,
    /// Where it comes from: an import's id, [`ANONYMISED`].
    pub source: &'a str,
    /// Added to what stands there.
    pub amount: i64,
}

/// The source of likes whose members were forgotten, and whose count stays.
pub const ANONYMISED: &str = "anonymised";

/// A membership row: this user likes this item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Membership<'a> {
    /// The user's id.
    pub user: &'a str,
    /// The item.
    pub item: ItemKey,
}

/// What a batch changed, and what it rests on.
#[derive(Debug, Default)]
pub struct LikesChanges<'a> {
    /// Rows that are absent, as loaded.
    pub added: Vec<Membership<'a>>,
    /// Rows that are present, as loaded or claimed.
    pub removed: Vec<Membership<'a>>,
    /// Each counter once, however often it was touched.
    pub counters: Vec<CounterChange>,
    /// What the bases among them changed by.
    pub ledger: Vec<LedgerChange<'a>>,
    /// Keys that were read and left alone: a shared store fences them, an exclusive one need not.
    pub rests_on: Vec<Membership<'a>>,
    /// When, in whole seconds since 1970: `liked_at` of the added rows.
    pub now_s: i64,
}

/// A position in a shard's changes, in the order (version, item).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangePosition {
    /// The version.
    pub version: i64,
    /// The item within it.
    pub item: ItemKey,
}

/// A changed counter with the item's name, for the roll-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedCounter {
    /// The item's name.
    pub item: String,
    /// Its shard's total.
    pub total: i64,
    /// Where it stands in the shard's changes.
    pub position: ChangePosition,
}

/// Keys are loaded and changes saved in batch-shaped calls, inside the caller's transaction. Answers
/// stand in the order of the question.
pub trait LikesStore {
    /// The keys of the items that exist.
    ///
    /// # Errors
    /// The engine's.
    fn load_items(&mut self, names: &[&str]) -> Result<Vec<Option<ItemKey>>, Error>;

    /// Creates items that do not exist and gives their keys.
    ///
    /// # Errors
    /// The engine's.
    fn create_items(&mut self, names: &[&str]) -> Result<Vec<ItemKey>, Error>;

    /// Whether each row exists.
    ///
    /// # Errors
    /// The engine's.
    fn load_memberships(&mut self, keys: &[Membership<'_>]) -> Result<Vec<bool>, Error>;

    /// Adds the rows that are absent; whether each existed before. For rows that somebody wants to be there:
    /// one way down the tree instead of two, and on a shared store the row is locked as it is looked at.
    ///
    /// # Errors
    /// The engine's.
    fn claim_memberships(&mut self, keys: &[Membership<'_>], now_s: i64) -> Result<Vec<bool>, Error>;

    /// The counters that exist.
    ///
    /// # Errors
    /// The engine's.
    fn load_counters(&mut self, keys: &[CounterKey]) -> Result<Vec<Option<Counter>>, Error>;

    /// Saves what a batch changed, provided that everything is still as it was loaded.
    ///
    /// # Errors
    /// The engine's.
    fn save_likes(&mut self, changes: &LikesChanges<'_>) -> Result<Saved, Error>;

    /// The newest version stored for a shard; 0 if it never changed.
    ///
    /// # Errors
    /// The engine's.
    fn newest_version(&mut self, shard: u32) -> Result<i64, Error>;

    /// Up to `limit` counters of a shard whose version is at most `up_to`, after a position.
    ///
    /// # Errors
    /// The engine's.
    fn changed_counters(
        &mut self,
        shard: u32,
        after: ChangePosition,
        up_to: i64,
        limit: u32,
    ) -> Result<Vec<ChangedCounter>, Error>;

    /// Removes an item's name and counters, and notes its key so that its membership rows, which count
    /// no more, can be swept. `shards` are all that may have counted it. False if there was no such item.
    /// The same `deletion` again does nothing: what came after it is not its.
    ///
    /// # Errors
    /// The engine's.
    fn delete_item(&mut self, name: &str, deletion: i64, shards: &[u32]) -> Result<bool, Error>;

    /// Keys of deleted items whose membership rows may still be there.
    ///
    /// # Errors
    /// The engine's.
    fn unswept_items(&mut self) -> Result<Vec<ItemKey>, Error>;

    /// Looks at up to `limit` membership rows after a place and removes those of `dead` items. The
    /// answer is the last row looked at, `None` at the end of the table.
    ///
    /// # Errors
    /// The engine's.
    fn sweep_memberships(
        &mut self,
        dead: &[ItemKey],
        after: Option<(String, ItemKey)>,
        limit: u32,
    ) -> Result<Option<(String, ItemKey)>, Error>;

    /// Notes that no row of these items is left.
    ///
    /// # Errors
    /// The engine's.
    fn forget_swept(&mut self, items: &[ItemKey]) -> Result<(), Error>;
}
