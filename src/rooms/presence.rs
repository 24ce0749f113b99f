//! Who is here: plain functions of members, command and time. No clock, no I/O.
//!
//! A user is online by any of three things: an HTTP session (a join that was not left), a connection, or a
//! connection that was lost so lately that it may come back. Join and leave are events of users: only the
//! first of these things and the end of the last one is told.

use std::collections::hash_map::Entry;

use foldhash::{HashMap, HashMapExt};

use super::types::{ConnectionId, Meta, UserId};

/// The times of presence, ms.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// `rooms.idle_timeout_ms`
    pub idle_ms: i64,
    /// `rooms.grace_ms`
    pub grace_ms: i64,
}

/// The members of one room.
#[derive(Debug, Default)]
pub struct Presence {
    members: HashMap<UserId, Member>,
    /// See [`bytes`](Self::bytes).
    bytes: usize,
}

#[derive(Debug, Default)]
struct Member {
    /// The HTTP session's last activity.
    session_seen_ms: Option<i64>,
    connections: Vec<ConnectionId>,
    /// For each connection that was lost and has not come back: until when it is waited for.
    lost_until_ms: Vec<i64>,
    meta: Option<Meta>,
}

/// What a member takes in a list of members beside its name and what it says about itself.
const MEMBER_BYTES: usize = 24;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It said goodbye, or never came to life: gone at once.
    Clean,
    /// It broke: perhaps it comes back.
    Lost,
}

/// What a command changed about a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The user is new here.
    Joined,
    /// The user was online before and still is.
    None,
    /// The user is gone.
    Left,
}

/// What time has ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Users that are gone.
    pub left: Vec<UserId>,
    /// Connections to close; they are forgotten already.
    pub connections: Vec<ConnectionId>,
}

impl Member {
    fn is_online(&self) -> bool {
        self.session_seen_ms.is_some() || !self.connections.is_empty() || !self.lost_until_ms.is_empty()
    }
}

fn bytes(user: &UserId, meta: Option<&Meta>) -> usize {
    MEMBER_BYTES + user.as_str().len() + meta.map_or(0, |meta| meta.0.len())
}

impl Presence {
    /// Users online.
    #[must_use]
    pub fn online(&self) -> usize {
        self.members.len()
    }

    /// What the list of members takes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What it would take with this user in it, saying this, or what it says already.
    #[must_use]
    pub fn bytes_with(&self, user: &UserId, meta: Option<&Meta>) -> usize {
        let known = self.members.get(user);
        let before = known.map_or(0, |member| bytes(user, member.meta.as_ref()));
        let meta = meta.or_else(|| known.and_then(|member| member.meta.as_ref()));
        self.bytes - before + bytes(user, meta)
    }

    /// Whether a user is online.
    #[must_use]
    pub fn is_online(&self, user: &UserId) -> bool {
        self.members.contains_key(user)
    }

    /// A user's open connections.
    #[must_use]
    pub fn connections_of(&self, user: &UserId) -> &[ConnectionId] {
        self.members.get(user).map_or(&[], |member| &member.connections)
    }

    /// Everyone online with what they say about themselves, in no order.
    pub fn members(&self) -> impl Iterator<Item = (&UserId, Option<&Meta>)> {
        self.members.iter().map(|(user, member)| (user, member.meta.as_ref()))
    }

    /// A join over HTTP: one session, however often it is repeated.
    pub fn join(&mut self, user: &UserId, meta: Option<Meta>, now_ms: i64) -> Change {
        self.arrive(user, meta, |member| member.session_seen_ms = Some(now_ms))
    }

    /// A connection of a user. One that was lost is taken to be back.
    pub fn connect(&mut self, user: &UserId, connection: ConnectionId) -> Change {
        self.arrive(user, None, |member| {
            member.connections.push(connection);
            // The one that is waited for longest already.
            if !member.lost_until_ms.is_empty() {
                member.lost_until_ms.remove(0);
            }
        })
    }

    fn arrive(&mut self, user: &UserId, meta: Option<Meta>, how: impl FnOnce(&mut Member)) -> Change {
        self.bytes = self.bytes_with(user, meta.as_ref());
        let (member, change) = match self.members.entry(user.clone()) {
            Entry::Occupied(known) => (known.into_mut(), Change::None),
            Entry::Vacant(new) => (new.insert(Member::default()), Change::Joined),
        };
        how(member);
        if meta.is_some() {
            member.meta = meta;
        }
        change
    }

    /// A leave over HTTP ends the session, and the waiting for what was lost. Open connections stay, unless
    /// `all`; those that must be closed are returned.
    pub fn leave(&mut self, user: &UserId, all: bool) -> (Change, Vec<ConnectionId>) {
        let Some(member) = self.members.get_mut(user) else { return (Change::None, Vec::new()) };
        member.session_seen_ms = None;
        member.lost_until_ms.clear();
        let closed = if all { std::mem::take(&mut member.connections) } else { Vec::new() };
        (self.forget_if_gone(user), closed)
    }

    /// The end of a connection of a user. One that is not known (closed by us before) changes nothing.
    pub fn disconnect(
        &mut self,
        user: &UserId,
        connection: ConnectionId,
        end: End,
        now_ms: i64,
        times: Times,
    ) -> Change {
        let Some(member) = self.members.get_mut(user) else { return Change::None };
        let before = member.connections.len();
        member.connections.retain(|known| *known != connection);
        if member.connections.len() == before {
            return Change::None;
        }
        if end == End::Lost && times.grace_ms > 0 {
            member.lost_until_ms.push(now_ms.saturating_add(times.grace_ms));
        }
        self.forget_if_gone(user)
    }

    /// Activity over HTTP. Keeps a session alive; never makes one.
    pub fn refresh(&mut self, user: &UserId, now_ms: i64) {
        if let Some(seen_ms) = self.members.get_mut(user).and_then(|member| member.session_seen_ms.as_mut()) {
            *seen_ms = now_ms.max(*seen_ms);
        }
    }

    /// Changes what a user says about itself. False for one that is not online.
    pub fn update(&mut self, user: &UserId, meta: Meta) -> bool {
        if !self.is_online(user) {
            return false;
        }
        self.bytes = self.bytes_with(user, Some(&meta));
        self.members.get_mut(user).map(|member| member.meta = Some(meta)).is_some()
    }

    /// Ends what is over at `now_ms`. `seen_ms` tells a connection's last activity; a connection that it does
    /// not know counts as over.
    pub fn expire(
        &mut self,
        now_ms: i64,
        times: Times,
        seen_ms: impl Fn(ConnectionId) -> Option<i64>,
    ) -> Expired {
        let mut expired = Expired::default();
        let mut freed = 0;
        let alive = |seen_ms: i64| now_ms < seen_ms.saturating_add(times.idle_ms);
        self.members.retain(|user, member| {
            member.session_seen_ms = member.session_seen_ms.filter(|seen_ms| alive(*seen_ms));
            member.lost_until_ms.retain(|until_ms| now_ms < *until_ms);
            member.connections.retain(|connection| {
                let stays = seen_ms(*connection).is_some_and(alive);
                if !stays {
                    expired.connections.push(*connection);
                }
                stays
            });
            let stays = member.is_online();
            if !stays {
                freed += bytes(user, member.meta.as_ref());
                expired.left.push(user.clone());
            }
            stays
        });
        self.bytes -= freed;
        // The map has no order of its own, and events should not come in another one each time.
        expired.left.sort_unstable();
        expired.connections.sort_unstable();
        expired
    }

    /// When [`expire`](Self::expire) will first have something to do, if nobody stirs until then.
    pub fn next_due_ms(&self, times: Times, seen_ms: impl Fn(ConnectionId) -> Option<i64>) -> Option<i64> {
        let idle = |seen_ms: i64| seen_ms.saturating_add(times.idle_ms);
        let due = |member: &Member| {
            let connections =
                member.connections.iter().map(|connection| seen_ms(*connection).map_or(0, idle));
            let session = member.session_seen_ms.map(idle);
            connections.chain(session).chain(member.lost_until_ms.iter().copied()).min()
        };
        self.members.values().filter_map(due).min()
    }

    fn forget_if_gone(&mut self, user: &UserId) -> Change {
        if self.members.get(user).is_some_and(Member::is_online) {
            return Change::None;
        }
        if let Some(member) = self.members.remove(user) {
            self.bytes -= bytes(user, member.meta.as_ref());
        }
        if self.members.is_empty() {
            // What a full room took goes back.
            self.members = HashMap::new();
        }
        Change::Left
    }
}

#[cfg(test)]
mod tests;
