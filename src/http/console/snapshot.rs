//! What the page is told each second, whole: the shapes of it.
//!
//! Rates are absent in the first snapshot after nobody looked: they need two readings. Times are ms since 1970.

use std::net::SocketAddr;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::config::{Config, Namespaces, RoomHistory};
use crate::data_dir::Manifest;
use crate::http::workshops::WorkshopAnswer;
use crate::usage::Namespace;

/// All of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot<'a> {
    pub(super) at: i64,
    pub(super) viewers: usize,
    pub(super) instance: &'a Instance,
    pub(super) now: Now,
    /// The last two minutes, or since somebody looked.
    pub(super) series: Series,
    /// Absent where likes are deleted, or where they could not be read in time; likewise below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top: Option<Top>,
    pub(super) shards: Vec<Shard>,
    pub(super) partitions: Vec<Partition>,
    pub(super) rollup: Rollup,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workshops: Option<Workshops>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rooms: Option<Rooms>,
    pub(super) namespaces: Vec<NamespaceUse>,
    pub(super) stored: Option<Stored>,
    pub(super) backup: Backup,
    pub(super) decisions: Decisions,
}

/// What does not change while the process lives.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Instance {
    version: &'static str,
    /// `release` or `debug`.
    build: &'static str,
    data_id: String,
    data_dir: String,
    backup_dir: String,
    pub(super) since: i64,
    public: String,
    admin: String,
    shards: u32,
    partitions: u32,
    rollup_schedule: String,
    /// `memory` or `durable`.
    room_history: &'static str,
    /// Whether every request needs a key.
    keys: bool,
    decision_log: bool,
}

impl Instance {
    pub(super) fn of(
        config: &Config,
        manifest: &Manifest,
        since: i64,
        (public, admin): (SocketAddr, SocketAddr),
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            data_id: manifest.data_id.clone(),
            data_dir: config.storage.data_dir.display().to_string(),
            backup_dir: config.backup.dir.display().to_string(),
            since,
            public: public.to_string(),
            admin: admin.to_string(),
            shards: manifest.shards,
            partitions: manifest.partitions,
            rollup_schedule: config.rollup.schedule.clone(),
            room_history: if config.rooms.history == RoomHistory::Durable { "durable" } else { "memory" },
            keys: !config.auth.keys.is_empty(),
            decision_log: config.log.decisions,
        }
    }
}

/// The service as a whole; `…PerS` is what happened in the last second.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Now {
    pub(super) likes_per_s: Option<f64>,
    pub(super) reservations_per_s: Option<f64>,
    pub(super) messages_per_s: Option<f64>,
    pub(super) calls_per_s: Option<f64>,
    /// 5xx.
    pub(super) failed_per_s: Option<f64>,
    /// Open connections to the public and to the admin listener.
    pub(super) connections: (f64, f64),
    /// Sets of reservations on their way.
    pub(super) sets_open: f64,
    pub(super) log_lines_dropped: u64,
    pub(super) partitions_down: usize,
}

/// A value a second, the newest last.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Series {
    pub(super) likes: Vec<f64>,
    pub(super) reservations: Vec<f64>,
    pub(super) messages: Vec<f64>,
    pub(super) calls: Vec<f64>,
}

/// The items that gained most in the last hour; where none did, those with the most likes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Top {
    /// `1h` or `all`.
    pub(super) window: &'static str,
    pub(super) items: Vec<Item>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Item {
    pub(super) item: String,
    pub(super) gained: i64,
    pub(super) total: i64,
    /// What each of the last minutes gained, the present one last.
    pub(super) minutes: Vec<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shard {
    pub(super) shard: u32,
    pub(super) partition: u32,
    /// Likes, unlikes, adds and questions that it was asked in the last second.
    pub(super) per_s: Option<f64>,
    /// Of the last ten seconds, on average, from the question to its answer; absent where none was answered. Those in bulk
    /// are not among them.
    pub(super) answer_ms: Option<f64>,
    /// Of all it was asked since the start, what was refused or not answered in time.
    pub(super) failed: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Partition {
    pub(super) partition: usize,
    pub(super) up: bool,
    /// Commands decided in the last second, and in those before it, the newest last.
    pub(super) commands_per_s: Option<f64>,
    pub(super) series: Vec<f64>,
    /// Of the last ten seconds; absent where nothing was decided.
    pub(super) batch_size: Option<f64>,
    pub(super) commit_p50_ms: Option<f64>,
    pub(super) commit_p99_ms: Option<f64>,
    pub(super) mailbox: f64,
    pub(super) mailbox_capacity: usize,
    pub(super) wal_bytes: f64,
    pub(super) resident: f64,
    /// Since the start.
    pub(super) overloads: f64,
    pub(super) expired: f64,
    pub(super) failures: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rollup {
    pub(super) as_of: i64,
    pub(super) age_ms: i64,
    pub(super) lag_ms: f64,
    /// Of the last ten seconds.
    pub(super) run_ms: Option<f64>,
    pub(super) changed_per_s: Option<f64>,
    pub(super) failures: f64,
    /// Counters that were counted again, and those that were wrong.
    pub(super) checked: f64,
    pub(super) drifted: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Workshops {
    /// The first by name.
    pub(super) workshops: Vec<WorkshopAnswer>,
    /// For the page after them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rooms {
    pub(super) awake: usize,
    pub(super) asleep: usize,
    pub(super) sockets: f64,
    pub(super) readers: f64,
    pub(super) rooms: Vec<Room>,
}

#[derive(Debug, Serialize)]
pub(super) struct Room {
    pub(super) room: String,
    pub(super) awake: bool,
    pub(super) online: Option<usize>,
    pub(super) connections: Option<usize>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NamespaceUse {
    pub(super) namespace: &'static str,
    pub(super) deleted: bool,
    /// Requests answered since the start, and in the last second.
    pub(super) calls: f64,
    pub(super) calls_per_s: Option<f64>,
    /// Of them 4xx, a rejected reservation among them, and 5xx.
    pub(super) refused: f64,
    pub(super) failed: f64,
    pub(super) failed_per_s: Option<f64>,
    pub(super) active_seconds: u64,
    pub(super) asleep_seconds: u64,
    pub(super) in_memory: usize,
    pub(super) messages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stored_bytes: Option<u64>,
}

impl NamespaceUse {
    pub(super) fn is_deleted(namespace: Namespace, namespaces: &Namespaces) -> bool {
        match namespace {
            Namespace::Likes => namespaces.likes.is_deleted(),
            Namespace::Workshops => namespaces.workshops.is_deleted(),
            Namespace::Rooms => false,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stored {
    pub(super) as_of: i64,
    pub(super) shared_bytes: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Backup {
    /// When the last one was taken; absent: none since the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<f64>,
    pub(super) took_ms: f64,
    pub(super) bytes: f64,
    pub(super) failures: f64,
}

/// The end of the decision log.
#[derive(Debug, Serialize)]
pub(super) struct Decisions {
    /// Lines since somebody looked, those that are gone among them.
    pub(super) told: u64,
    /// The newest last.
    pub(super) lines: Vec<Box<RawValue>>,
}
