//! The bounds of rooms and of their sockets, as the settings have them.

use std::time::Duration;

use super::history::Bounds;
use super::link::QueueBounds;
use super::presence::Times;
use super::state::Limits;
use crate::config;

/// Bounds of rooms and of their sockets; the settings of the same names say what they mean.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the settings of the same names are documented")]
pub struct Settings {
    pub limits: Limits,
    pub sleep_after: Duration,
    pub ping_interval: Option<Duration>,
    pub keepalive_request: Box<str>,
    pub keepalive_response: bytes::Bytes,
    pub max_message_bytes: usize,
    pub max_meta_bytes: usize,
    pub max_rooms: usize,
    pub max_connections_per_key: usize,
    pub admissions_per_s: u32,
    pub socket_messages_per_s: u32,
    pub user_messages_per_s: u32,
    pub key_messages_per_s: u32,
    pub rated_senders: usize,
    pub mailbox: usize,
    pub close_timeout: Duration,
    pub retry_ms: (u64, u64),
    /// Alarms of one room are at least so far apart.
    pub alarm_spacing_ms: i64,
    /// `server.request_timeout_ms`: how long an answer is waited for.
    pub patience: Duration,
}

impl std::convert::From<&config::Config> for Settings {
    fn from(config: &config::Config) -> Self {
        let rooms = &config.rooms;
        let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let times = Times { idle_ms: signed(rooms.idle_timeout_ms), grace_ms: signed(rooms.grace_ms) };
        Self {
            limits: Limits {
                times,
                history: history_bounds(rooms),
                queue: QueueBounds { frames: rooms.queue_frames, bytes: rooms.queue_bytes },
                max_members: rooms.max_members,
                max_presence_bytes: rooms.max_presence_bytes,
                max_connections: rooms.max_connections_per_room,
                max_connections_per_user: rooms.max_connections_per_user,
                room_messages_per_s: rooms.room_messages_per_s,
            },
            sleep_after: Duration::from_millis(rooms.sleep_after_ms),
            ping_interval: (rooms.ping_interval_ms > 0)
                .then(|| Duration::from_millis(rooms.ping_interval_ms)),
            keepalive_request: rooms.keepalive_request.as_str().into(),
            keepalive_response: super::frame::text_frame(&rooms.keepalive_response),
            max_message_bytes: rooms.max_message_bytes,
            max_meta_bytes: rooms.max_meta_bytes,
            max_rooms: rooms.max_rooms,
            max_connections_per_key: rooms.max_connections_per_key,
            admissions_per_s: rooms.admissions_per_s,
            socket_messages_per_s: rooms.socket_messages_per_s,
            user_messages_per_s: rooms.user_messages_per_s,
            key_messages_per_s: rooms.key_messages_per_s,
            rated_senders: rooms.rated_senders,
            mailbox: rooms.mailbox,
            close_timeout: Duration::from_millis(rooms.close_timeout_ms),
            retry_ms: (rooms.retry_min_ms, rooms.retry_max_ms),
            alarm_spacing_ms: (times.idle_ms.min(times.grace_ms.max(1)) / 100).clamp(1, 1_000),
            patience: Duration::from_millis(config.server.request_timeout_ms),
        }
    }
}

/// What is kept of a room.
#[must_use]
pub fn history_bounds(rooms: &config::Rooms) -> Bounds {
    Bounds {
        messages: rooms.history_messages,
        bytes: rooms.history_bytes,
        age_ms: i64::try_from(rooms.history_age_ms).unwrap_or(i64::MAX),
    }
}
