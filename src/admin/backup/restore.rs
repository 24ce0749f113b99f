//! `headcount restore`: a data directory out of a backup.
//!
//! It is a step back in time, and says so to whoever could mistake the past for the present: rooms begin a new epoch, so
//! that nobody goes on from an offset that is given out a second time. Whatever interrupts it, the directory has no
//! manifest until the end, and is not served without one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::contents::{self, Contents, Entry};
use super::partial::is_partial;
use crate::admin::space::{Short, Space};
use crate::data_dir::generation::sync_directory;
use crate::data_dir::{self, Manifest, RESTORING};

/// `headcount restore`'s arguments.
#[derive(Debug, clap::Args)]
pub struct RestoreOptions {
    /// The backup: a directory that `headcount backup` has written
    #[arg(value_name = "BACKUP")]
    pub backup: PathBuf,
    /// The data directory to make; it must be empty or missing [default: the settings' storage.data_dir]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The settings file [default: config/headcount.toml if it exists]
    #[arg(long)]
    pub config: Option<PathBuf>,
}

/// What was restored.
#[derive(Debug)]
pub struct Restored {
    /// The moment that it shows, ms since 1970.
    pub taken_at_ms: i64,
    /// Its files together.
    pub bytes: u64,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a backup, or not a whole one.
    #[error(
        "{0} is no backup, or was interrupted: a whole one has a backup.json. A service writes backups into backup.dir"
    )]
    NoBackup(String),
    /// Written by a newer headcount.
    #[error(
        "{path} has format {found}, this headcount knows up to {}: use a newer headcount",
        contents::FORMAT
    )]
    Newer {
        /// The backup.
        path: String,
        /// Its format.
        found: u32,
    },
    /// Something would be written over.
    #[error("{0} is not empty: restore into an empty directory")]
    NotEmpty(String),
    /// Not what was backed up.
    #[error("{0} is damaged: it is not what was written at the time")]
    Damaged(String),
    /// No room.
    #[error("no room for the data: {0}")]
    Space(#[from] Short),
    /// The directory.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// A file.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The operating system's words.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Makes a data directory of a backup.
///
/// # Errors
/// See [`Error`]. The directory is no data directory then.
pub fn restore(backup: &Path, target: &Path, space: &Space) -> Result<Restored, Error> {
    let no_backup = || {
        let whole = std::path::absolute(backup).unwrap_or_else(|_| backup.to_owned());
        Error::NoBackup(whole.display().to_string())
    };
    if is_partial(&backup.canonicalize().unwrap_or_default()) {
        return Err(no_backup());
    }
    let contents = Contents::read(backup)?.ok_or_else(no_backup)?;
    if contents.format > contents::FORMAT {
        return Err(Error::Newer { path: backup.display().to_string(), found: contents.format });
    }
    let manifest = Manifest::read(backup)?.ok_or_else(no_backup)?;
    fs::create_dir_all(target)?;
    refuse_full(target)?;
    let _lock = data_dir::lock(target)?;
    space.require(target, contents.bytes())??;
    File::create(target.join(RESTORING))?.sync_all()?;
    for entry in &contents.files {
        // A name from a file, which somebody may have written.
        if Path::new(&entry.name).file_name().is_none_or(|name| name != entry.name.as_str()) {
            return Err(Error::Damaged(backup.join(data_dir::BACKUP).display().to_string()));
        }
        let is_manifest = entry.name == "manifest.json";
        let found = if is_manifest {
            Entry::of(backup, &entry.name)?
        } else {
            Entry::copy(backup, target, &entry.name)?
        };
        if found != *entry {
            return Err(Error::Damaged(backup.join(&entry.name).display().to_string()));
        }
    }
    for partition in 0..manifest.partitions {
        begin_new_epochs(&manifest.partition_file(target, partition))?;
    }
    sync_directory(target)?;
    manifest.write(target)?;
    fs::remove_file(target.join(RESTORING))?;
    sync_directory(target)?;
    Ok(Restored { taken_at_ms: contents.taken_at_ms, bytes: contents.bytes() })
}

/// Takes nothing but an empty directory, or one in which a restoration was interrupted.
fn refuse_full(target: &Path) -> Result<(), Error> {
    if target.join(RESTORING).exists() && !target.join("manifest.json").exists() {
        return Ok(());
    }
    let mut names = fs::read_dir(target)?.map(|entry| entry.map(|entry| entry.file_name()));
    // A lock that nobody holds says nothing.
    match names.find(|name| name.as_ref().map_or(true, |name| name != "LOCK")) {
        Some(name) => {
            name?;
            Err(Error::NotEmpty(target.display().to_string()))
        }
        None => Ok(()),
    }
}

fn begin_new_epochs(file: &Path) -> Result<(), Error> {
    let connection = Connection::open(file)?;
    connection.execute("UPDATE rooms SET epoch = lower(hex(randomblob(8)))", [])?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(())
}
