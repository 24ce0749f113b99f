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
    /// Most items that one request may ask about in its address. 1 to 10,000.
    pub max_items_per_read: usize,
    /// Most streams of live totals open at once; one of many items counts once for each. 0 to 1,000,000.
    pub max_event_streams: usize,
    /// Milliseconds after which a silent stream of live totals sends a comment, so that nobody in between takes it for
    /// dead. 10 to 600,000.
    pub event_keepalive_ms: u64,
    /// Most buckets of an item's history in one answer. 1 to 100,000.
    pub max_history_buckets: usize,
    /// Most items of a ranking in one answer. 1 to 10,000.
    pub max_trending: u32,
    /// Most items that one request may ask about in its body. 1 to 100,000.
    pub max_items_per_query: usize,
    /// Most entries in a page of a user's likes or of an item's users. 1 to 10,000.
    pub max_page: u32,
    /// Keeps an index of who likes an item, which `GET /likes/{item}/users` needs.
    pub index_by_item: bool,
}

impl Default for Likes {
    fn default() -> Self {
        Self {
            shards: None,
            max_item_bytes: 128,
            max_user_bytes: 128,
            max_items_per_read: 200,
            max_event_streams: 10_000,
            event_keepalive_ms: 15_000,
            max_history_buckets: 1_500,
            max_trending: 100,
            max_items_per_query: 1_000,
            max_page: 200,
            index_by_item: false,
        }
    }
}

impl Likes {
    pub(crate) const KEYS: Keys = &[
        ("shards", whole(1, 4_096)),
        ("max_item_bytes", whole(1, 1_024)),
        ("max_user_bytes", whole(1, 1_024)),
        ("max_items_per_read", whole(1, 10_000)),
        ("max_event_streams", whole(0, 1_000_000)),
        ("event_keepalive_ms", whole(10, 600_000)),
        ("max_history_buckets", whole(1, 100_000)),
        ("max_trending", whole(1, 10_000)),
        ("max_items_per_query", whole(1, 100_000)),
        ("max_page", whole(1, 10_000)),
        ("index_by_item", Rule::Switch),
    ];
}

/// `[counters]`: counters without members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Counters {
    /// Milliseconds that the id of an add is remembered. 1 to 31,536,000,000 (a year).
    pub dedupe_ttl_ms: u64,
    /// Ids that are remembered no more and are forgotten in one go. 1 to 65,536.
    pub sweep_chunk: u32,
}

impl Default for Counters {
    fn default() -> Self {
        Self { dedupe_ttl_ms: 86_400_000, sweep_chunk: 1_000 }
    }
}

impl Counters {
    pub(crate) const KEYS: Keys =
        &[("dedupe_ttl_ms", whole(1, 31_536_000_000)), ("sweep_chunk", whole(1, 65_536))];
}

/// `[bulk]`: many likes and unlikes in one request, a line each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bulk {
    /// Most streams open at once. 0 to 100,000.
    pub max_streams: usize,
    /// Lines of one stream that are read and not answered. 1 to 65,536, and at most `max_lines`.
    pub window_lines: usize,
    /// The same, of all streams together. 1 to 1,048,576.
    pub max_lines: usize,
    /// Most bytes in a line. 64 to 1,048,576.
    pub max_line_bytes: usize,
    /// Milliseconds after which a stream that brings nothing is ended. 10 to 86,400,000.
    pub idle_timeout_ms: u64,
}

impl Default for Bulk {
    fn default() -> Self {
        Self {
            max_streams: 64,
            window_lines: 1_024,
            max_lines: 4_096,
            max_line_bytes: 4_096,
            idle_timeout_ms: 60_000,
        }
    }
}

impl Bulk {
    pub(crate) const KEYS: Keys = &[
        ("max_streams", whole(0, 100_000)),
        ("window_lines", whole(1, 65_536)),
        ("max_lines", whole(1, 1_048_576)),
        ("max_line_bytes", whole(64, 1_048_576)),
        ("idle_timeout_ms", whole(10, 86_400_000)),
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
    /// Changed items that are gathered before they are stored, together. 1 to 10,000,000.
    pub gathered_items: usize,
    /// Items whose totals are kept in memory for reads. 1 to 10,000,000.
    pub cache_items: usize,
    /// Minutes of history that are kept of an item, the one that has begun among them. 120 to 10,080 (a week).
    pub history_minutes: u32,
    /// Hours, likewise. 192 (eight days) to 8,784 (a year).
    pub history_hours: u32,
    /// Days, likewise. 1 to 36,600.
    pub history_days: u32,
    /// Items that are ranked in each window, of those that changed in it. 100 to 1,000,000, and at least
    /// `likes.max_trending`.
    pub trending_items: u32,
    /// Memberships that the drift check counts again after each run, a partition; 0 checks nothing. 0 to 100,000.
    pub check_rows: u32,
    /// Most of the time that runs may take, in percent: one that took long is followed by a rest, of 5 s at most. 1 to 100.
    pub max_share_percent: u32,
}

impl Default for Rollup {
    fn default() -> Self {
        Self {
            schedule: "* * * * * *".to_owned(),
            page_items: 1_000,
            gathered_items: 100_000,
            cache_items: 100_000,
            history_minutes: 1_440,
            history_hours: 744,
            history_days: 400,
            trending_items: 10_000,
            check_rows: 1_000,
            max_share_percent: 25,
        }
    }
}

impl Rollup {
    pub(crate) const KEYS: Keys = &[
        ("schedule", Rule::Text { min: 1, max: 256 }),
        ("page_items", whole(1, 100_000)),
        ("gathered_items", whole(1, 10_000_000)),
        ("cache_items", whole(1, 10_000_000)),
        ("history_minutes", whole(120, 10_080)),
        ("history_hours", whole(192, 8_784)),
        ("history_days", whole(1, 36_600)),
        ("trending_items", whole(100, 1_000_000)),
        ("check_rows", whole(0, 100_000)),
        ("max_share_percent", whole(1, 100)),
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
    /// Most seats that an operator may give a workshop. 1 to 1,000,000,000.
    pub max_capacity: u32,
    /// Milliseconds that a hold lives if neither the request nor the workshop says so. 1 to 31,536,000,000 (a year),
    /// and at most `max_hold_ms`.
    pub hold_ttl_ms: u64,
    /// Milliseconds that a hold lives at most, all its extensions and exchanges included. 1 to 31,536,000,000 (a year).
    pub max_hold_ms: u64,
    /// Longest that an operator may let a workshop's offers live, in milliseconds. 1 to 31,536,000,000 (a year).
    pub max_offer_ms: u64,
    /// Longest waiting list that an operator may allow a workshop. 1 to 1,000,000.
    pub max_waitlist: u32,
    /// Most bytes in a holder's name. 1 to 1,024.
    pub max_holder_bytes: usize,
    /// Most expiries, offers or rows of a deleted workshop that are written in one go for nobody in particular. 1 to
    /// 65,536.
    pub sweep_chunk: u32,
    /// Most lines of a set, which asks several workshops at once. 1 to 1,000.
    pub max_lines_per_set: usize,
    /// Most sets that are on their way at once: not decided, or not every workshop has done what was decided. 1 to
    /// 1,000,000.
    pub max_open_sets: usize,
    /// Milliseconds after which a set that nobody goes on with is taken up again. 10 to 600,000.
    pub set_retry_ms: u64,
    /// Most entries in a page of a listing. 1 to 10,000.
    pub max_page: u32,
    /// Most event streams open at once. 0 to 1,000,000.
    pub max_event_streams: usize,
    /// Milliseconds after which a silent event stream sends a comment, so that nobody in between takes it for dead. 10
    /// to 600,000.
    pub event_keepalive_ms: u64,
}

impl Default for Reservations {
    fn default() -> Self {
        Self {
            default_capacity: 4,
            max_seats_per_request: 4,
            max_capacity: 1_000_000,
            hold_ttl_ms: 600_000,
            max_hold_ms: 3_600_000,
            max_offer_ms: 604_800_000,
            max_waitlist: 10_000,
            max_holder_bytes: 128,
            sweep_chunk: 32,
            max_lines_per_set: 16,
            max_open_sets: 1_000,
            set_retry_ms: 1_000,
            max_page: 200,
            max_event_streams: 1_000,
            event_keepalive_ms: 15_000,
        }
    }
}

impl Reservations {
    /// The most that `max_seats_per_request` can be.
    pub const MOST_SEATS_PER_REQUEST: u32 = 1_000_000;
    /// The most that `max_hold_ms` can be: a year.
    pub const MOST_HOLD_MS: i64 = 31_536_000_000;
    /// The most that `max_holder_bytes` can be.
    pub const MOST_HOLDER_BYTES: u16 = 1_024;
    /// The most that `max_lines_per_set` can be.
    pub const MOST_LINES_PER_SET: u16 = 1_000;

    pub(crate) const KEYS: Keys = &[
        ("default_capacity", whole(0, 1_000_000)),
        ("max_seats_per_request", whole(1, Self::MOST_SEATS_PER_REQUEST as i64)),
        ("max_capacity", whole(1, 1_000_000_000)),
        ("hold_ttl_ms", whole(1, Self::MOST_HOLD_MS)),
        ("max_hold_ms", whole(1, Self::MOST_HOLD_MS)),
        ("max_offer_ms", whole(1, 31_536_000_000)),
        ("max_waitlist", whole(1, 1_000_000)),
        ("max_holder_bytes", whole(1, Self::MOST_HOLDER_BYTES as i64)),
        ("sweep_chunk", whole(1, 65_536)),
        ("max_lines_per_set", whole(1, Self::MOST_LINES_PER_SET as i64)),
        ("max_open_sets", whole(1, 1_000_000)),
        ("set_retry_ms", whole(10, 600_000)),
        ("max_page", whole(1, 10_000)),
        ("max_event_streams", whole(0, 1_000_000)),
        ("event_keepalive_ms", whole(10, 600_000)),
    ];
}
