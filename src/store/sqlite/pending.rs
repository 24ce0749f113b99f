//! What the journal holds and the tables do not: the newest state of each row that changed lately.
//!
//! Memberships stand in two generations. The fresh one takes what changes; when it is full it becomes the
//! settling one, which moves into its table a few rows a batch, in the order of the keys, so that rows which
//! share a page are written together.

use std::hash::{Hash, Hasher};

use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexMap};

use crate::store::likes::{Counter, CounterKey, ItemKey, Membership};

/// A membership's key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub user: Box<str>,
    pub item: ItemKey,
}

/// When the user liked the item, in seconds since 1970; `None` when it does so no more.
pub(super) type LikedAt = Option<i64>;

type Generation = IndexMap<Member, LikedAt, RandomState>;

/// Changed rows that are not in their tables.
#[derive(Debug, Default)]
pub(super) struct Pending {
    fresh: Generation,
    settling: Settling,
    counters: IndexMap<CounterKey, Counter, RandomState>,
    /// Places in `fresh` and `counters` that the open transaction changed.
    touched_members: Vec<usize>,
    touched_counters: Vec<usize>,
    /// Changes in the journal since the last freeze.
    journaled: usize,
    /// Whether the open transaction changed anything here.
    dirty: bool,
}

/// The generation on its way into the table.
#[derive(Debug, Default)]
struct Settling {
    rows: Generation,
    /// Places in `rows`, in the order of the table's pages.
    order: Vec<u32>,
    settled: usize,
    /// The newest journal row that holds any of it.
    up_to_seq: i64,
}

impl Pending {
    /// What is pending for a membership; `None` when its table has the last word.
    pub(super) fn member(&self, key: Membership<'_>) -> Option<LikedAt> {
        self.fresh.get(&key).or_else(|| self.settling.rows.get(&key)).copied()
    }

    pub(super) fn set_member(&mut self, key: Membership<'_>, liked_at: LikedAt) {
        self.dirty = true;
        let place = match self.fresh.get_full_mut(&key) {
            Some((place, _, state)) => {
                *state = liked_at;
                place
            }
            None => self.fresh.insert_full(Member { user: key.user.into(), item: key.item }, liked_at).0,
        };
        self.touched_members.push(place);
    }

    pub(super) fn counter(&self, key: CounterKey) -> Option<Counter> {
        self.counters.get(&key).copied()
    }

    pub(super) fn set_counter(&mut self, key: CounterKey, counter: Counter) {
        self.dirty = true;
        let (place, _) = self.counters.insert_full(key, counter);
        self.touched_counters.push(place);
    }

    /// Memberships that the open transaction changed, each once, as they are now.
    pub(super) fn touched_members(&mut self) -> impl Iterator<Item = (&Member, LikedAt)> {
        once_each(&mut self.touched_members);
        self.touched_members.iter().filter_map(|place| {
            let (key, liked_at) = self.fresh.get_index(*place)?;
            Some((key, *liked_at))
        })
    }

    /// Counters that the open transaction changed, each once, as they are now.
    pub(super) fn touched_counters(&mut self) -> impl Iterator<Item = (CounterKey, Counter)> {
        once_each(&mut self.touched_counters);
        let counter = |place: &usize| self.counters.get_index(*place).map(|(key, counter)| (*key, *counter));
        self.touched_counters.iter().filter_map(counter)
    }

    /// Changes of the open transaction that its journal row must hold.
    pub(super) fn touched(&self) -> usize {
        self.touched_members.len() + self.touched_counters.len()
    }

    /// Whether the open transaction changed anything here.
    pub(super) fn is_dirty(&self) -> bool {
        self.dirty
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fresh.is_empty()
            && self.settling.rows.is_empty()
            && self.counters.is_empty()
            && self.journaled == 0
    }

    /// The transaction is stored. A generation of `max` changes begins to settle, `last_seq` being the
    /// newest row of the journal.
    pub(super) fn committed(&mut self, max: usize, last_seq: i64) {
        self.journaled += self.touched();
        self.touched_members.clear();
        self.touched_counters.clear();
        self.dirty = false;
        if self.settling.is_done() && !self.settling.rows.is_empty() {
            self.settling = Settling::default();
        }
        if self.journaled >= max && self.settling.rows.is_empty() {
            self.settling = Settling::begin(std::mem::take(&mut self.fresh), last_seq);
            self.journaled = 0;
        }
    }

    /// Up to `max` rows that go to their table next.
    pub(super) fn settle(&mut self, max: usize) -> Vec<(&Member, LikedAt)> {
        let from = self.settling.settled;
        let rows = &self.settling.rows;
        let next: Vec<_> = self
            .settling
            .order
            .iter()
            .skip(from)
            .take(max)
            .filter_map(|place| rows.get_index(*place as usize).map(|(key, liked_at)| (key, *liked_at)))
            .collect();
        self.settling.settled = from + next.len();
        self.dirty |= !next.is_empty();
        next
    }

    /// The newest journal row of a generation that has just settled whole.
    pub(super) fn settled_up_to(&self) -> Option<i64> {
        (self.settling.is_done() && !self.settling.rows.is_empty()).then_some(self.settling.up_to_seq)
    }

    pub(super) fn counters_pending(&self) -> usize {
        self.counters.len()
    }

    /// Every pending counter that is not in the open transaction's journal row, and what is: all of them.
    /// They are the caller's to store.
    pub(super) fn counters(&self) -> impl Iterator<Item = (CounterKey, Counter)> {
        self.counters.iter().map(|(key, counter)| (*key, *counter))
    }

    /// The counters are in their table, and the journal row of the open transaction is written.
    pub(super) fn forget_counters(&mut self) {
        self.dirty = true;
        self.counters.clear();
        self.touched_counters.clear();
    }

    /// Everything, older rows first: the caller stores it and calls [`Pending::clear`].
    pub(super) fn members(&self) -> impl Iterator<Item = (&Member, LikedAt)> {
        let older = self.settling.order.iter().skip(self.settling.settled);
        let older = older.filter_map(|place| self.settling.rows.get_index(*place as usize));
        older.chain(&self.fresh).map(|(key, liked_at)| (key, *liked_at))
    }

    /// Everything is in its table.
    pub(super) fn clear(&mut self) {
        *self = Self { dirty: true, ..Self::default() };
    }
}

impl Settling {
    fn begin(rows: Generation, up_to_seq: i64) -> Self {
        let order = in_page_order(&rows);
        Self { rows, order, settled: 0, up_to_seq }
    }

    fn is_done(&self) -> bool {
        self.settled == self.order.len()
    }
}

/// Nearly the order of the keys: by eight bytes of the user after what all users share. A row out of its
/// place costs a page more, no mistake; comparing whole texts would hold up a batch for tens of milliseconds.
fn in_page_order(rows: &Generation) -> Vec<u32> {
    let first = rows.first().map_or("", |(key, _)| &*key.user).as_bytes();
    let shared = rows.keys().fold(first.len(), |shared, key| {
        first.iter().zip(key.user.as_bytes()).take(shared).take_while(|(a, b)| a == b).count()
    });
    let mut order: Vec<(u64, u32)> = (0..)
        .zip(rows.keys())
        .map(|(place, key)| {
            let mut bytes = [0; 8];
            let rest = key.user.as_bytes().get(shared..).unwrap_or_default();
            bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            (u64::from_be_bytes(bytes), place)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, place)| place).collect()
}

fn once_each(places: &mut Vec<usize>) {
    places.sort_unstable();
    places.dedup();
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
