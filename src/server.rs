//! The wiring: what starts, in which order, and how it stops.
//!
//! Start: bind, lock and read the data directory, move its data if that is asked for, open the stores, spawn the partitions,
//! start the roll-up, the sweepers and the keeper of sets, accept. Stop, the other way round: accept no more, send the sockets away, finish
//! what is in flight, one last roll-up, let the partitions empty their queues and checkpoint, send the last traces.

mod partitions;
mod removal;
mod reshard;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing_appender::non_blocking::ErrorCounter;

use crate::admin::backup::Backups;
use crate::config::{Config, RoomHistory};
use crate::data_dir::{self, DataDir};
use crate::engine::Command;
use crate::http::auth::Keys;
use crate::http::console::Console;
use crate::http::observe::Routes;
use crate::http::origins::Origins;
use crate::http::router::{self, App, Shared};
use crate::http::serve::{self, Bounds};
use crate::likes::counters::sweeper as counter_sweeper;
use crate::likes::indexing;
use crate::likes::rollup::past::Past;
use crate::likes::rollup::{self, Summary, schedule, schedule::Schedule};
use crate::likes::{Bulk, Counters};
use crate::metrics::ConnectionMetrics;
use crate::partition::Workers;
use crate::partition::clock::SteppedBack;
use crate::partition::worker::Partition;
use crate::people::forgetter;
use crate::reservations::sets::keeper;
use crate::reservations::sweeper;
use crate::rooms::Rooms;
use crate::store;
use crate::store::SummaryStore;
use crate::store::history::Kept;
use crate::store::sqlite::summary::SqliteSummary;
use crate::telemetry::{self, Telemetry};
use crate::usage::stored::Measured;

pub use partitions::{Engines, Partitions};
pub use reshard::reshard;

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address is taken, or not this machine's.
    #[error(
        "cannot listen on {address}: {source}. Is headcount running already? Another address: --listen, --admin-listen"
    )]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The data directory.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// A namespace is declared deleted, and not for this data directory.
    #[error(
        "namespaces.{namespace}.state is \"deleted\", which removes everything stored in {data_dir} for good: \
         namespaces.{namespace}.confirm must then be that directory's id (data_id in its manifest.json), and {found}"
    )]
    Unconfirmed {
        /// Which.
        namespace: &'static str,
        /// The directory.
        data_dir: String,
        /// What `confirm` says.
        found: String,
    },
    /// Its data cannot be moved.
    #[error(transparent)]
    Move(#[from] crate::admin::reshard::Error),
    /// A file in it.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The clock.
    #[error(transparent)]
    Clock(#[from] SteppedBack),
    /// No thread.
    #[error("cannot start a partition's thread: {0}")]
    Thread(std::io::Error),
    /// Where traces go.
    #[error(transparent)]
    Telemetry(#[from] telemetry::Error),
    /// The roll-up's schedule.
    #[error("rollup.schedule: {0}")]
    Schedule(String),
}

/// What the process has one of, whatever runs in it.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Renders the metrics.
    pub metrics: Option<PrometheusHandle>,
    /// Counts dropped log lines.
    pub log_dropped: Option<ErrorCounter>,
    /// The threads that serve the API.
    pub workers: Option<Arc<Workers>>,
}

/// A running service.
#[derive(Debug)]
pub struct Running {
    /// Where the public API listens.
    pub public: SocketAddr,
    /// Where the admin API listens.
    pub admin: SocketAddr,
    drain_timeout: Duration,
    draining: CancellationToken,
    rooms: Rooms,
    connections: TaskTracker,
    schedule: Schedule,
    stop_rollup: CancellationToken,
    rollup: JoinHandle<()>,
    stop_sweeper: CancellationToken,
    sweeper: TaskTracker,
    forgetting: JoinHandle<()>,
    partitions: Partitions,
    telemetry: Telemetry,
    /// Held until everything is down.
    _data: DataDir,
}

/// Starts the service; it accepts when this returns.
///
/// # Errors
/// See [`Error`].
pub async fn start(config: &Config, process: Process) -> Result<Running, Error> {
    let public = listen(config.server.listen, config.server.backlog)?;
    let admin = listen(config.server.admin_listen, config.server.backlog)?;
    let telemetry = Telemetry::start(&config.telemetry)?;
    let placed = (config.likes.shards, config.storage.partitions);
    let mut data = DataDir::open_as_placed(&config.storage.data_dir, placed.0, placed.1)?;
    removal::check_confirmed(config, data.manifest())?;
    reshard::place(config, &mut data).await?;
    let data_id = data.manifest().data_id.clone();
    let mut summary_store = SqliteSummary::open(&data.summary_file(), &data_id, &config.sqlite)?;
    removal::from_summary(config, &mut summary_store)?;
    let partitions = Partitions::start(config, &mut data, process.workers.clone())?;
    crate::metrics::limits(config.server.max_connections, config.mailbox.capacity);
    let (shards, clock) = (partitions.shards.clone(), partitions.clock.clone());
    let manifest = data.manifest();
    let progress = summary_store.progress(manifest.shards)?;
    let patience = Duration::from_millis(config.server.request_timeout_ms);
    let summary = Summary::new(summary_store.reader()?, config.rollup.cache_items, &progress, patience);
    let kept = kept(config);
    let past = Past::new(summary_store.reader()?, summary.clone(), kept, patience)?;
    let stop_rollup = CancellationToken::new();
    let start = rollup::Start {
        shards: shards.clone(),
        store: summary_store,
        summary: summary.clone(),
        progress,
        clock: clock.clone(),
        page_items: config.rollup.page_items,
        gathered_items: config.rollup.gathered_items,
        kept,
        check_rows: config.rollup.check_rows,
        max_share_percent: config.rollup.max_share_percent,
        patience,
    };
    let (rollup, rollup_task) = rollup::start(start, stop_rollup.clone());
    rollup.knock();
    let schedule = schedule::start(&config.rollup.schedule, rollup.clone())
        .await
        .map_err(|error| Error::Schedule(error.to_string()))?;

    let stop_sweeper = CancellationToken::new();
    let sweeper = sweeper::start(&partitions.workshops, partitions.alarms.clone(), &clock, &stop_sweeper);
    keeper::start(&partitions.sets, partitions.sets_alarms.clone());
    let forgetting = counter_sweeper::Bounds {
        dedupe_ttl_ms: config.counters.dedupe_ttl_ms,
        chunk: config.counters.sweep_chunk,
    };
    sweeper.spawn(counter_sweeper::sweep(shards.clone(), forgetting, clock.clone(), stop_sweeper.clone()));

    let draining = CancellationToken::new();
    let recorder = (config.rooms.history == RoomHistory::Durable).then(|| partitions.recorder.clone());
    let usage = partitions.usage.clone();
    let rooms = Rooms::start(config.into(), clock.clone(), recorder, Arc::clone(&usage.rooms), &draining);
    let backups = Backups::new(config, &data, partitions.holds(), clock.clone(), draining.clone());
    if config.likes.index_by_item {
        indexing::start(&shards, &draining);
    }
    let (forgetter, forgetting) = forgetter::start(
        forgetter::Start {
            ports: partitions.people(),
            shards: manifest.shards,
            rooms: rooms.clone(),
            data_id,
            patience,
        },
        stop_sweeper.clone(),
    );
    let layout = (manifest.shards, manifest.partitions);
    let directory = config.storage.data_dir.clone();
    let stored = Measured::new(&data, directory, config.storage.usage_age_ms, clock.clone());
    let up = |partition: &Partition<Command>| -> Box<dyn Fn() -> bool + Send + Sync> {
        let handle = partition.handle.clone();
        Box::new(move || handle.is_up())
    };
    let app = App::new(Shared {
        counters: Counters::new(shards.clone(), config.counters.dedupe_ttl_ms),
        bulk: Bulk::new(shards.clone(), &config.bulk),
        shards,
        rollup,
        summary,
        past,
        workshops: partitions.workshops.clone(),
        sets: partitions.sets.clone(),
        rooms: rooms.clone(),
        forgetter,
        layout,
        clock,
        partitions: partitions.running.iter().map(up).collect(),
        draining: draining.clone(),
        console: Console::new(config, manifest, usage.since_ms, (public.address, admin.address)),
        keys: Keys::from(&config.auth),
        origins: Origins::from(&config.server),
        limits: config.into(),
        routes: Routes::new(&usage),
        usage,
        stored,
        backups,
        telemetry: telemetry.clone(),
        metrics: process.metrics,
        log_dropped: process.log_dropped,
        #[cfg(debug_assertions)]
        clock_control: config.faults.clock_control,
    });
    let connections = TaskTracker::new();
    let accept = |(listener, router, name): (Listener, _, _)| {
        let metrics = ConnectionMetrics::new(name);
        tokio::spawn(serve::serve(
            listener.socket,
            router,
            bounds(config),
            metrics,
            draining.clone(),
            connections.clone(),
        ));
        listener.address
    };
    Ok(Running {
        public: accept((public, router::public(&app, config), "public")),
        admin: accept((admin, router::admin(&app), "admin")),
        drain_timeout: Duration::from_millis(config.server.drain_timeout_ms),
        draining,
        rooms,
        connections,
        schedule,
        stop_rollup,
        rollup: rollup_task,
        stop_sweeper,
        sweeper,
        forgetting,
        partitions,
        telemetry,
        _data: data,
    })
}

impl Running {
    /// Stops: accepts no more, sends the sockets away, finishes what is in flight (for `server.drain_timeout_ms` at most), rolls
    /// up once more, checkpoints.
    pub async fn stop(self) {
        self.draining.cancel();
        self.rooms.drain();
        self.connections.close();
        if tokio::time::timeout(self.drain_timeout, self.connections.wait()).await.is_err() {
            tracing::warn!(connections = self.connections.len(), "not everything in flight finished in time");
        }
        self.schedule.stop().await;
        self.stop_rollup.cancel();
        if self.rollup.await.is_err() {
            tracing::error!("the roll-up's task ended in a panic");
        }
        self.stop_sweeper.cancel();
        self.sweeper.wait().await;
        if self.forgetting.await.is_err() {
            tracing::error!("the task that forgets people ended in a panic");
        }
        self.partitions.stop().await;
        self.telemetry.stop().await;
    }
}

/// How much of the past the roll-up keeps.
fn kept(config: &Config) -> Kept {
    Kept {
        minutes: config.rollup.history_minutes,
        hours: config.rollup.history_hours,
        days: config.rollup.history_days,
        ranked: config.rollup.trending_items,
    }
}

struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

fn listen(address: SocketAddr, backlog: u32) -> Result<Listener, Error> {
    let failed = |source| Error::Listen { address, source };
    let bound = || -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // As the standard library does: the address is free again as soon as a service has ended.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        // The standard library's 128 overflow when many come at once, and whom the system drops tries again a second later.
        socket.listen(backlog)
    };
    let socket = bound().map_err(failed)?;
    // The port that was given, where port 0 was asked for.
    let address = socket.local_addr().map_err(failed)?;
    Ok(Listener { socket, address })
}

fn bounds(config: &Config) -> Bounds {
    Bounds {
        max_connections: config.server.max_connections,
        header_timeout: Duration::from_millis(config.server.header_timeout_ms),
        write_timeout: Duration::from_millis(config.server.write_timeout_ms),
        retry_after_s: config.server.retry_after_s,
    }
}
