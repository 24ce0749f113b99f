//! The partitions of a data directory: opened, started, and stopped.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::{Error, removal};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::engine::{Command, Engine};
use crate::likes::Shards;
use crate::likes::actor::LikesActors;
use crate::likes::types::shards_of_partition;
use crate::opening;
use crate::partition::hold::Hold;
use crate::partition::mailbox::Gather;
use crate::partition::worker::{self, Limits, Partition};
use crate::partition::{Clock, Port, Workers};
use crate::people;
use crate::reservations::actor::{ReservationActors, Setup};
use crate::reservations::alarm::Alarm;
use crate::reservations::decide::Defaults;
use crate::reservations::feeds::Feeds;
use crate::reservations::sets::driver::Bounds;
use crate::reservations::{Sets, Workshops};
use crate::rooms::recorder::Recorder;
use crate::rooms::records::RoomRecords;
use crate::rooms::settings::history_bounds;
use crate::store::sqlite::SqliteStore;
use crate::store::{BookingsStore, SetsStore};
use crate::usage::Usage;

/// Running partitions with the ways in: the service without its listeners and its roll-up.
#[derive(Debug)]
pub struct Partitions {
    /// To the likes.
    pub shards: Shards,
    /// To the reservations.
    pub workshops: Workshops,
    /// To sets of reservations. Nobody keeps them yet.
    pub sets: Sets,
    /// To the durable history of rooms.
    pub recorder: Recorder,
    /// The time by which they decide.
    pub clock: Clock,
    /// What they cost.
    pub usage: Usage,
    /// When each has reservations to sweep.
    pub(super) alarms: Vec<Alarm>,
    /// When each has sets whose hold ends.
    pub(super) sets_alarms: Vec<Alarm>,
    pub(super) running: Vec<Partition<Command>>,
}

/// What partitions run, not yet running: each over its open store.
#[derive(Debug)]
pub struct Engines {
    /// In the order of the partitions.
    pub engines: Vec<Engine<SqliteStore>>,
    /// The time by which they decide.
    pub clock: Clock,
    /// What they cost.
    pub usage: Usage,
    feeds: Feeds,
    alarms: Vec<Alarm>,
    sets_alarms: Vec<Alarm>,
}

impl Partitions {
    /// Opens the stores of a data directory and starts a partition over each. Call it on a tokio runtime, that
    /// of `workers` if given: batches then gather while those are busy.
    ///
    /// # Errors
    /// [`Error::DataDir`], [`Error::Store`], [`Error::Clock`] and [`Error::Thread`].
    pub fn start(config: &Config, data: &mut DataDir, workers: Option<Arc<Workers>>) -> Result<Self, Error> {
        let Engines { engines, feeds, alarms, sets_alarms, clock, usage } = Engines::open(config, data)?;
        let mut running = Vec::with_capacity(engines.len());
        for (index, engine) in (0..).zip(engines) {
            let limits = limits(config, workers.clone());
            running.push(worker::spawn(index, engine, limits, clock.clone()).map_err(Error::Thread)?);
        }
        let patience = Duration::from_millis(config.server.request_timeout_ms);
        let shards = Shards::new(ports(&running), data.manifest().shards, patience);
        let workshops = Workshops::new(ports(&running), patience, feeds);
        let bounds = Bounds {
            patience,
            hold_ttl_ms: i64::try_from(config.reservations.hold_ttl_ms).unwrap_or(i64::MAX),
            max_open: config.reservations.max_open_sets,
            retry: Duration::from_millis(config.reservations.set_retry_ms),
            #[cfg(debug_assertions)]
            stop_at: config.faults.stop_set_at.clone(),
            #[cfg(not(debug_assertions))]
            stop_at: String::new(),
        };
        let sets = Sets::new(workshops.clone(), bounds, clock.clone());
        let recorder = Recorder::new(ports(&running), patience);
        Ok(Self { shards, workshops, sets, recorder, clock, usage, alarms, sets_alarms, running })
    }

    /// What can be held still, of each.
    pub(super) fn holds(&self) -> Vec<Box<dyn Hold>> {
        self.running.iter().map(|partition| Box::new(partition.handle.clone()) as Box<dyn Hold>).collect()
    }

    /// To what concerns people.
    pub(super) fn people(&self) -> Vec<Box<dyn Port<people::Command>>> {
        ports(&self.running)
    }

    /// Decides what still waits, checkpoints, and waits for the threads to end.
    pub async fn stop(self) {
        self.sets.stop().await;
        for partition in &self.running {
            partition.handle.close();
        }
        join_all(self.running.into_iter().map(Partition::join)).await;
    }
}

impl Engines {
    /// Opens the stores of a data directory.
    ///
    /// # Errors
    /// [`Error::DataDir`], [`Error::Store`] and [`Error::Clock`].
    pub fn open(config: &Config, data: &mut DataDir) -> Result<Self, Error> {
        let stores = opening::stores(data, config)?;
        data.complete()?;
        let clock = opening::clock::<Error>(&stores, config)?;
        let feeds = Feeds::default();
        let usage = Usage::new(&clock);
        let (mut engines, mut alarms, mut sets_alarms) = (Vec::new(), Vec::new(), Vec::new());
        for (index, mut store) in (0..).zip(stores) {
            removal::from_partition(config, data.manifest(), (index, &mut store), clock.now_ms())?;
            store.keep_index_by_item(config.likes.index_by_item)?;
            let alarm = Alarm::new(store.next_due_at_ms()?);
            let sets_alarm = Alarm::new(store.next_set_due_at_ms()?);
            alarms.push(alarm.clone());
            sets_alarms.push(sets_alarm.clone());
            let shared = (feeds.clone(), alarm, sets_alarm, usage.clone());
            engines.push(engine(store, index, data, config, shared));
        }
        Ok(Self { engines, feeds, alarms, sets_alarms, clock, usage })
    }
}

fn engine(
    store: SqliteStore,
    partition: u32,
    data: &DataDir,
    config: &Config,
    (feeds, alarm, sets_alarm, usage): (Feeds, Alarm, Alarm, Usage),
) -> Engine<SqliteStore> {
    let manifest = data.manifest();
    let shards = shards_of_partition(partition, manifest.shards, manifest.partitions);
    let max_resident = config.actors.max_resident;
    let likes = LikesActors::new(shards, max_resident);
    let settings = &config.reservations;
    let milliseconds = |setting| i64::try_from(setting).unwrap_or(i64::MAX);
    let reservations = ReservationActors::new(Setup {
        default_capacity: settings.default_capacity,
        defaults: Defaults {
            hold_ttl_ms: milliseconds(settings.hold_ttl_ms),
            max_hold_ms: milliseconds(settings.max_hold_ms),
            chunk: settings.sweep_chunk,
        },
        max_resident,
        feeds,
        alarm,
        sets_alarm,
    });
    let rooms = RoomRecords::new(history_bounds(&config.rooms), max_resident);
    let engine = Engine::new(store, likes, reservations, rooms, usage);
    #[cfg(debug_assertions)]
    let engine = engine.with_faults(config.faults.clone());
    engine
}

fn limits(config: &Config, workers: Option<Arc<Workers>>) -> Limits {
    Limits {
        batch_max: config.batch.max,
        max_per_actor: config.batch.max_per_actor,
        capacity: config.mailbox.capacity,
        actor_capacity: config.mailbox.actor_capacity,
        gather: Gather {
            linger: Duration::from_micros(config.batch.linger_us),
            crowd: config.batch.crowd,
            workers,
        },
        deadline: Duration::from_millis(config.mailbox.deadline_ms),
        idle_timeout: Duration::from_millis(config.actors.idle_timeout_ms),
        #[cfg(debug_assertions)]
        reply_before_commit: config.faults.reply_before_commit,
        #[cfg(not(debug_assertions))]
        reply_before_commit: false,
    }
}

fn ports<C: Into<Command> + 'static>(partitions: &[Partition<Command>]) -> Vec<Box<dyn Port<C>>> {
    partitions.iter().map(|partition| Box::new(partition.handle.clone()) as Box<dyn Port<C>>).collect()
}
