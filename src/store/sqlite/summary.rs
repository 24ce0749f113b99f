//! The roll-up's summary in SQLite, and a reader of it for cached reads.

use std::ops::Range;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior};

use super::open::{self, Pragmas, Schema};
use super::{history, ranking};
use crate::store::Error;
use crate::store::history::{Change, ChangedTotals, Gains, Kept, Openings, Ranked, Step, Window};
use crate::store::summary::{Progress, SummaryRow, SummaryStore};

/// The schema steps of the summary's file, in order. A step that has shipped never changes.
pub const SUMMARY_SCHEMA: Schema = Schema {
    application_id: 0x6863_7375,
    steps: &[include_str!("schema/summary_001.sql"), include_str!("schema/summary_002.sql")],
};

/// The summary's file, with its one writer.
#[derive(Debug)]
pub struct SqliteSummary {
    connection: Connection,
    file: PathBuf,
    /// The latest time that the history has heard of, to the hour after a start: it never goes back.
    newest_ms: i64,
    places: ranking::Places,
}

/// A second connection that only reads.
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
        let newest_ms = history::newest_ms(&connection)?;
        Ok(Self { connection, file: file.to_owned(), newest_ms, places: ranking::Places::default() })
    }

    /// Removes every total, its history, and every deletion that is not finished, `chunk` rows a transaction. The roll-up starts again:
    /// what the shards still count, it carries.
    ///
    /// # Errors
    /// The engine's.
    pub fn remove_totals(&mut self, chunk: u32) -> Result<(), Error> {
        self.connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
        self.connection.execute("DELETE FROM watermarks", [])?;
        // History before totals: interrupted in between, no history is left of what has no total.
        for (table, key) in [
            ("history", "item, hour"),
            ("trending", "span, item"),
            ("trending_missed", "span, minute"),
            ("deletions", "item"),
            ("summary", "item"),
        ] {
            let sql = format!("DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} LIMIT ?1)");
            while self.connection.prepare_cached(&sql)?.execute([chunk])? > 0 {}
        }
        open::checkpoint(&self.connection)?;
        Ok(self.connection.pragma_update_and_check(None, "secure_delete", "OFF", |_| Ok(()))?)
    }

    /// Rows changed through this connection so far.
    #[cfg(test)]
    pub(super) fn rows_changed(&self) -> u64 {
        self.connection.total_changes()
    }

    /// Rows by item, after an item. Parts that cannot be read are none.
    ///
    /// # Errors
    /// The engine's.
    pub fn page(&self, after: &str, limit: u32) -> Result<Vec<(String, SummaryRow)>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT item, total, version, parts FROM summary WHERE item > ?1 ORDER BY item LIMIT ?2",
        )?;
        let rows = select.query_map((after, limit), |row| {
            let parts = serde_json::from_str(row.get_ref(3)?.as_str()?).unwrap_or_default();
            Ok((row.get(0)?, SummaryRow { total: row.get(1)?, version: unsigned(row, 2)?, parts }))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
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
    /// Total and version of items, in the order of the question. In one snapshot.
    ///
    /// # Errors
    /// The engine's.
    pub fn totals(&self, items: &[&str]) -> Result<Vec<Option<(i64, u64)>>, Error> {
        let snapshot = self.0.unchecked_transaction()?;
        let mut select = snapshot.prepare_cached("SELECT total, version FROM summary WHERE item = ?1")?;
        let load = |item: &&str| {
            let row = select.query_row([item], |row| Ok((row.get(0)?, unsigned(row, 1)?)));
            Ok(row.optional()?)
        };
        items.iter().map(load).collect()
    }

    /// What is stored of some minutes of an item's history. In one snapshot.
    ///
    /// # Errors
    /// The engine's.
    pub fn past(&self, item: &str, minutes: Range<i64>) -> Result<Openings, Error> {
        history::past(&self.0, item, minutes)
    }

    /// From when on histories are whole, in ms since 1970: totals may be older than history is.
    ///
    /// # Errors
    /// The engine's.
    pub fn history_since_ms(&self) -> Result<i64, Error> {
        history::since_ms(&self.0)
    }

    /// The items that gained most in a window, by gain and then by name. The first minute that counts for any item is
    /// earlier than the window's first at `now_ms` where [`SummaryStore::tidy`] has yet to move it on.
    ///
    /// # Errors
    /// The engine's.
    pub fn top_gains(&self, window: Window, now_ms: i64, limit: u32) -> Result<Gains, Error> {
        ranking::top_gains(&self.0, window, now_ms, limit)
    }

    /// The items with the largest totals, by total and then by name.
    ///
    /// # Errors
    /// The engine's.
    pub fn top_totals(&self, limit: u32) -> Result<Vec<Ranked>, Error> {
        ranking::top_totals(&self.0, limit)
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

    fn save(
        &mut self,
        rows: &[(&str, SummaryRow)],
        progress: &Progress,
        changes: &ChangedTotals<'_>,
    ) -> Result<(), Error> {
        let at_ms = changes.at_ms.max(self.newest_ms);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
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
            record(&transaction, &ChangedTotals { at_ms, ..*changes }, &mut self.places)?;
        }
        transaction.commit()?;
        self.newest_ms = at_ms;
        Ok(())
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

    fn finish_deletion(
        &mut self,
        item: &str,
        row: Option<&SummaryRow>,
        run: u64,
        now: &ChangedTotals<'_>,
    ) -> Result<(), Error> {
        let at_ms = now.at_ms.max(self.newest_ms);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        history::forget(&transaction, item)?;
        ranking::forget(&transaction, item)?;
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
            let items = [Change { item, before: 0, total: row.total }];
            let changes = ChangedTotals { at_ms, items: &items, ranked: now.ranked };
            record(&transaction, &changes, &mut self.places)?;
        }
        transaction.prepare_cached("UPDATE progress SET run = ?1")?.execute([signed(run)])?;
        transaction.commit()?;
        self.newest_ms = at_ms;
        Ok(())
    }

    fn tidy(&mut self, now_ms: i64, kept: &Kept, limit: u32) -> Result<bool, Error> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // What a window still needs is never too old: windows go first.
        let more = ranking::move_windows(&transaction, now_ms, kept, limit, &mut self.places)?
            || history::forget_old(&transaction, now_ms, kept, limit)?;
        transaction.commit()?;
        Ok(more)
    }
}

/// Writes down what changed, in the history and then in the rankings, which read it.
fn record(
    transaction: &Connection,
    changes: &ChangedTotals<'_>,
    places: &mut ranking::Places,
) -> Result<(), Error> {
    let minute = Step::Minute.bucket(changes.at_ms);
    for change in changes.items {
        history::begin(transaction, change, minute)?;
    }
    ranking::update(transaction, changes, places)
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
