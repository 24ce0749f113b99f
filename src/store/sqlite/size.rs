//! How many bytes each table takes, its indices with it.

use std::collections::BTreeMap;
use std::path::Path;

use super::open::{Schema, open_for_reading, wal_bytes};
use crate::store::Error;

/// One file's.
#[derive(Debug, Default)]
pub struct Size {
    /// Bytes of the pages of each table, used or not.
    pub tables: BTreeMap<String, u64>,
    /// Free pages, the schema, and the write-ahead log.
    pub beside: u64,
}

/// Measures a file beside its writer. A tree at a time: a reader of all at once would keep the write-ahead
/// log from starting anew for as long as it reads.
///
/// # Errors
/// As [`open_for_reading`].
pub fn measure(file: &Path, schema: &Schema) -> Result<Size, Error> {
    let connection = open_for_reading(file, schema)?;
    let mut size = Size { beside: wal_bytes(file), ..Size::default() };
    let mut trees = connection.prepare("SELECT name, tbl_name FROM sqlite_schema WHERE rootpage > 0")?;
    let trees: Vec<(String, String)> =
        trees.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    let mut bytes = connection
        .prepare("SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = TRUE AND name = ?1")?;
    let mut of = |tree: &str| bytes.query_row([tree], |row| row.get::<_, i64>(0));
    for (tree, table) in trees {
        *size.tables.entry(table).or_default() += of(&tree)?.unsigned_abs();
    }
    size.beside += of("sqlite_schema")?.unsigned_abs();
    let free: i64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    size.beside += free.saturating_mul(page).unsigned_abs();
    Ok(size)
}
