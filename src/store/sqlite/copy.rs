//! Copying a file beside its writer, as it was at one moment.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::open::{Schema, open_for_reading};
use crate::store::Error;

/// Pages that are copied before somebody may say stop.
const PAGES_PER_STEP: i32 = 256;

/// A reader of one file, before and after its moment.
#[derive(Debug)]
pub struct Snapshot {
    connection: Connection,
    file: PathBuf,
}

impl Snapshot {
    /// Opens a file; its moment is yet to come.
    ///
    /// # Errors
    /// As [`open_for_reading`].
    pub fn open(file: &Path, schema: &Schema) -> Result<Self, Error> {
        Ok(Self { connection: open_for_reading(file, schema)?, file: file.to_owned() })
    }

    /// From now on this reader sees the file as it is now. Its log cannot start anew until this is dropped.
    ///
    /// # Errors
    /// The engine's.
    pub fn take(&self) -> Result<(), Error> {
        self.connection.execute_batch("BEGIN")?;
        // A transaction begins with its first look.
        let _tables: i64 =
            self.connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok(())
    }

    /// Bytes that a copy will have.
    ///
    /// # Errors
    /// The engine's.
    pub fn bytes(&self) -> Result<u64, Error> {
        let pragma = |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        Ok(pragma("page_count")?.saturating_mul(pragma("page_size")?).unsigned_abs())
    }

    /// The file's name in its directory.
    #[must_use]
    pub fn name(&self) -> String {
        self.file.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Writes what it sees into a new file that is whole by itself, without a log, and not synced. False: `goes_on` said
    /// no in between.
    ///
    /// # Errors
    /// The engine's.
    pub fn copy_to(self, target: &Path, goes_on: impl Fn() -> bool) -> Result<bool, Error> {
        let mut copy = Connection::open(target)?;
        copy.pragma_update(None, "synchronous", "OFF")?;
        {
            let backup = Backup::new(&self.connection, &mut copy)?;
            loop {
                match backup.step(PAGES_PER_STEP)? {
                    StepResult::Done => break,
                    _ if goes_on() => {}
                    _ => return Ok(false),
                }
            }
        }
        // The copy says of itself that it has a log, as the original does.
        copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
        copy.close().map_err(|(_, error)| error)?;
        Ok(true)
    }
}

/// What SQLite finds wrong with a file that nobody writes to; empty if nothing is.
///
/// # Errors
/// The engine's.
pub fn integrity(file: &Path, schema: &Schema) -> Result<Vec<String>, Error> {
    let connection = open_for_reading(file, schema)?;
    let mut check = connection.prepare("PRAGMA integrity_check(20)")?;
    let lines = check.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}
