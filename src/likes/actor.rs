//! The shards placed on one partition: what they keep in memory and how they take a batch.
//!
//! Memory is a copy of what is saved, possibly ahead of the commit; whoever fails to commit calls
//! [`LikesActors::forget`], and everything is read again.

use std::sync::Arc;

use foldhash::HashMap;

use super::check::Check;
use super::command::{Changes, Command};
use super::segment::Segment;
use crate::partition::{Decided, Resident};
use crate::store::likers::Likers;
use crate::store::likes::{ChangePosition, Counter, CounterKey, ItemKey};
use crate::store::{CountersStore, Error, LikersStore, LikesStore};

/// The likes actors of one partition.
#[derive(Debug)]
pub struct LikesActors {
    /// The shards placed here.
    pub(super) shards: Vec<u32>,
    pub(super) items: Resident<Arc<str>, ItemKey>,
    pub(super) counters: Resident<CounterKey, Counter>,
    /// The version that a change of each shard gets now: above everything that a roll-up has carried.
    versions: HashMap<u32, i64>,
    sweep: Sweep,
    pub(super) check: Check,
}

/// How far the search for rows of deleted items has come. Lost on a restart, which starts it again.
#[derive(Debug, Default)]
struct Sweep {
    dead: Vec<ItemKey>,
    after: Option<(String, ItemKey)>,
}

impl LikesActors {
    /// The actors of `shards`, with at most `max_resident` counters and as many item names in memory.
    #[must_use]
    pub fn new(shards: Vec<u32>, max_resident: usize) -> Self {
        Self {
            shards,
            items: Resident::new(max_resident),
            counters: Resident::new(max_resident),
            versions: HashMap::default(),
            sweep: Sweep::default(),
            check: Check::default(),
        }
    }

    /// Decides commands in order and saves what changed. Runs of commands on keys are loaded and saved
    /// together; a command on a whole shard or item stands alone between them.
    ///
    /// # Errors
    /// The store's.
    pub fn decide<S: LikesStore + LikersStore + CountersStore>(
        &mut self,
        store: &mut S,
        commands: &mut [&mut Command],
        exclusive: bool,
        now_ms: i64,
    ) -> Result<Decided, Error> {
        if !exclusive {
            self.forget();
        }
        for run in commands.chunk_by_mut(|a, b| a.is_on_keys() && b.is_on_keys()) {
            match run {
                [one] if !one.is_on_keys() => self.decide_alone(store, one, now_ms)?,
                run => {
                    if Segment::decide(self, store, run, now_ms)? == Decided::Conflict {
                        return Ok(Decided::Conflict);
                    }
                }
            }
        }
        Ok(Decided::Ready)
    }

    /// Drops all memory, after a failure.
    pub fn forget(&mut self) {
        self.items.clear();
        self.counters.clear();
        self.versions.clear();
        self.sweep = Sweep::default();
        self.check = Check::default();
    }

    /// Drops what nobody touched for an idle period.
    pub fn forget_idle(&mut self) {
        self.items.rotate();
        self.counters.rotate();
    }

    /// Counters in memory.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.counters.len()
    }

    /// The version that a change of this shard gets now.
    pub(super) fn version<S: LikesStore>(&mut self, store: &mut S, shard: u32) -> Result<i64, Error> {
        if let Some(version) = self.versions.get(&shard) {
            return Ok(*version);
        }
        // One above everything stored: nothing carried by an earlier roll-up can hide a change made now.
        let version = store.newest_version(shard)? + 1;
        self.versions.insert(shard, version);
        Ok(version)
    }

    fn decide_alone<S: LikesStore + LikersStore + CountersStore>(
        &mut self,
        store: &mut S,
        command: &mut Command,
        now_ms: i64,
    ) -> Result<(), Error> {
        match command {
            Command::LikesOf { user, after, limit, reply } => {
                reply.set(store.likes_of(user.as_str(), *after, *limit)?);
            }
            Command::Likers { item, after, limit, reply } => {
                // No key is below 1: of an item that does not exist nothing is found, and it is said whether there is an index.
                let key = store.load_items(&[item.as_str()])?.into_iter().next().flatten();
                let likers: Likers = store.likers(key.unwrap_or(ItemKey(0)), after, *limit)?;
                reply.set(likers);
            }
            Command::Index { limit, reply } => reply.set(store.build_index(*limit)?),
            Command::Check { shards, rows, reply } => {
                reply.set(self.check_rows(store, *shards, *rows, now_ms)?);
            }
            Command::Changes { shard, after, up_to, limit, reply } => {
                reply.set(self.changes(store, *shard, *after, *up_to, *limit)?);
            }
            Command::Delete { item, deletion, reply } => {
                let deleted = store.delete_item(item.as_str(), *deletion, &self.shards)?;
                // Its counters stay in memory under a key that nothing names any more, until they idle out.
                self.items.remove(item.as_str());
                // Its memberships are still there and count no more.
                self.check = Check::default();
                reply.set(deleted);
            }
            Command::Sweep { limit, reply } => reply.set(self.sweep(store, *limit)?),
            Command::ForgetRequests { decided_up_to_ms, limit, reply } => {
                reply.set(store.forget_requests(*decided_up_to_ms, *limit)? == *limit);
            }
            Command::Set { .. }
            | Command::SetAll { .. }
            | Command::Add { .. }
            | Command::Liked { .. }
            | Command::Count { .. } => {}
        }
        Ok(())
    }

    fn changes<S: LikesStore>(
        &mut self,
        store: &mut S,
        shard: u32,
        after: ChangePosition,
        up_to: Option<i64>,
        limit: u32,
    ) -> Result<Changes, Error> {
        let Some(up_to) = up_to else {
            let newest = self.version(store, shard)?;
            if newest > after.version {
                // From here on changes get a version of their own, so that this one can be carried whole.
                self.versions.insert(shard, newest + 1);
            }
            let counters = store.changed_counters(shard, after, newest, limit)?;
            return Ok(Changes { counters, up_to: newest });
        };
        // A counter that changed since the first page has moved on to the next version. It is ahead of the
        // reader there; left out, a counter that always changes would never be carried.
        let counters = store.changed_counters(shard, after, up_to + 1, limit)?;
        Ok(Changes { counters, up_to })
    }

    fn sweep<S: LikesStore>(&mut self, store: &mut S, limit: u32) -> Result<bool, Error> {
        if self.sweep.dead.is_empty() {
            self.sweep = Sweep { dead: store.unswept_items()?, after: None };
        }
        if self.sweep.dead.is_empty() {
            return Ok(false);
        }
        self.sweep.after = store.sweep_memberships(&self.sweep.dead, self.sweep.after.take(), limit)?;
        if self.sweep.after.is_none() {
            store.forget_swept(&self.sweep.dead)?;
            self.sweep.dead.clear();
        }
        Ok(true)
    }
}

impl Command {
    /// Whether the command touches named keys only, so that it can share a load and a save with others.
    fn is_on_keys(&self) -> bool {
        matches!(
            self,
            Self::Set { .. }
                | Self::SetAll { .. }
                | Self::Add { .. }
                | Self::Liked { .. }
                | Self::Count { .. }
        )
    }
}
