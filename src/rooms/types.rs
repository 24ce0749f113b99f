//! The names and messages of rooms.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::names::free_name;

/// A room's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoomName(Arc<str>);
free_name!(RoomName);

/// A user's id, as the application knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId(Arc<str>);
free_name!(UserId);

/// One connection of this process. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// What a member says about itself (a cursor, a status): JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta(pub Arc<str>);

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text.
    Text(Box<str>),
    /// Any JSON, as it was written.
    Data(Box<str>),
}

/// A message on its way into a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it; nobody, where a socket has no user.
    pub user: Option<UserId>,
    /// What.
    pub body: Body,
    /// The sender's id of it: repeated while the history holds it, it is said once.
    pub id: Option<Arc<str>>,
}

/// A place in a room's stream: messages are numbered from 1 within an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Of which stream: a new one begins where the numbering could not go on.
    pub epoch: Arc<str>,
    /// The message's number.
    pub offset: u64,
}

impl RoomName {
    /// The text, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl Body {
    /// Bytes that it takes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Data(text) => text.len(),
        }
    }

    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a raw reader gets: the text, or the JSON.
    #[must_use]
    pub fn raw(&self) -> &str {
        match self {
            Self::Text(text) | Self::Data(text) => text,
        }
    }
}

impl Message {
    /// Bytes that the history counts for it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let user = self.user.as_ref().map_or(0, |user| user.as_str().len());
        self.body.len() + user + self.id.as_ref().map_or(0, |id| id.len())
    }
}

/// Most characters in a message's id.
const MAX_MESSAGE_ID_CHARS: usize = 64;

/// Whether a text can be a message's id: 1 to 64 characters.
#[must_use]
pub fn is_message_id(text: &str) -> bool {
    !text.is_empty() && text.chars().take(MAX_MESSAGE_ID_CHARS + 1).count() <= MAX_MESSAGE_ID_CHARS
}

/// Reads JSON that may be `null`, which is a value like any other, and tells it from an absent field.
///
/// # Errors
/// The deserializer's.
pub fn even_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl Position {
    /// `epoch:offset`, as a frame's id is written.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, offset) = text.split_once(':')?;
        let is_epoch =
            (1..=32).contains(&epoch.len()) && epoch.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_number = !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_digit());
        let offset = offset.parse().ok().filter(|_| is_epoch && is_number)?;
        Some(Self { epoch: epoch.into(), offset })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_as_it_was_written() {
        let position = Position { epoch: "9f3c".into(), offset: 17 };
        assert_eq!(Position::parse(&position.to_string()), Some(position));
        for bad in ["", ":", "a:", ":1", "a:-1", "a:+1", "a:1:2", "é:1", "a:99999999999999999999", "a b:1"] {
            assert_eq!(Position::parse(bad), None, "{bad}");
        }
    }
}
