//! Opening a file: every pragma set explicitly, the schema brought up step by step.

use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::config::{Sqlite, Synchronous};
use crate::store::{Error, Syncer};

/// The pragmas of a connection, from the `[sqlite]` settings.
pub type Pragmas = Sqlite;

/// A kind of file: its mark, and its schema steps over `PRAGMA user_version`.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// `PRAGMA application_id`: tells these files from any other program's.
    pub application_id: i32,
    /// Step n brings version n - 1 to n.
    pub steps: &'static [&'static str],
}

/// Opens or creates a file for its one writer.
///
/// # Errors
/// [`Error::Newer`], [`Error::Foreign`], or the engine's.
pub fn open(file: &Path, pragmas: &Pragmas, schema: &Schema) -> Result<Connection, Error> {
    let named = |why: String| format!("{}: {why}", file.display());
    open_and_migrate(file, pragmas, schema).map_err(|error| match error {
        Error::DiskFull(why) => Error::DiskFull(named(why)),
        Error::Engine(why) => Error::Engine(named(why)),
        names_it_already => names_it_already,
    })
}

/// Syncs a write-ahead log through a file of its own: SQLite keeps its locks on other files.
#[derive(Debug)]
struct LogSyncer(std::fs::File);

impl Syncer for LogSyncer {
    fn sync(&mut self) -> Result<(), Error> {
        self.0.sync_data().map_err(|error| Error::Engine(format!("syncing the log: {error}")))
    }
}

/// For settings by which a commit need not be durable.
#[derive(Debug)]
struct NoSync;

impl Syncer for NoSync {
    fn sync(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// Leaves the syncing of commits to a [`log_syncer`]: SQLite would make the next transaction wait for it. It
/// still syncs both files at a checkpoint.
///
/// # Errors
/// The engine's.
pub fn leave_commits_unsynced(connection: &Connection, pragmas: &Pragmas) -> Result<(), Error> {
    if pragmas.synchronous != Synchronous::Off {
        connection.pragma_update(None, "synchronous", Synchronous::Normal.as_str())?;
    }
    Ok(())
}

/// What makes the commits of an open file durable.
///
/// # Errors
/// The system's, when it does not open the log.
pub fn log_syncer(file: &Path, pragmas: &Pragmas) -> Result<Box<dyn Syncer>, Error> {
    if matches!(pragmas.synchronous, Synchronous::Off | Synchronous::Normal) {
        return Ok(Box::new(NoSync));
    }
    let log = std::fs::File::options().write(true).open(wal_file(file));
    let log = log.map_err(|error| Error::Engine(format!("opening the log: {error}")))?;
    Ok(Box::new(LogSyncer(log)))
}

fn open_and_migrate(file: &Path, pragmas: &Pragmas, schema: &Schema) -> Result<Connection, Error> {
    let mut connection = Connection::open(file)?;
    connection.busy_timeout(std::time::Duration::from_millis(pragmas.busy_timeout_ms))?;
    keep_plans(&connection)?;
    refuse_foreign(&connection, file, schema)?;
    // The page size must come first: it is fixed once the file has its first page.
    connection.pragma_update(None, "page_size", pragmas.page_size_bytes)?;
    set_mode(&connection, "journal_mode", "WAL", "wal")?;
    connection.pragma_update(None, "synchronous", pragmas.synchronous.as_str())?;
    connection.pragma_update(None, "cache_size", -i64::from(pragmas.cache_kib))?;
    connection.pragma_update(None, "wal_autocheckpoint", pragmas.wal_autocheckpoint_pages)?;
    connection.pragma_update(None, "journal_size_limit", pragmas.journal_size_limit_bytes)?;
    connection.pragma_update(None, "mmap_size", pragmas.mmap_size_bytes)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "locking_mode", "NORMAL")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.set_prepared_statement_cache_capacity(pragmas.statement_cache as usize);
    migrate(&mut connection, file, schema)?;
    sync_recovered_log(file, pragmas)?;
    Ok(connection)
}

/// A statement is planned once. Without this the engine plans one that compares a range anew with each value that is bound
/// to it, which costs several times what running it does.
fn keep_plans(connection: &Connection) -> Result<(), Error> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Creates a file that nobody is to read before it is whole, and writes it as fast as that allows: nothing can be
/// undone and nothing is synced. Whoever publishes it syncs it first.
///
/// # Errors
/// The engine's.
pub fn create_unpublished(file: &Path, pragmas: &Pragmas, schema: &Schema) -> Result<Connection, Error> {
    let mut connection = Connection::open(file)?;
    connection.pragma_update(None, "page_size", pragmas.page_size_bytes)?;
    set_mode(&connection, "journal_mode", "OFF", "off")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "cache_size", -i64::from(pragmas.cache_kib))?;
    connection.pragma_update(None, "foreign_keys", false)?;
    migrate(&mut connection, file, schema)?;
    Ok(connection)
}

/// A process that was killed may leave commits in the log that it wrote and never synced. They are read
/// back from the system's cache; before anybody is told of them, they must be on the disk.
fn sync_recovered_log(file: &Path, pragmas: &Pragmas) -> Result<(), Error> {
    if pragmas.synchronous == Synchronous::Off {
        return Ok(());
    }
    match std::fs::File::options().write(true).open(wal_file(file)) {
        Ok(wal) => wal.sync_data().map_err(|error| Error::Engine(format!("syncing the log: {error}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::Engine(format!("opening the log: {error}"))),
    }
}

/// Opens an existing file to look at it, beside its writer or without one.
///
/// # Errors
/// As [`open`]; also when the file is missing.
pub fn open_for_reading(file: &Path, schema: &Schema) -> Result<Connection, Error> {
    // Not SQLITE_OPEN_READ_ONLY: a reader of a write-ahead log that nobody has open must create its index.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    keep_plans(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    refuse_foreign(&connection, file, schema)?;
    refuse_newer(&connection, file, schema)?;
    Ok(connection)
}

/// One snapshot of a file, whatever its writer does meanwhile, with the tables that this build knows: those
/// of an older file are brought up to date in a transaction that is never committed.
///
/// # Errors
/// As [`open_for_reading`].
pub fn snapshot(file: &Path, schema: &Schema) -> Result<Connection, Error> {
    let connection = open_for_reading(file, schema)?;
    let older: Vec<_> = (1..)
        .zip(schema.steps)
        .skip_while({
            let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
            move |(version, _)| *version <= found
        })
        .collect();
    if older.is_empty() {
        connection.execute_batch("BEGIN")?;
        return Ok(connection);
    }
    // Nobody has it open: whoever opens a file to write brings it up to date first.
    connection.pragma_update(None, "query_only", false)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for (_, step) in older {
        connection.execute_batch(step)?;
    }
    Ok(connection)
}

/// Brings the write-ahead log into the file and empties it.
///
/// # Errors
/// The engine's.
pub fn checkpoint(connection: &Connection) -> Result<(), Error> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Writes a file's write-ahead log over itself, byte by byte the same, and syncs it.
///
/// # Errors
/// The operating system's.
pub fn rewrite_log(file: &Path) -> Result<(), Error> {
    let rewrite = || {
        let mut wal = std::fs::File::options().read(true).write(true).open(wal_file(file))?;
        let mut chunk = vec![0; 1 << 20];
        loop {
            let at = wal.stream_position()?;
            let read = wal.read(&mut chunk)?;
            if read == 0 {
                return wal.sync_data();
            }
            wal.seek(std::io::SeekFrom::Start(at))?;
            wal.write_all(chunk.get(..read).unwrap_or_default())?;
        }
    };
    match rewrite() {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Engine(format!("rewriting the log: {error}")))
        }
        _ => Ok(()),
    }
}

/// Bytes in a file's write-ahead log.
#[must_use]
pub fn wal_bytes(file: &Path) -> u64 {
    std::fs::metadata(wal_file(file)).map_or(0, |metadata| metadata.len())
}

fn wal_file(file: &Path) -> PathBuf {
    let mut wal = file.as_os_str().to_owned();
    wal.push("-wal");
    wal.into()
}

fn set_mode(connection: &Connection, pragma: &str, value: &str, expected: &str) -> Result<(), Error> {
    let mut found = String::new();
    connection.pragma_update_and_check(None, pragma, value, |row| {
        found = row.get(0)?;
        Ok(())
    })?;
    if found == expected {
        return Ok(());
    }
    Err(Error::Engine(format!("{pragma} is {found}, not {expected}: this file system cannot hold it")))
}

fn refuse_foreign(connection: &Connection, file: &Path, schema: &Schema) -> Result<(), Error> {
    let found: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if found == schema.application_id || (found == 0 && tables == 0) {
        return Ok(());
    }
    let why = "it is not a headcount file of this kind".to_owned();
    Err(Error::Foreign { file: file.display().to_string(), why })
}

fn refuse_newer(connection: &Connection, file: &Path, schema: &Schema) -> Result<i64, Error> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = i64::try_from(schema.steps.len()).unwrap_or(i64::MAX);
    if found <= known {
        return Ok(found);
    }
    Err(Error::Newer { file: file.display().to_string(), found, known })
}

fn migrate(connection: &mut Connection, file: &Path, schema: &Schema) -> Result<(), Error> {
    let found = refuse_newer(connection, file, schema)?;
    for (version, step) in (1_i64..).zip(schema.steps).filter(|(version, _)| *version > found) {
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", schema.application_id)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}
