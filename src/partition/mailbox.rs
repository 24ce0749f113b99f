//! Where commands wait: bounded for each actor and for the partition, drained in turn.
//!
//! The actor bound lies under the partition bound, so that one flooded actor fills its own queue and
//! not its neighbours'. A drain gives every waiting actor its share before anybody gets more.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::workers::WhenIdle;
use super::{ActorId, Refusal, Workers};
use crate::telemetry::Passage;

/// A command in the queue.
#[derive(Debug)]
pub struct Waiting<C> {
    /// When it is dropped undecided.
    pub deadline: Instant,
    /// What to decide.
    pub command: C,
    /// Its place in a trace.
    pub passage: Passage,
}

/// What a drain found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// At least one command.
    Batch,
    /// Nothing came in the time allowed.
    Idle,
    /// Nothing is left and nothing will come.
    Closed,
}

/// Bounded queues of one partition, an actor each.
#[derive(Debug)]
pub struct Mailbox<C> {
    queues: Mutex<Queues<C>>,
    arrived: Condvar,
    capacity: usize,
    actor_capacity: usize,
    gather: Gather,
    /// Batches taken from here that the disk still has to take.
    unsynced: AtomicUsize,
}

/// How a batch gathers, once its first command is there.
#[derive(Debug, Clone, Default)]
pub struct Gather {
    /// At most so long. Zero: not at all.
    pub linger: Duration,
    /// Until so many wait.
    pub crowd: usize,
    /// Until these have nothing left to do.
    pub workers: Option<Arc<Workers>>,
}

#[derive(Debug)]
struct Queues<C> {
    by_actor: HashMap<ActorId, VecDeque<Waiting<C>>, BuildHasherDefault<AlreadyHashed>>,
    /// Actors with something waiting, each once, longest unserved first.
    turns: VecDeque<ActorId>,
    /// Emptied queues kept for the next actor, so that a command of a quiet actor allocates nothing.
    spare: Vec<VecDeque<Waiting<C>>>,
    waiting: usize,
    /// The partition's thread sleeps until so many wait; 0 while it is awake.
    wake_at: usize,
    /// Somebody wants the partition's thread to look up.
    interrupted: bool,
    closed: bool,
}

const SPARE_QUEUES: usize = 256;

impl<C> Mailbox<C> {
    /// A mailbox of at most `capacity` commands, `actor_capacity` of them for one actor.
    #[must_use]
    pub fn new(capacity: usize, actor_capacity: usize, gather: Gather) -> Self {
        let queues = Queues {
            by_actor: HashMap::default(),
            turns: VecDeque::new(),
            spare: Vec::new(),
            waiting: 0,
            wake_at: 0,
            interrupted: false,
            closed: false,
        };
        Self {
            queues: Mutex::new(queues),
            arrived: Condvar::new(),
            capacity,
            actor_capacity,
            gather,
            unsynced: AtomicUsize::new(0),
        }
    }

    /// Queues a command.
    ///
    /// # Errors
    /// [`Refusal::Overloaded`] when either bound is reached, [`Refusal::Unavailable`] once closed.
    pub fn push(&self, actor: ActorId, deadline: Instant, command: C) -> Result<(), Refusal> {
        let passage = Passage::begin();
        let mut guard = self.lock();
        let queues = &mut *guard;
        if queues.closed {
            return Err(Refusal::Unavailable);
        }
        if queues.waiting >= self.capacity {
            return Err(Refusal::Overloaded);
        }
        let spare = &mut queues.spare;
        let queue = queues.by_actor.entry(actor).or_insert_with(|| spare.pop().unwrap_or_default());
        if queue.len() >= self.actor_capacity {
            return Err(Refusal::Overloaded);
        }
        if queue.is_empty() {
            queues.turns.push_back(actor);
        }
        queue.push_back(Waiting { deadline, command, passage });
        queues.waiting += 1;
        if queues.wake_at > 0 && queues.waiting >= queues.wake_at {
            queues.wake_at = 0;
            drop(guard);
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Moves up to `max` commands into `batch`, the waiting actors in turn, at most `max_per_actor` of
    /// each while others wait. Sleeps up to `patience` for the first one, and then gathers.
    pub fn drain(
        &self,
        batch: &mut Vec<Waiting<C>>,
        max: usize,
        max_per_actor: usize,
        patience: Duration,
    ) -> Drained {
        let mut queues = self.sleep(self.lock(), 1, patience, || false);
        queues.interrupted = false;
        if queues.waiting == 0 {
            return if queues.closed { Drained::Closed } else { Drained::Idle };
        }
        if let Some(workers) = &self.gather.workers {
            let crowd = self.gather.crowd.min(max);
            queues = self.sleep(queues, crowd, self.gather.linger, || {
                workers.are_idle() && self.unsynced.load(Ordering::SeqCst) == 0
            });
        }
        queues.take_in_turn(batch, max, max_per_actor);
        Drained::Batch
    }

    /// Until so many commands wait, something else is so, or the time is up.
    fn sleep<'a>(
        &self,
        mut queues: MutexGuard<'a, Queues<C>>,
        commands: usize,
        at_most: Duration,
        or: impl Fn() -> bool,
    ) -> MutexGuard<'a, Queues<C>> {
        let sleeps =
            |queues: &Queues<C>| queues.waiting < commands && !queues.closed && !queues.interrupted && !or();
        if at_most.is_zero() || !sleeps(&queues) {
            return queues;
        }
        queues.wake_at = commands;
        let (mut queues, _) = self
            .arrived
            .wait_timeout_while(queues, at_most, |queues| {
                let sleeps = sleeps(queues);
                if sleeps {
                    queues.wake_at = commands;
                }
                sleeps
            })
            .unwrap_or_else(PoisonError::into_inner);
        queues.wake_at = 0;
        queues
    }

    /// A batch is on its way to the disk.
    pub fn batch_is_written(&self) {
        self.unsynced.fetch_add(1, Ordering::SeqCst);
    }

    /// So many of them are durable, or given up.
    pub fn batches_are_synced(&self, batches: usize) {
        if self.unsynced.fetch_sub(batches, Ordering::SeqCst) == batches {
            self.look_up();
        }
    }

    fn look_up(&self) {
        let mut queues = self.lock();
        if queues.waiting > 0 && std::mem::take(&mut queues.wake_at) > 0 {
            drop(queues);
            self.arrived.notify_one();
        }
    }

    /// Takes everything that waits, whoever's it is.
    pub fn drain_all(&self, batch: &mut Vec<Waiting<C>>) {
        self.lock().take_in_turn(batch, usize::MAX, usize::MAX);
    }

    /// Commands waiting now.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.lock().waiting
    }

    /// Ends a sleep of [`Mailbox::drain`], now or the next one, whatever waits.
    pub fn interrupt(&self) {
        self.lock().interrupted = true;
        self.arrived.notify_one();
    }

    /// Takes no further command.
    pub fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, Queues<C>> {
        // No code that can panic runs under this lock, so a poisoned one is still whole.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Send> WhenIdle for Mailbox<C> {
    fn workers_are_idle(&self) {
        if self.unsynced.load(Ordering::SeqCst) == 0 {
            self.look_up();
        }
    }
}

impl<C> Queues<C> {
    fn take_in_turn(&mut self, batch: &mut Vec<Waiting<C>>, max: usize, max_per_actor: usize) {
        let mut room = max;
        while room > 0
            && let Some(actor) = self.turns.pop_front()
        {
            let Some(queue) = self.by_actor.get_mut(&actor) else { continue };
            let share = if self.turns.is_empty() { room } else { max_per_actor.min(room) };
            let taken = share.min(queue.len());
            batch.extend(queue.drain(..taken));
            room -= taken;
            self.waiting -= taken;
            if !queue.is_empty() {
                self.turns.push_back(actor);
            } else if let Some(empty) = self.by_actor.remove(&actor)
                && self.spare.len() < SPARE_QUEUES
            {
                self.spare.push(empty);
            }
        }
    }
}

/// Actor ids are hashes already; hashing them again would buy nothing.
#[derive(Debug, Default)]
pub struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox_of(capacity: usize, actor_capacity: usize) -> Mailbox<u32> {
        Mailbox::new(capacity, actor_capacity, Gather::default())
    }

    fn push(mailbox: &Mailbox<u32>, actor: u64, command: u32) -> Result<(), Refusal> {
        mailbox.push(ActorId(actor), Instant::now() + Duration::from_secs(1), command)
    }

    fn drain(mailbox: &Mailbox<u32>, max: usize, max_per_actor: usize) -> Vec<u32> {
        let mut batch = Vec::new();
        mailbox.drain(&mut batch, max, max_per_actor, Duration::ZERO);
        batch.into_iter().map(|waiting| waiting.command).collect()
    }

    #[test]
    fn one_actors_commands_keep_their_order() {
        let mailbox = mailbox_of(100, 100);
        (0..10).for_each(|command| push(&mailbox, 1, command).unwrap());
        assert_eq!(drain(&mailbox, 4, 2), vec![0, 1, 2, 3]);
        assert_eq!(drain(&mailbox, 100, 2), vec![4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_flooded_actor_gets_its_share_and_its_neighbours_theirs() {
        let mailbox = mailbox_of(100, 50);
        (0..50).for_each(|command| push(&mailbox, 1, command).unwrap());
        push(&mailbox, 2, 1000).unwrap();
        push(&mailbox, 3, 2000).unwrap();
        assert_eq!(drain(&mailbox, 6, 3), vec![0, 1, 2, 1000, 2000, 3]);
    }

    #[test]
    fn a_full_actor_is_refused_and_its_neighbour_is_not() {
        let mailbox = mailbox_of(100, 2);
        push(&mailbox, 1, 0).unwrap();
        push(&mailbox, 1, 1).unwrap();
        assert_eq!(push(&mailbox, 1, 2), Err(Refusal::Overloaded));
        assert_eq!(push(&mailbox, 2, 3), Ok(()));
        assert_eq!(mailbox.depth(), 3);
    }

    #[test]
    fn a_full_partition_refuses_everybody() {
        let mailbox = mailbox_of(2, 2);
        push(&mailbox, 1, 0).unwrap();
        push(&mailbox, 2, 1).unwrap();
        assert_eq!(push(&mailbox, 3, 2), Err(Refusal::Overloaded));
    }

    /// Workers of which one is busy until it parks.
    fn busy_workers() -> (Arc<Workers>, impl Fn()) {
        let workers = Arc::new(Workers::default());
        workers.one_is_active();
        let parks = Arc::clone(&workers);
        (workers, move || parks.one_parks())
    }

    fn gathering(workers: &Arc<Workers>, crowd: usize) -> Arc<Mailbox<u32>> {
        let linger = Duration::from_secs(3_600);
        let gather = Gather { linger, crowd, workers: Some(Arc::clone(workers)) };
        let mailbox = Arc::new(Mailbox::new(100, 100, gather));
        let waits: std::sync::Weak<Mailbox<u32>> = Arc::downgrade(&mailbox);
        workers.tell(waits);
        mailbox
    }

    /// Drains on another thread, which must gather until `then` has happened.
    fn drain_meanwhile(mailbox: &Arc<Mailbox<u32>>, then: impl FnOnce()) -> Vec<u32> {
        let draining = Arc::clone(mailbox);
        let drained = std::thread::spawn(move || drain(&draining, 100, 100));
        while mailbox.lock().wake_at == 0 {
            std::thread::yield_now();
        }
        assert!(!drained.is_finished());
        then();
        drained.join().unwrap()
    }

    #[test]
    fn a_batch_gathers_until_the_workers_have_nothing_left_to_do() {
        let (workers, park) = busy_workers();
        let mailbox = gathering(&workers, 10);
        push(&mailbox, 1, 0).unwrap();
        let batch = drain_meanwhile(&mailbox, || {
            push(&mailbox, 1, 1).unwrap();
            park();
        });
        assert_eq!(batch, vec![0, 1]);
        push(&mailbox, 1, 2).unwrap();
        assert_eq!(drain(&mailbox, 100, 100), vec![2], "idle workers bring nothing more");
    }

    #[test]
    fn a_crowd_ends_the_gathering() {
        let (workers, _park) = busy_workers();
        let mailbox = gathering(&workers, 3);
        push(&mailbox, 1, 0).unwrap();
        let batch = drain_meanwhile(&mailbox, || (1..3).for_each(|n| push(&mailbox, 1, n).unwrap()));
        assert_eq!(batch, vec![0, 1, 2]);
    }

    #[test]
    fn closing_ends_the_gathering() {
        let (workers, _park) = busy_workers();
        let mailbox = gathering(&workers, 10);
        push(&mailbox, 1, 0).unwrap();
        assert_eq!(drain_meanwhile(&mailbox, || mailbox.close()), vec![0]);
    }

    #[test]
    fn an_interrupt_ends_one_sleep() {
        let mailbox = mailbox_of(10, 10);
        mailbox.interrupt();
        let drained = mailbox.drain(&mut Vec::new(), 10, 10, Duration::from_secs(3_600));
        assert_eq!(drained, Drained::Idle);
        assert!(!mailbox.lock().interrupted);
    }

    #[test]
    fn closed_means_no_more_but_what_waits_is_drained() {
        let mailbox = mailbox_of(10, 10);
        push(&mailbox, 1, 7).unwrap();
        mailbox.close();
        assert_eq!(push(&mailbox, 1, 8), Err(Refusal::Unavailable));
        assert_eq!(drain(&mailbox, 10, 10), vec![7]);
        let drained = mailbox.drain(&mut Vec::new(), 10, 10, Duration::from_secs(60));
        assert_eq!(drained, Drained::Closed);
    }
}
