//! One room, asleep or awake.
//!
//! Asleep it is its [`State`] and nothing else: no task, no queue. The first command wakes it. The slot's
//! lock is held for moments, never across a wait; under it a command finds either the actor's queue or the
//! sleeping state, so there is never a second owner and no command is lost between the two.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tokio::sync::mpsc::{self, error::TrySendError};

use super::actor;
use super::command::Command;
use super::registry::Rooms;
use super::state::State;
use super::types::RoomName;

/// See the module.
#[derive(Debug)]
pub struct Room {
    /// Which.
    pub name: RoomName,
    slot: Mutex<Slot>,
    /// What the slot says, for whoever looks at all rooms and locks none.
    awake: AtomicBool,
    /// When the earliest alarm that is set for it rings; `i64::MAX` for none.
    pub(super) alarm_ms: AtomicI64,
}

#[derive(Debug)]
enum Slot {
    Awake {
        commands: mpsc::Sender<Command>,
        /// Sockets that hold a message until there is room in the queue.
        waiting: Vec<Waker>,
    },
    Asleep(Box<State>),
    /// Forgotten: the registry has, or makes, another room of the name.
    Gone,
}

/// A command that was not taken.
#[derive(Debug)]
pub enum Rejected {
    /// The room's queue is full.
    Full(Command),
    /// The room is forgotten: ask the registry again.
    Gone(Command),
}

impl Room {
    /// A room that nobody has entered yet.
    #[must_use]
    pub fn new(state: State) -> Self {
        Self {
            name: state.name.clone(),
            slot: Mutex::new(Slot::Asleep(Box::new(state))),
            awake: AtomicBool::new(false),
            alarm_ms: AtomicI64::new(i64::MAX),
        }
    }

    /// Gives the room a command, waking it if it sleeps. Never waits; a `waiter` is woken when a full queue
    /// has room again.
    ///
    /// # Errors
    /// [`Rejected`], with the command.
    pub fn offer(
        self: &Arc<Self>,
        rooms: &Rooms,
        command: Command,
        waiter: Option<&Waker>,
    ) -> Result<(), Rejected> {
        let mut slot = self.slot();
        match std::mem::replace(&mut *slot, Slot::Gone) {
            Slot::Awake { commands, mut waiting } => {
                let taken = commands.try_send(command);
                // An actor that panicked has left its room for good.
                if let Err(TrySendError::Closed(command)) = taken {
                    drop(slot);
                    waiting.into_iter().for_each(Waker::wake);
                    return Err(Rejected::Gone(command));
                }
                let taken = taken.map_err(|error| {
                    waiting.extend(waiter.cloned());
                    Rejected::Full(error.into_inner())
                });
                *slot = Slot::Awake { commands, waiting };
                taken
            }
            Slot::Asleep(state) => {
                let (commands, queue) = mpsc::channel(rooms.settings().mailbox);
                // A new queue has room for one.
                let _has_room = commands.try_send(command);
                *slot = Slot::Awake { commands, waiting: Vec::new() };
                self.awake.store(true, Ordering::Relaxed);
                drop(slot);
                rooms.woke();
                rooms.runtime().spawn(actor::run(rooms.clone(), Arc::clone(self), state, queue));
                Ok(())
            }
            Slot::Gone => Err(Rejected::Gone(command)),
        }
    }

    /// Whether its actor is in memory, or was a moment ago.
    pub(super) fn is_awake(&self) -> bool {
        self.awake.load(Ordering::Relaxed)
    }

    /// Looks at a sleeping room without waking it; `None` for one that is awake.
    pub fn peek<T>(&self, look: impl FnOnce(&State) -> T) -> Option<T> {
        match &*self.slot() {
            Slot::Asleep(state) => Some(look(state)),
            _ => None,
        }
    }

    /// The actor's way out: puts the state to sleep, or ends the room if nothing would be lost with it.
    ///
    /// # Errors
    /// The state, if a command has come meanwhile.
    pub(super) fn sleep(
        self: &Arc<Self>,
        rooms: &Rooms,
        state: Box<State>,
        queue: &mpsc::Receiver<Command>,
    ) -> Result<(), Box<State>> {
        let mut slot = self.slot();
        if !queue.is_empty() {
            return Err(state);
        }
        let waiting = match std::mem::replace(&mut *slot, Slot::Gone) {
            Slot::Awake { waiting, .. } => waiting,
            _ => Vec::new(),
        };
        let vacant = state.is_vacant();
        let due_ms = state.next_due_ms(&rooms.settings().limits);
        if !vacant {
            *slot = Slot::Asleep(state);
        }
        self.awake.store(false, Ordering::Relaxed);
        drop(slot);
        waiting.into_iter().for_each(Waker::wake);
        rooms.fell_asleep();
        match (vacant, due_ms) {
            (true, _) => rooms.forget(self),
            (false, Some(due_ms)) => rooms.set_alarm(self, due_ms),
            (false, None) => {}
        }
        Ok(())
    }

    /// Wakes the sockets that hold a message: there is room in the queue.
    pub(super) fn wake_waiting(&self) {
        let waiting = match &mut *self.slot() {
            Slot::Awake { waiting, .. } if !waiting.is_empty() => std::mem::take(waiting),
            _ => return,
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        // Whoever panicked left `Gone` or a whole slot: both are true.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an alarm at `due_ms` would be the earliest; if so it is noted.
    pub(super) fn note_alarm(&self, due_ms: i64) -> bool {
        self.alarm_ms.fetch_min(due_ms, Ordering::AcqRel) > due_ms
    }

    /// Whether the alarm that rings is the one that was noted; if so it is no longer.
    pub(super) fn clear_alarm(&self, due_ms: i64) -> bool {
        self.alarm_ms.compare_exchange(due_ms, i64::MAX, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}
