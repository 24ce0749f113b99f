//! All of one room: who is here, who listens, what was said lately. It moves between the room's actor and,
//! asleep, its slot. Deciding is here; timing and queueing are the [`actor`](super::actor)'s.

use std::sync::Arc;

use super::command::Forgotten;
use super::denied::Denied;
use super::frame::{Frame, Kind, Snapshot, members_json};
use super::history::{Bounds, History, Kept};
use super::link::{Link, Pace, Pushed, QueueBounds};
use super::presence::{Change, End, Presence, Times};
use super::rate::Bucket;
use super::types::{ConnectionId, Message, Meta, Position, RoomName, UserId};

/// Bounds of one room; the settings of the same names say what they mean.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the settings of the same names are documented")]
pub struct Limits {
    pub times: Times,
    pub history: Bounds,
    pub queue: QueueBounds,
    pub max_members: usize,
    pub max_presence_bytes: usize,
    pub max_connections: usize,
    pub max_connections_per_user: usize,
    pub room_messages_per_s: u32,
}

/// Most connections that a room writes to by itself.
const MAX_WRITTEN_BY_THE_ROOM: usize = 1_024;

/// The numbering of a room's messages.
#[derive(Debug)]
pub struct Stream {
    /// See [`Position`].
    pub epoch: Arc<str>,
    /// The last message's number that was told.
    pub last: u64,
}

/// See the module.
#[derive(Debug)]
pub struct State {
    /// Which room.
    pub name: RoomName,
    /// Who is here.
    pub presence: Presence,
    /// `None` until it is opened.
    pub stream: Option<Stream>,
    /// By id, which is also the order of their arrival.
    links: Vec<Arc<Link>>,
    /// In memory; empty where the history is durable.
    history: History<Arc<Frame>>,
    messages: Bucket,
}

/// Something that is told in its turn.
#[derive(Debug)]
pub enum Said {
    /// A user came, went, or changed.
    Member {
        /// Which of the three.
        kind: Kind,
        /// Who.
        user: UserId,
        /// What it says about itself.
        meta: Option<Meta>,
        /// Users online afterwards.
        online: usize,
    },
    /// A reader gets its snapshot, and hears everything from then on.
    Attach {
        /// The reader.
        link: Arc<Link>,
        /// Who is here, as it was when the reader was let in.
        snapshot: Snapshot,
        /// Where it left off.
        since: Option<Position>,
    },
}

/// Deliveries of one frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// Queued.
    pub queued: u64,
    /// Dropped: with the queue of a connection that was closed as slow.
    pub dropped: u64,
}

impl State {
    /// A room that nobody has entered yet.
    #[must_use]
    pub fn new(name: RoomName, limits: &Limits, now_ms: i64) -> Self {
        Self {
            name,
            presence: Presence::default(),
            stream: None,
            links: Vec::new(),
            history: History::default(),
            messages: Bucket::full(limits.room_messages_per_s, now_ms),
        }
    }

    /// Open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.links.len()
    }

    /// Everyone who listens.
    #[must_use]
    pub fn links(&self) -> &[Arc<Link>] {
        &self.links
    }

    /// Whether nothing would be lost with it.
    #[must_use]
    pub fn is_vacant(&self) -> bool {
        self.links.is_empty() && self.presence.online() == 0 && self.history.is_empty()
    }

    /// A join over HTTP.
    ///
    /// # Errors
    /// [`Denied::RoomFull`].
    pub fn join(
        &mut self,
        user: &UserId,
        meta: Option<Meta>,
        limits: &Limits,
        now_ms: i64,
    ) -> Result<Option<Said>, Denied> {
        self.room_for(user, meta.as_ref(), limits)?;
        let told = meta.clone();
        let had_meta = told.is_some();
        match self.presence.join(user, meta, now_ms) {
            Change::Joined => Ok(Some(self.told(Kind::Join, user.clone(), told))),
            _ if had_meta => Ok(Some(self.told(Kind::Update, user.clone(), told))),
            _ => Ok(None),
        }
    }

    /// A leave over HTTP.
    pub fn leave(&mut self, user: &UserId, all: bool) -> Option<Said> {
        let (change, closed) = self.presence.leave(user, all);
        for connection in closed {
            if let Some(link) = self.remove_link(connection) {
                link.close(super::close::Close::Left);
            }
        }
        self.left(change, user)
    }

    /// Whether anything here has a user's name.
    #[must_use]
    pub fn knows(&self, user: &UserId) -> bool {
        self.presence.is_online(user) || self.history.iter().any(|kept| kept.entry.without(user).is_some())
    }

    /// A user is forgotten: it leaves with all its connections, and what it said here loses its name.
    pub fn forget(&mut self, user: &UserId) -> (Forgotten, Option<Said>) {
        let was_online = self.presence.is_online(user);
        let left = self.leave(user, true);
        let messages = self.history.replace(|kept| {
            let (entry, bytes) = kept.entry.without(user)?;
            Some(Kept { bytes, id: None, entry, ..*kept })
        });
        (Forgotten { messages, was_online }, left)
    }

    /// A connection is let in: counted at once, listening once it has its snapshot.
    ///
    /// # Errors
    /// [`Denied::RoomFull`] and [`Denied::TooManyConnections`].
    pub fn connect(
        &mut self,
        link: &Arc<Link>,
        since: Option<Position>,
        limits: &Limits,
        now_ms: i64,
    ) -> Result<(Option<Said>, Said), Denied> {
        // What is too old is not recovered, whether or not the room has looked at the clock yet.
        self.history.expire(now_ms, limits.history);
        if self.links.len() >= limits.max_connections {
            return Err(Denied::TooManyConnections("rooms.max_connections_per_room"));
        }
        let mut joined = None;
        if let Some(user) = link.user.as_ref().filter(|_| link.is_socket()) {
            self.room_for(user, None, limits)?;
            if self.presence.connections_of(user).len() >= limits.max_connections_per_user {
                return Err(Denied::TooManyConnections("rooms.max_connections_per_user"));
            }
            if self.presence.connect(user, link.id) == Change::Joined {
                joined = Some(self.told(Kind::Join, user.clone(), None));
            }
        }
        // Ids grow, but those of two connections may arrive in the other order.
        let at = self.links.partition_point(|known| known.id < link.id);
        self.links.insert(at, Arc::clone(link));
        let snapshot = Snapshot {
            online: self.presence.online(),
            connections: self.links.len(),
            members: link.wishes.presence.then(|| members_json(self.presence.members())),
        };
        Ok((joined, Said::Attach { link: Arc::clone(link), snapshot, since }))
    }

    /// A connection ended.
    pub fn gone(&mut self, link: &Link, end: End, limits: &Limits, now_ms: i64) -> Option<Said> {
        self.remove_link(link.id);
        let user = link.user.as_ref().filter(|_| link.is_socket())?;
        let change = self.presence.disconnect(user, link.id, end, now_ms, limits.times);
        self.left(change, user)
    }

    /// A member changes what it says about itself.
    ///
    /// # Errors
    /// [`Denied::RoomFull`].
    pub fn update(&mut self, user: &UserId, meta: Meta, limits: &Limits) -> Result<Option<Said>, Denied> {
        if !self.presence.is_online(user) {
            return Ok(None);
        }
        self.room_for(user, Some(&meta), limits)?;
        self.presence.update(user, meta.clone());
        Ok(Some(self.told(Kind::Update, user.clone(), Some(meta))))
    }

    /// A user is active over HTTP.
    pub fn refresh(&mut self, user: &UserId, now_ms: i64) {
        self.presence.refresh(user, now_ms);
    }

    /// Whether another message may be said here.
    ///
    /// # Errors
    /// [`Denied::RateLimited`].
    pub fn may_say(&mut self, limits: &Limits, now_ms: i64) -> Result<(), Denied> {
        let taken = self.messages.take(limits.room_messages_per_s, now_ms);
        taken.then_some(()).ok_or(Denied::RateLimited("rooms.room_messages_per_s"))
    }

    /// Ends what is over: sessions, graces, silent connections, old messages.
    pub fn expire(&mut self, limits: &Limits, now_ms: i64) -> Vec<Said> {
        let links = &self.links;
        let expired = self.presence.expire(now_ms, limits.times, |connection| seen_ms(links, connection));
        let over = |link: &Arc<Link>| now_ms >= link.seen_ms().saturating_add(limits.times.idle_ms);
        let anonymous: Vec<_> =
            self.links.iter().filter(|link| link.user.is_none() && over(link)).map(|link| link.id).collect();
        for connection in expired.connections.into_iter().chain(anonymous) {
            if let Some(link) = self.remove_link(connection) {
                link.close(super::close::Close::Idle);
            }
        }
        self.history.expire(now_ms, limits.history);
        let mut online = self.presence.online() + expired.left.len();
        let leave = |user| {
            online -= 1;
            Said::Member { kind: Kind::Leave, user, meta: None, online }
        };
        expired.left.into_iter().map(leave).collect()
    }

    /// When [`expire`](Self::expire) will first have something to do.
    #[must_use]
    pub fn next_due_ms(&self, limits: &Limits) -> Option<i64> {
        let presence = self.presence.next_due_ms(limits.times, |connection| seen_ms(&self.links, connection));
        let anonymous = self.links.iter().filter(|link| link.user.is_none() && link.is_socket());
        let idle = anonymous.map(|link| link.seen_ms().saturating_add(limits.times.idle_ms)).min();
        [presence, idle, self.history.next_due_ms(limits.history)].into_iter().flatten().min()
    }

    /// The number under which a message with this id was said, if memory still holds it.
    #[must_use]
    pub fn said_before(&self, message: &Message) -> Option<u64> {
        self.history.find(message)
    }

    /// The end of the stream.
    #[must_use]
    pub fn position(&self) -> Position {
        let (epoch, offset) = match &self.stream {
            Some(stream) => (Arc::clone(&stream.epoch), stream.last),
            None => ("".into(), 0),
        };
        Position { epoch, offset }
    }

    /// Says a message to everyone, under its number.
    pub fn tell_message(
        &mut self,
        message: &Message,
        (offset, at_ms): (u64, i64),
        origin: Option<ConnectionId>,
        keep: bool,
        limits: &Limits,
        pace: Pace,
    ) -> Delivered {
        if let Some(stream) = &mut self.stream {
            stream.last = offset;
        }
        let frame = Frame::message(self.position(), message, at_ms, origin);
        if keep {
            let id = message.id.clone().map(|id| (message.user.clone(), id));
            let kept = Kept { offset, at_ms, bytes: message.bytes(), id, entry: Arc::clone(&frame) };
            self.history.push(kept, limits.history);
        }
        self.broadcast(&frame, limits, pace)
    }

    /// Says who came, went or changed.
    pub fn tell_member(
        &self,
        kind: Kind,
        user: &UserId,
        meta: Option<&Meta>,
        online: usize,
        limits: &Limits,
    ) -> Delivered {
        if self.links.is_empty() {
            return Delivered::default();
        }
        self.broadcast(&Frame::member(kind, self.position(), user, meta, online), limits, Pace::Gathered)
    }

    /// Gives a reader its snapshot and what it missed, as memory has it.
    pub fn attach(&self, link: &Link, snapshot: &Snapshot, since: Option<&Position>) {
        let end = self.position();
        let missed = since.map(|since| self.history.since(since, &end.epoch, end.offset));
        let recovered = missed.as_ref().map(Option::is_some);
        let frames: Vec<&Frame> =
            missed.flatten().unwrap_or_default().into_iter().map(|kept| &*kept.entry).collect();
        let recovered = recovered.zip(since);
        self.attach_with(link, snapshot, recovered, &frames);
    }

    /// The same with what was missed as somebody else has it: whether that is all of it, and since when; `None` where
    /// nothing was asked for.
    pub fn attach_with(
        &self,
        link: &Link,
        snapshot: &Snapshot,
        recovered: Option<(bool, &Position)>,
        missed: &[&Frame],
    ) {
        // What was missed follows: a reader that breaks off before it has not got beyond where it was.
        let position = match recovered {
            Some((true, since)) => since.clone(),
            _ => self.position(),
        };
        let recovered = recovered.map(|(whole, _)| whole);
        let presence = Frame::presence(position, self.name.as_str(), snapshot, recovered);
        link.attach(std::iter::once(&*presence).chain(missed.iter().copied()));
    }

    fn broadcast(&self, frame: &Frame, limits: &Limits, pace: Pace) -> Delivered {
        let mut delivered = Delivered::default();
        // A crowd is written to by many threads, each connection's task on one of them.
        let pace = if self.links.len() > MAX_WRITTEN_BY_THE_ROOM { Pace::Gathered } else { pace };
        for link in &self.links {
            match link.push(frame, limits.queue, pace) {
                Pushed::Queued => delivered.queued += 1,
                Pushed::Overflowed(dropped) => delivered.dropped += dropped,
                Pushed::Skipped => {}
            }
        }
        delivered
    }

    fn room_for(&self, user: &UserId, meta: Option<&Meta>, limits: &Limits) -> Result<(), Denied> {
        let full = self.presence.online() >= limits.max_members && !self.presence.is_online(user);
        let (before, after) = (self.presence.bytes(), self.presence.bytes_with(user, meta));
        // Whoever needs no more than before is not in the way.
        let too_large = after > limits.max_presence_bytes && after > before;
        if full || too_large { Err(Denied::RoomFull) } else { Ok(()) }
    }

    fn told(&self, kind: Kind, user: UserId, meta: Option<Meta>) -> Said {
        Said::Member { kind, user, meta, online: self.presence.online() }
    }

    fn left(&self, change: Change, user: &UserId) -> Option<Said> {
        (change == Change::Left).then(|| self.told(Kind::Leave, user.clone(), None))
    }

    fn remove_link(&mut self, connection: ConnectionId) -> Option<Arc<Link>> {
        let at = self.links.binary_search_by_key(&connection, |link| link.id).ok()?;
        let link = self.links.remove(at);
        if self.links.is_empty() {
            self.links = Vec::new();
        }
        Some(link)
    }
}

fn seen_ms(links: &[Arc<Link>], connection: ConnectionId) -> Option<i64> {
    let at = links.binary_search_by_key(&connection, |link| link.id).ok()?;
    links.get(at).map(|link| link.seen_ms())
}
