//! One run of commands over the store: load what they touch, decide each in memory in arrival order,
//! save what changed. Each key is loaded once and written at most once, however often it is touched.

use foldhash::HashMap;

use super::actor::LikesActors;
use super::command::Command;
use super::decide::{View, set_like};
use super::types::ItemId;
use crate::partition::Decided;
use crate::store::likes::{Counter, CounterChange, CounterKey, ItemKey, LikesChanges, Membership};
use crate::store::{Error, LikesStore, Saved};

/// An item's place among those that the run names.
type Slot = usize;

/// What a run touches, as loaded and as decided so far. Items that do not exist yet have no key: nobody
/// likes them, and they are created at the end if somebody does by then.
#[derive(Default)]
pub(super) struct Segment<'a> {
    slots: HashMap<&'a str, Slot>,
    items: Vec<(&'a ItemId, Option<ItemKey>)>,
    members: HashMap<(&'a str, Slot), Touched<bool>>,
    counters: HashMap<(u32, Slot), Touched<Option<Counter>>>,
}

#[derive(Clone, Copy)]
struct Touched<T> {
    loaded: T,
    now: T,
}

enum Outcome {
    Changed(bool),
    Liked(Vec<bool>),
    Counts(Vec<i64>),
}

impl<'a> Segment<'a> {
    /// Decides and saves one run.
    pub(super) fn decide<S: LikesStore>(
        actors: &mut LikesActors,
        store: &mut S,
        run: &mut [&mut Command],
        now_ms: i64,
    ) -> Result<Decided, Error> {
        let commands: Vec<&Command> = run.iter().map(|command| &**command).collect();
        let mut segment = Segment::default();
        segment.load(actors, store, &commands)?;
        let mut outcomes = Vec::with_capacity(commands.len());
        for command in &commands {
            outcomes.push(segment.decide_one(actors, store, command)?);
        }
        if segment.save(actors, store, now_ms)? == Saved::Conflict {
            return Ok(Decided::Conflict);
        }
        for (command, outcome) in run.iter_mut().zip(outcomes) {
            match (&mut **command, outcome) {
                (Command::Set { liked, reply, .. }, Outcome::Changed(changed)) => {
                    actors.metrics.count(*liked, changed);
                    reply.set(changed);
                }
                (Command::Liked { reply, .. }, Outcome::Liked(liked)) => reply.set(liked),
                (Command::Count { reply, .. }, Outcome::Counts(counts)) => reply.set(counts),
                // A command without its outcome answers `outcome_unknown`; no arm above makes one.
                _ => {}
            }
        }
        Ok(Decided::Ready)
    }

    fn load<S: LikesStore>(
        &mut self,
        actors: &mut LikesActors,
        store: &mut S,
        commands: &[&'a Command],
    ) -> Result<(), Error> {
        let mut members = Vec::new();
        let mut counters = Vec::new();
        for command in commands {
            match command {
                Command::Set { shard, user, item, .. } => {
                    let slot = self.slot(item);
                    members.push((user.as_str(), slot));
                    counters.push((*shard, slot));
                }
                Command::Liked { user, items, .. } => {
                    members.extend(items.iter().map(|item| (user.as_str(), self.slot(item))));
                }
                Command::Count { shard, items, .. } => {
                    counters.extend(items.iter().map(|item| (*shard, self.slot(item))));
                }
                Command::Changes { .. } | Command::Delete { .. } | Command::Sweep { .. } => {}
            }
        }
        self.load_items(actors, store)?;
        self.load_members(store, &members)?;
        self.load_counters(actors, store, &counters)
    }

    fn slot(&mut self, item: &'a ItemId) -> Slot {
        *self.slots.entry(item.as_str()).or_insert_with(|| {
            self.items.push((item, None));
            self.items.len() - 1
        })
    }

    fn load_items<S: LikesStore>(&mut self, actors: &mut LikesActors, store: &mut S) -> Result<(), Error> {
        for (item, key) in &mut self.items {
            *key = actors.items.get(item.as_str()).copied();
        }
        let missing: Vec<&mut (&ItemId, Option<ItemKey>)> =
            self.items.iter_mut().filter(|(_, key)| key.is_none()).collect();
        let names: Vec<&str> = missing.iter().map(|(item, _)| item.as_str()).collect();
        for (place, found) in missing.into_iter().zip(store.load_items(&names)?) {
            place.1 = found;
            if let Some(key) = found {
                actors.items.insert(place.0.shared(), key);
            }
        }
        Ok(())
    }

    fn load_members<S: LikesStore>(
        &mut self,
        store: &mut S,
        touched: &[(&'a str, Slot)],
    ) -> Result<(), Error> {
        let mut places = Vec::with_capacity(touched.len());
        let mut keys = Vec::with_capacity(touched.len());
        for &(user, slot) in touched {
            let absent = Touched { loaded: false, now: false };
            if self.members.insert((user, slot), absent).is_none()
                && let Some(item) = self.key(slot)
            {
                places.push((user, slot));
                keys.push(Membership { user, item });
            }
        }
        for (place, liked) in places.into_iter().zip(store.load_memberships(&keys)?) {
            self.members.insert(place, Touched { loaded: liked, now: liked });
        }
        Ok(())
    }

    fn load_counters<S: LikesStore>(
        &mut self,
        actors: &mut LikesActors,
        store: &mut S,
        touched: &[(u32, Slot)],
    ) -> Result<(), Error> {
        let mut places = Vec::new();
        let mut keys = Vec::new();
        for &(shard, slot) in touched {
            if self.counters.contains_key(&(shard, slot)) {
                continue;
            }
            let key = self.key(slot).map(|item| CounterKey { shard, item });
            let resident = key.and_then(|key| actors.counters.get(&key).copied());
            self.counters.insert((shard, slot), Touched { loaded: resident, now: resident });
            if let (Some(key), None) = (key, resident) {
                places.push((shard, slot));
                keys.push(key);
            }
        }
        for ((place, key), found) in places.into_iter().zip(&keys).zip(store.load_counters(&keys)?) {
            self.counters.insert(place, Touched { loaded: found, now: found });
            if let Some(counter) = found {
                actors.counters.insert(*key, counter);
            }
        }
        Ok(())
    }

    fn decide_one<S: LikesStore>(
        &mut self,
        actors: &mut LikesActors,
        store: &mut S,
        command: &'a Command,
    ) -> Result<Outcome, Error> {
        Ok(match command {
            Command::Set { shard, user, item, liked, .. } => {
                let version = actors.version(store, *shard)?;
                Outcome::Changed(self.set(*shard, user.as_str(), item, *liked, version))
            }
            Command::Liked { user, items, .. } => {
                Outcome::Liked(items.iter().map(|item| self.is_member(user.as_str(), item)).collect())
            }
            Command::Count { shard, items, .. } => {
                Outcome::Counts(items.iter().map(|item| self.count(*shard, item)).collect())
            }
            Command::Changes { .. } | Command::Delete { .. } | Command::Sweep { .. } => {
                Outcome::Changed(false)
            }
        })
    }

    fn set(&mut self, shard: u32, user: &'a str, item: &'a ItemId, liked: bool, version: i64) -> bool {
        let slot = self.slot(item);
        let (Some(member), Some(counter)) =
            (self.members.get_mut(&(user, slot)), self.counters.get_mut(&(shard, slot)))
        else {
            return false;
        };
        let view = View { member: member.now, counter: counter.now.unwrap_or_default() };
        let Some(after) = set_like(view, liked, version) else { return false };
        member.now = after.member;
        counter.now = Some(after.counter);
        true
    }

    fn is_member(&mut self, user: &'a str, item: &'a ItemId) -> bool {
        let slot = self.slot(item);
        self.members.get(&(user, slot)).is_some_and(|member| member.now)
    }

    fn count(&mut self, shard: u32, item: &'a ItemId) -> i64 {
        let slot = self.slot(item);
        self.counters.get(&(shard, slot)).and_then(|counter| counter.now).map_or(0, |now| now.total())
    }

    fn save<S: LikesStore>(
        &mut self,
        actors: &mut LikesActors,
        store: &mut S,
        now_ms: i64,
    ) -> Result<Saved, Error> {
        self.create_items(actors, store)?;
        let mut changes = LikesChanges { now_s: now_ms / 1000, ..LikesChanges::default() };
        for (&(user, slot), member) in &self.members {
            let Some(item) = self.key(slot) else { continue };
            let row = Membership { user, item };
            match (member.loaded, member.now) {
                (false, true) => changes.added.push(row),
                (true, false) => changes.removed.push(row),
                _ => changes.rests_on.push(row),
            }
        }
        for (&(shard, slot), counter) in &self.counters {
            let (Some(item), Some(after)) = (self.key(slot), counter.now) else { continue };
            if counter.loaded != Some(after) {
                let key = CounterKey { shard, item };
                changes.counters.push(CounterChange { key, before: counter.loaded, after });
            }
        }
        let saved = store.save_likes(&changes)?;
        for change in &changes.counters {
            actors.counters.insert(change.key, change.after);
        }
        Ok(saved)
    }

    /// Gives a key to each item that did not exist and has been liked in this run, even if it was
    /// unliked again: its counter's version must show that it changed.
    fn create_items<S: LikesStore>(&mut self, actors: &mut LikesActors, store: &mut S) -> Result<(), Error> {
        let mut new: Vec<Slot> = self
            .counters
            .iter()
            .filter(|((_, slot), counter)| counter.now.is_some() && self.key(*slot).is_none())
            .map(|((_, slot), _)| *slot)
            .collect();
        new.sort_unstable();
        new.dedup();
        let names: Vec<&str> =
            new.iter().filter_map(|slot| self.items.get(*slot)).map(|(item, _)| item.as_str()).collect();
        for (slot, key) in new.iter().zip(store.create_items(&names)?) {
            if let Some((item, place)) = self.items.get_mut(*slot) {
                *place = Some(key);
                actors.items.insert(item.shared(), key);
            }
        }
        Ok(())
    }

    fn key(&self, slot: Slot) -> Option<ItemKey> {
        self.items.get(slot).and_then(|(_, key)| *key)
    }
}
