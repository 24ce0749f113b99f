//! All rooms at a glance, for whoever runs the service.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::registry::Rooms;
use super::room::Room;
use super::types::RoomName;

/// A room in a list.
#[derive(Debug)]
pub struct Listed {
    /// Which.
    pub name: RoomName,
    /// Whether its actor is in memory.
    pub awake: bool,
    /// Users online, where it could be seen.
    pub online: Option<usize>,
    /// Sockets and readers of events, likewise.
    pub connections: Option<usize>,
}

/// The rooms that there are, and some of them.
#[derive(Debug, Default)]
pub struct Overview {
    /// Rooms whose actor is in memory.
    pub awake: usize,
    /// Rooms that sleep.
    pub asleep: usize,
    /// At most as many as were asked for: those that are awake first, then by name.
    pub rooms: Vec<Listed>,
}

/// Rooms in the order of a list, those that come first being the least.
#[derive(Debug)]
struct Ranked {
    asleep: bool,
    room: Arc<Room>,
}

impl Ranked {
    fn rank(&self) -> (bool, &str) {
        (self.asleep, self.room.name.as_str())
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Ranked {}

impl Rooms {
    /// An overview with at most `limit` rooms in it. Wakes none and keeps none awake: of all rooms only a flag and a name are
    /// looked at, and no lock is taken. Of those in the list, one that sleeps is looked at as it lies, one that is awake is
    /// asked, which does not stir it.
    pub async fn overview(&self, limit: usize) -> Overview {
        let (mut awake, mut asleep) = (0, 0);
        let mut first = BinaryHeap::with_capacity(limit + 1);
        self.look_at_all(|room| {
            let sleeps = !room.is_awake();
            *if sleeps { &mut asleep } else { &mut awake } += 1;
            let rank = (sleeps, room.name.as_str());
            if first.len() < limit || first.peek().is_some_and(|last: &Ranked| rank < last.rank()) {
                first.push(Ranked { asleep: sleeps, room: Arc::clone(room) });
                if first.len() > limit {
                    first.pop();
                }
            }
        });
        let mut rooms = Vec::with_capacity(first.len());
        for Ranked { asleep, room } in first.into_sorted_vec() {
            let view = self.view(&room.name, false).await.ok();
            rooms.push(Listed {
                name: room.name.clone(),
                awake: !asleep,
                online: view.as_ref().map(|view| view.online),
                connections: view.as_ref().map(|view| view.connections),
            });
        }
        Overview { awake, asleep, rooms }
    }
}
