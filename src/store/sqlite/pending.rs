//! What the journal holds and the tables do not: the newest state of each row that changed lately.
//!
//! Rows stand in two generations. The fresh one takes what changes; when it is full it becomes the settling
//! one, which moves into its table and is then forgotten, both a few rows a batch, so that no batch waits for a
//! whole generation.

use std::hash::{Hash, Hasher};

use compact_str::CompactString;
use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexMap};

use super::filter::{Filter, Hashed};
use super::page_order::PageOrder;
use crate::store::likes::{Counter, CounterKey, ItemKey, Membership};
use crate::store::reservations::{Attempt, AttemptKey, WorkshopKey};

/// When a user liked an item, in seconds since 1970; `None` when it does so no more.
pub(super) type LikedAt = Option<i64>;

/// A membership's key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub user: CompactString,
    pub item: ItemKey,
}

/// An attempt's key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub workshop: WorkshopKey,
    pub request: CompactString,
}

/// Where a key stands in its table: by a number, and then by a text.
trait Placed {
    fn number(&self) -> i64;
    fn text(&self) -> &str;
}

/// Rows in their tables that are forgotten for each change that a batch brings: enough, with those that settle, to be
/// done with a generation before the next is full.
const FORGOTTEN_PER_CHANGE: usize = 4;

/// The tables whose keys the filter knows, by their numbers in its hashes.
pub(super) const MEMBERS: u8 = 1;
pub(super) const ATTEMPTS: u8 = 2;

/// Where a row is.
pub(super) enum Found<V> {
    /// Here.
    Pending(V),
    /// Neither here nor in its table.
    Nowhere,
    /// In its table, or nowhere.
    AskTable,
}

/// Changed rows that are not in their tables.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Knows all keys, here and in the tables.
    filter: Filter,
    pub members: Rows<Member, LikedAt>,
    pub attempts: Rows<Request, Attempt>,
    pub counters: Rows<CounterKey, Counter>,
    /// Changes in the journal since the last generation began to settle.
    journaled: usize,
    /// The newest journal row that holds anything of the settling generation, while it settles.
    settling_up_to: Option<i64>,
    /// The newest journal row that is in the tables, as long as rows up to it may be in the journal.
    settled_up_to: Option<i64>,
    /// Whether the open transaction changed anything here.
    dirty: bool,
    /// Whether it did more than change rows, so that only the journal tells what was before.
    moved: bool,
}

/// The changed rows of one table.
#[derive(Debug)]
pub(super) struct Rows<K, V> {
    fresh: IndexMap<K, V, RandomState>,
    /// The order of `fresh` in the table.
    fresh_order: PageOrder,
    settling: IndexMap<K, V, RandomState>,
    order: PageOrder,
    /// Places in `fresh` that the open transaction changed.
    touched: Vec<usize>,
    /// What it found there, of rows that were there before.
    replaced: Vec<(usize, V)>,
    /// Rows that were in `fresh` when it began.
    stored: usize,
}

impl Pending {
    /// Nothing pending, over tables whose keys this filter knows.
    pub(super) fn over(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Gives the filter up.
    pub(super) fn into_filter(self) -> Filter {
        self.filter
    }

    /// The tables hold these keys, beside those that were set here.
    pub(super) fn complete_filter(&mut self, walked: &Filter) {
        self.filter.complete(walked);
    }

    pub(super) fn member(&self, key: Membership<'_>) -> Found<LikedAt> {
        self.find(hashed_member(key), || self.members.get(&key))
    }

    pub(super) fn attempt(&self, key: AttemptKey<'_>) -> Found<Attempt> {
        self.find(hashed_attempt(key), || self.attempts.get(&key))
    }

    fn find<V>(&self, key: Hashed, get: impl FnOnce() -> Option<V>) -> Found<V> {
        if self.filter.is_nowhere(key) {
            return Found::Nowhere;
        }
        get().map_or(Found::AskTable, Found::Pending)
    }

    pub(super) fn set_member(&mut self, key: Membership<'_>, liked_at: LikedAt) {
        self.dirty = true;
        self.filter.note(hashed_member(key));
        self.members.set(&key, liked_at, || Member { user: key.user.into(), item: key.item });
    }

    pub(super) fn set_attempt(&mut self, key: AttemptKey<'_>, attempt: Attempt) {
        self.dirty = true;
        self.filter.note(hashed_attempt(key));
        self.attempts.set(&key, attempt, || Request { workshop: key.workshop, request: key.request.into() });
    }

    pub(super) fn set_counter(&mut self, key: CounterKey, counter: Counter) {
        self.dirty = true;
        self.counters.set(&key, counter, || key);
    }

    /// Changes of the open transaction that its journal row must hold.
    pub(super) fn touched(&self) -> usize {
        self.members.touched.len() + self.attempts.touched.len() + self.counters.touched.len()
    }

    /// The changes of the open transaction are in the journal.
    pub(super) fn is_journaled(&mut self) {
        self.moved = true;
    }

    /// Takes back what the open transaction changed; false if that is not known here.
    pub(super) fn undo(&mut self) -> bool {
        if self.moved {
            return false;
        }
        self.members.undo();
        self.attempts.undo();
        self.counters.undo();
        self.dirty = false;
        true
    }

    /// Whether the open transaction changed anything here.
    pub(super) fn is_dirty(&self) -> bool {
        self.dirty
    }

    pub(super) fn is_empty(&self) -> bool {
        let nothing = self.members.is_empty() && self.attempts.is_empty() && self.counters.is_empty();
        nothing && self.journaled == 0
    }

    /// Up to `max` rows of each table are the caller's to store.
    pub(super) fn settle(&mut self, max: usize) -> Settling<'_> {
        let members = self.members.settle(max);
        let attempts = self.attempts.settle(max);
        let counters = self.counters.settle(max);
        let moves = !(members.is_empty() && attempts.is_empty() && counters.is_empty());
        self.dirty |= moves;
        self.moved |= moves;
        Settling { members, attempts, counters }
    }

    /// The newest row of the journal that nobody needs.
    pub(super) fn settled_up_to(&self) -> Option<i64> {
        self.settled_up_to
    }

    /// No row up to that one is left.
    pub(super) fn is_trimmed(&mut self) {
        self.settled_up_to = None;
    }

    /// The transaction is stored. After `max` changes a generation begins to settle, `last_seq` being the
    /// newest row of the journal.
    pub(super) fn committed(&mut self, max: usize, last_seq: i64) {
        let touched = self.touched();
        self.journaled += touched;
        self.members.touched.clear();
        self.attempts.touched.clear();
        self.counters.touched.clear();
        (self.dirty, self.moved) = (false, false);
        if self.settling_up_to.is_some() && self.is_in_tables() {
            self.settled_up_to = self.settling_up_to.take();
        }
        if self.settling_up_to.is_none() {
            let forgotten = touched * FORGOTTEN_PER_CHANGE;
            self.members.forget(forgotten);
            self.attempts.forget(forgotten);
            self.counters.forget(forgotten);
            if self.journaled >= max && self.settles_nothing() {
                self.members.begin();
                self.attempts.begin();
                self.counters.begin();
                self.settling_up_to = Some(last_seq);
                self.journaled = 0;
            }
        }
        self.members.are_stored();
        self.attempts.are_stored();
        self.counters.are_stored();
    }

    fn is_in_tables(&self) -> bool {
        let (members, attempts, counters) = (&self.members.order, &self.attempts.order, &self.counters.order);
        members.is_at_its_end() && attempts.is_at_its_end() && counters.is_at_its_end()
    }

    fn settles_nothing(&self) -> bool {
        let (members, attempts, counters) = (&self.members, &self.attempts, &self.counters);
        members.settling.is_empty() && attempts.settling.is_empty() && counters.settling.is_empty()
    }

    /// Everything is in its table.
    pub(super) fn clear(&mut self) {
        let filter = std::mem::take(&mut self.filter);
        *self = Self { filter, dirty: true, moved: true, ..Self::default() };
    }
}

fn hashed_member(key: Membership<'_>) -> Hashed {
    Hashed::of(MEMBERS, key.item.0, key.user)
}

fn hashed_attempt(key: AttemptKey<'_>) -> Hashed {
    Hashed::of(ATTEMPTS, key.workshop.0, key.request)
}

/// Rows on their way to their table.
pub(super) type Settled<'a, K, V> = Vec<(&'a K, V)>;

/// Rows on their way to their tables.
pub(super) struct Settling<'a> {
    pub members: Settled<'a, Member, LikedAt>,
    pub attempts: Settled<'a, Request, Attempt>,
    pub counters: Settled<'a, CounterKey, Counter>,
}

#[expect(private_bounds, reason = "only this module places keys")]
impl<K: Hash + Eq + Placed, V: Copy> Rows<K, V> {
    /// What is pending for a key; `None` when its table has the last word.
    pub(super) fn get<Q: Hash + Equivalent<K>>(&self, key: &Q) -> Option<V> {
        self.fresh.get(key).or_else(|| self.settling.get(key)).copied()
    }

    /// [`get`](Self::get), with the key as it stands here.
    pub(super) fn get_row<Q: Hash + Equivalent<K>>(&self, key: &Q) -> Option<(&K, V)> {
        let row = self.fresh.get_key_value(key).or_else(|| self.settling.get_key_value(key));
        row.map(|(key, value)| (key, *value))
    }

    fn set<Q: Hash + Equivalent<K>>(&mut self, key: &Q, value: V, own: impl FnOnce() -> K) {
        let place = match self.fresh.get_full_mut(key) {
            Some((place, _, state)) => {
                let before = std::mem::replace(state, value);
                if place < self.stored {
                    self.replaced.push((place, before));
                }
                place
            }
            None => {
                let key = own();
                self.fresh_order.push(key.number(), key.text());
                self.fresh.insert_full(key, value).0
            }
        };
        self.touched.push(place);
    }

    /// Rows that the open transaction changed, each once, as they are now.
    pub(super) fn touched(&mut self) -> impl Iterator<Item = (&K, V)> {
        once_each(&mut self.touched);
        self.touched.iter().filter_map(|place| self.fresh.get_index(*place).map(|(key, value)| (key, *value)))
    }

    /// Everything, older rows first.
    pub(super) fn all(&self) -> impl Iterator<Item = (&K, V)> {
        let older = self.order.left().filter_map(|row| self.settling.get_index(row));
        older.chain(&self.fresh).map(|(key, value)| (key, *value))
    }

    /// Rows of [`recent`](Self::recent).
    pub(super) fn len(&self) -> usize {
        self.settling.len() + self.fresh.len()
    }

    /// Everything for which [`get`](Self::get) has something, older rows first, also those that have just settled. In the
    /// order of memory, which is the fastest that there is.
    pub(super) fn recent(&self) -> impl Iterator<Item = (&K, V)> {
        self.settling.iter().chain(&self.fresh).map(|(key, value)| (key, *value))
    }

    /// Every such key for which [`get`](Self::get) has something, with it.
    pub(super) fn current(&self, is_wanted: impl Fn(&K) -> bool + Copy) -> impl Iterator<Item = (&K, V)> {
        let older =
            self.settling.iter().filter(move |(key, _)| is_wanted(key) && !self.fresh.contains_key(*key));
        let newer = self.fresh.iter().filter(move |(key, _)| is_wanted(key));
        older.chain(newer).map(|(key, value)| (key, *value))
    }

    fn settle(&mut self, max: usize) -> Settled<'_, K, V> {
        let (settling, next) = (&self.settling, self.order.take(max));
        next.filter_map(|row| settling.get_index(row).map(|(key, value)| (key, *value))).collect()
    }

    /// Everything that is not in its table, older rows first and those in its order, for the caller to store.
    pub(super) fn everything(&mut self) -> Settled<'_, K, V> {
        let (settling, older) = (&self.settling, self.order.take(usize::MAX));
        let older = older.filter_map(|row| settling.get_index(row));
        older.chain(&self.fresh).map(|(key, value)| (key, *value)).collect()
    }

    fn undo(&mut self) {
        undo(&mut self.fresh, &mut self.replaced, self.stored);
        self.fresh_order.truncate(self.stored);
        self.touched.clear();
    }

    /// The open transaction is stored.
    fn are_stored(&mut self) {
        self.replaced.clear();
        self.stored = self.fresh.len();
    }

    fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.settling.is_empty()
    }

    /// Generations change places and keep their memory: to grow each anew would cost more than what is kept in them.
    fn begin(&mut self) {
        std::mem::swap(&mut self.settling, &mut self.fresh);
        std::mem::swap(&mut self.order, &mut self.fresh_order);
        self.fresh_order.begin_after(&self.order);
    }

    /// Leaves out up to `max` rows that have settled.
    fn forget(&mut self, max: usize) {
        self.settling.truncate(self.settling.len().saturating_sub(max));
    }
}

/// Leaves the first `stored` rows, as they were before they were replaced.
fn undo<K, V>(rows: &mut IndexMap<K, V, RandomState>, replaced: &mut Vec<(usize, V)>, stored: usize) {
    for (place, before) in replaced.drain(..).rev() {
        if let Some((_, state)) = rows.get_index_mut(place) {
            *state = before;
        }
    }
    rows.truncate(stored);
}

fn once_each(places: &mut Vec<usize>) {
    places.sort_unstable();
    places.dedup();
}

impl<K, V> Default for Rows<K, V> {
    fn default() -> Self {
        Self {
            fresh: IndexMap::default(),
            fresh_order: PageOrder::default(),
            settling: IndexMap::default(),
            order: PageOrder::default(),
            touched: Vec::new(),
            replaced: Vec::new(),
            stored: 0,
        }
    }
}

impl Placed for Member {
    /// A user's likes stand together.
    fn number(&self) -> i64 {
        0
    }

    fn text(&self) -> &str {
        &self.user
    }
}

impl Placed for Request {
    fn number(&self) -> i64 {
        self.workshop.0
    }

    fn text(&self) -> &str {
        &self.request
    }
}

impl Placed for CounterKey {
    fn number(&self) -> i64 {
        (i64::from(self.shard) << 40).wrapping_add(self.item.0)
    }

    fn text(&self) -> &str {
        ""
    }
}

impl Hash for Member {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Membership { user: &self.user, item: self.item }.hash(state);
    }
}

impl Equivalent<Member> for Membership<'_> {
    fn equivalent(&self, key: &Member) -> bool {
        self.item == key.item && *self.user == *key.user
    }
}

impl Hash for Request {
    fn hash<H: Hasher>(&self, state: &mut H) {
        AttemptKey { workshop: self.workshop, request: &self.request }.hash(state);
    }
}

impl Equivalent<Request> for AttemptKey<'_> {
    fn equivalent(&self, key: &Request) -> bool {
        self.workshop == key.workshop && *self.request == *key.request
    }
}
