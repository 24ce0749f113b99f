//! The handle to all shards: it finds the owner of a user and asks it, or asks everybody.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;

use super::bulk::Wanted;
use super::command::{Changes, Checked, Command};
use super::load::{Load, Loads};
use super::types::{ItemId, UserId, partition_of_shard, shards_of_partition};
use crate::partition::{ActorId, Answer, Port, Refusal, Reply, reply};
use crate::store::likers::{LikedItem, Likers};
use crate::store::likes::{ChangePosition, ItemKey};

/// No shard's number. The roll-up's and the sweep's questions wait in a queue of their own, behind no
/// shard's likes, exact reads in another, so that a flood of them leaves the writers their places, and what comes in
/// bulk in a third.
const CHORES: ActorId = ActorId(u64::MAX);
const READS: ActorId = ActorId(u64::MAX - 1);
const BULK: ActorId = ActorId(u64::MAX - 2);

/// What a like or an unlike came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetLike {
    /// Whether it was different before.
    pub changed: bool,
    /// The user's shard.
    pub shard: u32,
}

/// A cheap clone's way to every shard.
#[derive(Clone)]
pub struct Shards {
    ports: Arc<[Box<dyn Port<Command>>]>,
    shards: u32,
    loads: Loads,
    /// `server.request_timeout_ms`: how long an answer is waited for.
    patience: Duration,
}

impl Shards {
    /// The shards `0..shards`, placed on the partitions behind `ports`.
    #[must_use]
    pub fn new(ports: Vec<Box<dyn Port<Command>>>, shards: u32, patience: Duration) -> Self {
        Self { ports: ports.into(), shards, loads: Loads::new(shards), patience }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.shards
    }

    /// How many partitions they are placed on.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        u32::try_from(self.ports.len()).unwrap_or(u32::MAX)
    }

    /// What each shard was asked since the start, by shard number.
    #[must_use]
    pub fn loads(&self) -> Vec<Load> {
        self.loads.read()
    }

    /// Whether somebody looks at [`Self::loads`]: only then is it measured how long answers take.
    pub fn watch(&self, watched: bool) {
        self.loads.watch(watched);
    }

    /// The partition that a shard lives on.
    #[must_use]
    pub fn partition_of(&self, shard: u32) -> u32 {
        partition_of_shard(shard, self.partitions())
    }

    /// Likes (`true`) or unlikes an item. Idempotent; durable when it returns.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn set(&self, user: UserId, item: ItemId, liked: bool) -> Result<SetLike, Refusal> {
        let shard = user.shard(self.shards);
        let set = |reply| Command::Set { shard, user, item, liked, reply };
        let changed = self.ask_shard(shard, set).await?;
        Ok(SetLike { changed, shard })
    }

    /// Whether a user likes each of some items: the owner's word, never a copy's.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn liked(&self, user: UserId, items: Vec<ItemId>) -> Result<Vec<bool>, Refusal> {
        let shard = user.shard(self.shards);
        let liked = |reply| Command::Liked { user, items, reply };
        self.ask_shard(shard, liked).await
    }

    /// The totals of some items now: every shard counts, all at once, and what was answered before the
    /// call is counted.
    ///
    /// # Errors
    /// The first refusal; a total without a shard is no total.
    pub async fn totals(&self, items: &[ItemId]) -> Result<Vec<i64>, Refusal> {
        let counts = self.counts(items).await?;
        let total_of = |index| {
            let parts = counts.iter().filter_map(|(_, of_shard)| of_shard.get(index));
            parts.map(|part| i128::from(*part)).sum::<i128>()
        };
        let within =
            |total: i128| total.clamp(i64::MIN.into(), i64::MAX.into()).try_into().unwrap_or(i64::MAX);
        Ok((0..items.len()).map(total_of).map(within).collect())
    }

    /// What each shard adds to an item's total now, by shard number.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn parts(&self, item: &ItemId) -> Result<Vec<i64>, Refusal> {
        let mut counts = self.counts(std::slice::from_ref(item)).await?;
        counts.sort_unstable_by_key(|(shard, _)| *shard);
        Ok(counts.into_iter().map(|(_, of_shard)| of_shard.first().copied().unwrap_or(0)).collect())
    }

    /// One question a partition: a read costs its queues one place each, however many shards there are.
    async fn counts(&self, items: &[ItemId]) -> Result<Vec<(u32, Vec<i64>)>, Refusal> {
        let ask = |partition| {
            let shards = shards_of_partition(partition, self.shards, self.partitions());
            let count = |reply| Command::Count { shards: shards.clone(), items: items.to_vec(), reply };
            Ok((shards.clone(), self.ask(partition, READS, count)?))
        };
        let asked = (0..self.partitions()).map(ask).collect::<Result<Vec<_>, Refusal>>()?;
        let answers = asked.into_iter().map(|(shards, answer)| async {
            Ok::<_, Refusal>(shards.into_iter().zip(answer.within(self.patience).await?).collect::<Vec<_>>())
        });
        Ok(try_join_all(answers).await?.into_iter().flatten().collect())
    }

    /// The next page of a shard's changes, for the roll-up.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn changes(
        &self,
        shard: u32,
        after: ChangePosition,
        up_to: Option<i64>,
        limit: u32,
    ) -> Result<Changes, Refusal> {
        let changes = |reply| Command::Changes { shard, after, up_to, limit, reply };
        let partition = partition_of_shard(shard, self.partitions());
        self.ask(partition, CHORES, changes)?.within(self.patience).await
    }

    /// Deletes an item on every partition; whether any had it. Not atomic across partitions: the
    /// roll-up, which calls it, notes the deletion first and repeats it until it is whole.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn delete(&self, item: &ItemId, deletion: i64) -> Result<bool, Refusal> {
        let delete = |reply| Command::Delete { item: item.clone(), deletion, reply };
        let asked = (0..self.partitions()).map(|partition| self.ask(partition, CHORES, delete));
        let asked = asked.collect::<Result<Vec<_>, _>>()?;
        let deleted = try_join_all(asked.into_iter().map(|answer| answer.within(self.patience))).await?;
        Ok(deleted.contains(&true))
    }

    /// Sweeps the next rows of deleted items on a partition; whether more is to be done.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn sweep(&self, partition: u32, limit: u32) -> Result<bool, Refusal> {
        self.ask(partition, CHORES, |reply| Command::Sweep { limit, reply })?.within(self.patience).await
    }

    /// Likes and unlikes many at once, all of shards of one partition, decided in their order.
    ///
    /// # Errors
    /// The partition's refusal, at once.
    pub(super) fn set_all(
        &self,
        partition: u32,
        wanted: &Arc<[Wanted]>,
    ) -> Result<Answer<Vec<bool>>, Refusal> {
        let answer =
            self.ask(partition, BULK, |reply| Command::SetAll { wanted: Arc::clone(wanted), reply })?;
        wanted.iter().for_each(|wanted| self.loads.asked_in_bulk(wanted.shard));
        Ok(answer)
    }

    /// Counts likes in bulk that were refused, or not answered in time.
    pub(super) fn count_failed(&self, wanted: &[Wanted]) {
        wanted.iter().for_each(|wanted| self.loads.failed(wanted.shard));
    }

    /// Forgets ids of adds on a partition, `limit` at most; whether there may be more.
    ///
    /// # Errors
    /// The partition's refusal.
    pub(super) async fn forget_requests(
        &self,
        partition: u32,
        decided_up_to_ms: i64,
        limit: u32,
    ) -> Result<bool, Refusal> {
        let forget = |reply| Command::ForgetRequests { decided_up_to_ms, limit, reply };
        self.ask(partition, CHORES, forget)?.within(self.patience).await
    }

    /// `server.request_timeout_ms`
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// A page of a user's likes, in the order in which its partition first heard of the items: at most `limit` after one.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn likes_of(
        &self,
        user: UserId,
        after: ItemKey,
        limit: u32,
    ) -> Result<Vec<LikedItem>, Refusal> {
        let partition = partition_of_shard(user.shard(self.shards), self.partitions());
        let likes = |reply| Command::LikesOf { user, after, limit, reply };
        self.ask(partition, READS, likes)?.within(self.patience).await
    }

    /// A page of an item's users by the bytes of their ids: at most `limit` after one. Every partition is asked for as many.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn likers(&self, item: &ItemId, after: &str, limit: u32) -> Result<Likers, Refusal> {
        let likers = |reply| Command::Likers { item: item.clone(), after: after.to_owned(), limit, reply };
        let asked = (0..self.partitions()).map(|partition| self.ask(partition, READS, likers));
        let asked = asked.collect::<Result<Vec<_>, _>>()?;
        let mut all = Vec::new();
        for answer in try_join_all(asked.into_iter().map(|answer| answer.within(self.patience))).await? {
            match answer {
                Likers::Users(users) => all.extend(users),
                other => return Ok(other),
            }
        }
        all.sort_unstable();
        all.truncate(limit as usize);
        Ok(Likers::Users(all))
    }

    /// Puts the next rows into a partition's index by item; whether more is to be done.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn index(&self, partition: u32, limit: u32) -> Result<bool, Refusal> {
        self.ask(partition, CHORES, |reply| Command::Index { limit, reply })?.within(self.patience).await
    }

    /// Goes on with a partition's drift check by so many rows.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn check(&self, partition: u32, rows: u32) -> Result<Checked, Refusal> {
        let check = |reply| Command::Check { shards: self.shards, rows, reply };
        self.ask(partition, CHORES, check)?.within(self.patience).await
    }

    /// Asks a shard, and waits for its answer.
    ///
    /// # Errors
    /// The partition's refusal.
    pub(super) async fn ask_shard<T>(
        &self,
        shard: u32,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, Refusal> {
        let asked = self.loads.asked(shard);
        let partition = partition_of_shard(shard, self.partitions());
        let answer = match self.ask(partition, ActorId(u64::from(shard)), command) {
            Ok(answer) => answer.within(self.patience).await,
            Err(refusal) => Err(refusal),
        };
        match &answer {
            Ok(_) => self.loads.answered(shard, &asked),
            Err(_) => self.loads.failed(shard),
        }
        answer
    }

    fn ask<T>(
        &self,
        partition: u32,
        actor: ActorId,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<Answer<T>, Refusal> {
        let (reply, answer) = reply();
        let port = self.ports.get(partition as usize).ok_or(Refusal::Unavailable)?;
        port.push(actor, command(reply))?;
        Ok(answer)
    }
}

impl std::fmt::Debug for Shards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shards").field("shards", &self.shards).finish_non_exhaustive()
    }
}
