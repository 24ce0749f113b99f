//! One run of commands over the store: load what they touch, decide each in memory in arrival order,
//! save what changed. Each key is loaded once and written at most once, however often it is touched. What is of
//! counters without members alone is in [`adds`].

mod adds;

use foldhash::HashMap;

use self::adds::{AddPlan, Request};
use super::actor::LikesActors;
use super::bulk::Wanted;
use super::command::Command;
use super::counters::decide::Added;
use super::decide::{View, set_like};
use super::types::{ItemId, UserId};
use crate::partition::Decided;
use crate::store::likes::{Counter, CounterChange, CounterKey, ItemKey, LikesChanges, Membership};
use crate::store::{CountersStore, Error, LikesStore, Saved};

/// What a run touches, as loaded and as decided so far. Keys are looked up once, while loading; deciding
/// goes by place.
#[derive(Default)]
pub(super) struct Segment<'a> {
    items: Places<&'a str, Item<'a>>,
    members: Places<(&'a str, usize), Member>,
    counters: Places<(u32, usize), Touched>,
    requests: Places<(&'a str, usize), Request>,
}

/// An item that does not exist yet has no key: nobody likes it, and it is created at the end if somebody
/// does by then.
struct Item<'a> {
    name: &'a ItemId,
    key: Option<ItemKey>,
}

/// A membership. If its first command wants it to be there, it is claimed: loaded and added in one go.
#[derive(Clone, Copy)]
struct Member {
    claim: bool,
    /// The user's shard, where a command may change it.
    shard: Option<u32>,
    /// Whether the user liked it before.
    before: bool,
    /// Whether the row is in the transaction.
    stored: bool,
    now: bool,
}

#[derive(Clone, Copy, Default)]
struct Touched {
    loaded: Option<Counter>,
    now: Option<Counter>,
}

/// Membership rows to ask the store for, and where their answers go.
#[derive(Default)]
struct Rows<'a> {
    keys: Vec<Membership<'a>>,
    places: Vec<usize>,
}

/// Values in the order of their first mention, each found by its key or its place.
struct Places<K, V> {
    by_key: HashMap<K, usize>,
    values: Vec<(K, V)>,
}

/// Where a command's keys are.
enum Plan {
    Set(SetPlan),
    SetAll(Vec<SetPlan>),
    Add(AddPlan),
    Liked(Vec<usize>),
    Count(Vec<Vec<usize>>),
    Nothing,
}

#[derive(Clone, Copy)]
struct SetPlan {
    member: usize,
    counter: usize,
}

enum Outcome {
    Changed(bool),
    AllChanged(Vec<bool>),
    Added(Added),
    Liked(Vec<bool>),
    Counts(Vec<Vec<i64>>),
    Nothing,
}

impl<'a> Segment<'a> {
    /// With room for so many commands.
    fn of(commands: usize) -> Self {
        let mut segment = Self::default();
        segment.members.reserve(commands);
        segment
    }

    /// Decides and saves one run.
    pub(super) fn decide<S: LikesStore + CountersStore>(
        actors: &mut LikesActors,
        store: &mut S,
        run: &mut [&mut Command],
        now_ms: i64,
    ) -> Result<Decided, Error> {
        let commands: Vec<&Command> = run.iter().map(|command| &**command).collect();
        let mut segment = Segment::of(commands.len());
        let plans: Vec<Plan> = commands.iter().map(|command| segment.plan(command)).collect();
        segment.load_items(actors, store)?;
        segment.load_members(store, now_ms / 1000)?;
        segment.load_counters(actors, store)?;
        segment.load_requests(store)?;
        let mut outcomes = Vec::with_capacity(commands.len());
        for (command, plan) in commands.iter().zip(&plans) {
            outcomes.push(segment.decide_one(actors, store, command, plan, now_ms)?);
        }
        let saved = segment.save(actors, store, now_ms)?;
        if saved == Saved::Conflict || segment.save_adds(store)? == Saved::Conflict {
            return Ok(Decided::Conflict);
        }
        for (command, outcome) in run.iter_mut().zip(outcomes) {
            match (&mut **command, outcome) {
                (Command::Set { reply, .. }, Outcome::Changed(changed)) => reply.set(changed),
                (Command::SetAll { reply, .. }, Outcome::AllChanged(changed)) => reply.set(changed),
                (Command::Add { reply, .. }, Outcome::Added(added)) => reply.set(added),
                (Command::Liked { reply, .. }, Outcome::Liked(liked)) => reply.set(liked),
                (Command::Count { reply, .. }, Outcome::Counts(counts)) => reply.set(counts),
                // A command without its outcome answers `outcome_unknown`; no arm above makes one.
                _ => {}
            }
        }
        Ok(Decided::Ready)
    }

    fn plan(&mut self, command: &'a Command) -> Plan {
        match command {
            Command::Set { shard, user, item, liked, .. } => {
                Plan::Set(self.plan_set(*shard, user, item, *liked))
            }
            Command::SetAll { wanted, .. } => {
                let plan = |Wanted { shard, user, item, liked }: &'a Wanted| {
                    self.plan_set(*shard, user, item, *liked)
                };
                Plan::SetAll(wanted.iter().map(plan).collect())
            }
            Command::Add { shard, counter, request, .. } => {
                let item = self.item(counter);
                let request = request.as_ref().map(|id| (id.as_str(), item));
                Plan::Add(AddPlan {
                    counter: self.counters.place((*shard, item), Touched::default),
                    request: request.map(|key| self.requests.place(key, Request::default)),
                })
            }
            Command::Liked { user, items, .. } => {
                let member = |item| {
                    let item = self.item(item);
                    self.members.place((user.as_str(), item), || Member::first(false))
                };
                Plan::Liked(items.iter().map(member).collect())
            }
            Command::Count { shards, items, .. } => {
                let mut counter = |shard: u32, item| {
                    let item = self.item(item);
                    self.counters.place((shard, item), Touched::default)
                };
                let of_shard = |shard: &u32| items.iter().map(|item| counter(*shard, item)).collect();
                Plan::Count(shards.iter().map(of_shard).collect())
            }
            _ => Plan::Nothing,
        }
    }

    fn plan_set(&mut self, shard: u32, user: &'a UserId, item: &'a ItemId, liked: bool) -> SetPlan {
        let item = self.item(item);
        let member = self.members.place((user.as_str(), item), || Member::first(liked));
        if let Some(member) = self.members.get_mut(member) {
            member.shard = Some(shard);
        }
        SetPlan { member, counter: self.counters.place((shard, item), Touched::default) }
    }

    fn item(&mut self, name: &'a ItemId) -> usize {
        self.items.place(name.as_str(), || Item { name, key: None })
    }

    fn key(&self, item: usize) -> Option<ItemKey> {
        self.items.get(item).and_then(|item| item.key)
    }

    fn load_items<S: LikesStore>(&mut self, actors: &mut LikesActors, store: &mut S) -> Result<(), Error> {
        let mut missing = Vec::new();
        for (name, item) in &mut self.items.values {
            item.key = actors.items.get(*name).copied();
            if item.key.is_none() {
                missing.push(item);
            }
        }
        let names: Vec<&str> = missing.iter().map(|item| item.name.as_str()).collect();
        for (item, found) in missing.into_iter().zip(store.load_items(&names)?) {
            item.key = found;
            if let Some(key) = found {
                actors.items.insert(item.name.shared(), key);
            }
        }
        Ok(())
    }

    fn load_members<S: LikesStore>(&mut self, store: &mut S, now_s: i64) -> Result<(), Error> {
        let mut load = Rows::default();
        let mut claim = Rows::default();
        for (place, ((user, item), member)) in self.members.values.iter().enumerate() {
            if let Some(item) = self.key(*item) {
                let rows = if member.claim { &mut claim } else { &mut load };
                rows.keys.push(Membership { user, item });
                rows.places.push(place);
            }
        }
        let loaded = store.load_memberships(&load.keys)?;
        let claimed = store.claim_memberships(&claim.keys, now_s)?;
        for (place, found) in load.places.into_iter().zip(loaded).chain(claim.places.into_iter().zip(claimed))
        {
            if let Some(member) = self.members.get_mut(place) {
                member.stored = member.claim || found;
                member.now = found;
                member.before = found;
            }
        }
        Ok(())
    }

    fn load_counters<S: LikesStore>(&mut self, actors: &mut LikesActors, store: &mut S) -> Result<(), Error> {
        let mut missing = Vec::new();
        for ((shard, item), counter) in &mut self.counters.values {
            let Some(item) = self.items.get(*item).and_then(|item| item.key) else { continue };
            let key = CounterKey { shard: *shard, item };
            match actors.counters.get(&key) {
                Some(resident) => *counter = Touched { loaded: Some(*resident), now: Some(*resident) },
                None => missing.push((key, counter)),
            }
        }
        let keys: Vec<CounterKey> = missing.iter().map(|(key, _)| *key).collect();
        for ((key, counter), found) in missing.into_iter().zip(store.load_counters(&keys)?) {
            *counter = Touched { loaded: found, now: found };
            if let Some(found) = found {
                actors.counters.insert(key, found);
            }
        }
        Ok(())
    }

    fn decide_one<S: LikesStore>(
        &mut self,
        actors: &mut LikesActors,
        store: &mut S,
        command: &Command,
        plan: &Plan,
        now_ms: i64,
    ) -> Result<Outcome, Error> {
        Ok(match (command, plan) {
            (Command::Set { shard, liked, .. }, Plan::Set(plan)) => {
                let version = actors.version(store, *shard)?;
                Outcome::Changed(self.set(*plan, *liked, version))
            }
            (Command::SetAll { wanted, .. }, Plan::SetAll(plans)) => {
                let mut changed = Vec::with_capacity(plans.len());
                for (wanted, plan) in wanted.iter().zip(plans) {
                    let version = actors.version(store, wanted.shard)?;
                    changed.push(self.set(*plan, wanted.liked, version));
                }
                Outcome::AllChanged(changed)
            }
            (_, Plan::Add(plan)) => self.decide_add(actors, store, command, *plan, now_ms)?,
            (_, Plan::Liked(members)) => {
                let liked = |place: &usize| self.members.get(*place).is_some_and(|member| member.now);
                Outcome::Liked(members.iter().map(liked).collect())
            }
            (_, Plan::Count(counters)) => {
                let count = |place: &usize| {
                    let counter = self.counters.get(*place).and_then(|counter| counter.now);
                    counter.map_or(0, |now| now.total())
                };
                Outcome::Counts(counters.iter().map(|shard| shard.iter().map(count).collect()).collect())
            }
            _ => Outcome::Nothing,
        })
    }

    fn set(&mut self, plan: SetPlan, liked: bool, version: i64) -> bool {
        let (members, counters) = (&mut self.members, &mut self.counters);
        let (Some(member), Some(counter)) = (members.get_mut(plan.member), counters.get_mut(plan.counter))
        else {
            return false;
        };
        let view = View { member: member.now, counter: counter.now.unwrap_or_default() };
        let Some(after) = set_like(view, liked, version) else { return false };
        member.now = after.member;
        counter.now = Some(after.counter);
        true
    }

    fn save<S: LikesStore>(
        &mut self,
        actors: &mut LikesActors,
        store: &mut S,
        now_ms: i64,
    ) -> Result<Saved, Error> {
        self.create_items(actors, store)?;
        let mut changes = LikesChanges { now_s: now_ms / 1000, ..LikesChanges::default() };
        for ((user, item), member) in &self.members.values {
            let Some(item) = self.key(*item) else { continue };
            let row = Membership { user, item };
            match (member.stored, member.now) {
                (false, true) => changes.added.push(row),
                (true, false) => changes.removed.push(row),
                _ => changes.rests_on.push(row),
            }
        }
        for ((shard, item), counter) in &self.counters.values {
            let (Some(item), Some(after)) = (self.key(*item), counter.now) else { continue };
            if counter.loaded != Some(after) {
                let key = CounterKey { shard: *shard, item };
                changes.counters.push(CounterChange { key, before: counter.loaded, after });
            }
        }
        let saved = store.save_likes(&changes)?;
        for change in &changes.counters {
            actors.counters.insert(change.key, change.after);
        }
        if actors.check.is_counting() {
            self.tell_check(actors);
        }
        Ok(saved)
    }

    /// Whoever counts memberships again hears of those that changed behind its back.
    fn tell_check(&self, actors: &mut LikesActors) {
        for ((user, item), member) in &self.members.values {
            if member.before != member.now
                && let (Some(shard), Some(item)) = (member.shard, self.key(*item))
            {
                actors.check.changed(shard, user, item, member.now);
            }
        }
    }

    /// Gives a key to each item that did not exist and has been liked in this run, even if it was
    /// unliked again: its counter's version must show that it changed.
    fn create_items<S: LikesStore>(&mut self, actors: &mut LikesActors, store: &mut S) -> Result<(), Error> {
        let mut new: Vec<usize> = self
            .counters
            .values
            .iter()
            .filter(|((_, item), counter)| counter.now.is_some() && self.key(*item).is_none())
            .map(|((_, item), _)| *item)
            .collect();
        new.sort_unstable();
        new.dedup();
        let names: Vec<&str> =
            new.iter().filter_map(|place| self.items.get(*place)).map(|item| item.name.as_str()).collect();
        for (place, key) in new.iter().zip(store.create_items(&names)?) {
            if let Some(item) = self.items.get_mut(*place) {
                item.key = Some(key);
                actors.items.insert(item.name.shared(), key);
            }
        }
        Ok(())
    }
}

impl Member {
    fn first(claim: bool) -> Self {
        Self { claim, shard: None, before: false, stored: false, now: false }
    }
}

impl<K: Copy + Eq + std::hash::Hash, V> Places<K, V> {
    /// The place of a key; a new one if it is mentioned for the first time.
    fn place(&mut self, key: K, first: impl FnOnce() -> V) -> usize {
        *self.by_key.entry(key).or_insert_with(|| {
            self.values.push((key, first()));
            self.values.len() - 1
        })
    }

    fn reserve(&mut self, keys: usize) {
        self.by_key.reserve(keys);
        self.values.reserve(keys);
    }

    fn get(&self, place: usize) -> Option<&V> {
        self.values.get(place).map(|(_, value)| value)
    }

    fn get_mut(&mut self, place: usize) -> Option<&mut V> {
        self.values.get_mut(place).map(|(_, value)| value)
    }
}

impl<K, V> Default for Places<K, V> {
    fn default() -> Self {
        Self { by_key: HashMap::default(), values: Vec::new() }
    }
}
