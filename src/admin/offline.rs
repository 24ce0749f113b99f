//! A data directory that nobody serves from, opened to change it.

use std::path::Path;

use crate::config::Config;
use crate::data_dir::{self, DataDir};
use crate::likes::types::shards_of_partition;
use crate::opening;
use crate::partition::Clock;
use crate::partition::clock::SteppedBack;
use crate::store::sqlite::SqliteStore;
use crate::store::sqlite::summary::SqliteSummary;
use crate::store::{self, Transactions};

/// Why it cannot be opened or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory, or somebody is serving from it.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// A file.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The clock.
    #[error(transparent)]
    Clock(#[from] SteppedBack),
}

/// Locked until it is dropped.
pub(super) struct Offline {
    pub data: DataDir,
    pub stores: Vec<SqliteStore>,
    pub clock: Clock,
}

impl Offline {
    /// Locks and opens a directory, creating what is missing.
    pub(super) fn open(path: &Path, config: &Config) -> Result<Self, Error> {
        let mut data = DataDir::open(path, config.likes.shards, config.storage.partitions)?;
        let stores = opening::stores(&data, config)?;
        let data_id = data.manifest().data_id.clone();
        let _created = SqliteSummary::open(&data.summary_file(), &data_id, &config.sqlite)?;
        data.complete()?;
        let clock = opening::clock::<Error>(&stores, config)?;
        Ok(Self { data, stores, clock })
    }

    /// The summary.
    pub(super) fn summary(&self, config: &Config) -> Result<SqliteSummary, store::Error> {
        SqliteSummary::open(&self.data.summary_file(), &self.data.manifest().data_id, &config.sqlite)
    }

    /// The shards placed on a partition.
    pub(super) fn shards_of(&self, partition: u32) -> Vec<u32> {
        let manifest = self.data.manifest();
        shards_of_partition(partition, manifest.shards, manifest.partitions)
    }

    /// Makes everything durable.
    pub(super) fn close(mut self) -> Result<(), store::Error> {
        self.stores.iter_mut().try_for_each(SqliteStore::checkpoint)
    }
}
