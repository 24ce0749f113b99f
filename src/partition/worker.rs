//! The partition's thread: take a batch, decide, commit, let the replies out; and what happens when
//! that fails.
//!
//! A batch that fails is answered with an error, whole; memory is dropped and the store reopened before
//! anything else is decided, because what is not known to be stored is not believed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::hold::Slot;
use super::mailbox::{Drained, Gather, Waiting};
use super::syncer::{self, Committed, ToSync};
use super::{Clock, Command, Decided, Handle, Health, Mailbox, Refusal, Workload};
use crate::metrics::PartitionMetrics;
use crate::store::{self, Durability};
use crate::telemetry;

/// Bounds of one partition; the settings of the same names say what they mean.
#[derive(Debug, Clone)]
pub struct Limits {
    /// `batch.max`
    pub batch_max: usize,
    /// `batch.max_per_actor`
    pub max_per_actor: usize,
    /// `mailbox.capacity`
    pub capacity: usize,
    /// `mailbox.actor_capacity`
    pub actor_capacity: usize,
    /// `batch.linger_us` and `batch.crowd`
    pub gather: Gather,
    /// `mailbox.deadline_ms`
    pub deadline: Duration,
    /// `actors.idle_timeout_ms`
    pub idle_timeout: Duration,
    /// `faults.reply_before_commit`, to prove that the durability test sees it; never in a release build.
    pub reply_before_commit: bool,
}

/// A running partition.
#[derive(Debug)]
pub struct Partition<C> {
    /// The way in.
    pub handle: Handle<C>,
    thread: JoinHandle<()>,
    gate: tokio::task::JoinHandle<()>,
}

/// Gauges are read this often, and this long a silent partition sleeps at most.
const HOUSEKEEPING: Duration = Duration::from_millis(500);
/// Committed batches whose replies are still on their way out; more, and the thread waits for them.
const OPEN_GATES: usize = 64;
/// Pause between two attempts to reopen a failed store: from, to.
const REOPEN_PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// Decide a batch over a shared store at most this often before its callers are told to come back.
const MAX_CONFLICTS: u32 = 8;

/// Starts a partition's thread over a workload whose store is open. Call it on a tokio runtime: replies
/// go out from there.
///
/// # Errors
/// The operating system's, when it has no thread to give.
pub fn spawn<W: Workload>(
    index: u32,
    workload: W,
    limits: Limits,
    clock: Clock,
) -> std::io::Result<Partition<W::Command>> {
    let mailbox = Arc::new(Mailbox::new(limits.capacity, limits.actor_capacity, limits.gather.clone()));
    if let Some(workers) = &limits.gather.workers {
        let waits: Weak<Mailbox<W::Command>> = Arc::downgrade(&mailbox);
        workers.tell(waits);
    }
    let health = Health::default();
    let metrics = PartitionMetrics::new(index);
    let holds = Slot::default();
    let handle = Handle {
        mailbox: Arc::clone(&mailbox),
        health: health.clone(),
        deadline: limits.deadline,
        overloads: metrics.overloads.clone(),
        holds: holds.clone(),
    };
    let (committed, mut to_release) = mpsc::channel::<Vec<W::Command>>(OPEN_GATES);
    let gate = tokio::spawn(async move {
        while let Some(batch) = to_release.recv().await {
            batch.into_iter().for_each(Command::release);
        }
    });
    let syncer = workload.syncer().map_err(std::io::Error::other)?;
    let to_sync = syncer::spawn(index, syncer, &mailbox, committed.clone(), metrics.commit_seconds.clone())?;
    let traces = telemetry::Batch::of(index);
    let worker = Worker {
        index,
        workload,
        limits,
        clock,
        mailbox,
        health,
        metrics,
        to_sync,
        committed,
        holds,
        traces,
    };
    worker.health.set(true);
    let thread =
        std::thread::Builder::new().name(format!("partition-{index}")).spawn(move || worker.run())?;
    Ok(Partition { handle, thread, gate })
}

impl<C> Partition<C> {
    /// Waits for the thread, which ends once its handle is closed and its queue is empty, and for its
    /// last replies.
    pub async fn join(self) {
        let thread = tokio::task::spawn_blocking(move || self.thread.join().is_ok());
        if !thread.await.unwrap_or(false) || self.gate.await.is_err() {
            tracing::error!("a partition's thread ended in a panic");
        }
    }
}

struct Worker<W: Workload> {
    index: u32,
    workload: W,
    limits: Limits,
    clock: Clock,
    mailbox: Arc<Mailbox<W::Command>>,
    health: Health,
    metrics: PartitionMetrics,
    to_sync: ToSync<W::Command>,
    /// Where replies go once they are durable: a task of the runtime that waits for them, so that one wake-up
    /// a batch crosses the threads instead of one a reply.
    committed: mpsc::Sender<Vec<W::Command>>,
    holds: Slot,
    /// Of the batch that is on its way.
    traces: telemetry::Batch,
}

/// Whether there is room on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// As far as is known.
    Enough,
    /// There was none a moment ago: whatever has to store something is refused.
    None,
}

/// How far a batch got, for the answer that it gets when it fails.
struct Failure {
    refusal: Refusal,
    cause: String,
}

impl<W: Workload> Worker<W> {
    fn run(mut self) {
        let _down_at_the_end = DownOnDrop(self.health.clone());
        let mut waiting = Vec::new();
        let mut batch = Vec::new();
        let mut last_housekeeping = Instant::now();
        let mut last_idle_sweep = Instant::now();
        loop {
            self.holds.stand_still();
            let drained = self.mailbox.drain(
                &mut waiting,
                self.limits.batch_max,
                self.limits.max_per_actor,
                HOUSEKEEPING,
            );
            match drained {
                Drained::Closed => break,
                Drained::Idle => {}
                Drained::Batch => {
                    self.drop_late(&mut waiting, &mut batch);
                    if self.to_sync.has_failed() {
                        self.recover(&mut batch, &Failure::of_sync());
                    }
                    let chores: Vec<_> = batch.extract_if(.., |command| command.is_chore()).collect();
                    self.serve(&mut batch);
                    chores.into_iter().for_each(|chore| self.serve(&mut vec![chore]));
                }
            }
            if last_housekeeping.elapsed() >= HOUSEKEEPING {
                last_housekeeping = Instant::now();
                self.metrics.observe(self.mailbox.depth(), &self.workload.vitals());
            }
            if last_idle_sweep.elapsed() >= self.limits.idle_timeout {
                last_idle_sweep = Instant::now();
                self.workload.forget_idle();
            }
        }
        if let Err(error) = self.workload.come_to_rest(self.clock.now_ms()) {
            tracing::warn!(partition = self.index, %error, "the last checkpoint failed; the log is replayed at the next start");
        }
    }

    /// Commands that waited past their deadline are surely not done, and their callers may be gone.
    fn drop_late(&mut self, waiting: &mut Vec<Waiting<W::Command>>, batch: &mut Vec<W::Command>) {
        let now = Instant::now();
        for Waiting { deadline, command, passage } in waiting.drain(..) {
            if now >= deadline {
                self.metrics.expired.increment(1);
                passage.expired(self.index);
                command.refuse(Refusal::Overloaded);
            } else {
                self.traces.take(passage);
                batch.push(command);
            }
        }
    }

    fn serve(&mut self, batch: &mut Vec<W::Command>) {
        if batch.is_empty() {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a batch is far below 2^52")]
        self.metrics.batch_commands.record(batch.len() as f64);
        self.traces.decides(batch.len());
        match self.attempt(batch, Room::Enough) {
            Ok(committed) => self.to_sync.send(committed),
            Err(failure) => self.recover(batch, &failure),
        }
    }

    fn attempt(&mut self, batch: &mut Vec<W::Command>, room: Room) -> Result<Committed<W::Command>, Failure> {
        let mut committing = false;
        let attempt = || self.decide_and_commit(batch, room, &mut committing);
        catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| {
            Err(Failure {
                refusal: if committing { Refusal::OutcomeUnknown } else { Refusal::Unavailable },
                cause: format!("panic: {}", panic_message(&*panic)),
            })
        })
    }

    /// There was no room for a batch: each command that needs none, a read or a repetition, is answered all the same, and
    /// each that does is refused for itself.
    fn serve_what_needs_no_room(&mut self, batch: &mut Vec<W::Command>) {
        for command in batch.drain(..) {
            let mut alone = vec![command];
            match self.attempt(&mut alone, Room::None) {
                Ok(committed) => self.to_sync.send(committed),
                Err(failure) if failure.refusal == Refusal::DiskFull && self.workload.rollback().is_ok() => {
                    alone.into_iter().for_each(|command| command.refuse(Refusal::DiskFull));
                }
                Err(failure) => self.recover(&mut alone, &failure),
            }
        }
    }

    fn release(&self, batch: &mut Vec<W::Command>) {
        // Without a runtime nobody waits for an answer any more.
        let _runtime_ended = self.committed.blocking_send(std::mem::take(batch));
    }

    fn decide_and_commit(
        &mut self,
        batch: &mut Vec<W::Command>,
        room: Room,
        committing: &mut bool,
    ) -> Result<Committed<W::Command>, Failure> {
        let now_ms = self.clock.now_ms();
        let mut conflicts = 0;
        while self.workload.decide(batch, now_ms).map_err(|error| Failure::before_commit(&error))?
            == Decided::Conflict
        {
            self.workload.rollback().map_err(|error| Failure::before_commit(&error))?;
            conflicts += 1;
            if conflicts == MAX_CONFLICTS {
                self.traces.ends(Err(Refusal::Overloaded));
                batch.drain(..).for_each(|command| command.refuse(Refusal::Overloaded));
                return Ok(Committed {
                    commands: Vec::new(),
                    durability: Durability::Already,
                    since: Instant::now(),
                    traces: self.traces.committed(),
                });
            }
        }
        if room == Room::None && self.workload.has_changed() {
            return Err(Failure::full());
        }
        if self.limits.reply_before_commit {
            self.release(batch);
            std::thread::sleep(Duration::from_millis(2));
        }
        *committing = true;
        self.traces.commits();
        let since = Instant::now();
        let durability = self.workload.commit(now_ms).map_err(|error| Failure::at_commit(&error))?;
        let traces = self.traces.committed();
        Ok(Committed { commands: std::mem::take(batch), durability, since, traces })
    }

    fn recover(&mut self, batch: &mut Vec<W::Command>, failure: &Failure) {
        tracing::error!(partition = self.index, commands = batch.len(), cause = %failure.cause,
            "a batch failed; its callers get an error and memory is reloaded");
        self.metrics.failures.increment(1);
        self.traces.ends(Err(failure.refusal));
        let full = failure.refusal == Refusal::DiskFull;
        // A full disk has not hurt the connection, and an open one can still read: reopening needs
        // room that is not there.
        if full && self.workload.rollback().is_ok() {
            if batch.len() > 1 {
                return self.serve_what_needs_no_room(batch);
            }
            batch.drain(..).for_each(|command| command.refuse(failure.refusal));
            return;
        }
        self.health.set(false);
        self.metrics.up.set(0.0);
        batch.drain(..).for_each(|command| command.refuse(failure.refusal));
        let mut pause = REOPEN_PAUSE.0;
        while let Err(error) = self.reopen() {
            tracing::error!(partition = self.index, cause = %error, "reopening failed; trying again");
            self.refuse_waiting();
            if self.mailbox.is_closed() {
                return;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(REOPEN_PAUSE.1);
        }
        self.refuse_waiting();
        self.health.set(true);
        self.metrics.up.set(1.0);
        tracing::info!(partition = self.index, "the partition is up again");
    }

    fn reopen(&mut self) -> Result<(), String> {
        let reopen = || self.workload.reopen().and_then(|()| self.workload.syncer());
        let syncer = catch_unwind(AssertUnwindSafe(reopen))
            .map_err(|panic| panic_message(&*panic))?
            .map_err(|error| error.to_string())?;
        self.to_sync.reopened(syncer);
        Ok(())
    }

    /// What queued up before the failure was seen is surely not done; waiting longer helps nobody.
    fn refuse_waiting(&self) {
        let mut waiting = Vec::new();
        self.mailbox.drain_all(&mut waiting);
        waiting.into_iter().for_each(|waiting| waiting.command.refuse(Refusal::Unavailable));
    }
}

impl Failure {
    fn before_commit(error: &store::Error) -> Self {
        let refusal = if error.is_disk_full() { Refusal::DiskFull } else { Refusal::Unavailable };
        Self { refusal, cause: error.to_string() }
    }

    fn full() -> Self {
        Self { refusal: Refusal::DiskFull, cause: "there was no room just now".to_owned() }
    }

    /// Of commands that are not decided yet: what was committed before them is not known to be stored.
    fn of_sync() -> Self {
        Self { refusal: Refusal::Unavailable, cause: "the last sync failed".to_owned() }
    }

    fn at_commit(error: &store::Error) -> Self {
        // The commit mark is written last: without room for it the transaction is surely not there. After
        // any other error it may be.
        let refusal = if error.is_disk_full() { Refusal::DiskFull } else { Refusal::OutcomeUnknown };
        Self { refusal, cause: format!("commit: {error}") }
    }
}

/// However the thread ends, its partition takes nothing more.
struct DownOnDrop(Health);

impl Drop for DownOnDrop {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests;
