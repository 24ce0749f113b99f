//! Behind the commit: a thread that makes committed batches durable and then opens the gate for their replies.
//!
//! A commit is written, not yet synced, when its batch comes here; the partition is free to decide the next
//! one meanwhile. Whatever has come by the time that the disk is free again shares one sync. Batches leave in
//! the order of their commits, so nobody hears of a decision before all that it rests on is durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use tokio::sync::mpsc;

use super::{Command, Durability, Mailbox, Refusal};
use crate::store::Syncer;
use crate::telemetry;

/// Batches between their commit and their sync; more, and the partition waits.
const MAX_UNSYNCED: usize = 256;

/// The partition's end.
#[derive(Debug)]
pub(super) struct ToSync<C> {
    sender: SyncSender<Message<C>>,
    mailbox: Arc<Mailbox<C>>,
    failed: Arc<AtomicBool>,
}

/// A batch on its way.
#[derive(Debug)]
pub(super) struct Committed<C> {
    pub commands: Vec<C>,
    pub durability: Durability,
    /// When its commit began.
    pub since: Instant,
    /// What is to become spans once it is durable.
    pub traces: telemetry::Batch,
}

enum Message<C> {
    Batch(Committed<C>),
    /// The store was opened afresh: what was committed before is either durable or gone, and answered so.
    Reopened(Box<dyn Syncer>),
}

impl<C: Command> ToSync<C> {
    pub(super) fn send(&self, batch: Committed<C>) {
        self.mailbox.batch_is_written();
        // The thread ends after this end is dropped, never before.
        let _ended = self.sender.send(Message::Batch(batch));
    }

    pub(super) fn reopened(&self, syncer: Box<dyn Syncer>) {
        self.failed.store(false, Ordering::Release);
        let _ended = self.sender.send(Message::Reopened(syncer));
    }

    /// Whether a sync has failed since the store was opened: nothing committed since is known to be stored.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

/// Starts the thread. Replies go on to `gate`.
pub(super) fn spawn<C: Command>(
    index: u32,
    syncer: Box<dyn Syncer>,
    mailbox: &Arc<Mailbox<C>>,
    gate: mpsc::Sender<Vec<C>>,
    commit_seconds: metrics::Histogram,
) -> std::io::Result<ToSync<C>> {
    let (sender, receiver) = sync_channel(MAX_UNSYNCED);
    let failed = Arc::new(AtomicBool::new(false));
    let thread = SyncThread {
        index,
        syncer,
        mailbox: Arc::clone(mailbox),
        failed: Arc::clone(&failed),
        is_failed: false,
        gate,
        commit_seconds,
    };
    std::thread::Builder::new().name(format!("sync-{index}")).spawn(move || thread.run(&receiver))?;
    Ok(ToSync { sender, mailbox: Arc::clone(mailbox), failed })
}

struct SyncThread<C> {
    index: u32,
    syncer: Box<dyn Syncer>,
    mailbox: Arc<Mailbox<C>>,
    failed: Arc<AtomicBool>,
    is_failed: bool,
    gate: mpsc::Sender<Vec<C>>,
    commit_seconds: metrics::Histogram,
}

impl<C: Command> SyncThread<C> {
    fn run(mut self, messages: &Receiver<Message<C>>) {
        let mut batches = Vec::new();
        while let Ok(first) = messages.recv() {
            for message in std::iter::once(first).chain(messages.try_iter()) {
                match message {
                    Message::Batch(batch) => batches.push(batch),
                    Message::Reopened(syncer) => {
                        self.let_out(&mut batches);
                        self.syncer = syncer;
                        self.is_failed = false;
                    }
                }
            }
            self.let_out(&mut batches);
        }
    }

    fn let_out(&mut self, batches: &mut Vec<Committed<C>>) {
        let unsynced = batches.iter().any(|batch| batch.durability == Durability::AfterSync);
        if unsynced
            && !self.is_failed
            && let Err(error) = self.syncer.sync()
        {
            tracing::error!(partition = self.index, %error, "a sync failed; what it covers may not be stored");
            self.is_failed = true;
            self.failed.store(true, Ordering::Release);
        }
        let synced = batches.len();
        let mut commands = Vec::new();
        for mut batch in batches.drain(..) {
            if self.is_failed {
                batch.traces.ends(Err(Refusal::OutcomeUnknown));
                batch.commands.into_iter().for_each(|command| command.refuse(Refusal::OutcomeUnknown));
                continue;
            }
            self.commit_seconds.record(batch.since.elapsed().as_secs_f64());
            batch.traces.ends(Ok(()));
            if commands.is_empty() { commands = batch.commands } else { commands.append(&mut batch.commands) }
        }
        if !commands.is_empty() {
            // Without a runtime nobody waits for an answer any more.
            let _runtime_ended = self.gate.blocking_send(commands);
        }
        if synced > 0 {
            self.mailbox.batches_are_synced(synced);
        }
    }
}
