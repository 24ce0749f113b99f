//! Who is let in: not too many at once, not too many with one key; and a connection's place in its room,
//! which is given up whatever happens.

use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use tokio::sync::oneshot;

use super::command::Command;
use super::denied::Denied;
use super::link::{Link, Wishes};
use super::presence::End;
use super::rate::Bucket;
use super::registry::Rooms;
use super::room::{Rejected, Room};
use super::types::{ConnectionId, Position, RoomName, UserId};
use crate::partition::Refusal;

/// What is counted of those who come.
#[derive(Debug)]
pub(super) struct Admission {
    bucket: Mutex<Bucket>,
    /// Connections by API key.
    by_key: Mutex<HashMap<Arc<str>, usize>>,
}

impl Admission {
    pub(super) fn new(admissions_per_s: u32, now_ms: i64) -> Self {
        Self { bucket: Mutex::new(Bucket::full(admissions_per_s, now_ms)), by_key: Mutex::default() }
    }

    fn take(&self, admissions_per_s: u32, now_ms: i64) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.take(admissions_per_s, now_ms)
    }

    fn by_key(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rooms {
    /// Lets a connection in: at the return it is counted, and hears everything from its snapshot on.
    ///
    /// # Errors
    /// The room's, [`Denied::NotAdmitted`], and [`Refusal::Unavailable`] while the service stops.
    pub async fn connect(
        &self,
        room: &RoomName,
        user: Option<UserId>,
        wishes: Wishes,
        key: Option<&str>,
        since: Option<Position>,
    ) -> Result<Membership, Denied> {
        if self.is_draining() {
            return Err(Refusal::Unavailable.into());
        }
        let now_ms = self.now_ms();
        let admissions_per_s = self.settings().admissions_per_s;
        if !self.0.admission.take(admissions_per_s, now_ms) {
            return Err(Denied::NotAdmitted);
        }
        let found = self.create(room)?;
        let key = key.map(|key| self.count_key(key)).transpose()?;
        let id = ConnectionId(self.0.next_connection.fetch_add(1, Ordering::Relaxed));
        let link = Arc::new(Link::new(id, user, wishes, now_ms));
        self.metrics().connections(link.is_socket()).increment(1.0);
        let mut membership =
            Membership { rooms: self.clone(), room: found, link: Arc::clone(&link), key, end: End::Clean };
        let (reply, answer) = oneshot::channel();
        let command = Command::Connect { link, since, reply };
        membership.room = self.offer(room, Arc::clone(&membership.room), command)?;
        // Dropped while it waits, the membership ends what may have begun.
        self.wait(answer).await?;
        Ok(membership)
    }

    fn count_key(&self, key: &str) -> Result<Arc<str>, Denied> {
        let mut by_key = self.0.admission.by_key();
        let count = by_key.entry(key.into()).or_default();
        if *count >= self.settings().max_connections_per_key {
            return Err(Denied::TooManyConnections("rooms.max_connections_per_key"));
        }
        *count += 1;
        Ok(key.into())
    }

    fn uncount_key(&self, key: &Arc<str>) {
        let mut by_key = self.0.admission.by_key();
        if let Entry::Occupied(mut count) = by_key.entry(Arc::clone(key)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// A connection's place in its room. Dropped, it gives the place up: whatever happens to a request or a
/// socket, its room hears of the end.
#[derive(Debug)]
pub struct Membership {
    pub(super) rooms: Rooms,
    pub(super) room: Arc<Room>,
    /// The connection's queue.
    pub link: Arc<Link>,
    key: Option<Arc<str>>,
    /// What the end is if it comes now: until a socket lives, nobody waits for it to come back.
    pub(super) end: End,
}

impl Membership {
    pub(super) fn offer(&self, command: Command, waiter: &std::task::Waker) -> Result<(), Rejected> {
        self.room.offer(&self.rooms, command, Some(waiter))
    }

    /// Takes what this connection says of its user's rate and of its key's.
    pub(super) fn may_say(&self, now_ms: i64) -> Result<(), Denied> {
        self.rooms.may_say(self.link.user.as_ref(), self.key.as_deref(), now_ms)
    }

    /// Counts a connection's end.
    pub fn count_end(&self, cause: &'static str) {
        self.rooms.metrics().ended(cause);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.link.end();
        self.rooms.deliver(&self.room, Command::Gone { link: Arc::clone(&self.link), end: self.end });
        self.rooms.metrics().connections(self.link.is_socket()).decrement(1.0);
        if let Some(key) = &self.key {
            self.rooms.uncount_key(key);
        }
    }
}
