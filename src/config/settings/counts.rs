use serde::{Deserialize, Serialize};

use crate::config::rule::{Keys, Rule, whole};

/// `[likes]`: the likes feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Likes {
    /// Shards that users are spread over. 1 to 4,096. Absent: what the data directory's manifest says, 16 for a new
    /// one.
    pub shards: Option<u32>,
    /// Most bytes in an item's name. 1 to 1,024.
    pub max_item_bytes: usize,
    /// Most bytes in a user's id. 1 to 1,024.
    pub max_user_bytes: usize,
    /// Most items that one request may ask about. 1 to 10,000.
    pub max_items_per_read: usize,
}

impl Default for Likes {
    fn default() -> Self {
        Self { shards: None, max_item_bytes: 128, max_user_bytes: 128, max_items_per_read: 200 }
    }
}

impl Likes {
    pub(crate) const KEYS: Keys = &[
        ("shards", whole(1, 4_096)),
        ("max_item_bytes", whole(1, 1_024)),
        ("max_user_bytes", whole(1, 1_024)),
        ("max_items_per_read", whole(1, 10_000)),
    ];
}

/// `[rollup]`: the scheduled job that carries changed shard counters into the totals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rollup {
    /// When it runs: cron with seconds first. 1 to 256 characters. Whoever schedules the job parses the cron
    /// text, and refuses it with [`Loaded::refuse`](crate::config::Loaded::refuse).
    pub schedule: String,
    /// Changed items read from a shard at a time. 1 to 100,000.
    pub page_items: u32,
    /// Items whose totals are kept in memory for reads. 1 to 10,000,000.
    pub cache_items: usize,
}

impl Default for Rollup {
    fn default() -> Self {
        Self { schedule: "* * * * * *".to_owned(), page_items: 1_000, cache_items: 100_000 }
    }
}

impl Rollup {
    pub(crate) const KEYS: Keys = &[
        ("schedule", Rule::Text { min: 1, max: 256 }),
        ("page_items", whole(1, 100_000)),
        ("cache_items", whole(1, 10_000_000)),
    ];
}

/// `[reservations]`: the reservations feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reservations {
    /// Seats of a workshop that springs up at its first request; with 0, none has any.
    /// 0 to 1,000,000.
    pub default_capacity: u32,
    /// Most seats that one request may ask for. 1 to 1,000,000.
    pub max_seats_per_request: u32,
}

impl Default for Reservations {
    fn default() -> Self {
        Self { default_capacity: 4, max_seats_per_request: 4 }
    }
}

impl Reservations {
    pub(crate) const KEYS: Keys =
        &[("default_capacity", whole(0, 1_000_000)), ("max_seats_per_request", whole(1, 1_000_000))];
}
