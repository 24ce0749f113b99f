//! The handle to all workshops: it finds the owner and asks it.

use std::sync::Arc;
use std::time::Duration;

use super::command::{Command, Reserved};
use super::types::{RequestId, Seats, WorkshopName, partition_of_workshop};
use crate::partition::{ActorId, Port, Refusal, Reply, reply};
use crate::store::reservations::Workshop;

/// A cheap clone's way to every workshop.
#[derive(Clone)]
pub struct Workshops {
    ports: Arc<[Box<dyn Port<Command>>]>,
    /// `server.request_timeout_ms`: how long an answer is waited for.
    patience: Duration,
}

impl Workshops {
    /// The workshops on the partitions behind `ports`.
    #[must_use]
    pub fn new(ports: Vec<Box<dyn Port<Command>>>, patience: Duration) -> Self {
        Self { ports: ports.into(), patience }
    }

    /// Takes seats, or repeats the first answer to the same id. Durable when it returns.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn reserve(
        &self,
        workshop: WorkshopName,
        request: RequestId,
        seats: Seats,
    ) -> Result<Reserved, Refusal> {
        let owner = workshop.hash();
        self.ask(owner, |reply| Command::Reserve { workshop, request, seats, reply }).await
    }

    /// A workshop's state now; the defaults of one that does not exist.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn status(&self, workshop: WorkshopName) -> Result<Workshop, Refusal> {
        let owner = workshop.hash();
        self.ask(owner, |reply| Command::Status { workshop, reply }).await
    }

    async fn ask<T>(&self, owner: u64, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, Refusal> {
        let partitions = u32::try_from(self.ports.len()).unwrap_or(u32::MAX);
        let port = self.ports.get(partition_of_workshop(owner, partitions) as usize);
        let (reply, answer) = reply();
        port.ok_or(Refusal::Unavailable)?.push(ActorId(owner), command(reply))?;
        answer.within(self.patience).await
    }
}

impl std::fmt::Debug for Workshops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workshops").field("partitions", &self.ports.len()).finish_non_exhaustive()
    }
}
