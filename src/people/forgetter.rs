//! The task that forgets people, one after another.
//!
//! The first step notes who is being forgotten; the last one takes the note away. Everything in between can be repeated, so
//! whatever interrupts it (a kill, a partition that is down), it goes on from the note, at the next start or a moment later.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Person;
use super::command::{Command, Whose};
use super::hash::person_hash;
use crate::likes::types::{partition_of_shard, shard_of};
use crate::partition::{ActorId, Port, Refusal, Reply, reply};
use crate::rooms::Rooms;
use crate::rooms::types::UserId;
use crate::store::people::{Forgetting, Forgotten, Policy};

/// People waiting to be forgotten; more are told to come back.
const MAX_WAITING: usize = 64;
/// Likes that one transaction forgets, and messages that one looks at.
const LIKES: u32 = 500;
const MESSAGES: u32 = 2_000;
/// Pause before what failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// No shard's number, nor that of anything else that waits in a queue of its own.
const PEOPLE: ActorId = ActorId(u64::MAX - 4);

/// What forgetting a person came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// What the files held.
    pub stored: Forgotten,
    /// Rooms that had the person online, or its name on messages in memory.
    pub rooms: u64,
    /// Those messages.
    pub messages_in_memory: u64,
}

/// Why a person is not forgotten, or not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotForgotten {
    /// It is being forgotten, with another policy.
    #[error("the person is being forgotten with the policy {}", .0.as_str())]
    UnderWay(Policy),
    /// A partition or a room did not do its part, or not in time. Once begun it goes on by itself.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A cheap clone's way to the task.
#[derive(Debug, Clone)]
pub struct Forgetter {
    requests: mpsc::Sender<Request>,
    patience: Duration,
}

#[derive(Debug)]
struct Request {
    person: Person,
    policy: Policy,
    done: oneshot::Sender<Result<Done, NotForgotten>>,
}

/// What the task needs.
pub struct Start {
    /// To every partition.
    pub ports: Vec<Box<dyn Port<Command>>>,
    /// `likes.shards`
    pub shards: u32,
    /// The rooms of this process.
    pub rooms: Rooms,
    /// The data directory's id.
    pub data_id: String,
    /// `server.request_timeout_ms`
    pub patience: Duration,
}

/// Starts the task, which first goes on with what an earlier process has begun. It ends with `stop`, between two steps.
pub fn start(start: Start, stop: CancellationToken) -> (Forgetter, JoinHandle<()>) {
    let (requests, mut asked) = mpsc::channel::<Request>(MAX_WAITING);
    let handle = Forgetter { requests, patience: start.patience };
    let task = async move {
        let mut unfinished = true;
        loop {
            if unfinished {
                unfinished = start.finish_all().await.is_err();
            }
            tokio::select! {
                request = asked.recv() => {
                    let Some(Request { person, policy, done }) = request else { return };
                    let outcome = start.forget(&person, policy).await;
                    unfinished |= matches!(outcome, Err(NotForgotten::Refused(_)));
                    let _gone = done.send(outcome);
                }
                () = tokio::time::sleep(RETRY), if unfinished => {}
            }
        }
    };
    let task = tokio::spawn(async move {
        let _stopped = stop.run_until_cancelled(task).await;
    });
    (handle, task)
}

impl Forgetter {
    /// Forgets a person everywhere. Idempotent: again, it finds nothing.
    ///
    /// # Errors
    /// [`NotForgotten::UnderWay`]; [`Refusal::Overloaded`] when too many people wait; otherwise, once it has begun,
    /// [`Refusal::OutcomeUnknown`]: it goes on by itself, and repeating it is harmless.
    pub async fn forget(&self, person: Person, policy: Policy) -> Result<Done, NotForgotten> {
        let (done, answer) = oneshot::channel();
        self.requests.try_send(Request { person, policy, done }).map_err(|_| Refusal::Overloaded)?;
        match tokio::time::timeout(self.patience, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(Refusal::OutcomeUnknown.into()),
        }
    }
}

impl Start {
    /// Goes on with everything that was begun.
    async fn finish_all(&self) -> Result<(), Refusal> {
        for partition in 0..self.ports.len() {
            for forgetting in self.ask(partition, |reply| Command::Unfinished { reply }).await? {
                self.finish(partition, forgetting).await?;
            }
        }
        Ok(())
    }

    async fn forget(&self, person: &Person, policy: Policy) -> Result<Done, NotForgotten> {
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(|_| Refusal::Unavailable)?;
        let asked = Forgetting { id: i64::from_be_bytes(id), person: person.shared(), policy };
        let home = self.home(person.as_str());
        let begun = self.ask(home, |reply| Command::Begin { forgetting: asked, reply }).await?;
        if begun.policy != policy {
            return Err(NotForgotten::UnderWay(begun.policy));
        }
        // Begun, it may be done whatever fails from here on.
        Ok(self.finish(home, begun).await.map_err(|_| Refusal::OutcomeUnknown)?)
    }

    /// Everything between the note, which stands on `noted_on`, and its end.
    async fn finish(&self, noted_on: usize, forgetting: Forgetting) -> Result<Done, Refusal> {
        let hash: Arc<str> = person_hash(&self.data_id, &forgetting.person).into();
        let of = Whose { forgetting, hash };
        let person = Arc::clone(&of.forgetting.person);
        let mut done = Done::default();
        if let Some(user) = UserId::parse(&person, usize::MAX) {
            (done.rooms, done.messages_in_memory) = self.rooms.forget_user(&user).await?;
        }
        let home = self.home(&person);
        while self.likes(home, &of).await? {}
        for partition in 0..self.ports.len() {
            self.ask(partition, |reply| Command::Holder { of: of.clone(), reply }).await?;
            let mut after = (0, 0);
            while let Some(at) = self.messages(partition, &of, after).await? {
                after = at;
            }
        }
        // Its name may wait in the journal of the partition of its likes.
        if home != noted_on {
            self.ask(home, |reply| Command::End { of: of.clone(), reply }).await?;
        }
        self.ask(noted_on, |reply| Command::End { of: of.clone(), reply }).await?;
        for partition in 0..self.ports.len() {
            let id = of.forgetting.id;
            done.stored += self.ask(partition, |reply| Command::Forgotten { id, reply }).await?;
        }
        let Forgotten { likes, holders, messages } = done.stored;
        tracing::info!(
            event = "person_forgotten",
            person = &*of.hash,
            policy = of.forgetting.policy.as_str(),
            likes,
            holders,
            messages = messages + done.messages_in_memory,
            rooms = done.rooms,
            "a person was forgotten"
        );
        Ok(done)
    }

    /// Whether there may be more.
    async fn likes(&self, home: usize, of: &Whose) -> Result<bool, Refusal> {
        let (of, shards) = (of.clone(), self.shards);
        let forgotten = self.ask(home, |reply| Command::Likes { of, shards, limit: LIKES, reply }).await?;
        Ok(forgotten.more)
    }

    async fn messages(
        &self,
        partition: usize,
        of: &Whose,
        after: (i64, i64),
    ) -> Result<Option<(i64, i64)>, Refusal> {
        let of = of.clone();
        self.ask(partition, |reply| Command::Messages { of, after, limit: MESSAGES, reply }).await
    }

    /// The partition of a person's likes.
    fn home(&self, person: &str) -> usize {
        let partitions = u32::try_from(self.ports.len()).unwrap_or(u32::MAX);
        partition_of_shard(shard_of(person, self.shards), partitions) as usize
    }

    async fn ask<T>(
        &self,
        partition: usize,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, Refusal> {
        let (reply, answer) = reply();
        let port = self.ports.get(partition).ok_or(Refusal::Unavailable)?;
        port.push(PEOPLE, command(reply))?;
        answer.within(self.patience).await
    }
}
