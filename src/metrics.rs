//! Every metric: its name, unit, help text and buckets, in one place.
//!
//! Labels are bounded: a route, a method, a status, a partition, a feature, an outcome. Never a user, an
//! item or a workshop.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::likes::counters::decide::Added;
use crate::partition::Vitals;
use crate::reservations::command::{Change, Changed, First, Reserved};
use crate::reservations::sets::home::Turn;
use crate::store::bookings::EventKind;
use crate::store::sets::SetState;
use crate::usage::stored::Stored;
use crate::usage::{Namespace, Usage};

const START_TIME: &str = "process_start_time_seconds";
const BUILD_INFO: &str = "headcount_build_info";
const HTTP_REQUESTS: &str = "headcount_http_requests_total";
const HTTP_SECONDS: &str = "headcount_http_request_seconds";
const HTTP_CONNECTIONS: &str = "headcount_http_connections";
const HTTP_CONNECTIONS_MAX: &str = "headcount_http_connections_max";
const HTTP_CONNECTIONS_REFUSED: &str = "headcount_http_connections_refused_total";
const BATCH_COMMANDS: &str = "headcount_batch_commands";
const COMMIT_SECONDS: &str = "headcount_commit_seconds";
const MAILBOX_DEPTH: &str = "headcount_mailbox_depth";
const MAILBOX_CAPACITY: &str = "headcount_mailbox_capacity";
const OVERLOADS: &str = "headcount_overloads_total";
const EXPIRED: &str = "headcount_commands_expired_total";
const PARTITION_UP: &str = "headcount_partition_up";
const PARTITION_FAILURES: &str = "headcount_partition_failures_total";
const WAL_BYTES: &str = "headcount_wal_bytes";
const ACTORS_RESIDENT: &str = "headcount_actors_resident";
const LIKES: &str = "headcount_likes_total";
const COUNTER_ADDS: &str = "headcount_counter_adds_total";
const BULK_LINES: &str = "headcount_bulk_lines_total";
const BULK_STREAMS: &str = "headcount_bulk_streams";
const RESERVATIONS: &str = "headcount_reservations_total";
const SETS: &str = "headcount_sets_total";
const SETS_OPEN: &str = "headcount_sets_open";
const ROLLUP_SECONDS: &str = "headcount_rollup_seconds";
const ROLLUP_ITEMS: &str = "headcount_rollup_changed_items_total";
const ROLLUP_LAG: &str = "headcount_rollup_lag_seconds";
const ROLLUP_FAILURES: &str = "headcount_rollup_failures_total";
const BACKUP_TIME: &str = "headcount_backup_last_time_seconds";
const BACKUP_SECONDS: &str = "headcount_backup_last_seconds";
const BACKUP_HELD: &str = "headcount_backup_last_held_seconds";
const BACKUP_BYTES: &str = "headcount_backup_last_bytes";
const BACKUP_FAILURES: &str = "headcount_backup_failures_total";
const ROLLUP_CHECKED: &str = "headcount_rollup_checked_counters_total";
const ROLLUP_DRIFT: &str = "headcount_rollup_drift_total";
const SUMMARY_AGE: &str = "headcount_summary_age_seconds";
const LIVE_LISTENERS: &str = "headcount_likes_listeners";
const LIVE_EVENTS: &str = "headcount_likes_events_total";
const LIVE_ENCODED: &str = "headcount_likes_events_encoded_total";
const LOG_DROPPED: &str = "headcount_log_lines_dropped_total";

const ROOMS: &str = "headcount_rooms";
const ROOM_CONNECTIONS: &str = "headcount_room_connections";
const ROOM_ENDS: &str = "headcount_room_connections_ended_total";
const ROOM_WAKES: &str = "headcount_room_wakes_total";
const ROOM_JOINS: &str = "headcount_room_joins_total";
const ROOM_LEAVES: &str = "headcount_room_leaves_total";
const ROOM_MESSAGES_IN: &str = "headcount_room_messages_in_total";
const ROOM_MESSAGES_OUT: &str = "headcount_room_messages_out_total";
const ROOM_REFUSED: &str = "headcount_room_messages_refused_total";
const ROOM_DROPPED: &str = "headcount_room_frames_dropped_total";
const ROOM_BROADCAST_SECONDS: &str = "headcount_room_broadcast_seconds";

const USAGE_REQUESTS: &str = "headcount_usage_requests_total";
const USAGE_ACTIVE: &str = "headcount_usage_active_seconds_total";
const USAGE_ASLEEP: &str = "headcount_usage_asleep_seconds_total";
const USAGE_MESSAGES: &str = "headcount_usage_inbound_messages_total";
const USAGE_KEEPALIVES: &str = "headcount_usage_keepalives_total";
const USAGE_STORED: &str = "headcount_usage_stored_bytes";

const LATENCY_BUCKETS: [f64; 14] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
const BATCH_BUCKETS: [f64; 13] =
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];

/// Starts recording for the whole process.
///
/// # Errors
/// When a recorder was installed before.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &LATENCY_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(BATCH_COMMANDS.to_owned()), &BATCH_BUCKETS)?
        .install_recorder()?;
    describe();
    gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    gauge!(START_TIME).set(since_1970.as_secs_f64());
    Ok(handle)
}

/// Bounds in force, for whoever watches how near they are.
pub fn limits(max_connections: usize, mailbox_capacity: usize) {
    #[expect(clippy::cast_precision_loss, reason = "settings are far below 2^52")]
    let set = |gauge: Gauge, limit: usize| gauge.set(limit as f64);
    set(gauge!(HTTP_CONNECTIONS_MAX), max_connections);
    set(gauge!(MAILBOX_CAPACITY), mailbox_capacity);
}

fn describe() {
    describe_gauge!(START_TIME, Unit::Seconds, "When the process started, since 1970.");
    describe_gauge!(BUILD_INFO, Unit::Count, "1, by version.");
    describe_counter!(HTTP_REQUESTS, Unit::Count, "Requests answered, by route, method and status.");
    describe_histogram!(HTTP_SECONDS, Unit::Seconds, "From a request's head to its answer's, by route.");
    describe_gauge!(HTTP_CONNECTIONS, Unit::Count, "Open connections.");
    describe_gauge!(HTTP_CONNECTIONS_MAX, Unit::Count, "Connections that a listener takes at most.");
    describe_counter!(HTTP_CONNECTIONS_REFUSED, Unit::Count, "Connections beyond server.max_connections.");
    describe_histogram!(BATCH_COMMANDS, Unit::Count, "Commands decided in one batch, by partition.");
    describe_histogram!(COMMIT_SECONDS, Unit::Seconds, "Time to make one batch durable, by partition.");
    describe_gauge!(MAILBOX_DEPTH, Unit::Count, "Commands waiting, by partition.");
    describe_gauge!(MAILBOX_CAPACITY, Unit::Count, "Commands that may wait on a partition.");
    describe_counter!(OVERLOADS, Unit::Count, "Commands refused because a queue was full, by partition.");
    describe_counter!(EXPIRED, Unit::Count, "Commands dropped undecided at their deadline, by partition.");
    describe_gauge!(PARTITION_UP, Unit::Count, "1 while the partition serves, 0 while it reopens.");
    describe_counter!(PARTITION_FAILURES, Unit::Count, "Batches that failed, by partition.");
    describe_gauge!(WAL_BYTES, Unit::Bytes, "Size of the write-ahead log file, by partition.");
    describe_gauge!(ACTORS_RESIDENT, Unit::Count, "States in memory, by partition and feature.");
    describe_counter!(LIKES, Unit::Count, "Likes and unlikes decided, by outcome.");
    describe_counter!(COUNTER_ADDS, Unit::Count, "Adds to counters without members decided, by outcome.");
    describe_counter!(BULK_LINES, Unit::Count, "Lines of bulk likes answered, by whether with a problem.");
    describe_gauge!(BULK_STREAMS, Unit::Count, "Streams of bulk likes open.");
    describe_counter!(RESERVATIONS, Unit::Count, "Decisions on reservations, by outcome.");
    describe_counter!(SETS, Unit::Count, "What became of sets of seats of several workshops, by outcome.");
    describe_gauge!(
        SETS_OPEN,
        Unit::Count,
        "Sets on their way: not decided, or not every workshop has done what was decided."
    );
    describe_histogram!(ROLLUP_SECONDS, Unit::Seconds, "Time of one finished roll-up run.");
    describe_counter!(ROLLUP_ITEMS, Unit::Count, "Item totals stored by the roll-up.");
    describe_gauge!(ROLLUP_LAG, Unit::Seconds, "How long the last roll-up run waited for its turn.");
    describe_counter!(ROLLUP_FAILURES, Unit::Count, "Roll-up runs that did not finish.");
    describe_gauge!(
        BACKUP_TIME,
        Unit::Seconds,
        "When the last backup was taken, since 1970; 0: none since the start."
    );
    describe_gauge!(BACKUP_SECONDS, Unit::Seconds, "How long the last backup took.");
    describe_gauge!(BACKUP_HELD, Unit::Seconds, "How long the partitions stood still for the last backup.");
    describe_gauge!(BACKUP_BYTES, Unit::Bytes, "Bytes of the last backup.");
    describe_counter!(BACKUP_FAILURES, Unit::Count, "Backups that were begun and not finished.");
    describe_counter!(
        ROLLUP_CHECKED,
        Unit::Count,
        "Counters compared with their memberships and their base ledger."
    );
    describe_counter!(ROLLUP_DRIFT, Unit::Count, "Counters that differed from them. Must stay 0.");
    describe_gauge!(SUMMARY_AGE, Unit::Seconds, "Age of the rolled-up totals.");
    describe_gauge!(LIVE_LISTENERS, Unit::Count, "Open streams of live totals.");
    describe_counter!(LIVE_EVENTS, Unit::Count, "Events that streams of live totals took.");
    describe_counter!(LIVE_ENCODED, Unit::Count, "Events made for them: one for all listeners of an item.");
    describe_gauge!(ROOMS, Unit::Count, "Rooms, by whether their actor is in memory.");
    describe_gauge!(ROOM_CONNECTIONS, Unit::Count, "Connections to rooms, by kind.");
    describe_counter!(
        ROOM_ENDS,
        Unit::Count,
        "Sockets that ended, by cause: the word of the close code, client or lost."
    );
    describe_counter!(ROOM_WAKES, Unit::Count, "Rooms woken.");
    describe_counter!(ROOM_JOINS, Unit::Count, "Users that came online in a room.");
    describe_counter!(ROOM_LEAVES, Unit::Count, "Users that went offline in a room.");
    describe_counter!(ROOM_MESSAGES_IN, Unit::Count, "Messages that rooms were told.");
    describe_counter!(
        ROOM_MESSAGES_OUT,
        Unit::Count,
        "Frames queued for connections: a message counts once a reader."
    );
    describe_counter!(ROOM_REFUSED, Unit::Count, "Messages that were not taken.");
    describe_counter!(
        ROOM_DROPPED,
        Unit::Count,
        "Frames dropped with the queue of a connection that did not keep up."
    );
    describe_histogram!(
        ROOM_BROADCAST_SECONDS,
        Unit::Seconds,
        "From a message's arrival to its place in every reader's queue."
    );
    describe_counter!(USAGE_REQUESTS, Unit::Count, "Requests answered, by namespace.");
    describe_counter!(
        USAGE_ACTIVE,
        Unit::Seconds,
        "Whole seconds in memory of all actors together, by namespace: rooms awake, workshops, counters of items."
    );
    describe_counter!(USAGE_ASLEEP, Unit::Seconds, "Whole seconds asleep of all rooms together.");
    describe_counter!(
        USAGE_MESSAGES,
        Unit::Count,
        "Messages from WebSockets, keep-alives among them, by namespace."
    );
    describe_counter!(USAGE_KEEPALIVES, Unit::Count, "Keep-alives from WebSockets, which wake no room.");
    describe_gauge!(USAGE_STORED, Unit::Bytes, "Bytes stored as last measured, by namespace.");
    describe_counter!(LOG_DROPPED, Unit::Count, "Log lines dropped because their reader was too slow.");
}

/// One partition's.
#[derive(Debug)]
pub struct PartitionMetrics {
    partition: String,
    /// Commands in a batch.
    pub batch_commands: Histogram,
    /// Time of a commit.
    pub commit_seconds: Histogram,
    /// Refused: queue full.
    pub overloads: Counter,
    /// Dropped: deadline passed.
    pub expired: Counter,
    /// Failed batches.
    pub failures: Counter,
    /// 1 or 0.
    pub up: Gauge,
    depth: Gauge,
    wal_bytes: Gauge,
}

impl PartitionMetrics {
    /// The metrics of a partition that starts.
    #[must_use]
    pub fn new(partition: u32) -> Self {
        let partition = partition.to_string();
        let up = gauge!(PARTITION_UP, "partition" => partition.clone());
        up.set(1.0);
        Self {
            batch_commands: histogram!(BATCH_COMMANDS, "partition" => partition.clone()),
            commit_seconds: histogram!(COMMIT_SECONDS, "partition" => partition.clone()),
            overloads: counter!(OVERLOADS, "partition" => partition.clone()),
            expired: counter!(EXPIRED, "partition" => partition.clone()),
            failures: counter!(PARTITION_FAILURES, "partition" => partition.clone()),
            up,
            depth: gauge!(MAILBOX_DEPTH, "partition" => partition.clone()),
            wal_bytes: gauge!(WAL_BYTES, "partition" => partition.clone()),
            partition,
        }
    }

    /// Sets the gauges.
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
    pub fn observe(&self, depth: usize, vitals: &Vitals) {
        self.depth.set(depth as f64);
        self.wal_bytes.set(vitals.log_bytes as f64);
        for (feature, resident) in &vitals.resident {
            gauge!(ACTORS_RESIDENT, "partition" => self.partition.clone(), "feature" => *feature)
                .set(*resident as f64);
        }
    }
}

/// Decisions on likes.
#[derive(Debug)]
pub struct LikesMetrics {
    liked: Counter,
    unliked: Counter,
    unchanged: Counter,
}

impl Default for LikesMetrics {
    fn default() -> Self {
        let outcome = |outcome: &'static str| counter!(LIKES, "outcome" => outcome);
        Self { liked: outcome("liked"), unliked: outcome("unliked"), unchanged: outcome("unchanged") }
    }
}

impl LikesMetrics {
    /// Counts one decision.
    pub fn count(&self, liked: bool, changed: bool) {
        match (changed, liked) {
            (false, _) => self.unchanged.increment(1),
            (true, true) => self.liked.increment(1),
            (true, false) => self.unliked.increment(1),
        }
    }
}

/// Decisions on adds to counters without members.
#[derive(Debug)]
pub struct AddMetrics {
    added: Counter,
    refused: Counter,
    replayed: Counter,
    reused: Counter,
}

impl Default for AddMetrics {
    fn default() -> Self {
        let outcome = |outcome: &'static str| counter!(COUNTER_ADDS, "outcome" => outcome);
        Self {
            added: outcome("added"),
            refused: outcome("refused"),
            replayed: outcome("replayed"),
            reused: outcome("reused"),
        }
    }
}

impl AddMetrics {
    /// Counts one decision.
    pub fn count(&self, added: Added) {
        match added {
            Added::Decided { replayed: true, .. } => self.replayed.increment(1),
            Added::Decided { added: true, .. } => self.added.increment(1),
            Added::Decided { added: false, .. } => self.refused.increment(1),
            Added::Reused { .. } => self.reused.increment(1),
        }
    }
}

/// Of likes in bulk.
#[derive(Debug)]
pub struct BulkMetrics {
    /// Lines that were done.
    pub done: Counter,
    /// Lines that were answered with a problem.
    pub problems: Counter,
    /// Open streams.
    pub streams: Gauge,
}

impl Default for BulkMetrics {
    fn default() -> Self {
        let outcome = |outcome: &'static str| counter!(BULK_LINES, "outcome" => outcome);
        Self { done: outcome("done"), problems: outcome("problem"), streams: gauge!(BULK_STREAMS) }
    }
}

/// Decisions on reservations.
#[derive(Debug)]
pub struct ReservationMetrics {
    accepted: Counter,
    rejected: Counter,
    held: Counter,
    waiting: Counter,
    replayed: Counter,
    reused: Counter,
    invalid: Counter,
    confirmed: Counter,
    cancelled: Counter,
    extended: Counter,
    refused: Counter,
    expired: Counter,
    offered: Counter,
    skipped: Counter,
}

impl Default for ReservationMetrics {
    fn default() -> Self {
        let outcome = |outcome: &'static str| counter!(RESERVATIONS, "outcome" => outcome);
        Self {
            accepted: outcome("accepted"),
            rejected: outcome("rejected"),
            held: outcome("held"),
            waiting: outcome("waiting"),
            replayed: outcome("replayed"),
            reused: outcome("reused"),
            invalid: outcome("invalid"),
            confirmed: outcome("confirmed"),
            cancelled: outcome("cancelled"),
            extended: outcome("extended"),
            refused: outcome("refused"),
            expired: outcome("expired"),
            offered: outcome("offered"),
            skipped: outcome("skipped"),
        }
    }
}

impl ReservationMetrics {
    /// Counts one decision.
    pub fn count(&self, outcome: Reserved) {
        match outcome {
            Reserved::Decided { replayed: true, .. } => self.replayed.increment(1),
            Reserved::Decided { status: First::Accepted, .. } => self.accepted.increment(1),
            Reserved::Decided { status: First::Rejected, .. } => self.rejected.increment(1),
            Reserved::Decided { status: First::Held, .. } => self.held.increment(1),
            Reserved::Decided { status: First::Waiting, .. } => self.waiting.increment(1),
            Reserved::Reused { .. } => self.reused.increment(1),
            Reserved::HolderRequired
            | Reserved::TooManySeats { .. }
            | Reserved::BeyondLimits
            | Reserved::NothingToReplace
            | Reserved::ReplacesPartOfSet => self.invalid.increment(1),
        }
    }

    /// Counts one confirmation, cancellation or extension, repeated ones too.
    pub fn count_change(&self, change: Change, outcome: Changed) {
        match (outcome, change) {
            // The set's outcome counts.
            (_, Change::Retake { .. }) => {}
            (Changed::Refused(_), _) => self.refused.increment(1),
            (Changed::Done(_), Change::Confirm(_)) => self.confirmed.increment(1),
            (Changed::Done(_), Change::Cancel) => self.cancelled.increment(1),
            (Changed::Done(_), Change::Extend { .. }) => self.extended.increment(1),
        }
    }

    /// Counts what became of a request that nobody asked about just then.
    pub fn count_beside(&self, kind: EventKind) {
        match kind {
            EventKind::Expired => self.expired.increment(1),
            EventKind::Offered => self.offered.increment(1),
            EventKind::Skipped => self.skipped.increment(1),
            _ => {}
        }
    }
}

/// Sets.
#[derive(Debug)]
pub struct SetsMetrics {
    begun: Counter,
    held: Counter,
    accepted: Counter,
    rejected: Counter,
    confirmed: Counter,
    cancelled: Counter,
    expired: Counter,
    retaken: Counter,
    open: Gauge,
}

impl Default for SetsMetrics {
    fn default() -> Self {
        let outcome = |outcome: &'static str| counter!(SETS, "outcome" => outcome);
        Self {
            begun: outcome("begun"),
            held: outcome("held"),
            accepted: outcome("accepted"),
            rejected: outcome("rejected"),
            confirmed: outcome("confirmed"),
            cancelled: outcome("cancelled"),
            expired: outcome("expired"),
            retaken: outcome("retaken"),
            open: gauge!(SETS_OPEN),
        }
    }
}

impl SetsMetrics {
    /// Counts what a set has become.
    pub fn count(&self, turn: Turn) {
        match turn.state {
            SetState::Pending => self.begun.increment(1),
            SetState::Held => self.held.increment(1),
            SetState::Confirmed if turn.hold => self.confirmed.increment(1),
            SetState::Confirmed => self.accepted.increment(1),
            SetState::Refused => self.rejected.increment(1),
            SetState::Cancelled => self.cancelled.increment(1),
            SetState::Expired => self.expired.increment(1),
            SetState::Retaking => self.retaken.increment(1),
        }
    }

    /// Sets the number of those on their way.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub fn observe(&self, open: usize) {
        self.open.set(open as f64);
    }
}

/// The roll-up's.
#[derive(Debug)]
pub struct RollupMetrics {
    seconds: Histogram,
    changed_items: Counter,
    /// Runs that did not finish.
    pub failures: Counter,
    /// From the knock to the run.
    pub lag_seconds: Gauge,
    /// Counters counted again.
    pub checked: Counter,
    /// Those that were wrong.
    pub drifted: Counter,
}

impl Default for RollupMetrics {
    fn default() -> Self {
        Self {
            seconds: histogram!(ROLLUP_SECONDS),
            changed_items: counter!(ROLLUP_ITEMS),
            failures: counter!(ROLLUP_FAILURES),
            lag_seconds: gauge!(ROLLUP_LAG),
            checked: counter!(ROLLUP_CHECKED),
            drifted: counter!(ROLLUP_DRIFT),
        }
    }
}

impl RollupMetrics {
    /// Records a finished run.
    pub fn ran(&self, changed_items: usize, took: Duration) {
        self.seconds.record(took.as_secs_f64());
        self.changed_items.increment(changed_items as u64);
    }
}

/// The backups'.
#[derive(Debug)]
pub struct BackupMetrics {
    time: Gauge,
    seconds: Gauge,
    held: Gauge,
    bytes: Gauge,
    /// Those that were not finished.
    pub failed: Counter,
}

impl Default for BackupMetrics {
    fn default() -> Self {
        Self {
            time: gauge!(BACKUP_TIME),
            seconds: gauge!(BACKUP_SECONDS),
            held: gauge!(BACKUP_HELD),
            bytes: gauge!(BACKUP_BYTES),
            failed: counter!(BACKUP_FAILURES),
        }
    }
}

impl BackupMetrics {
    /// Records a finished one.
    #[expect(clippy::cast_precision_loss, reason = "bytes and milliseconds are far below 2^52")]
    pub fn taken(&self, at_ms: i64, took: Duration, held: Duration, bytes: u64) {
        self.time.set(at_ms as f64 / 1000.0);
        self.seconds.set(took.as_secs_f64());
        self.held.set(held.as_secs_f64());
        self.bytes.set(bytes as f64);
    }
}

/// Live totals'.
#[derive(Debug)]
pub struct LiveMetrics {
    /// Open streams.
    pub listeners: Gauge,
    /// Events taken by streams.
    pub events: Counter,
    /// Events made.
    pub encoded: Counter,
}

impl Default for LiveMetrics {
    fn default() -> Self {
        Self {
            listeners: gauge!(LIVE_LISTENERS),
            events: counter!(LIVE_EVENTS),
            encoded: counter!(LIVE_ENCODED),
        }
    }
}

/// The rooms'.
#[derive(Debug)]
pub struct RoomMetrics {
    /// Messages told.
    pub messages_in: Counter,
    /// Frames queued.
    pub messages_out: Counter,
    /// Messages not taken.
    pub refused: Counter,
    /// Frames dropped.
    pub dropped: Counter,
    /// Users online.
    pub joins: Counter,
    /// Users offline.
    pub leaves: Counter,
    /// Rooms woken.
    pub wakes: Counter,
    /// From arrival to every queue.
    pub broadcast_seconds: Histogram,
    sockets: Gauge,
    readers: Gauge,
    awake: Gauge,
    asleep: Gauge,
}

impl Default for RoomMetrics {
    fn default() -> Self {
        for cause in ["client", "lost", "slow"] {
            counter!(ROOM_ENDS, "cause" => cause).increment(0);
        }
        Self {
            messages_in: counter!(ROOM_MESSAGES_IN),
            messages_out: counter!(ROOM_MESSAGES_OUT),
            refused: counter!(ROOM_REFUSED),
            dropped: counter!(ROOM_DROPPED),
            joins: counter!(ROOM_JOINS),
            leaves: counter!(ROOM_LEAVES),
            wakes: counter!(ROOM_WAKES),
            broadcast_seconds: histogram!(ROOM_BROADCAST_SECONDS),
            sockets: gauge!(ROOM_CONNECTIONS, "kind" => "websocket"),
            readers: gauge!(ROOM_CONNECTIONS, "kind" => "events"),
            awake: gauge!(ROOMS, "state" => "awake"),
            asleep: gauge!(ROOMS, "state" => "asleep"),
        }
    }
}

impl RoomMetrics {
    /// The gauge of a kind of connection.
    pub fn connections(&self, is_socket: bool) -> &Gauge {
        if is_socket { &self.sockets } else { &self.readers }
    }

    /// A socket ended.
    pub fn ended(&self, cause: &'static str) {
        counter!(ROOM_ENDS, "cause" => cause).increment(1);
    }

    /// Sets the gauges.
    #[expect(clippy::cast_precision_loss, reason = "numbers of rooms are far below 2^52")]
    pub fn observe(&self, awake: usize, asleep: usize) {
        self.awake.set(awake as f64);
        self.asleep.set(asleep as f64);
    }
}

/// The listeners'.
#[derive(Debug, Clone)]
pub struct ConnectionMetrics {
    /// Open now.
    pub open: Gauge,
    /// Beyond the limit.
    pub refused: Counter,
}

impl ConnectionMetrics {
    /// One listener's.
    #[must_use]
    pub fn new(listener: &'static str) -> Self {
        Self {
            open: gauge!(HTTP_CONNECTIONS, "listener" => listener),
            refused: counter!(HTTP_CONNECTIONS_REFUSED, "listener" => listener),
        }
    }
}

/// A route's latency.
pub fn http_seconds(route: &str) -> Histogram {
    histogram!(HTTP_SECONDS, "route" => route.to_owned())
}

/// A route's answers of one status.
pub fn http_requests(route: &str, method: &'static str, status: u16) -> Counter {
    counter!(HTTP_REQUESTS, "route" => route.to_owned(), "method" => method, "status" => status.to_string())
}

/// Tells what each namespace has cost since the start.
#[expect(clippy::cast_precision_loss, reason = "bytes are far below 2^52")]
pub fn usage(usage: &Usage, stored: Option<Stored>) {
    for namespace in Namespace::ALL {
        let word = namespace.word();
        let reading = usage.of(namespace).read();
        counter!(USAGE_REQUESTS, "namespace" => word).absolute(reading.requests);
        counter!(USAGE_ACTIVE, "namespace" => word).absolute(reading.active_ms / 1_000);
        counter!(USAGE_MESSAGES, "namespace" => word).absolute(reading.messages);
        if let Some(stored) = stored {
            gauge!(USAGE_STORED, "namespace" => word).set(stored.of(namespace) as f64);
        }
    }
    let rooms = usage.rooms.read();
    counter!(USAGE_ASLEEP).absolute(rooms.asleep_ms / 1_000);
    counter!(USAGE_KEEPALIVES).absolute(rooms.keepalives);
}

/// Gauges that are only worth computing when somebody scrapes.
#[expect(clippy::cast_precision_loss, reason = "milliseconds are far below 2^52")]
pub fn before_scrape(summary_age_ms: i64, log_lines_dropped: u64) {
    gauge!(SUMMARY_AGE).set(summary_age_ms as f64 / 1000.0);
    counter!(LOG_DROPPED).absolute(log_lines_dropped);
}
