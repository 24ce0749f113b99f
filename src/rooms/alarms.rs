//! What is due in a silent room: one queue of alarms for all rooms, and one task that waits for the next.
//!
//! A room has one alarm, its earliest. It may ring too early, because activity puts things off without
//! telling; then it is set again, and a room that sleeps goes on sleeping.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use super::room::Room;

/// See the module.
#[derive(Debug, Default)]
pub struct Alarms {
    queue: Mutex<BinaryHeap<Reverse<Alarm>>>,
    /// The earliest alarm, or the time, has changed.
    changed: Notify,
}

#[derive(Debug)]
struct Alarm {
    due_ms: i64,
    room: Weak<Room>,
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.due_ms == other.due_ms
    }
}

impl Eq for Alarm {}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> Ordering {
        self.due_ms.cmp(&other.due_ms)
    }
}

impl Alarms {
    /// Sets a room's alarm, unless an earlier one is set.
    pub fn set(&self, room: &Arc<Room>, due_ms: i64) {
        if !room.note_alarm(due_ms) {
            return;
        }
        let mut queue = self.queue();
        let is_earliest = queue.peek().is_none_or(|Reverse(first)| due_ms < first.due_ms);
        queue.push(Reverse(Alarm { due_ms, room: Arc::downgrade(room) }));
        drop(queue);
        if is_earliest {
            self.changed.notify_one();
        }
    }

    /// The rooms whose alarms ring by `now_ms`.
    pub fn ring(&self, now_ms: i64) -> Vec<Arc<Room>> {
        let mut rung = Vec::new();
        let mut queue = self.queue();
        while queue.peek().is_some_and(|Reverse(first)| first.due_ms <= now_ms) {
            let Some(Reverse(alarm)) = queue.pop() else { break };
            // An alarm that was overtaken by an earlier one is not the room's any more.
            rung.extend(alarm.room.upgrade().filter(|room| room.clear_alarm(alarm.due_ms)));
        }
        rung
    }

    /// When the next one rings.
    #[must_use]
    pub fn next_ms(&self) -> Option<i64> {
        self.queue().peek().map(|Reverse(first)| first.due_ms)
    }

    /// Waits until it may be another one.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Has the time looked at again.
    pub fn look_again(&self) {
        self.changed.notify_one();
    }

    fn queue(&self) -> MutexGuard<'_, BinaryHeap<Reverse<Alarm>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
