//! What a move would take, without changing anything: beside a running service, too.

use std::fmt;

use rusqlite::Connection;

use super::tables::{self, Layout};
use super::{Error, in_file};
use crate::data_dir::Manifest;
use crate::store::sqlite::PARTITION_SCHEMA;
use crate::store::sqlite::open::{snapshot, wal_bytes};
use crate::store::sqlite::summary::SUMMARY_SCHEMA;

/// Rows that are copied and compared in a second, about, on two cores that have nothing else to do.
const ROWS_PER_S: u64 = 70_000;

/// See the module.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// As it is placed now.
    pub from: Layout,
    /// As it is to be.
    pub to: Layout,
    /// Rows to move, by table; those without any are left out.
    pub rows: Vec<(&'static str, u64)>,
    /// Bytes that are stored now.
    pub stored: u64,
    /// Bytes that must be free beside them: more shards have more counters, and work files are needed.
    pub needed: u64,
    /// Bytes that are free.
    pub free: u64,
}

impl Estimate {
    pub(super) fn of(
        path: &std::path::Path,
        manifest: &Manifest,
        to: Layout,
        free: u64,
    ) -> Result<Self, Error> {
        let mut rows: Vec<(&'static str, u64)> = tables::moved().map(|(table, _)| (table, 0)).collect();
        let mut stored = 0;
        for partition in 0..manifest.partitions {
            let file = manifest.partition_file(path, partition);
            in_file(&file, || {
                let connection = snapshot(&file, &PARTITION_SCHEMA)?;
                for (table, rows) in &mut rows {
                    let sql = format!("SELECT count(*) FROM {table}");
                    *rows += connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
                }
                stored += used_bytes(&connection)? + wal_bytes(&file);
                Ok(())
            })?;
        }
        let file = manifest.summary_file(path);
        in_file(&file, || {
            let connection = snapshot(&file, &SUMMARY_SCHEMA)?;
            stored += used_bytes(&connection)? + wal_bytes(&file);
            Ok(())
        })?;
        rows.retain(|(_, rows)| *rows > 0);
        let from = Layout { shards: manifest.shards, partitions: manifest.partitions };
        Ok(Self { from, to, rows, stored, needed: stored.saturating_mul(2), free })
    }

    /// All rows together.
    #[must_use]
    pub fn total_rows(&self) -> u64 {
        self.rows.iter().map(|(_, rows)| rows).sum()
    }

    /// Whether it would be refused for want of room.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.needed > self.free
    }
}

fn used_bytes(file: &Connection) -> Result<u64, rusqlite::Error> {
    let pragma = |name: &str| file.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    Ok(pages.saturating_mul(pragma("page_size")?).unsigned_abs())
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, .. } = self;
        writeln!(
            f,
            "move:    from {} shards on {} partitions to {} on {}",
            from.shards, from.partitions, to.shards, to.partitions
        )?;
        let tables: Vec<String> = self.rows.iter().map(|(table, rows)| format!("{table} {rows}")).collect();
        writeln!(f, "rows:    {} ({})", self.total_rows(), tables.join(", "))?;
        writeln!(
            f,
            "bytes:   {} stored, {} needed beside them, {} free",
            self.stored, self.needed, self.free
        )?;
        writeln!(f, "seconds: about {}", self.total_rows().div_ceil(ROWS_PER_S).max(1))
    }
}
