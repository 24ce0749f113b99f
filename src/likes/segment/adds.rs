//! Adds in a run: the ids that it meets, loaded once and stored at most once, and what it adds to the ledger.

use super::{Outcome, Segment};
use crate::likes::actor::LikesActors;
use crate::likes::command::Command;
use crate::likes::counters::decide::{View, add};
use crate::likes::types::ItemId;
use crate::store::counters::{AddChanges, LedgerEntry, RequestChange, RequestKey, Seen};
use crate::store::likes::{Counter, CounterKey};
use crate::store::{CountersStore, Error, LikesStore, Saved};

/// Where an add's counter and its id are.
#[derive(Clone, Copy)]
pub(super) struct AddPlan {
    pub(super) counter: usize,
    pub(super) request: Option<usize>,
}

/// An id, as loaded and as decided so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Request {
    loaded: Option<Seen>,
    now: Option<Seen>,
}

impl Segment<'_> {
    pub(super) fn load_requests<S: CountersStore>(&mut self, store: &mut S) -> Result<(), Error> {
        let (mut keys, mut places) = (Vec::new(), Vec::new());
        for (place, ((request, item), _)) in self.requests.values.iter().enumerate() {
            // A counter that does not exist yet has seen no id.
            if let Some(counter) = self.key(*item) {
                keys.push(RequestKey { counter, request });
                places.push(place);
            }
        }
        if keys.is_empty() {
            return Ok(());
        }
        let loaded = store.load_requests(&keys)?;
        for (place, seen) in places.into_iter().zip(loaded) {
            if let Some(request) = self.requests.get_mut(place) {
                *request = Request { loaded: seen, now: seen };
            }
        }
        Ok(())
    }

    pub(super) fn decide_add<S: LikesStore>(
        &mut self,
        actors: &mut LikesActors,
        store: &mut S,
        command: &Command,
        plan: AddPlan,
        now_ms: i64,
    ) -> Result<Outcome, Error> {
        let Command::Add { shard, amount, terms, .. } = command else { return Ok(Outcome::Nothing) };
        let version = actors.version(store, *shard)?;
        let seen = plan.request.and_then(|place| self.requests.get(place)).and_then(|request| request.now);
        let Some(counter) = self.counters.get_mut(plan.counter) else { return Ok(Outcome::Nothing) };
        let view = View { counter: counter.now, seen };
        let (added, change) = add(view, *amount, plan.request.is_some(), *terms, version, now_ms);
        // An id is kept by its counter's key: a first add makes the counter, also one that adds nothing or is refused.
        let made = change.seen.map(|_| Counter { version, ..Counter::default() });
        counter.now = change.counter.or(view.counter).or(made);
        if let Some(request) = plan.request.and_then(|place| self.requests.get_mut(place)) {
            request.now = change.seen.or(request.now);
        }
        Ok(Outcome::Added(added))
    }

    /// Saves ids and ledger; the counters themselves are saved with those of items.
    pub(super) fn save_adds<S: CountersStore>(&self, store: &mut S) -> Result<Saved, Error> {
        let mut changes = AddChanges::default();
        for ((request, item), seen) in &self.requests.values {
            let Some(counter) = self.key(*item) else { continue };
            let key = RequestKey { counter, request };
            match seen.now {
                Some(after) if seen.loaded != Some(after) => {
                    changes.requests.push(RequestChange { key, before: seen.loaded, after });
                }
                _ => changes.rests_on.push(key),
            }
        }
        for ((shard, item), counter) in &self.counters.values {
            let Some(item) =
                self.items.get(*item).filter(|item| ItemId::counter_in(item.name.as_str()).is_some())
            else {
                continue;
            };
            let (Some(item), Some(now)) = (item.key, counter.now) else { continue };
            let loaded = counter.loaded.unwrap_or_default();
            let key = CounterKey { shard: *shard, item };
            changes.ledger.extend(ledger_entries(key, loaded.base, now.base));
        }
        match changes.requests.is_empty() && changes.ledger.is_empty() && changes.rests_on.is_empty() {
            true => Ok(Saved::Done),
            false => store.save_adds(&changes),
        }
    }
}

/// One entry, or two where a count went further than an `i64` tells: from one end of the range to the other.
fn ledger_entries(key: CounterKey, before: i64, after: i64) -> Vec<LedgerEntry> {
    match after.checked_sub(before) {
        Some(0) => Vec::new(),
        Some(amount) => vec![LedgerEntry { key, amount }],
        None => {
            vec![LedgerEntry { key, amount: before.saturating_neg() }, LedgerEntry { key, amount: after }]
        }
    }
}
