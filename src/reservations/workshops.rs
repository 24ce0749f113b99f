//! The handle to all workshops: it finds the owner and asks it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;

use super::command::{
    Change, Changed, Command, Configure, Gone, IfMatch, LogPage, OrGone, OrUndecided, Question, Reserved,
    Set, Shown, Swept, Undecided, View, Wanted,
};
use super::decide::Settlement;
use super::feeds::Feeds;
use super::types::{HolderName, RequestId, Seats, WorkshopName, partition_of_workshop};
use crate::partition::{ActorId, Port, Refusal, Reply, reply};
use crate::store::bookings::ListedPage;
use crate::store::reservations::WorkshopKey;

/// No workshop's number, surely not two's: what the clock asks for waits in a queue of its own.
const CHORES: ActorId = ActorId(u64::MAX - 2);
/// And listings, which read more than one row, in another, so that a flood of them leaves the others theirs.
const READS: ActorId = ActorId(u64::MAX - 3);

/// So often a command lets lines of sets that have ended be settled first. Once is enough for as many of them as are
/// asked after at a time.
const ROUNDS: usize = 4;

/// A cheap clone's way to every workshop.
#[derive(Clone)]
pub struct Workshops {
    ports: Arc<[Box<dyn Port<Command>>]>,
    /// `server.request_timeout_ms`: how long an answer is waited for.
    patience: Duration,
    feeds: Feeds,
}

/// Why a workshop has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The partition's refusal.
    Refusal(Refusal),
    /// It was deleted.
    Gone(Gone),
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(refusal)
    }
}

impl Workshops {
    /// The workshops on the partitions behind `ports`, whose actors tell `feeds`.
    #[must_use]
    pub fn new(ports: Vec<Box<dyn Port<Command>>>, patience: Duration, feeds: Feeds) -> Self {
        Self { ports: ports.into(), patience, feeds }
    }

    /// Takes seats for good, or repeats the first answer to the same id. Durable when it returns.
    ///
    /// # Errors
    /// The partition's refusal, or [`Refused::Gone`].
    pub async fn reserve(
        &self,
        workshop: WorkshopName,
        request: RequestId,
        seats: Seats,
    ) -> Result<Reserved, Refused> {
        self.request(workshop, request, Wanted::seats(seats)).await
    }

    /// Takes, holds, exchanges or waits for seats, or repeats the first answer to the same id. Durable when
    /// it returns.
    ///
    /// # Errors
    /// The partition's refusal, or [`Refused::Gone`].
    pub async fn request(
        &self,
        workshop: WorkshopName,
        request: RequestId,
        wanted: Wanted,
    ) -> Result<Reserved, Refused> {
        let reserve = |as_it_stands, reply| Command::Reserve {
            workshop: workshop.clone(),
            request: request.clone(),
            wanted: wanted.clone(),
            as_it_stands,
            reply,
        };
        self.decided(&workshop, reserve).await
    }

    /// Confirms, cancels or extends a request; with `of`, only if it is this holder's, and as if it were not there if it
    /// is not. Durable when it returns.
    ///
    /// # Errors
    /// The partition's refusal, or [`Refused::Gone`].
    pub async fn change(
        &self,
        workshop: WorkshopName,
        request: RequestId,
        change: Change,
        of: Option<HolderName>,
    ) -> Result<Changed, Refused> {
        let change = |as_it_stands, reply| Command::Change {
            workshop: workshop.clone(),
            request: request.clone(),
            change,
            of: of.clone(),
            as_it_stands,
            reply,
        };
        self.decided(&workshop, change).await
    }

    /// Has a line do what its set has decided; which of the workshops of this name it is, if there is one. Durable
    /// when it returns.
    ///
    /// # Errors
    /// The partition's refusal, or [`Refused::Gone`].
    pub(super) async fn settle(
        &self,
        workshop: WorkshopName,
        request: RequestId,
        settlement: Settlement,
    ) -> Result<Option<WorkshopKey>, Refused> {
        let owner = workshop.hash();
        here(self.ask(owner, |reply| Command::Settle { workshop, request, settlement, reply }).await?)
    }

    /// Asks a partition for what the clock asks for.
    ///
    /// # Errors
    /// The partition's refusal.
    pub(super) async fn chore<T>(
        &self,
        partition: u32,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, Refusal> {
        self.ask_partition(partition, CHORES, command).await
    }

    /// Which of some workshops are there, each by its name and the surrogate id that it was met with; one without an id is
    /// not.
    ///
    /// # Errors
    /// The first partition's refusal.
    pub(super) async fn are_there(
        &self,
        met: &[(Arc<str>, Option<WorkshopKey>)],
    ) -> Result<Vec<bool>, Refusal> {
        let mut asked = BTreeMap::<u32, (Vec<usize>, Vec<WorkshopKey>)>::new();
        for (place, (name, key)) in met.iter().enumerate() {
            let (Some(name), Some(key)) = (WorkshopName::parse(name), key) else { continue };
            let (places, workshops) = asked.entry(self.partition_of(name.hash())).or_default();
            places.push(place);
            workshops.push(*key);
        }
        let ask = |(partition, (places, workshops))| async move {
            let are_there = |reply| Command::AreThere { workshops, reply };
            Ok::<_, Refusal>((places, self.ask_partition(partition, READS, are_there).await?))
        };
        let mut there = vec![false; met.len()];
        for (places, found) in try_join_all(asked.into_iter().map(ask)).await? {
            for (place, is_there) in places.into_iter().zip(found) {
                if let Some(there) = there.get_mut(place) {
                    *there = is_there;
                }
            }
        }
        Ok(there)
    }

    /// Sets a workshop's capacity and rules; creates it if it is missing or deleted.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn configure(
        &self,
        workshop: WorkshopName,
        wanted: Box<Configure>,
        if_match: Option<IfMatch>,
    ) -> Result<Set, Refusal> {
        let configure = |as_it_stands, reply| Command::Configure {
            workshop: workshop.clone(),
            wanted: wanted.clone(),
            if_match: if_match.clone(),
            as_it_stands,
            reply,
        };
        self.decided(&workshop, configure).await.map_err(|refused| match refused {
            Refused::Refusal(refusal) => refusal,
            // One that is gone is created again.
            Refused::Gone(_) => Refusal::Unavailable,
        })
    }

    /// A workshop's state now; the defaults of one that does not exist.
    ///
    /// # Errors
    /// The partition's refusal, or [`Refused::Gone`].
    pub async fn status(&self, workshop: WorkshopName) -> Result<Box<View>, Refused> {
        let status =
            |as_it_stands, reply| Command::Status { workshop: workshop.clone(), as_it_stands, reply };
        self.decided(&workshop, status).await
    }

    /// Deletes a workshop; when, or `None` if there is none.
    ///
    /// # Errors
    /// The partition's refusal, or [`Refused::Gone`].
    pub async fn delete(&self, workshop: WorkshopName) -> Result<Option<i64>, Refused> {
        let owner = workshop.hash();
        here(self.ask(owner, |reply| Command::Delete { workshop, reply }).await?)
    }

    /// A request with its history.
    ///
    /// # Errors
    /// The partition's refusal, or [`Refused::Gone`].
    pub async fn show(
        &self,
        workshop: WorkshopName,
        request: RequestId,
    ) -> Result<Option<Box<Shown>>, Refused> {
        let owner = workshop.hash();
        here(self.ask(owner, |reply| Command::Show { workshop, request, reply }).await?)
    }

    /// A page of a workshop's requests, and the time that it shows.
    ///
    /// # Errors
    /// The partition's refusal, or [`Refused::Gone`].
    pub async fn list(
        &self,
        workshop: WorkshopName,
        question: Question,
    ) -> Result<(ListedPage, i64), Refused> {
        let partition = self.partition_of(workshop.hash());
        let list = |reply| Command::List { workshop, question, reply };
        here(self.ask_partition(partition, READS, list).await?)
    }

    /// A page of a workshop's log, after an event.
    ///
    /// # Errors
    /// The partition's refusal, or [`Refused::Gone`].
    pub async fn events(
        &self,
        workshop: WorkshopName,
        after: i64,
        limit: u32,
    ) -> Result<Option<LogPage>, Refused> {
        let partition = self.partition_of(workshop.hash());
        let events = |reply| Command::Events { workshop, after, limit, reply };
        here(self.ask_partition(partition, READS, events).await?)
    }

    /// The first `limit` workshops after a name, of all partitions, by name.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn page(&self, after: &Arc<str>, limit: u32) -> Result<Vec<(String, View)>, Refusal> {
        let ask = |partition| {
            let list = |reply| Command::Workshops { after: Arc::clone(after), limit, reply };
            self.ask_partition(partition, READS, list)
        };
        let mut all = try_join_all((0..self.partitions()).map(ask)).await?.concat();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all.truncate(limit as usize);
        Ok(all)
    }

    /// Writes down the next chunk of what is due on a partition.
    ///
    /// # Errors
    /// The partition's refusal.
    pub async fn sweep(&self, partition: u32) -> Result<Swept, Refusal> {
        self.ask_partition(partition, CHORES, |reply| Command::Sweep { reply }).await
    }

    /// Whom the actors tell.
    #[must_use]
    pub fn feeds(&self) -> &Feeds {
        &self.feeds
    }

    /// How many partitions there are.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        u32::try_from(self.ports.len()).unwrap_or(u32::MAX)
    }

    /// Asks a workshop, and has lines of sets settled first that have ended. Where that does not help, because a home does
    /// not answer or its set is still undecided, their seats count as held.
    async fn decided<T>(
        &self,
        workshop: &WorkshopName,
        command: impl Fn(bool, Reply<OrUndecided<T>>) -> Command,
    ) -> Result<T, Refused> {
        let mut as_it_stands = false;
        for round in 1.. {
            match self.ask(workshop.hash(), |reply| command(as_it_stands, reply)).await? {
                Ok(answer) => return Ok(answer),
                Err(Undecided::Gone(gone)) => return Err(Refused::Gone(gone)),
                Err(Undecided::DueLines(lines)) if !as_it_stands => {
                    as_it_stands = !self.settle_due(workshop, lines).await || round == ROUNDS;
                }
                Err(Undecided::DueLines(_)) => break,
            }
        }
        Err(Refusal::Unavailable.into())
    }

    fn partition_of(&self, owner: u64) -> u32 {
        partition_of_workshop(owner, self.partitions())
    }

    /// Asks the partition that a hash places its owner on.
    pub(super) async fn ask<T>(
        &self,
        owner: u64,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, Refusal> {
        self.ask_partition(self.partition_of(owner), ActorId(owner), command).await
    }

    async fn ask_partition<T>(
        &self,
        partition: u32,
        actor: ActorId,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, Refusal> {
        let port = self.ports.get(partition as usize);
        let (reply, answer) = reply();
        port.ok_or(Refusal::Unavailable)?.push(actor, command(reply))?;
        answer.within(self.patience).await
    }
}

fn here<T>(answer: OrGone<T>) -> Result<T, Refused> {
    answer.map_err(Refused::Gone)
}

impl std::fmt::Debug for Workshops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workshops").field("partitions", &self.ports.len()).finish_non_exhaustive()
    }
}
