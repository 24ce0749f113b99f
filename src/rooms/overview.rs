//! All rooms at a glance, for whoever runs the service.

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

impl Rooms {
    /// An overview with at most `limit` rooms in it. Wakes none and keeps none awake: a room that sleeps is looked at as
    /// it lies, one that is awake is asked, which does not stir it.
    pub async fn overview(&self, limit: usize) -> Overview {
        let mut all: Vec<_> =
            self.all().into_iter().map(|room| (room.peek(|_| ()).is_some(), room)).collect();
        let asleep = all.iter().filter(|(asleep, _)| *asleep).count();
        let awake = all.len() - asleep;
        let by_rank = |one: &(bool, Arc<Room>), other: &(bool, Arc<Room>)| {
            (one.0, one.1.name.as_str()).cmp(&(other.0, other.1.name.as_str()))
        };
        if all.len() > limit && limit > 0 {
            all.select_nth_unstable_by(limit - 1, by_rank);
        }
        all.truncate(limit);
        all.sort_unstable_by(by_rank);
        let mut rooms = Vec::with_capacity(all.len());
        for (asleep, room) in all {
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
