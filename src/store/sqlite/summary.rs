//! The roll-up's summary in SQLite, and a reader of it for cached reads.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row};

use super::open::{self, Pragmas, Schema};
use crate::store::Error;
use crate::store::summary::{Progress, SummaryRow, SummaryStore};

/// The schema steps of the summary's file, in order. A step that has shipped never changes.
pub const SUMMARY_SCHEMA: Schema =
    Schema { application_id: 0x6863_7375, steps: &[include_str!("schema/summary_001.sql")] };

/// The summary's file, with its one writer.
#[derive(Debug)]
pub struct SqliteSummary {
    connection: Connection,
    file: PathBuf,
}

/// A second connection that only reads totals.
#[derive(Debug)]
pub struct SummaryReader(Connection);

impl SqliteSummary {
    /// Opens the summary's file, creating what is missing and touching nothing that is there.
    ///
    /// # Errors
    /// [`Error::Newer`], [`Error::Foreign`], or the engine's.
    pub fn open(file: &Path, data_id: &str, pragmas: &Pragmas) -> Result<Self, Error> {
        let connection = open::open(file, pragmas, &SUMMARY_SCHEMA)?;
        connection.execute(
            "INSERT INTO identity (singleton, data_id) VALUES (1, ?1) ON CONFLICT (singleton) DO NOTHING",
            [data_id],
        )?;
        let found: String = connection.query_row("SELECT data_id FROM identity", [], |row| row.get(0))?;
        if found != data_id {
            let why = format!("it is the summary of data directory {found}, expected {data_id}");
            return Err(Error::Foreign { file: file.display().to_string(), why });
        }
        Ok(Self { connection, file: file.to_owned() })
    }

    /// Removes every total and every deletion that is not finished, `chunk` rows a transaction. The roll-up starts again:
    /// what the shards still count, it carries.
    ///
    /// # Errors
    /// The engine's.
    pub fn remove_totals(&mut self, chunk: u32) -> Result<(), Error> {
        self.connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
        self.connection.execute("DELETE FROM watermarks", [])?;
        for (table, key) in [("deletions", "item"), ("summary", "item")] {
            let sql = format!("DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} LIMIT ?1)");
            while self.connection.prepare_cached(&sql)?.execute([chunk])? > 0 {}
        }
        open::checkpoint(&self.connection)?;
        Ok(self.connection.pragma_update_and_check(None, "secure_delete", "OFF", |_| Ok(()))?)
    }

    /// A reader beside this writer.
    ///
    /// # Errors
    /// The engine's.
    pub fn reader(&self) -> Result<SummaryReader, Error> {
        Ok(SummaryReader(open::open_for_reading(&self.file, &SUMMARY_SCHEMA)?))
    }
}

impl SummaryReader {
    /// Total and version of items, in the order of the question.
    ///
    /// # Errors
    /// The engine's.
    pub fn totals(&self, items: &[&str]) -> Result<Vec<Option<(i64, u64)>>, Error> {
        let mut select = self.0.prepare_cached("SELECT total, version FROM summary WHERE item = ?1")?;
        let load = |item: &&str| {
            let row = select.query_row([item], |row| Ok((row.get(0)?, unsigned(row, 1)?)));
            Ok(row.optional()?)
        };
        items.iter().map(load).collect()
    }
}

const UPSERT: &str = "INSERT INTO summary (item, total, version, parts) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (item) DO UPDATE
    SET total = excluded.total, version = excluded.version, parts = excluded.parts";

impl SummaryStore for SqliteSummary {
    fn progress(&mut self, shards: u32) -> Result<Progress, Error> {
        let (run, as_of_ms) = self.connection.query_row("SELECT run, as_of_ms FROM progress", [], |row| {
            Ok((unsigned(row, 0)?, row.get(1)?))
        })?;
        let mut select = self.connection.prepare_cached("SELECT version FROM watermarks WHERE shard = ?1")?;
        let watermarks = (0..shards)
            .map(|shard| Ok(select.query_row([shard], |row| row.get(0)).optional()?.unwrap_or(0)))
            .collect::<Result<_, Error>>()?;
        Ok(Progress { run, as_of_ms, watermarks })
    }

    fn load(&mut self, items: &[&str]) -> Result<Vec<Option<SummaryRow>>, Error> {
        let mut select =
            self.connection.prepare_cached("SELECT total, version, parts FROM summary WHERE item = ?1")?;
        items.iter().map(|item| Ok(select.query_row([item], summary_from_row).optional()?)).collect()
    }

    fn save(&mut self, rows: &[(&str, SummaryRow)], progress: &Progress) -> Result<(), Error> {
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        {
            let mut upsert = transaction.prepare_cached(UPSERT)?;
            for (item, row) in rows {
                upsert.execute((item, row.total, signed(row.version), parts_to_json(&row.parts)))?;
            }
            let mut carry = transaction.prepare_cached(
                "INSERT INTO watermarks (shard, version) VALUES (?1, ?2)
                 ON CONFLICT (shard) DO UPDATE SET version = excluded.version
                 WHERE version <> excluded.version",
            )?;
            for (shard, version) in (0_u32..).zip(&progress.watermarks) {
                carry.execute((shard, version))?;
            }
            transaction
                .prepare_cached("UPDATE progress SET run = ?1, as_of_ms = ?2")?
                .execute((signed(progress.run), progress.as_of_ms))?;
        }
        Ok(transaction.commit()?)
    }

    fn note_deletion(&mut self, item: &str, deletion: i64) -> Result<(), Error> {
        self.connection
            .prepare_cached(
                "INSERT INTO deletions (item, deletion) VALUES (?1, ?2)
                 ON CONFLICT (item) DO UPDATE SET deletion = excluded.deletion",
            )?
            .execute((item, deletion))?;
        Ok(())
    }

    fn unfinished_deletions(&mut self) -> Result<Vec<(String, i64)>, Error> {
        let mut select = self.connection.prepare_cached("SELECT item, deletion FROM deletions")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn finish_deletion(&mut self, item: &str, row: Option<&SummaryRow>, run: u64) -> Result<(), Error> {
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for sql in ["DELETE FROM summary WHERE item = ?1", "DELETE FROM deletions WHERE item = ?1"] {
            transaction.prepare_cached(sql)?.execute([item])?;
        }
        if let Some(row) = row {
            transaction.prepare_cached(UPSERT)?.execute((
                item,
                row.total,
                signed(row.version),
                parts_to_json(&row.parts),
            ))?;
        }
        transaction.prepare_cached("UPDATE progress SET run = ?1")?.execute([signed(run)])?;
        Ok(transaction.commit()?)
    }
}

fn summary_from_row(row: &Row<'_>) -> rusqlite::Result<SummaryRow> {
    let parts = serde_json::from_str(row.get_ref(2)?.as_str()?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Text, error.into())
    })?;
    Ok(SummaryRow { total: row.get(0)?, version: unsigned(row, 1)?, parts })
}

/// `[3,0,1]`: readable, and summed by `json_each` in an audit by hand.
fn parts_to_json(parts: &[i64]) -> String {
    let numbers: Vec<String> = parts.iter().map(i64::to_string).collect();
    format!("[{}]", numbers.join(","))
}

/// Runs are counted from 0 and stored as SQLite's signed integers.
fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
