//! What the journal holds and the tables do not: the newest state of each row that changed lately.
//!
//! Rows stand in two generations. The fresh one takes what changes; when it is full it becomes the settling
//! one, which moves into its table a few rows a batch, in the order of the keys, so that rows which share a
//! page are written together.

use std::hash::{Hash, Hasher};

use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexMap};

use crate::store::likes::{Counter, CounterKey, ItemKey, Membership};
use crate::store::reservations::{Attempt, AttemptKey, WorkshopKey};

/// When a user liked an item, in seconds since 1970; `None` when it does so no more.
pub(super) type LikedAt = Option<i64>;

/// A membership's key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub user: Box<str>,
    pub item: ItemKey,
}

/// An attempt's key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub workshop: WorkshopKey,
    pub request: Box<str>,
}

/// Where a key stands in its table: by a number, and then by a text.
trait Placed {
    fn number(&self) -> i64;
    fn text(&self) -> &str;
}

/// Changed rows that are not in their tables.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub members: Rows<Member, LikedAt>,
    pub attempts: Rows<Request, Attempt>,
    pub counters: Rows<CounterKey, Counter>,
    /// Changes in the journal since the last generation began to settle.
    journaled: usize,
    /// The newest journal row that holds anything of the settling generation, while there is one.
    settling_up_to: Option<i64>,
    /// Whether the open transaction changed anything here.
    dirty: bool,
    /// Whether it did more than change rows, so that only the journal tells what was before.
    moved: bool,
}

/// The changed rows of one table.
#[derive(Debug)]
pub(super) struct Rows<K, V> {
    fresh: IndexMap<K, V, RandomState>,
    settling: IndexMap<K, V, RandomState>,
    /// Places in `settling`, in the order of the table's pages.
    order: Vec<u32>,
    settled: usize,
    /// Places in `fresh` that the open transaction changed.
    touched: Vec<usize>,
    /// What it found there, of rows that were there before.
    replaced: Vec<(usize, V)>,
    /// Rows that were in `fresh` when it began.
    stored: usize,
}

impl Pending {
    pub(super) fn set_member(&mut self, key: Membership<'_>, liked_at: LikedAt) {
        self.dirty = true;
        self.members.set(&key, liked_at, || Member { user: key.user.into(), item: key.item });
    }

    pub(super) fn set_attempt(&mut self, key: AttemptKey<'_>, attempt: Attempt) {
        self.dirty = true;
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

    /// The newest journal row of a generation that has just settled whole.
    pub(super) fn settled_up_to(&self) -> Option<i64> {
        let is_settled =
            self.members.is_settled() && self.attempts.is_settled() && self.counters.is_settled();
        self.settling_up_to.filter(|_| is_settled)
    }

    /// The transaction is stored. After `max` changes a generation begins to settle, `last_seq` being the
    /// newest row of the journal.
    pub(super) fn committed(&mut self, max: usize, last_seq: i64) {
        self.journaled += self.touched();
        self.members.touched.clear();
        self.attempts.touched.clear();
        self.counters.touched.clear();
        (self.dirty, self.moved) = (false, false);
        if self.settled_up_to().is_some() {
            self.members.end();
            self.attempts.end();
            self.counters.end();
            self.settling_up_to = None;
        }
        if self.journaled >= max && self.settling_up_to.is_none() {
            self.members.begin();
            self.attempts.begin();
            self.counters.begin();
            self.settling_up_to = Some(last_seq);
            self.journaled = 0;
        }
        self.members.are_stored();
        self.attempts.are_stored();
        self.counters.are_stored();
    }

    /// Everything is in its table.
    pub(super) fn clear(&mut self) {
        *self = Self { dirty: true, moved: true, ..Self::default() };
    }
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

    fn set<Q: Hash + Equivalent<K>>(&mut self, key: &Q, value: V, own: impl FnOnce() -> K) {
        let place = match self.fresh.get_full_mut(key) {
            Some((place, _, state)) => {
                let before = std::mem::replace(state, value);
                if place < self.stored {
                    self.replaced.push((place, before));
                }
                place
            }
            None => self.fresh.insert_full(own(), value).0,
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
        let older = self.order.iter().skip(self.settled);
        let older = older.filter_map(|place| self.settling.get_index(*place as usize));
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
        let (settling, from) = (&self.settling, self.settled);
        let row = |place: &u32| settling.get_index(*place as usize).map(|(key, value)| (key, *value));
        let next: Vec<_> = self.order.iter().skip(from).take(max).filter_map(row).collect();
        self.settled = from + next.len();
        next
    }

    fn undo(&mut self) {
        undo(&mut self.fresh, &mut self.replaced, self.stored);
        self.touched.clear();
    }

    /// The open transaction is stored.
    fn are_stored(&mut self) {
        self.replaced.clear();
        self.stored = self.fresh.len();
    }

    fn is_settled(&self) -> bool {
        self.settled == self.order.len()
    }

    fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.settling.is_empty()
    }

    /// Generations change places and keep their memory: to grow each anew would cost more than what is kept in them.
    fn begin(&mut self) {
        self.end();
        std::mem::swap(&mut self.settling, &mut self.fresh);
        self.order = in_page_order(&self.settling);
    }

    fn end(&mut self) {
        self.settling.clear();
        self.order.clear();
        self.settled = 0;
    }
}

/// Nearly the order of the keys: by number, and then by eight bytes of the text after what all texts share. A
/// row out of its place costs a page more, no mistake; comparing whole texts would hold up a batch for tens
/// of milliseconds.
fn in_page_order<K: Placed, V>(rows: &IndexMap<K, V, RandomState>) -> Vec<u32> {
    let first = rows.first().map_or("", |(key, _)| key.text()).as_bytes();
    let shared = rows.keys().fold(first.len(), |shared, key| {
        first.iter().zip(key.text().as_bytes()).take(shared).take_while(|(a, b)| a == b).count()
    });
    let mut order: Vec<(i64, u64, u32)> = (0..)
        .zip(rows.keys())
        .map(|(place, key)| {
            let mut bytes = [0; 8];
            let rest = key.text().as_bytes().get(shared..).unwrap_or_default();
            bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            (key.number(), u64::from_be_bytes(bytes), place)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, place)| place).collect()
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
            settling: IndexMap::default(),
            order: Vec::new(),
            settled: 0,
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
