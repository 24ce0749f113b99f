//! The embedded store: one SQLite file a partition, and one for the roll-up's summary.

mod booking_changes;
mod bookings;
mod by_item;
mod checkpointer;
pub mod copy;
mod counters;
mod filter;
mod history;
mod import;
mod journal;
mod likes;
pub mod open;
mod page_order;
mod pending;
mod people;
mod ranking;
mod removal;
pub mod repair;
mod reservations;
mod rooms;
mod rows;
mod sets;
pub mod size;
pub mod summary;
mod walk;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::{Durability, Error, Syncer, Transactions};
use checkpointer::Checkpointer;
use filter::Filter;
use open::{Pragmas, Schema};
use pending::Pending;
use walk::Walk;

/// The schema steps of a partition's file, in order. A step that has shipped never changes.
pub const PARTITION_SCHEMA: Schema = Schema {
    application_id: 0x6863_7061,
    steps: &[
        include_str!("schema/partition_001.sql"),
        include_str!("schema/partition_002.sql"),
        include_str!("schema/partition_003.sql"),
        include_str!("schema/partition_004.sql"),
        include_str!("schema/partition_005.sql"),
        include_str!("schema/partition_006.sql"),
        include_str!("schema/partition_007.sql"),
        include_str!("schema/partition_008.sql"),
        include_str!("schema/partition_009.sql"),
    ],
};

/// A partition's file.
#[derive(Debug)]
pub struct SqliteStore {
    /// Until the filter knows what the tables hold. First, so that its connection is never the last one to close.
    walk: Option<Walk>,
    connection: Connection,
    /// `None` while the file is being opened afresh.
    checkpointer: Option<Checkpointer>,
    file: PathBuf,
    /// The same, open for as long as the store is.
    opened: Arc<File>,
    identity: Identity,
    pragmas: Pragmas,
    changes_at_begin: u64,
    pending: Pending,
    /// The newest row of the journal.
    last_seq: i64,
}

/// Whose file it is: checked at every opening, so that a file in the wrong place is not written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The data directory's id.
    pub data_id: String,
    /// The partition's number.
    pub partition: u32,
}

impl SqliteStore {
    /// Opens a partition's file, creating what is missing and touching nothing that is there.
    ///
    /// # Errors
    /// [`Error::Newer`], [`Error::Foreign`], or the engine's.
    pub fn open(file: &Path, identity: Identity, pragmas: Pragmas) -> Result<Self, Error> {
        let connection = open::open(file, &pragmas, &PARTITION_SCHEMA)?;
        let opened =
            File::open(file).map_err(|error| Error::Engine(format!("{}: {error}", file.display())))?;
        Self::over(connection, file.to_owned(), Arc::new(opened), identity, pragmas)
    }

    fn over(
        mut connection: Connection,
        file: PathBuf,
        opened: Arc<File>,
        identity: Identity,
        pragmas: Pragmas,
    ) -> Result<Self, Error> {
        check_identity(&connection, &file, &identity)?;
        open::leave_commits_unsynced(&connection, &pragmas)?;
        let (pending, last_seq) = journal::load(&connection, Filter::new(pragmas.filter_kib))?;
        let walk = (pragmas.filter_kib > 0).then(|| Walk::start(&file, &pragmas)).transpose()?;
        let checkpointer = Some(Checkpointer::spawn(&file, Arc::clone(&opened), &mut connection, &pragmas)?);
        let changes_at_begin = 0;
        Ok(Self {
            connection,
            checkpointer,
            walk,
            file,
            opened,
            identity,
            pragmas,
            changes_at_begin,
            pending,
            last_seq,
        })
    }

    /// The latest time that a decision was stored at, in ms since 1970; 0 in a new file.
    ///
    /// # Errors
    /// The engine's.
    pub fn clock_mark_ms(&self) -> Result<i64, Error> {
        let sql =
            "SELECT max(clock_mark_ms, coalesce((SELECT max(decided_at_ms) FROM journal), 0)) FROM identity";
        Ok(self.connection.query_row(sql, [], |row| row.get(0))?)
    }
}

fn check_identity(connection: &Connection, file: &Path, expected: &Identity) -> Result<(), Error> {
    connection.execute(
        "INSERT INTO identity (singleton, data_id, partition, clock_mark_ms) VALUES (1, ?1, ?2, 0)
         ON CONFLICT (singleton) DO NOTHING",
        (&expected.data_id, expected.partition),
    )?;
    let found = connection.query_row("SELECT data_id, partition FROM identity", [], |row| {
        Ok(Identity { data_id: row.get(0)?, partition: row.get(1)? })
    })?;
    if found == *expected {
        return Ok(());
    }
    let why = format!(
        "it is partition {} of data directory {}, expected partition {} of {}",
        found.partition, found.data_id, expected.partition, expected.data_id
    );
    Err(Error::Foreign { file: file.display().to_string(), why })
}

impl Transactions for SqliteStore {
    const EXCLUSIVE: bool = true;

    fn begin(&mut self) -> Result<(), Error> {
        // IMMEDIATE: a deferred transaction that reads first may be unable to write at all.
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.changes_at_begin = self.connection.total_changes();
        Ok(())
    }

    fn has_changed(&self) -> bool {
        self.connection.total_changes() != self.changes_at_begin || self.pending.is_dirty()
    }

    fn commit(&mut self, now_ms: i64) -> Result<Durability, Error> {
        let journaled = self.journal(now_ms)?;
        let changed = self.connection.total_changes() != self.changes_at_begin;
        // A row of the journal has its time with it.
        if changed && !journaled {
            self.connection
                .prepare_cached("UPDATE identity SET clock_mark_ms = ?1 WHERE clock_mark_ms < ?1")?
                .execute([now_ms])?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.pending.committed(self.pragmas.pending_rows, self.last_seq);
        if let Some(walked) = self.walk.take_if(|walk| walk.is_over()).and_then(Walk::finish) {
            self.pending.complete_filter(&walked);
        }
        if let Some(checkpointer) = &mut self.checkpointer {
            checkpointer.step(&self.connection)?;
        }
        Ok(if changed { Durability::AfterSync } else { Durability::Already })
    }

    fn syncer(&self) -> Result<Box<dyn Syncer>, Error> {
        open::log_syncer(&self.file, &self.pragmas)
    }

    fn rollback(&mut self) -> Result<(), Error> {
        if !self.connection.is_autocommit() {
            self.connection.prepare_cached("ROLLBACK")?.execute([])?;
        }
        if self.pending.is_dirty() && !self.pending.undo() {
            let filter = std::mem::take(&mut self.pending).into_filter();
            (self.pending, self.last_seq) = journal::load(&self.connection, filter)?;
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), Error> {
        // The old connections close first (an in-memory one stands in for a moment): two of one process
        // on a file would share locks. They leave the log as it is, and what was moved of it is moved again: it may have
        // been a checkpoint that failed.
        (self.checkpointer, self.walk) = (None, None);
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        self.connection = Connection::open_in_memory()?;
        let connection = open::open(&self.file, &self.pragmas, &PARTITION_SCHEMA)?;
        let (file, opened) = (self.file.clone(), Arc::clone(&self.opened));
        *self = Self::over(connection, file, opened, self.identity.clone(), self.pragmas.clone())?;
        // After a failed sync the system may call pages of the log clean that never reached the disk, and a
        // second sync of them would succeed. What was read back from it is written again.
        open::rewrite_log(&self.file)
    }

    fn checkpoint(&mut self) -> Result<(), Error> {
        self.begin()?;
        self.settle()?;
        let _the_checkpoint_syncs_it = self.commit(0)?;
        self.walk = None;
        // Two at once would be one too many for SQLite.
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.wait_until_alone();
        }
        open::checkpoint(&self.connection)
    }

    fn log_bytes(&self) -> u64 {
        open::wal_bytes(&self.file)
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull(error.to_string()),
            _ => Self::Engine(error.to_string()),
        }
    }
}
