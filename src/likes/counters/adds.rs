//! The handle to counters: it finds the shard that adds, and asks it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use super::decide::{Added, Terms};
use super::types::{AddId, CounterName};
use crate::likes::{Command, Shards};
use crate::partition::Refusal;

/// A cheap clone's way to every counter.
#[derive(Debug, Clone)]
pub struct Counters {
    shards: Shards,
    terms: Terms,
    /// Numbers the adds without an id.
    spread: Arc<AtomicU64>,
}

/// Something to add.
#[derive(Debug, Clone)]
pub struct Add {
    /// To what.
    pub counter: CounterName,
    /// How much, or how much less.
    pub amount: i64,
    /// Makes it count once.
    pub request: Option<AddId>,
}

/// What an add came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddOutcome {
    /// What was decided.
    pub added: Added,
    /// The shard that did.
    pub shard: u32,
}

impl Counters {
    /// Counters over these shards, whose ids are remembered for so long.
    #[must_use]
    pub fn new(shards: Shards, dedupe_ttl_ms: u64) -> Self {
        let dedupe_ttl_ms = i64::try_from(dedupe_ttl_ms).unwrap_or(i64::MAX);
        let terms = Terms::new(shards.count(), dedupe_ttl_ms);
        Self { shards, terms, spread: Arc::default() }
    }

    /// What one shard counts lies between this and its negative.
    #[must_use]
    pub fn share(&self) -> i64 {
        self.terms.share
    }

    /// Adds to a counter; durable when it returns.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn add(&self, add: Add) -> Result<AddOutcome, Refusal> {
        let Add { counter, amount, request } = add;
        let shard = match &request {
            Some(id) => id.shard(self.shards.count()),
            None => self.any_shard(),
        };
        let (counter, terms) = (counter.item().clone(), self.terms);
        let command = |reply| Command::Add { shard, counter, amount, request, terms, reply };
        let added = self.shards.ask_shard(shard, command).await?;
        Ok(AddOutcome { added, shard })
    }

    /// One after another, mixed: as even as chance, and without asking the system for it.
    fn any_shard(&self) -> u32 {
        let number = self.spread.fetch_add(1, Ordering::Relaxed);
        let shards = u64::from(self.shards.count());
        u32::try_from(xxh3_64(&number.to_le_bytes()) % shards).unwrap_or(0)
    }
}
