//! What is stored, seen and damaged without the service.

use std::fs;
use std::path::{Path, PathBuf};

use headcount::data_dir::Manifest;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

/// Where the files are that hold: the directory itself, or the generation that its manifest names.
pub fn home(data_dir: &Path) -> PathBuf {
    let manifest = Manifest::read(data_dir).ok().flatten();
    manifest.map_or(data_dir.to_owned(), |manifest| manifest.files_dir(data_dir))
}

/// A partition's file.
pub fn partition_file(data_dir: &Path, partition: u32) -> PathBuf {
    home(data_dir).join(format!("partition-{partition:03}.db"))
}

/// A connection to one file of a data directory: `partition-000.db`, `summary.db`.
pub fn open(data_dir: &Path, file: &str) -> Connection {
    let path = home(data_dir).join(file);
    assert!(path.exists(), "{} is missing", path.display());
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    // Looking must not tidy up: what a killed service left in the log stays there for its next start.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    connection
}

/// The partition files of a data directory, by name, in order.
pub fn partitions(data_dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(home(data_dir))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("partition-") && name.ends_with(".db"))
        .collect();
    names.sort_unstable();
    names
}

/// One number from one file.
pub fn number(data_dir: &Path, file: &str, sql: &str) -> i64 {
    open(data_dir, file).query_row(sql, [], |row| row.get(0)).unwrap()
}

/// One number from each partition, added up.
pub fn sum(data_dir: &Path, sql: &str) -> i64 {
    partitions(data_dir).iter().map(|file| number(data_dir, file, sql)).sum()
}

/// Runs statements on one file.
pub fn execute(data_dir: &Path, file: &str, sql: &str) {
    open(data_dir, file).execute_batch(sql).unwrap();
}

/// Whether somebody else is in a writing transaction on a file.
pub fn is_being_written(data_dir: &Path, file: &str) -> bool {
    let connection = open(data_dir, file);
    connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    match connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK") {
        Ok(()) => false,
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => true,
        Err(error) => panic!("{file}: {error}"),
    }
}

/// Copies the files of one directory into another, which is made.
pub fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
