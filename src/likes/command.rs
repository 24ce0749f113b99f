//! What a partition can be asked about likes.

use std::sync::{Arc, LazyLock};

use super::bulk::Wanted;
use super::counters::AddId;
use super::counters::decide::{Added, Terms};
use super::types::{ItemId, UserId};
use crate::metrics::{AddMetrics, LikesMetrics};
use crate::partition::{Command as PartitionCommand, Refusal, Reply};
use crate::store::likers::{LikedItem, Likers};
use crate::store::likes::{ChangePosition, ChangedCounter, ItemKey};

/// Counted after the commit, like everything that others see.
static METRICS: LazyLock<LikesMetrics> = LazyLock::new(LikesMetrics::default);
static ADD_METRICS: LazyLock<AddMetrics> = LazyLock::new(AddMetrics::default);

/// One question to the shards of a partition, with the way back.
#[derive(Debug)]
pub enum Command {
    /// Bring a membership to `liked`.
    Set {
        /// The user's shard.
        shard: u32,
        /// Who.
        user: UserId,
        /// What.
        item: ItemId,
        /// Like, or unlike.
        liked: bool,
        /// Whether it was different before.
        reply: Reply<bool>,
    },
    /// Bring many memberships to what is wanted, in their order.
    SetAll {
        /// Of shards of the partition.
        wanted: Arc<[Wanted]>,
        /// Of each, whether it was different before.
        reply: Reply<Vec<bool>>,
    },
    /// Add to a counter without members.
    Add {
        /// The shard that counts it.
        shard: u32,
        /// The item that the counter is kept as.
        counter: ItemId,
        /// How much.
        amount: i64,
        /// Makes it count once.
        request: Option<AddId>,
        /// The rules.
        terms: Terms,
        /// What was decided.
        reply: Reply<Added>,
    },
    /// Whether a user likes each of some items.
    Liked {
        /// Who.
        user: UserId,
        /// What, in the order of the answer.
        items: Vec<ItemId>,
        /// In the order of the question.
        reply: Reply<Vec<bool>>,
    },
    /// The counts of some items in some shards of the partition.
    Count {
        /// The shards, in the order of the answer.
        shards: Vec<u32>,
        /// What, in the order of the answer.
        items: Vec<ItemId>,
        /// For each shard, for each item.
        reply: Reply<Vec<Vec<i64>>>,
    },
    /// The next page of a shard's changes, for the roll-up.
    Changes {
        /// The shard.
        shard: u32,
        /// After this position.
        after: ChangePosition,
        /// As the first page said; `None` asks for the first page.
        up_to: Option<i64>,
        /// At most so many.
        limit: u32,
        /// The page.
        reply: Reply<Changes>,
    },
    /// Delete an item in all shards of the partition.
    Delete {
        /// What.
        item: ItemId,
        /// Which deletion of it: each is done once.
        deletion: i64,
        /// Whether it was there.
        reply: Reply<bool>,
    },
    /// A page of a user's likes.
    LikesOf {
        /// Who.
        user: UserId,
        /// After this item.
        after: ItemKey,
        /// Look at so many at most.
        limit: u32,
        /// The page.
        reply: Reply<Vec<LikedItem>>,
    },
    /// The first users of the partition who like an item.
    Likers {
        /// What.
        item: ItemId,
        /// After this one.
        after: String,
        /// At most so many.
        limit: u32,
        /// By the bytes of their ids.
        reply: Reply<Likers>,
    },
    /// Put the next memberships into an index by item that is being built.
    Index {
        /// Look at so many at most.
        limit: u32,
        /// Whether more is to be done.
        reply: Reply<bool>,
    },
    /// Count the next memberships again, for the drift check.
    Check {
        /// `likes.shards`.
        shards: u32,
        /// Look at so many at most.
        rows: u32,
        /// What came of it.
        reply: Reply<Checked>,
    },
    /// Look at the next membership rows for those of deleted items.
    Sweep {
        /// Look at so many at most.
        limit: u32,
        /// Whether more is to be done.
        reply: Reply<bool>,
    },
    /// Forget ids of adds.
    ForgetRequests {
        /// Those decided at or before this time, in ms since 1970.
        decided_up_to_ms: i64,
        /// At most so many.
        limit: u32,
        /// Whether there may be more.
        reply: Reply<bool>,
    },
}

/// A page of a shard's changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// In the order of their positions.
    pub counters: Vec<ChangedCounter>,
    /// Everything changed at or before this version is in this page or after it, as it is when its page is
    /// read.
    pub up_to: i64,
}

/// What a step of the drift check has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Counters that were compared with their memberships and their ledger.
    pub compared: u64,
    /// Those that differ, in words.
    pub wrong: Vec<String>,
}

impl PartitionCommand for Command {
    fn release(self) {
        match self {
            Self::Set { liked, reply, .. } => {
                if let Some(changed) = reply.outcome() {
                    METRICS.count(liked, *changed);
                }
                reply.release();
            }
            Self::SetAll { wanted, reply } => {
                for (wanted, changed) in wanted.iter().zip(reply.outcome().into_iter().flatten()) {
                    METRICS.count(wanted.liked, *changed);
                }
                reply.release();
            }
            Self::Add { reply, .. } => {
                if let Some(added) = reply.outcome() {
                    ADD_METRICS.count(*added);
                }
                reply.release();
            }
            Self::Delete { reply, .. }
            | Self::Sweep { reply, .. }
            | Self::Index { reply, .. }
            | Self::ForgetRequests { reply, .. } => reply.release(),
            Self::LikesOf { reply, .. } => reply.release(),
            Self::Likers { reply, .. } => reply.release(),
            Self::Check { reply, .. } => reply.release(),
            Self::Liked { reply, .. } => reply.release(),
            Self::Count { reply, .. } => reply.release(),
            Self::Changes { reply, .. } => reply.release(),
        }
    }

    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Set { reply, .. }
            | Self::Delete { reply, .. }
            | Self::Sweep { reply, .. }
            | Self::Index { reply, .. }
            | Self::ForgetRequests { reply, .. } => reply.refuse(refusal),
            Self::Add { reply, .. } => reply.refuse(refusal),
            Self::Liked { reply, .. } | Self::SetAll { reply, .. } => reply.refuse(refusal),
            Self::LikesOf { reply, .. } => reply.refuse(refusal),
            Self::Likers { reply, .. } => reply.refuse(refusal),
            Self::Check { reply, .. } => reply.refuse(refusal),
            Self::Count { reply, .. } => reply.refuse(refusal),
            Self::Changes { reply, .. } => reply.refuse(refusal),
        }
    }

    fn is_chore(&self) -> bool {
        matches!(self, Self::Sweep { .. })
    }
}
