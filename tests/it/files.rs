//! What is stored, seen and damaged without the service.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

/// A connection to one file of a data directory: `partition-000.db`, `summary.db`.
pub fn open(data_dir: &Path, file: &str) -> Connection {
    let path = data_dir.join(file);
    assert!(path.exists(), "{} is missing", path.display());
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    // Looking must not tidy up: what a killed service left in the log stays there for its next start.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    connection
}

/// The partition files of a data directory, by name, in order.
pub fn partitions(data_dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(data_dir)
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
