//! Moving data to another number of shards or partitions.
//!
//! A new generation of files is written beside the old one ([`mod@copy`], [`summary`]), from a data directory that is at
//! rest; compared with it as a whole ([`check`]); brought to the disk; and then the manifest is renamed, which is the one
//! step that counts. Killed before it, the next start finds the old files and removes what there is of the new ones;
//! killed after it, the other way round. Rows are streamed in the order of the keys: memory does not grow with them.

mod check;
mod copy;
mod estimate;
mod merge;
mod progress;
mod summary;
mod tables;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::types::FromSqlError;

use copy::{Counters, Files, copy, in_transactions};
pub use estimate::Estimate;
use progress::Told;
pub use progress::{Bar, Progress, Tell};
pub use tables::Layout;

use super::space::{Short, Space};
use super::steps::Steps;
use crate::config::{Config, Sqlite};
use crate::data_dir::{self, DataDir, Manifest};
use crate::store;
use crate::store::sqlite::PARTITION_SCHEMA;
use crate::store::sqlite::open::{create_unpublished, open_for_reading};
use crate::store::sqlite::summary::SUMMARY_SCHEMA;

/// `headcount reshard`'s arguments.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// likes.shards to be [default: as it is]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub shards: Option<u32>,
    /// storage.partitions to be [default: as it is]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub partitions: Option<u32>,
    /// The data directory [default: the settings' storage.data_dir]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The settings file [default: config/headcount.toml if it exists]
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// Say what it would take and change nothing; also beside a running service
    #[arg(long)]
    pub dry_run: bool,
}

/// Why data is not moved. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// A file of it.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The operating system's words.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// No room.
    #[error("no room for the move: {0}; nothing was changed")]
    Space(#[from] Short),
    /// A table of a newer headcount, or of somebody else's.
    #[error("{file} has a table that this headcount does not know how to move: {table}; nothing was changed")]
    UnknownTable {
        /// The file.
        file: String,
        /// The table.
        table: String,
    },
    /// A row that fits nowhere.
    #[error("{0:?} has no place in the new files; nothing was changed. `headcount verify` may know more")]
    Misplaced(String),
    /// A total that is not the sum of what is counted.
    #[error(
        "the total of {item} is {total}, its likes and bases come to {sum}; nothing was changed. \
         `headcount verify` tells what is wrong"
    )]
    NotCarried {
        /// The item.
        item: String,
        /// As it was rolled up.
        total: i64,
        /// As it was counted now.
        sum: i64,
    },
    /// The new files are not what the old ones are.
    #[error("the new files differ from the old ones ({0}); nothing was changed")]
    Differs(String),
    /// Something is on its way that must be finished first.
    #[error("{0} deletions of items are not finished; nothing was changed: start the service once as it is")]
    Unfinished(i64),
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<FromSqlError> for Error {
    fn from(error: FromSqlError) -> Self {
        Self::Store(store::Error::Engine(error.to_string()))
    }
}

/// Page caches of all files of both sets together, and the least that one has.
const CACHES_KIB: u32 = 262_144;
const MIN_CACHE_KIB: u32 = 512;

/// What a move came to.
#[derive(Debug, Clone, Copy)]
pub struct Moved {
    /// Rows that were moved.
    pub rows: u64,
    /// How long it took, from the first row to the end.
    pub took: Duration,
}

/// What a move of a data directory would take. Changes nothing, and may be asked beside a running service.
///
/// # Errors
/// See [`Error`].
pub fn estimate(config: &Config, path: &Path, to: Layout) -> Result<Estimate, Error> {
    let manifest = Manifest::read(path)?.ok_or_else(|| data_dir::Error::absent(path))?;
    Estimate::of(path, &manifest, to, Space::of(config).free(path)?)
}

/// Refuses a move for which there is no room, before anything is written for it.
///
/// # Errors
/// See [`Error`].
pub fn require_space(config: &Config, path: &Path, to: Layout) -> Result<(), Error> {
    let estimate = estimate(config, path, to)?;
    Ok(Space::of(config).require(path, estimate.needed)??)
}

/// Moves a data directory that is at rest: its journals are settled and its totals carried.
///
/// # Errors
/// See [`Error`]: nothing is changed then.
pub fn move_data(config: &Config, data: &mut DataDir, to: Layout, tell: Tell<'_>) -> Result<Moved, Error> {
    let (steps, space, started) = (Steps::of(config), Space::of(config), Instant::now());
    steps.at("move_settled");
    let estimate = Estimate::of(data.path(), data.manifest(), to, space.free(data.path())?)?;
    space.require(data.path(), estimate.needed)??;
    let next = data.begin_generation(to.shards, to.partitions)?;
    let written = write(config, data, &next, &steps, &mut Told::new(tell, estimate.total_rows()));
    if written.is_err() {
        data.clear_other_generations()?;
    }
    let rows = written?;
    steps.at("move_checked");
    data.publish_generation(next)?;
    steps.at("move_switched");
    data.clear_other_generations()?;
    Ok(Moved { rows, took: started.elapsed() })
}

/// Writes a whole generation and compares it with the one that holds; how many rows it has.
fn write(
    config: &Config,
    data: &DataDir,
    next: &Manifest,
    steps: &Steps,
    told: &mut Told<'_>,
) -> Result<u64, Error> {
    let files = open_files(data, next, &config.sqlite)?;
    let (version, clock_mark_ms) = look_at_the_old(data, &files)?;
    for (partition, file) in (0_u32..).zip(&files.new) {
        file.execute(
            "INSERT INTO identity (singleton, data_id, partition, clock_mark_ms) VALUES (1, ?1, ?2, ?3)",
            (&next.data_id, partition, clock_mark_ms),
        )?;
    }
    steps.at("move_begun");
    told.begins("copying");
    let mut counters = Counters::new(version);
    let mut rows = 0;
    for table in tables::moved() {
        rows += copy(&files, table, &mut counters, told)?;
        steps.at(&format!("move_copied_{}", table.0));
    }
    counters.finish(&files)?;
    forget_the_forgotten(&files)?;
    let (old, new) = (data.summary_file(), next.summary_file(data.path()));
    let work = next.files_dir(data.path()).join("work.db");
    summary::write((&old, &new, &work), &files, (&next.data_id, version), &config.sqlite)?;
    steps.at("move_copied");
    told.begins("comparing");
    check::check(&files, told)?;
    for file in files.new {
        file.close().map_err(|(_, error)| error)?;
    }
    Ok(rows)
}

fn open_files(data: &DataDir, next: &Manifest, settings: &Sqlite) -> Result<Files, Error> {
    let manifest = data.manifest();
    let all = manifest.partitions.saturating_add(next.partitions);
    let cache_kib = (CACHES_KIB / all.max(1)).max(MIN_CACHE_KIB);
    let settings = &Sqlite { cache_kib, ..settings.clone() };
    let old = (0..manifest.partitions).map(|partition| {
        let file = data.partition_file(partition);
        let connection = open_for_reading(&file, &PARTITION_SCHEMA)?;
        connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
        refuse_unknown_tables(&connection, &file, tables::PARTITION)?;
        Ok(connection)
    });
    let new = (0..next.partitions).map(|partition| {
        let file = next.partition_file(data.path(), partition);
        Ok(create_unpublished(&file, settings, &PARTITION_SCHEMA)?)
    });
    Ok(Files {
        old: old.collect::<Result<_, Error>>()?,
        new: new.collect::<Result<_, Error>>()?,
        old_layout: Layout { shards: manifest.shards, partitions: manifest.partitions },
        new_layout: Layout { shards: next.shards, partitions: next.partitions },
    })
}

fn refuse_unknown_tables(
    file: &Connection,
    path: &Path,
    known: &[(&'static str, tables::Fate)],
) -> Result<(), Error> {
    let mut select = file.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    for table in select.query_map([], |row| row.get::<_, String>(0))? {
        let table = table?;
        // SQLite keeps statistics in tables of its own.
        if !known.iter().any(|(name, _)| *name == table) && !table.starts_with("sqlite_stat") {
            return Err(Error::UnknownTable { file: path.display().to_string(), table });
        }
    }
    Ok(())
}

/// Refuses files that are not at rest; the newest version of any counter, and the latest time stored.
fn look_at_the_old(data: &DataDir, files: &Files) -> Result<(i64, i64), Error> {
    let path = data.summary_file();
    let summary = open_for_reading(&path, &SUMMARY_SCHEMA)?;
    refuse_unknown_tables(&summary, &path, tables::SUMMARY)?;
    match summary.query_row("SELECT count(*) FROM deletions", [], |row| row.get(0))? {
        0 => {}
        unfinished => return Err(Error::Unfinished(unfinished)),
    }
    let mut version: i64 =
        summary.query_row("SELECT coalesce(max(version), 0) FROM watermarks", [], |row| row.get(0))?;
    let mut clock_mark_ms = 0;
    for file in &files.old {
        let (newest, mark_ms, journaled): (i64, i64, i64) = file.query_row(
            "SELECT max(coalesce((SELECT max(version) FROM shard_counters), 0),
                        coalesce((SELECT max(version) FROM version_floors), 0)),
                    clock_mark_ms, (SELECT count(*) FROM journal) FROM identity",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        if journaled > 0 {
            return Err(Error::Differs(format!("{journaled} rows of a journal are not settled")));
        }
        (version, clock_mark_ms) = (version.max(newest), clock_mark_ms.max(mark_ms));
    }
    Ok((version, clock_mark_ms))
}

/// Removes what stood for the names of people who were forgotten: their numbers are taken, and nobody's.
fn forget_the_forgotten(files: &Files) -> Result<(), Error> {
    in_transactions(&files.new, || {
        for file in &files.new {
            file.execute("DELETE FROM holders WHERE name >= char(1) AND name < char(2)", [])?;
        }
        Ok(())
    })
}

fn in_file<T>(file: &Path, look: impl FnOnce() -> Result<T, store::Error>) -> Result<T, Error> {
    look().map_err(|error| Error::Store(store::Error::Engine(format!("{}: {error}", file.display()))))
}
