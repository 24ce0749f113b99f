//! What a store does for the durable history of rooms.

use std::sync::Arc;

use super::{Error, Saved};

/// A room's surrogate id, new at each creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoomKey(pub i64);

/// A room's numbering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomRow {
    /// Of which stream the numbers are.
    pub epoch: Arc<str>,
    /// The last one given. Never falls.
    pub last: u64,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// JSON, as it was written.
    Data,
}

impl Kind {
    /// As stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Data => "data",
        }
    }
}

/// A message as it is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its number.
    pub offset: u64,
    /// When it was said, ms since 1970.
    pub at_ms: i64,
    /// Who said it, if anybody.
    pub user: Option<Box<str>>,
    /// The sender's id of it.
    pub id: Option<Box<str>>,
    /// What `body` is.
    pub kind: Kind,
    /// What was said.
    pub body: Box<str>,
}

/// A message to keep.
#[derive(Debug, Clone, Copy)]
pub struct NewMessage<'a> {
    /// Its number.
    pub offset: u64,
    /// When it was said, ms since 1970.
    pub at_ms: i64,
    /// What it counts for.
    pub bytes: usize,
    /// Who says it, if anybody.
    pub user: Option<&'a str>,
    /// The sender's id of it.
    pub id: Option<&'a str>,
    /// What `body` is.
    pub kind: Kind,
    /// What is said.
    pub body: &'a str,
}

/// A message that is kept, without what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMessage {
    /// Its number.
    pub offset: u64,
    /// When it was said, ms since 1970.
    pub at_ms: i64,
    /// What it counts for.
    pub bytes: usize,
    /// Who said it, if anybody.
    pub user: Option<Box<str>>,
    /// The sender's id of it.
    pub id: Option<Box<str>>,
}

/// What a batch changed about a room.
#[derive(Debug)]
pub struct RoomChange<'a> {
    /// Which.
    pub room: RoomKey,
    /// The last number as loaded.
    pub before: u64,
    /// The last number as decided.
    pub last: u64,
    /// Older messages are let go of.
    pub first: u64,
    /// New messages, in order; those below `first` need not be kept.
    pub messages: Vec<NewMessage<'a>>,
}

/// Keys are loaded and changes saved in batch-shaped calls, inside the caller's transaction. Answers
/// stand in the order of the question.
pub trait RoomsStore {
    /// The rooms that have a record.
    ///
    /// # Errors
    /// The engine's.
    fn load_rooms(&mut self, names: &[&str]) -> Result<Vec<Option<(RoomKey, RoomRow)>>, Error>;

    /// Creates a room's record.
    ///
    /// # Errors
    /// The engine's.
    fn create_room(&mut self, name: &str, row: &RoomRow) -> Result<RoomKey, Error>;

    /// The books of the messages that are kept, oldest first, without what they say.
    ///
    /// # Errors
    /// The engine's.
    fn load_kept(&mut self, rooms: &[RoomKey]) -> Result<Vec<Vec<KeptMessage>>, Error>;

    /// The messages from a number on, in order.
    ///
    /// # Errors
    /// The engine's.
    fn read_messages(&mut self, room: RoomKey, from: u64) -> Result<Vec<StoredMessage>, Error>;

    /// Saves what a batch changed, provided that the room is still as it was loaded.
    ///
    /// # Errors
    /// The engine's.
    fn save_room(&mut self, change: &RoomChange<'_>) -> Result<Saved, Error>;

    /// Removes messages of this age or older, and the records of rooms that keep none; how many messages.
    ///
    /// # Errors
    /// The engine's.
    fn purge_messages(&mut self, at_or_before_ms: i64) -> Result<u64, Error>;
}
