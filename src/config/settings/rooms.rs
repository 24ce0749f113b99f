use serde::{Deserialize, Serialize};

use crate::config::rule::{Keys, Rule, whole};

/// `[rooms]`: the rooms feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rooms {
    /// Where the last messages of a room are kept for those who missed them.
    pub history: RoomHistory,
    /// Most messages kept of a room; 0 keeps none. 0 to 100,000.
    pub history_messages: usize,
    /// Most bytes kept of a room. 0 to 1,073,741,824 (1 GiB).
    pub history_bytes: usize,
    /// Milliseconds that a message is kept. 1 to 31,536,000,000 (a year).
    pub history_age_ms: u64,
    /// Milliseconds without activity after which a user, or a socket, is offline. 10 to 86,400,000 (a day).
    pub idle_timeout_ms: u64,
    /// Milliseconds that a user whose last connection broke is waited for. 0 to 3,600,000 (an hour).
    pub grace_ms: u64,
    /// Milliseconds without a message or a join after which a room leaves memory. 0 to 86,400,000 (a day).
    pub sleep_after_ms: u64,
    /// Milliseconds between two pings to every connection; 0 sends none. 0 to 86,400,000 (a day), and below
    /// `idle_timeout_ms`.
    pub ping_interval_ms: u64,
    /// A text that a connection answers by itself, if it is exactly this; empty: none. 0 to 256 characters.
    pub keepalive_request: String,
    /// What it answers. 0 to 256 characters.
    pub keepalive_response: String,
    /// Most bytes in a room's name. 1 to 1,024.
    pub max_room_bytes: usize,
    /// Most bytes in a user's id. 1 to 1,024.
    pub max_user_bytes: usize,
    /// Most bytes in a message. 1 to 16,777,216 (16 MiB).
    pub max_message_bytes: usize,
    /// Most bytes of JSON that a member says about itself. 2 to 65,536.
    pub max_meta_bytes: usize,
    /// Most rooms at once. 1 to 10,000,000.
    pub max_rooms: usize,
    /// Most users online in a room. 1 to 1,000,000.
    pub max_members: usize,
    /// Most bytes that the members of a room take in its first frame, what they say about themselves included.
    /// 1,024 to 1,073,741,824 (1 GiB).
    pub max_presence_bytes: usize,
    /// Most connections to a room. 1 to 1,000,000.
    pub max_connections_per_room: usize,
    /// Most sockets of a user in a room. 1 to 1,000,000.
    pub max_connections_per_user: usize,
    /// Most connections with one API key. 1 to 1,000,000.
    pub max_connections_per_key: usize,
    /// Connections let in a second, over all rooms. 1 to 1,000,000.
    pub admissions_per_s: u32,
    /// Messages a second from one socket. 1 to 1,000,000.
    pub socket_messages_per_s: u32,
    /// Messages a second into one room. 1 to 1,000,000.
    pub room_messages_per_s: u32,
    /// Messages and updates a second of one user, over all rooms. 1 to 1,000,000.
    pub user_messages_per_s: u32,
    /// Messages and updates a second with one API key, over all rooms. 1 to 1,000,000.
    pub key_messages_per_s: u32,
    /// Users, and keys, whose rate is remembered; beyond them, who was silent longest starts afresh. 2 to
    /// 10,000,000.
    pub rated_senders: usize,
    /// Most commands waiting for one room. 1 to 65,536.
    pub mailbox: usize,
    /// Most frames waiting for one connection; more, and it is closed as slow. 1 to 1,048,576.
    pub queue_frames: usize,
    /// Most bytes waiting for one connection. 1,024 to 1,073,741,824 (1 GiB), and above `max_message_bytes`.
    pub queue_bytes: usize,
    /// Milliseconds that a closing socket may take. 10 to 600,000.
    pub close_timeout_ms: u64,
    /// Milliseconds until the first of those whom a restart sent away is to come back. 0 to 3,600,000.
    pub retry_min_ms: u64,
    /// Milliseconds until the last is; each is told a time of its own between. 1 to 3,600,000, and at least
    /// `retry_min_ms`.
    pub retry_max_ms: u64,
}

/// See [`Rooms::history`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoomHistory {
    /// In memory: gone with the process.
    Memory,
    /// In the data directory: a message is told after its commit.
    Durable,
}

impl Default for Rooms {
    fn default() -> Self {
        Self {
            history: RoomHistory::Memory,
            history_messages: 100,
            history_bytes: 262_144,
            history_age_ms: 300_000,
            idle_timeout_ms: 300_000,
            grace_ms: 15_000,
            sleep_after_ms: 10_000,
            ping_interval_ms: 60_000,
            keepalive_request: r#"{"type":"ping"}"#.to_owned(),
            keepalive_response: r#"{"type":"pong"}"#.to_owned(),
            max_room_bytes: 128,
            max_user_bytes: 128,
            max_message_bytes: 16_384,
            max_meta_bytes: 1_024,
            max_rooms: 100_000,
            max_members: 20_000,
            max_presence_bytes: 1_048_576,
            max_connections_per_room: 20_000,
            max_connections_per_user: 20,
            max_connections_per_key: 100_000,
            admissions_per_s: 5_000,
            socket_messages_per_s: 100,
            room_messages_per_s: 10_000,
            user_messages_per_s: 200,
            key_messages_per_s: 100_000,
            rated_senders: 100_000,
            mailbox: 1_024,
            queue_frames: 256,
            queue_bytes: 1_048_576,
            close_timeout_ms: 5_000,
            retry_min_ms: 500,
            retry_max_ms: 10_000,
        }
    }
}

impl Rooms {
    pub(crate) const KEYS: Keys = &[
        ("history", Rule::Word(&["memory", "durable"])),
        ("history_messages", whole(0, 100_000)),
        ("history_bytes", whole(0, 1_073_741_824)),
        ("history_age_ms", whole(1, 31_536_000_000)),
        ("idle_timeout_ms", whole(10, 86_400_000)),
        ("grace_ms", whole(0, 3_600_000)),
        ("sleep_after_ms", whole(0, 86_400_000)),
        ("ping_interval_ms", whole(0, 86_400_000)),
        ("keepalive_request", Rule::Text { min: 0, max: 256 }),
        ("keepalive_response", Rule::Text { min: 0, max: 256 }),
        ("max_room_bytes", whole(1, 1_024)),
        ("max_user_bytes", whole(1, 1_024)),
        ("max_message_bytes", whole(1, 16_777_216)),
        ("max_meta_bytes", whole(2, 65_536)),
        ("max_rooms", whole(1, 10_000_000)),
        ("max_members", whole(1, 1_000_000)),
        ("max_presence_bytes", whole(1_024, 1_073_741_824)),
        ("max_connections_per_room", whole(1, 1_000_000)),
        ("max_connections_per_user", whole(1, 1_000_000)),
        ("max_connections_per_key", whole(1, 1_000_000)),
        ("admissions_per_s", whole(1, 1_000_000)),
        ("socket_messages_per_s", whole(1, 1_000_000)),
        ("room_messages_per_s", whole(1, 1_000_000)),
        ("user_messages_per_s", whole(1, 1_000_000)),
        ("key_messages_per_s", whole(1, 1_000_000)),
        ("rated_senders", whole(2, 10_000_000)),
        ("mailbox", whole(1, 65_536)),
        ("queue_frames", whole(1, 1_048_576)),
        ("queue_bytes", whole(1_024, 1_073_741_824)),
        ("close_timeout_ms", whole(10, 600_000)),
        ("retry_min_ms", whole(0, 3_600_000)),
        ("retry_max_ms", whole(1, 3_600_000)),
    ];
}
