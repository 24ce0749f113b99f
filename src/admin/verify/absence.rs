//! `verify --deleted NAMESPACE`: passes only when every place was looked at and nothing was there.

use std::path::Path;

use clap::ValueEnum;

use super::{Error, Report, in_file, read_manifest};
use crate::store;
use crate::store::sqlite::PARTITION_SCHEMA;
use crate::store::sqlite::open::{Schema, snapshot};
use crate::store::sqlite::summary::SUMMARY_SCHEMA;

/// What can be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Namespace {
    /// Items, memberships, counters, ledgers, totals.
    Likes,
    /// Workshops, attempts and what became of them, logs, holders' names.
    Workshops,
    /// Rooms and their messages. Presence is in no file.
    Rooms,
}

/// What a finding calls rows, and which they are.
type Rows = (&'static str, &'static str);

impl Namespace {
    /// What must have no rows: names, and the rows that go by them.
    fn partition_tables(self) -> &'static [Rows] {
        match self {
            Self::Likes => &[
                ("items", "items"),
                ("memberships", "memberships_now"),
                ("memberships", "memberships"),
                ("shard_counters", "shard_counters_now"),
                ("shard_counters", "shard_counters"),
                ("base_ledger", "base_ledger"),
                ("unswept_items", "unswept_items"),
                ("counter_requests", "counter_requests"),
                ("item_members", "item_members"),
                ("journal", "journal WHERE memberships <> '[]' OR counters <> '[]'"),
            ],
            // A tombstone holds nothing but the name that it answers 410 for.
            Self::Workshops => &[
                ("workshops", "workshops"),
                ("attempts", "attempts_now"),
                ("attempts", "attempts"),
                ("journal", "journal WHERE attempts <> '[]'"),
                ("bookings", "bookings"),
                ("events", "events"),
                ("sets", "sets"),
                ("set_lines", "set_lines"),
                ("holders", "holders"),
                ("unswept_workshops", "unswept_workshops"),
            ],
            Self::Rooms => &[("rooms", "rooms"), ("room_messages", "room_messages")],
        }
    }

    fn summary_tables(self) -> &'static [Rows] {
        match self {
            Self::Likes => &[
                ("summary", "summary"),
                ("history", "history"),
                ("trending", "trending"),
                ("trending", "trending_missed"),
                ("deletions", "deletions"),
            ],
            Self::Workshops | Self::Rooms => &[],
        }
    }
}

pub(super) fn prove(path: &Path, namespace: Namespace) -> Result<Report, Error> {
    let manifest = read_manifest(path)?;
    let mut report = Report::default();
    for partition in 0..manifest.partitions {
        let file = manifest.partition_file(path, partition);
        let tables = namespace.partition_tables();
        look(&file, &PARTITION_SCHEMA, &manifest.data_id, Some(partition), tables, &mut report)?;
    }
    let tables = namespace.summary_tables();
    look(&manifest.summary_file(path), &SUMMARY_SCHEMA, &manifest.data_id, None, tables, &mut report)?;
    Ok(report)
}

fn look(
    file: &Path,
    schema: &Schema,
    data_id: &str,
    partition: Option<u32>,
    tables: &[Rows],
    report: &mut Report,
) -> Result<(), Error> {
    in_file(file, || {
        let connection = snapshot(file, schema)?;
        let found: String = connection.query_row("SELECT data_id FROM identity", [], |row| row.get(0))?;
        if found != data_id {
            report.wrong(
                partition,
                "file",
                format!("it is of data directory {found}: no proof about this one"),
            );
        }
        for (name, table) in tables {
            let rows: i64 =
                connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
            if rows > 0 {
                report.wrong(partition, *name, format!("{rows} rows are still there"));
            }
        }
        Ok::<_, store::Error>(())
    })
}
