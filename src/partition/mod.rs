//! The engine: a partition is an OS thread that owns one store and runs the actors placed on it.
//!
//! Commands wait in a bounded [`mailbox`]; the [`worker`] takes a batch, has the workload decide and
//! save it in one transaction, commits, and only then lets the replies out ([`reply`]). Generic: it
//! knows neither likes nor seats; what runs on it is a [`Workload`].

pub mod clock;
pub mod hold;
pub mod mailbox;
pub mod reply;
pub mod resident;
mod syncer;
pub mod worker;
pub mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub use clock::Clock;
pub use mailbox::Mailbox;
pub use reply::{Answer, Reply, reply};
pub use resident::Resident;
pub use workers::Workers;

use crate::store::{self, Durability, Syncer};

/// Why a command was not answered with an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The queue was full, or the command waited past its deadline. Surely not done.
    #[error("too many commands are waiting")]
    Overloaded,
    /// The partition is down or shutting down, or its batch failed before its commit. Surely not done.
    #[error("the partition is not available")]
    Unavailable,
    /// The disk is full. Surely not done.
    #[error("the disk is full")]
    DiskFull,
    /// The commit failed or no answer came in time. Perhaps done: repeat with the same id.
    #[error("the outcome is not known")]
    OutcomeUnknown,
}

/// What a partition runs: commands that carry their own replies.
pub trait Command: Send + 'static {
    /// Lets the outcome out, after the commit.
    fn release(self);
    /// Answers with an error instead.
    fn refuse(self, refusal: Refusal);

    /// Whether nobody in particular waits for it. It is then a batch of its own, after that of the others: nobody waits for
    /// its work, and nobody is refused with it.
    fn is_chore(&self) -> bool {
        false
    }
}

/// What deciding a batch came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// Every command has its outcome behind the gate and every change is saved, uncommitted.
    Ready,
    /// Somebody else changed a key in a shared store: roll back, load again, decide again.
    Conflict,
}

/// Sizes worth a gauge, read now and then.
#[derive(Debug, Clone, Default)]
pub struct Vitals {
    /// Bytes in the store's write-ahead log.
    pub log_bytes: u64,
    /// Actors' states in memory, by feature.
    pub resident: Vec<(&'static str, usize)>,
}

/// The actors of one partition over their store. One thread calls it, never two.
pub trait Workload: Send + 'static {
    /// What it understands.
    type Command: Command;

    /// Opens a transaction, decides every command in arrival order and saves what changed.
    ///
    /// # Errors
    /// What the store says; the batch is then surely not done.
    fn decide(&mut self, batch: &mut [Self::Command], now_ms: i64) -> Result<Decided, store::Error>;

    /// Whether the decided batch is to store anything.
    fn has_changed(&self) -> bool;

    /// Commits the decided batch.
    ///
    /// # Errors
    /// What the store says; the batch is then perhaps done, except on a full disk.
    fn commit(&mut self, now_ms: i64) -> Result<Durability, store::Error>;

    /// What makes this store's commits durable, from another thread.
    ///
    /// # Errors
    /// What the store says.
    fn syncer(&self) -> Result<Box<dyn Syncer>, store::Error>;

    /// Abandons the open transaction and whatever memory learnt from it.
    ///
    /// # Errors
    /// What the store says.
    fn rollback(&mut self) -> Result<(), store::Error>;

    /// Drops all memory, closes the store and opens it afresh.
    ///
    /// # Errors
    /// What the store says; the partition stays down and tries again.
    fn reopen(&mut self) -> Result<(), store::Error>;

    /// Lets actors that nobody touched for a whole `actors.idle_timeout_ms` leave memory.
    fn forget_idle(&mut self);

    /// Sizes for the gauges.
    fn vitals(&self) -> Vitals;

    /// Brings the write-ahead log into the file, at shutdown, and notes the time: it goes on from here.
    ///
    /// # Errors
    /// What the store says; the log is then replayed at the next start.
    fn come_to_rest(&mut self, now_ms: i64) -> Result<(), store::Error>;
}

/// An actor's name within its partition, hashed. Two actors that share one share a turn, no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ActorId(pub u64);

/// Where a feature puts its commands, whatever else runs on the partition.
pub trait Port<C>: Send + Sync {
    /// Queues a command for an actor.
    ///
    /// # Errors
    /// [`Refusal::Overloaded`] when the actor's or the partition's queue is full,
    /// [`Refusal::Unavailable`] while the partition is down. At once, never after waiting.
    fn push(&self, actor: ActorId, command: C) -> Result<(), Refusal>;
}

/// Whether a partition takes commands: false while it reopens after a failure, and after its end.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<AtomicBool>);

impl Health {
    /// True while the partition serves.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn set(&self, up: bool) {
        self.0.store(up, Ordering::Release);
    }
}

/// The way to one partition from any task.
#[derive(Debug)]
pub struct Handle<C> {
    mailbox: Arc<Mailbox<C>>,
    health: Health,
    /// How long a command may wait before it is dropped undecided.
    deadline: std::time::Duration,
    overloads: metrics::Counter,
    holds: hold::Slot,
}

impl<C> Clone for Handle<C> {
    fn clone(&self) -> Self {
        Self {
            mailbox: Arc::clone(&self.mailbox),
            health: self.health.clone(),
            deadline: self.deadline,
            overloads: self.overloads.clone(),
            holds: self.holds.clone(),
        }
    }
}

impl<C> Handle<C> {
    /// Whether the partition serves.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.health.is_up()
    }

    /// Takes no further command; what waits is still decided.
    pub fn close(&self) {
        self.mailbox.close();
    }
}

impl<Root: Send, C: Into<Root>> Port<C> for Handle<Root> {
    fn push(&self, actor: ActorId, command: C) -> Result<(), Refusal> {
        if !self.health.is_up() {
            return Err(Refusal::Unavailable);
        }
        let pushed = self.mailbox.push(actor, Instant::now() + self.deadline, command.into());
        if pushed == Err(Refusal::Overloaded) {
            self.overloads.increment(1);
        }
        pushed
    }
}
