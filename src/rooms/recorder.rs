//! Durable history: what a room asks of its partition, whose [`records`](super::records) answer.
//!
//! The partition numbers the messages: a number is given in the transaction that stores it, so a batch that
//! fails leaves no gap. A room tells a message once its commit is durable, in the order of the numbers.

use std::sync::Arc;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::types::{Message, RoomName};
use crate::partition::{ActorId, Answer, Command as PartitionCommand, Port, Refusal, Reply, reply};
use crate::store::rooms::StoredMessage;

/// One question to a partition, with the way back.
#[derive(Debug)]
pub enum Command {
    /// Where does the room's numbering stand? `None` for a room without a record.
    Open {
        /// Which room.
        room: RoomName,
        /// Its numbering.
        reply: Reply<Option<Opened>>,
    },
    /// Keep a message under the next number.
    Append {
        /// In which room.
        room: RoomName,
        /// The numbering that goes on, or starts here where nothing is recorded.
        stream: Opened,
        /// What is said.
        message: Message,
        /// Its number.
        reply: Reply<Appended>,
    },
    /// What is kept after a number.
    Read {
        /// Of which room.
        room: RoomName,
        /// After which.
        after: u64,
        /// All of it, in order.
        reply: Reply<Vec<StoredMessage>>,
    },
    /// Forget what is older than the bound, in rooms that nobody speaks in.
    Purge {
        /// How many messages that were.
        reply: Reply<u64>,
    },
}

/// A room's numbering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// See [`Position`](super::types::Position).
    pub epoch: Arc<str>,
    /// The last number given.
    pub last: u64,
}

/// A message that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its number.
    pub offset: u64,
    /// When it was kept, ms since 1970.
    pub at_ms: i64,
    /// Whether it had been kept before, under the same id.
    pub replayed: bool,
}

impl PartitionCommand for Command {
    fn release(self) {
        match self {
            Self::Open { reply, .. } => reply.release(),
            Self::Append { reply, .. } => reply.release(),
            Self::Read { reply, .. } => reply.release(),
            Self::Purge { reply } => reply.release(),
        }
    }

    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Open { reply, .. } => reply.refuse(refusal),
            Self::Append { reply, .. } => reply.refuse(refusal),
            Self::Read { reply, .. } => reply.refuse(refusal),
            Self::Purge { reply } => reply.refuse(refusal),
        }
    }

    fn is_chore(&self) -> bool {
        matches!(self, Self::Purge { .. })
    }
}

impl Command {
    pub(super) fn room(&self) -> Option<&RoomName> {
        match self {
            Self::Open { room, .. } | Self::Append { room, .. } | Self::Read { room, .. } => Some(room),
            Self::Purge { .. } => None,
        }
    }
}

/// The way to every room's partition.
#[derive(Clone)]
pub struct Recorder {
    ports: Arc<[Box<dyn Port<Command>>]>,
    patience: Duration,
}

impl Recorder {
    /// Over the partitions behind `ports`; `patience` is how long an answer is waited for.
    #[must_use]
    pub fn new(ports: Vec<Box<dyn Port<Command>>>, patience: Duration) -> Self {
        Self { ports: ports.into(), patience }
    }

    /// How long an answer is waited for.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Where the room's numbering stands.
    ///
    /// # Errors
    /// The partition's refusal.
    pub fn open(&self, room: RoomName) -> Result<Answer<Option<Opened>>, Refusal> {
        self.ask(&room.clone(), |reply| Command::Open { room, reply })
    }

    /// Keeps a message. The questions of one room are answered in their order.
    ///
    /// # Errors
    /// The partition's refusal.
    pub fn append(
        &self,
        room: RoomName,
        stream: Opened,
        message: Message,
    ) -> Result<Answer<Appended>, Refusal> {
        self.ask(&room.clone(), |reply| Command::Append { room, stream, message, reply })
    }

    /// What is kept after a number.
    ///
    /// # Errors
    /// The partition's refusal.
    pub fn read(&self, room: RoomName, after: u64) -> Result<Answer<Vec<StoredMessage>>, Refusal> {
        self.ask(&room.clone(), |reply| Command::Read { room, after, reply })
    }

    /// Has every partition forget what is too old.
    pub async fn purge(&self) {
        for port in self.ports.iter() {
            let (reply, answer) = reply();
            if port.push(ActorId(0), Command::Purge { reply }).is_ok() {
                // A partition that is down purges at the next round.
                let _purged = answer.within(self.patience).await;
            }
        }
    }

    fn ask<T>(
        &self,
        room: &RoomName,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<Answer<T>, Refusal> {
        let hash = xxh3_64(room.as_str().as_bytes());
        let port = self.ports.get(partition_of_room(room.as_str(), self.ports.len()));
        let (reply, answer) = reply();
        port.ok_or(Refusal::Unavailable)?.push(ActorId(hash), command(reply))?;
        Ok(answer)
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("partitions", &self.ports.len()).finish_non_exhaustive()
    }
}

/// The partition that keeps a room's history. A stored fact.
#[must_use]
pub fn partition_of_room(room: &str, partitions: usize) -> usize {
    let index = xxh3_64(room.as_bytes()) % u64::try_from(partitions.max(1)).unwrap_or(u64::MAX);
    usize::try_from(index).unwrap_or(usize::MAX)
}
