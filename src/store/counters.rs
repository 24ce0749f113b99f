//! What a store does for counters without members.
//!
//! What they count is kept by [`LikesStore`](super::LikesStore): a counter is an item that nobody can like, and what a
//! shard counts of it is base. Here is the rest: the ids that were seen, and the ledger of what was added.

use super::likes::{CounterKey, ItemKey};
use super::{Error, Saved};

/// The id of an add, which is a counter's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKey<'a> {
    /// The counter.
    pub counter: ItemKey,
    /// The caller's id.
    pub request: &'a str,
}

/// What was decided on an id, first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// What was to be added.
    pub amount: i64,
    /// Whether it was; otherwise it was refused.
    pub added: bool,
    /// When, in ms since 1970.
    pub decided_at_ms: i64,
}

/// An id that is remembered from now on, with what was known of it when it was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestChange<'a> {
    /// Which.
    pub key: RequestKey<'a>,
    /// As loaded; `None` if there was nothing. What is remembered no more may still be there.
    pub before: Option<Seen>,
    /// As decided.
    pub after: Seen,
}

/// An amount for the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The shard's counter that it was added to.
    pub key: CounterKey,
    /// How much; negative where more was taken than added.
    pub amount: i64,
}

/// What a batch added, and what it rests on.
#[derive(Debug, Default)]
pub struct AddChanges<'a> {
    /// Each id once.
    pub requests: Vec<RequestChange<'a>>,
    /// Each counter once.
    pub ledger: Vec<LedgerEntry>,
    /// Ids that were read and left alone: a shared store fences them, an exclusive one need not.
    pub rests_on: Vec<RequestKey<'a>>,
}

/// Keys are loaded and changes saved in batch-shaped calls, inside the caller's transaction. Answers stand in
/// the order of the question.
pub trait CountersStore {
    /// What is known of each id.
    ///
    /// # Errors
    /// The engine's.
    fn load_requests(&mut self, keys: &[RequestKey<'_>]) -> Result<Vec<Option<Seen>>, Error>;

    /// Saves what a batch added, provided that every id is still as it was loaded.
    ///
    /// # Errors
    /// The engine's.
    fn save_adds(&mut self, changes: &AddChanges<'_>) -> Result<Saved, Error>;

    /// Forgets up to `limit` ids that were decided at or before a time, oldest first; how many.
    ///
    /// # Errors
    /// The engine's.
    fn forget_requests(&mut self, decided_up_to_ms: i64, limit: u32) -> Result<u32, Error>;
}
