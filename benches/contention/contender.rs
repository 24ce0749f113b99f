//! Who does the work: how many may decide at once, and how many decisions share a commit.

use std::path::Path;

use headcount::config::{Batch, Config, Likes, Mailbox, Reservations, Server, Storage};

use crate::workload::Workload;

pub struct Contender {
    pub name: &'static str,
    pub kind: Kind,
    /// Enough to take a few tenths of a second.
    pub requests_a_round: u64,
}

#[derive(Clone, Copy)]
pub enum Kind {
    /// A mutex around one file, a transaction a request.
    Mutex,
    /// One actor on one partition, a transaction a request.
    OneByOne,
    /// The engine as it ships, but for the numbers that are given.
    Engine { partitions: Option<u32>, shards: Option<u32> },
}

pub const CONTENDERS: [Contender; 7] = [
    Contender { name: "mutex, a transaction a request", kind: Kind::Mutex, requests_a_round: 1_500 },
    Contender { name: "one actor, a transaction a request", kind: Kind::OneByOne, requests_a_round: 1_500 },
    engine("1 partition", Some(1), None),
    engine("2 partitions", Some(2), None),
    engine("4 partitions", Some(4), None),
    engine("16 partitions", Some(16), None),
    engine("1 shard on the default partitions", None, Some(1)),
];

const PATIENCE_MS: u64 = 600_000;

const fn engine(name: &'static str, partitions: Option<u32>, shards: Option<u32>) -> Contender {
    Contender { name, kind: Kind::Engine { partitions, shards }, requests_a_round: 60_000 }
}

impl Contender {
    /// Shards are the likes' alone.
    pub fn takes_part(&self, workload: Workload) -> bool {
        workload.is_likes() || !matches!(self.kind, Kind::Engine { shards: Some(_), .. })
    }

    pub fn settings(&self, data_dir: &Path, workload: Workload) -> Config {
        let (partitions, shards, batch) = match self.kind {
            Kind::Mutex | Kind::OneByOne => (Some(1), Some(1), Batch { max: 1, ..Batch::default() }),
            Kind::Engine { partitions, shards } => (partitions, shards, Batch::default()),
        };
        Config {
            storage: Storage { data_dir: data_dir.to_owned(), partitions, ..Storage::default() },
            likes: Likes { shards, ..Likes::default() },
            reservations: Reservations { default_capacity: workload.capacity(), ..Reservations::default() },
            batch,
            // A slow contender is to be slow, not to refuse.
            mailbox: Mailbox { deadline_ms: PATIENCE_MS, ..Mailbox::default() },
            server: Server { request_timeout_ms: PATIENCE_MS, ..Server::default() },
            ..Config::default()
        }
    }
}
