//! Makes a snapshot: reads what everybody knows anyway, and asks those who have to be asked with little patience.

use std::collections::VecDeque;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::value::RawValue;
use tracing_appender::non_blocking::ErrorCounter;

use super::loads::Loads;
use super::rates::{Readings, quantile, tenths};
use super::reading::{Calls, Reading};
use super::snapshot::{
    Backup, Decisions, Item, NamespaceUse, Now, Partition, Rollup, Room, Rooms, Series, Snapshot, Stored,
    Top, Workshops,
};
use crate::http::App;
use crate::http::workshops::WorkshopAnswer;
use crate::likes::ItemId;
use crate::likes::rollup::past::Ranking;
use crate::log::tail;
use crate::store::history::{Step, Window};
use crate::usage::Namespace;

/// How long a part may take. One that is late is left out of the snapshot, and does not hold up the others.
const PATIENCE: Duration = Duration::from_millis(500);
/// Seconds of a series.
const SECONDS: usize = 120;
/// Items in the ranking, and minutes of each.
const ITEMS: u32 = 10;
const MINUTES: usize = 60;
/// Workshops and rooms in a list; there are routes for the others.
const LISTED: u32 = 25;

/// What is remembered from one snapshot to the next.
#[derive(Debug, Default)]
pub(super) struct Gatherer {
    readings: Readings,
    likes: Ring,
    reservations: Ring,
    messages: Ring,
    calls: Ring,
    partitions: Vec<Ring>,
    loads: Loads,
    /// The ranking, as of the roll-up that it was read after.
    top: Option<(i64, Top)>,
}

/// The last seconds of something.
#[derive(Debug, Default)]
struct Ring(VecDeque<f64>);

impl Ring {
    fn push(&mut self, value: Option<f64>) {
        let Some(value) = value else { return };
        if self.0.len() == SECONDS {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    fn series(&self) -> Vec<f64> {
        self.0.iter().copied().collect()
    }
}

impl Gatherer {
    pub(super) async fn gather<'a>(&mut self, app: &'a App) -> Snapshot<'a> {
        let text = app.metrics.as_ref().map(PrometheusHandle::render).unwrap_or_default();
        let reading = Reading::of(&text, app.partitions.len());
        self.readings.push(reading.clone());
        let now = self.now(app, &reading);
        self.likes.push(now.likes_per_s);
        self.reservations.push(now.reservations_per_s);
        self.messages.push(now.messages_per_s);
        self.calls.push(now.calls_per_s);
        let console = &app.console.0;
        let tail = tail::read();
        let (workshops, rooms) = tokio::join!(workshops(app), rooms(app, &reading));
        self.rank(app).await;
        Snapshot {
            at: app.clock.now_ms(),
            viewers: app.console.viewers(),
            instance: &console.facts,
            now,
            series: Series {
                likes: self.likes.series(),
                reservations: self.reservations.series(),
                messages: self.messages.series(),
                calls: self.calls.series(),
            },
            top: self.top.as_ref().map(|(_, top)| top.clone()),
            shards: self.loads.shards(app.shards.loads(), |shard| app.shards.partition_of(shard)),
            partitions: self.partitions(app, &reading),
            rollup: self.rollup(app, &reading),
            workshops,
            rooms,
            namespaces: self.namespaces(app, &reading),
            stored: app
                .stored
                .latest()
                .map(|stored| Stored { as_of: stored.as_of_ms, shared_bytes: stored.shared }),
            backup: Backup {
                at: Some(reading.backup.at_seconds * 1_000.0).filter(|at| *at > 0.0),
                took_ms: reading.backup.took_seconds * 1_000.0,
                bytes: reading.backup.bytes,
                failures: reading.backup.failures,
            },
            decisions: Decisions {
                told: tail.told,
                lines: tail.lines.into_iter().filter_map(|line| RawValue::from_string(line).ok()).collect(),
            },
        }
    }

    fn now(&self, app: &App, reading: &Reading) -> Now {
        let sum = |of: fn(&Calls) -> f64| {
            self.readings.per_second(move |reading| reading.calls.iter().map(of).sum())
        };
        Now {
            likes_per_s: self.readings.per_second(|reading| reading.likes),
            reservations_per_s: self.readings.per_second(|reading| reading.reservations),
            messages_per_s: self.readings.per_second(|reading| reading.messages),
            calls_per_s: sum(|calls| calls.all),
            failed_per_s: sum(|calls| calls.failed),
            connections: (reading.connections_public, reading.connections_admin),
            sets_open: reading.sets_open,
            log_lines_dropped: app.log_dropped.as_ref().map_or(0, ErrorCounter::dropped_lines) as u64,
            partitions_down: app.partitions.iter().filter(|is_up| !is_up()).count(),
        }
    }

    /// Read again after each run of the roll-up, and in between not at all.
    async fn rank(&mut self, app: &App) {
        let as_of = app.summary.as_of_ms();
        let is_read = self.top.as_ref().is_some_and(|(read, _)| *read == as_of);
        if is_read || app.console.0.namespaces.likes.is_deleted() {
            return;
        }
        if let Ok(Some(top)) = tokio::time::timeout(PATIENCE, top(app)).await {
            self.top = Some((as_of, top));
        }
    }

    fn partitions(&mut self, app: &App, reading: &Reading) -> Vec<Partition> {
        self.partitions.resize_with(reading.partitions.len(), Ring::default);
        let mut all = Vec::with_capacity(reading.partitions.len());
        for (index, (ring, of)) in self.partitions.iter_mut().zip(&reading.partitions).enumerate() {
            let commands = |reading: &Reading| reading.partitions.get(index).map_or(0.0, |of| of.commands);
            let commands_per_s = self.readings.per_second(commands);
            ring.push(commands_per_s);
            let span = self
                .readings
                .span()
                .and_then(|(before, now)| Some((before.partitions.get(index)?, now.partitions.get(index)?)));
            let commit = |part| {
                let (before, now) = span?;
                quantile(&before.commits, &now.commits, part)
                    .map(|seconds| (seconds * 100_000.0).round() / 100.0)
            };
            let batch_size = span.and_then(|(before, now)| {
                let batches = now.batches - before.batches;
                (batches > 0.0).then(|| tenths((now.commands - before.commands) / batches))
            });
            all.push(Partition {
                partition: index,
                up: app.partitions.get(index).is_some_and(|is_up| is_up()),
                commands_per_s,
                series: ring.series(),
                batch_size,
                commit_p50_ms: commit(0.5),
                commit_p99_ms: commit(0.99),
                mailbox: of.depth,
                mailbox_capacity: app.console.0.mailbox_capacity,
                wal_bytes: of.wal_bytes,
                resident: of.resident,
                overloads: of.overloads,
                expired: of.expired,
                failures: of.failures,
            });
        }
        all
    }

    fn rollup(&self, app: &App, reading: &Reading) -> Rollup {
        let as_of = app.summary.as_of_ms();
        let run_ms = self.readings.span().and_then(|(before, now)| {
            let runs = now.rollup.runs - before.rollup.runs;
            (runs > 0.0)
                .then(|| tenths((now.rollup.run_seconds - before.rollup.run_seconds) / runs * 1_000.0))
        });
        Rollup {
            as_of,
            age_ms: (app.clock.now_ms() - as_of).max(0),
            lag_ms: tenths(reading.rollup.lag_seconds * 1_000.0),
            run_ms,
            changed_per_s: self.readings.per_second(|reading| reading.rollup.changed_items),
            failures: reading.rollup.failures,
            checked: reading.rollup.checked,
            drifted: reading.rollup.drifted,
        }
    }

    fn namespaces(&self, app: &App, reading: &Reading) -> Vec<NamespaceUse> {
        let stored = app.stored.latest();
        let namespace = |(place, namespace): (usize, Namespace)| {
            let of = |reading: &Reading| reading.calls.get(place).copied().unwrap_or_default();
            let (meter, calls) = (app.usage.of(namespace), of(reading));
            let read = meter.read();
            NamespaceUse {
                namespace: namespace.word(),
                deleted: NamespaceUse::is_deleted(namespace, &app.console.0.namespaces),
                calls: calls.all,
                calls_per_s: self.readings.per_second(|reading| of(reading).all),
                refused: calls.refused,
                failed: calls.failed,
                failed_per_s: self.readings.per_second(|reading| of(reading).failed),
                active_seconds: read.active_ms / 1_000,
                asleep_seconds: read.asleep_ms / 1_000,
                in_memory: meter.active.now(),
                messages: read.messages,
                stored_bytes: stored.map(|stored| stored.of(namespace)),
            }
        };
        Namespace::ALL.into_iter().enumerate().map(namespace).collect()
    }
}

async fn top(app: &App) -> Option<Top> {
    let mut window = "1h";
    let mut ranked = app.past.top(Ranking::Gains(Window::Hour), ITEMS).await.ok()?;
    if ranked.items.is_empty() {
        window = "all";
        ranked = app.past.top(Ranking::Totals, ITEMS).await.ok()?;
    }
    let mut items = Vec::with_capacity(ranked.items.len());
    for ranked in ranked.items {
        let minutes = minutes(app, &ranked.item).await;
        items.push(Item { item: ranked.item, gained: ranked.gained, total: ranked.total, minutes });
    }
    Some(Top { window, items })
}

/// Empty where it cannot be read: the ranking is worth showing all the same.
async fn minutes(app: &App, item: &str) -> Vec<i64> {
    let Some(item) = ItemId::parse(item, usize::MAX) else { return Vec::new() };
    let history = app.past.history(item, Step::Minute, (None, None), MINUTES + 1).await;
    history.map(|history| history.buckets.iter().map(|bucket| bucket.gained).collect()).unwrap_or_default()
}

async fn workshops(app: &App) -> Option<Workshops> {
    if app.console.0.namespaces.workshops.is_deleted() {
        return None;
    }
    let from_the_first = "".into();
    let page = app.workshops.page(&from_the_first, LISTED);
    let page = tokio::time::timeout(PATIENCE, page).await.ok()?.ok()?;
    let full = page.len() >= LISTED as usize;
    Some(Workshops {
        cursor: page.last().filter(|_| full).map(|(name, _)| name.clone()),
        workshops: page.iter().map(|(name, view)| WorkshopAnswer::of(name, view)).collect(),
    })
}

async fn rooms(app: &App, reading: &Reading) -> Option<Rooms> {
    let overview = tokio::time::timeout(PATIENCE, app.rooms.overview(LISTED as usize)).await.ok()?;
    let room = |listed: crate::rooms::overview::Listed| Room {
        room: listed.name.as_str().to_owned(),
        awake: listed.awake,
        online: listed.online,
        connections: listed.connections,
    };
    Some(Rooms {
        awake: overview.awake,
        asleep: overview.asleep,
        sockets: reading.room_sockets,
        readers: reading.room_readers,
        rooms: overview.rooms.into_iter().map(room).collect(),
    })
}
