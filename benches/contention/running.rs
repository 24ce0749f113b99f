//! One contender at one workload: a data directory of its own, growing from round to round.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headcount::config::Config;
use headcount::data_dir::DataDir;
use headcount::partition::Clock;
use headcount::server::Partitions;
use headcount::store::sqlite::{Identity, SqliteStore};
use tokio::runtime::Runtime;

use crate::callers::{self, Round, Target};
use crate::contender::{Contender, Kind};
use crate::mutex::MutexStore;
use crate::workload::Workload;
use crate::{Failure, audit};

pub struct Running {
    runtime: Runtime,
    target: Target,
    /// None for the mutex.
    partitions: Option<Partitions>,
    /// Locked until it is dropped.
    data: DataDir,
    path: PathBuf,
    workload: Workload,
    requests: u64,
}

impl Running {
    pub fn start(contender: &Contender, workload: Workload, dir: &Path) -> Result<Self, Failure> {
        let path = dir.join("data");
        let settings = contender.settings(&path, workload);
        let mut data = DataDir::open(&path, settings.likes.shards, settings.storage.partitions)?;
        let (runtime, workers) = callers::runtime()?;
        let (target, partitions) = match contender.kind {
            Kind::Mutex => (Target::Mutex(Arc::new(open_mutex(&settings, &data)?)), None),
            Kind::OneByOne | Kind::Engine { .. } => {
                // Replies go out from the runtime that the partitions are started on.
                let _on_runtime = runtime.enter();
                let partitions = Partitions::start(&settings, &mut data, Some(workers))?;
                let (shards, workshops) = (partitions.shards.clone(), partitions.workshops.clone());
                (Target::Partitions { shards, workshops }, Some(partitions))
            }
        };
        Ok(Self { runtime, target, partitions, data, path, workload, requests: 0 })
    }

    /// Runs the next `requests` requests.
    pub fn round(&mut self, requests: u64) -> Result<Round, Failure> {
        let first = self.requests;
        self.requests += requests;
        callers::round(&self.runtime, &self.target, self.workload, first..self.requests)
    }

    /// Counts what is stored, from the files alone, and removes them.
    pub fn stop_and_audit(self) -> Result<(), Failure> {
        drop(self.target);
        if let Some(partitions) = self.partitions {
            self.runtime.block_on(partitions.stop());
        }
        let files: Vec<_> =
            (0..self.data.manifest().partitions).map(|index| self.data.partition_file(index)).collect();
        audit::check(&files, self.workload, self.requests)?;
        drop(self.data);
        Ok(std::fs::remove_dir_all(self.path)?)
    }
}

fn open_mutex(settings: &Config, data: &DataDir) -> Result<MutexStore, Failure> {
    let identity = Identity { data_id: data.manifest().data_id.clone(), partition: 0 };
    let store = SqliteStore::open(&data.partition_file(0), identity, settings.sqlite.clone())?;
    let clock = Clock::system(0, i64::MAX)?;
    Ok(MutexStore::new(store, clock, settings.reservations.default_capacity)?)
}
