//! What a store does for lists of likes (of a user, of an item) and for counting them again.

use super::Error;
use super::likes::{CounterKey, ItemKey};

/// One of a user's likes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikedItem {
    /// The item.
    pub item: ItemKey,
    /// Its name; `None` for one that was deleted and whose rows are not swept yet.
    pub name: Option<String>,
    /// When, in whole seconds since 1970.
    pub liked_at_s: i64,
}

/// An answer of the index by item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Likers {
    /// There is no index.
    Off,
    /// It is not built to its end.
    Building,
    /// Users in the order of their ids' bytes.
    Users(Vec<String>),
}

/// A row's place among the memberships: by user, then by item.
pub type Place = (String, ItemKey);

/// Some memberships in their order, as they are now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walked {
    /// Those of the items that were asked for.
    pub rows: Vec<Place>,
    /// The last row that was looked at; `None` at the end.
    pub at: Option<Place>,
}

/// Lists and recounts, inside the caller's transaction. All of them see what was saved before in it.
pub trait LikersStore {
    /// A user's likes in the order of their items' keys, after a key, at most `limit`.
    ///
    /// # Errors
    /// The engine's.
    fn likes_of(&mut self, user: &str, after: ItemKey, limit: u32) -> Result<Vec<LikedItem>, Error>;

    /// Users who like an item, after one, at most `limit`.
    ///
    /// # Errors
    /// The engine's.
    fn likers(&mut self, item: ItemKey, after: &str, limit: u32) -> Result<Likers, Error>;

    /// Puts up to `limit` rows more into an index that is being built; whether it has more to do.
    ///
    /// # Errors
    /// The engine's.
    fn build_index(&mut self, limit: u32) -> Result<bool, Error>;

    /// Up to `limit` items that lie together somewhere; `seed` says where.
    ///
    /// # Errors
    /// The engine's.
    fn sample_items(&mut self, seed: u64, limit: u32) -> Result<Vec<ItemKey>, Error>;

    /// Memberships that stand beside their table, in no order: a walk looks through all of them, however short it is.
    fn unsettled_memberships(&self) -> usize;

    /// Looks at about `limit` memberships after a place, for those of some items.
    ///
    /// # Errors
    /// The engine's.
    fn walk_memberships(
        &mut self,
        after: Option<&Place>,
        items: &[ItemKey],
        limit: u32,
    ) -> Result<Walked, Error>;

    /// What the base ledger of each counter adds up to.
    ///
    /// # Errors
    /// The engine's.
    fn ledger_sums(&mut self, keys: &[CounterKey]) -> Result<Vec<i64>, Error>;
}
