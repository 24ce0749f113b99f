//! Why a room says no, and the word for it.

use crate::partition::Refusal;

/// Why a room says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// `rooms.max_members`
    #[error("the room has its full number of members")]
    RoomFull,
    /// `rooms.max_connections_per_room`, `…_per_user` or `…_per_key`, which the text names.
    #[error("too many connections: {0}")]
    TooManyConnections(&'static str),
    /// `rooms.room_messages_per_s`, `…user…` or `…key_messages_per_s`, which the text names.
    #[error("too many messages a second: {0}")]
    RateLimited(&'static str),
    /// `rooms.admissions_per_s`
    #[error("too many connections at once")]
    NotAdmitted,
    /// As a partition would.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Denied {
    /// The word to program against.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::RoomFull => "room_full",
            Self::TooManyConnections(_) => "too_many_connections",
            Self::RateLimited(_) => "rate_limited",
            Self::NotAdmitted | Self::Refused(Refusal::Overloaded) => "overloaded",
            Self::Refused(Refusal::Unavailable) => "unavailable",
            Self::Refused(Refusal::DiskFull) => "disk_full",
            Self::Refused(Refusal::OutcomeUnknown) => "outcome_unknown",
        }
    }
}
