//! The settings themselves: a struct a section, its defaults and its rules beside it, so that the three are read and
//! changed together.

mod auth;
mod backup;
mod counts;
mod engine;
mod faults;
mod log;
mod namespaces;
mod rooms;
mod secret;
mod server;
mod storage;
mod telemetry;

use serde::{Deserialize, Serialize};

pub use auth::{ApiKey, Auth, KeyDigest, NotADigest, Scope, TokenSecret};
pub use backup::Backup;
pub use counts::{Bulk, Counters, Likes, Reservations, Rollup};
pub use engine::{Actors, Batch, Clock, Mailbox};
#[cfg(debug_assertions)]
pub use faults::Faults;
pub use log::{Log, LogFormat, LogLevel};
pub use namespaces::{Namespace, NamespaceState, Namespaces};
pub use rooms::{RoomHistory, Rooms};
pub use secret::{NotASecret, SharedSecret};
pub use server::Server;
pub use storage::{Sqlite, Storage, Synchronous};
pub use telemetry::Telemetry;

use super::rule::Rule;

/// Every setting of the service. `Default` is what ships, and what `config/headcount.toml` documents.
///
/// Serializing writes the digests of `auth.keys` and the secrets of `auth.token_secrets` in full, so it is for checking
/// alone; `Debug` does not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Listeners, connections and requests.
    pub server: Server,
    /// Where the data is, and in how many files.
    pub storage: Storage,
    /// Copies of the data.
    pub backup: Backup,
    /// How each partition's SQLite file is driven.
    pub sqlite: Sqlite,
    /// How many decisions share one commit.
    pub batch: Batch,
    /// How many commands may wait, and for how long.
    pub mailbox: Mailbox,
    /// What stays in memory between commands.
    pub actors: Actors,
    /// The likes feature.
    pub likes: Likes,
    /// Counters without members.
    pub counters: Counters,
    /// Many likes in one request.
    pub bulk: Bulk,
    /// The job that carries shard counters into the totals.
    pub rollup: Rollup,
    /// The reservations feature.
    pub reservations: Reservations,
    /// The rooms feature.
    pub rooms: Rooms,
    /// Which parts of the data are kept at all.
    pub namespaces: Namespaces,
    /// Who may call.
    pub auth: Auth,
    /// What is logged, and how.
    pub log: Log,
    /// Where traces go.
    pub telemetry: Telemetry,
    /// How far the wall clock is trusted.
    pub clock: Clock,
    /// Faults made on purpose, for tests. Absent from release builds.
    #[cfg(debug_assertions)]
    pub faults: Faults,
}

impl Config {
    pub(crate) const RULE: Rule = Rule::Section(&[
        ("server", Rule::Section(Server::KEYS)),
        ("storage", Rule::Section(Storage::KEYS)),
        ("backup", Rule::Section(Backup::KEYS)),
        ("sqlite", Rule::Section(Sqlite::KEYS)),
        ("batch", Rule::Section(Batch::KEYS)),
        ("mailbox", Rule::Section(Mailbox::KEYS)),
        ("actors", Rule::Section(Actors::KEYS)),
        ("likes", Rule::Section(Likes::KEYS)),
        ("counters", Rule::Section(Counters::KEYS)),
        ("bulk", Rule::Section(Bulk::KEYS)),
        ("rollup", Rule::Section(Rollup::KEYS)),
        ("reservations", Rule::Section(Reservations::KEYS)),
        ("rooms", Rule::Section(Rooms::KEYS)),
        ("namespaces", Rule::Section(Namespaces::KEYS)),
        ("auth", Rule::Section(Auth::KEYS)),
        ("log", Rule::Section(Log::KEYS)),
        ("telemetry", Rule::Section(Telemetry::KEYS)),
        ("clock", Rule::Section(Clock::KEYS)),
        #[cfg(debug_assertions)]
        ("faults", Rule::Section(Faults::KEYS)),
    ]);
}

#[cfg(test)]
mod shipped_file;
