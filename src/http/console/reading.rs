//! What the metrics say at one moment, in numbers: counters since the start, gauges as they are.

use std::time::Instant;

use super::exposition::{Sample, samples};
use crate::usage::Namespace;

/// All of it.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) at: Instant,
    /// Likes and unlikes decided, adds to counters among them.
    pub(super) likes: f64,
    /// First decisions on reservations, repeated ones among them.
    pub(super) reservations: f64,
    /// Messages that rooms were told.
    pub(super) messages: f64,
    /// By partition.
    pub(super) partitions: Vec<Partition>,
    /// By namespace, in the order of [`Namespace::ALL`].
    pub(super) calls: [Calls; 3],
    pub(super) connections_public: f64,
    pub(super) connections_admin: f64,
    pub(super) room_sockets: f64,
    pub(super) room_readers: f64,
    pub(super) rollup: Rollup,
    pub(super) backup: Backup,
    pub(super) sets_open: f64,
}

/// One partition's.
#[derive(Debug, Clone, Default)]
pub(super) struct Partition {
    pub(super) up: f64,
    pub(super) depth: f64,
    pub(super) wal_bytes: f64,
    pub(super) resident: f64,
    pub(super) overloads: f64,
    pub(super) expired: f64,
    pub(super) failures: f64,
    pub(super) batches: f64,
    pub(super) commands: f64,
    pub(super) commits: Histogram,
}

/// A histogram: how many were at most so large, bound by bound.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Histogram {
    pub(super) buckets: Vec<(f64, f64)>,
}

/// Requests answered, of one namespace.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Calls {
    pub(super) all: f64,
    /// 4xx. A reservation that is rejected is one, too: 409 is a decision.
    pub(super) refused: f64,
    /// 5xx.
    pub(super) failed: f64,
}

/// The roll-up's.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rollup {
    pub(super) lag_seconds: f64,
    pub(super) failures: f64,
    pub(super) changed_items: f64,
    pub(super) checked: f64,
    pub(super) drifted: f64,
    pub(super) runs: f64,
    pub(super) run_seconds: f64,
}

/// The backups'.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Backup {
    pub(super) at_seconds: f64,
    pub(super) took_seconds: f64,
    pub(super) bytes: f64,
    pub(super) failures: f64,
}

impl Reading {
    /// Reads an exposition of a service with so many partitions.
    pub(super) fn of(text: &str, partitions: usize) -> Self {
        let mut reading = Self {
            at: Instant::now(),
            likes: 0.0,
            reservations: 0.0,
            messages: 0.0,
            partitions: vec![Partition::default(); partitions],
            calls: [Calls::default(); 3],
            connections_public: 0.0,
            connections_admin: 0.0,
            room_sockets: 0.0,
            room_readers: 0.0,
            rollup: Rollup::default(),
            backup: Backup::default(),
            sets_open: 0.0,
        };
        for sample in samples(text) {
            match sample.number("partition") {
                Some(partition) => {
                    if let Some(partition) = reading.partitions.get_mut(partition) {
                        partition.take(&sample);
                    }
                }
                None => reading.take(&sample),
            }
        }
        reading
    }

    /// The names are those of [`crate::metrics`].
    fn take(&mut self, sample: &Sample<'_>) {
        let value = sample.value;
        match sample.name {
            "headcount_likes_total" | "headcount_counter_adds_total" => self.likes += value,
            "headcount_reservations_total" => {
                let first = ["accepted", "rejected", "held", "waiting", "replayed"];
                if sample.label("outcome").is_some_and(|outcome| first.contains(&outcome)) {
                    self.reservations += value;
                }
            }
            "headcount_room_messages_in_total" => self.messages = value,
            "headcount_http_requests_total" => self.take_calls(sample),
            "headcount_http_connections" => match sample.label("listener") {
                Some("public") => self.connections_public = value,
                _ => self.connections_admin = value,
            },
            "headcount_room_connections" => match sample.label("kind") {
                Some("websocket") => self.room_sockets = value,
                _ => self.room_readers = value,
            },
            "headcount_sets_open" => self.sets_open = value,
            "headcount_rollup_lag_seconds" => self.rollup.lag_seconds = value,
            "headcount_rollup_failures_total" => self.rollup.failures = value,
            "headcount_rollup_changed_items_total" => self.rollup.changed_items = value,
            "headcount_rollup_checked_counters_total" => self.rollup.checked = value,
            "headcount_rollup_drift_total" => self.rollup.drifted = value,
            "headcount_rollup_seconds_count" => self.rollup.runs = value,
            "headcount_rollup_seconds_sum" => self.rollup.run_seconds = value,
            "headcount_backup_last_time_seconds" => self.backup.at_seconds = value,
            "headcount_backup_last_seconds" => self.backup.took_seconds = value,
            "headcount_backup_last_bytes" => self.backup.bytes = value,
            "headcount_backup_failures_total" => self.backup.failures = value,
            _ => {}
        }
    }

    fn take_calls(&mut self, sample: &Sample<'_>) {
        let namespace = sample.label("route").and_then(Namespace::of_route);
        let Some(calls) = namespace.and_then(|namespace| {
            let place = Namespace::ALL.iter().position(|known| *known == namespace)?;
            self.calls.get_mut(place)
        }) else {
            return;
        };
        calls.all += sample.value;
        match sample.label("status").and_then(|status| status.chars().next()) {
            Some('4') => calls.refused += sample.value,
            Some('5') => calls.failed += sample.value,
            _ => {}
        }
    }
}

impl Partition {
    fn take(&mut self, sample: &Sample<'_>) {
        let value = sample.value;
        match sample.name {
            "headcount_partition_up" => self.up = value,
            "headcount_mailbox_depth" => self.depth = value,
            "headcount_wal_bytes" => self.wal_bytes = value,
            "headcount_actors_resident" => self.resident += value,
            "headcount_overloads_total" => self.overloads = value,
            "headcount_commands_expired_total" => self.expired = value,
            "headcount_partition_failures_total" => self.failures = value,
            "headcount_batch_commands_count" => self.batches = value,
            "headcount_batch_commands_sum" => self.commands = value,
            "headcount_commit_seconds_bucket" => {
                let bound =
                    sample.label("le").map_or(f64::INFINITY, |le| le.parse().unwrap_or(f64::INFINITY));
                self.commits.buckets.push((bound, value));
            }
            _ => {}
        }
    }
}
