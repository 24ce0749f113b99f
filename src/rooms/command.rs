//! What a room can be told, and what it answers.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::denied::Denied;
use super::frame::members_json;
use super::link::Link;
use super::presence::End;
use super::state::State;
use super::types::{Message, Meta, Position, UserId};
use crate::partition::Refusal;

/// A way back to one caller.
pub type Reply<T> = oneshot::Sender<Result<T, Denied>>;

/// What a room can be told.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are what their names and the handle's methods say")]
pub enum Command {
    /// A user joins over HTTP.
    Join { user: UserId, meta: Option<Meta>, reply: Reply<usize> },
    /// A user leaves over HTTP.
    Leave { user: UserId, all: bool, reply: Reply<usize> },
    /// Somebody says something.
    Say { message: Message, from: From, accepted: Instant },
    /// A member changes what it says about itself.
    Update { link: Arc<Link>, meta: Meta },
    /// A connection wants to be let in.
    Connect { link: Arc<Link>, since: Option<Position>, reply: Reply<()> },
    /// A connection ended.
    Gone { link: Arc<Link>, end: End },
    /// Who is here?
    View { members: bool, reply: Reply<View> },
    /// A user is to be forgotten; how many messages lost its name, and whether it was online.
    Forget { user: UserId, reply: Reply<Forgotten> },
    /// Something may be over.
    Tick,
    /// Every connection is pinged.
    Ping,
    /// Every connection is sent away: the service stops.
    Drain,
}

/// Who said something, and how to tell what became of it.
#[derive(Debug)]
pub enum From {
    /// A caller over HTTP.
    Http(Reply<Sent>),
    /// A socket, which hears of failures alone.
    Socket(Arc<Link>),
}

/// A message that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Its place.
    pub position: Position,
    /// Users online.
    pub online: usize,
    /// Whether it had been said before, under the same id.
    pub replayed: bool,
}

/// What a room knew of a user that it forgot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forgotten {
    /// Messages in memory that it had said.
    pub messages: usize,
    /// Whether it was online.
    pub was_online: bool,
}

/// A room as it is.
#[derive(Debug)]
pub struct View {
    /// Users online.
    pub online: usize,
    /// Connections.
    pub connections: usize,
    /// The members as JSON, where they were asked for.
    pub members: Option<Box<RawValue>>,
}

impl View {
    /// Of a state.
    #[must_use]
    pub fn of(state: &State, members: bool) -> Self {
        Self {
            online: state.presence.online(),
            connections: state.connections(),
            members: members.then(|| members_json(state.presence.members())),
        }
    }
}

impl Command {
    /// Answers with an error instead; what has no answer is dropped.
    pub fn refuse(self, refusal: Refusal) {
        let denied = Denied::Refused(refusal);
        match self {
            Self::Join { reply, .. } | Self::Leave { reply, .. } => answer(reply, Err(denied)),
            Self::Say { from: From::Http(reply), .. } => answer(reply, Err(denied)),
            Self::Connect { reply, .. } => answer(reply, Err(denied)),
            Self::View { reply, .. } => answer(reply, Err(denied)),
            Self::Forget { reply, .. } => answer(reply, Err(denied)),
            Self::Say { .. } | Self::Update { .. } | Self::Gone { .. } => {}
            Self::Tick | Self::Ping | Self::Drain => {}
        }
    }

    /// The sender's id of a message, if it has one.
    pub(super) fn message_id(&self) -> Option<&str> {
        match self {
            Self::Say { message, .. } => message.id.as_deref(),
            _ => None,
        }
    }

    /// Whether it keeps the room awake.
    pub(super) fn stirs(&self) -> bool {
        !matches!(self, Self::View { .. } | Self::Tick | Self::Ping)
    }
}

/// Whoever asked may be gone, which is no error: what was decided is decided.
pub(super) fn answer<T>(reply: Reply<T>, outcome: Result<T, Denied>) {
    let _gone = reply.send(outcome);
}
