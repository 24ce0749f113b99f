//! Whether the new files hold what the old ones do: every table read from both, row by row, and compared as a whole.
//!
//! A row's digest is of its names and values, not of its numbers; a table's is the sum of its rows', so that it does
//! not depend on where they are or in which order. Written anew from the tables' description, it shares nothing with
//! the copying but that.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use xxhash_rust::xxh3::xxh3_128;

use super::copy::Files;
use super::tables::{self, Layout, Moved, Number};
use super::{Error, Told};
use crate::likes::types::{ItemId, shards_of_partition};

/// A table as a whole.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Digest {
    rows: u64,
    sum: u128,
}

/// Compares every table, looks where each row lies, adds the counters up, and has SQLite look at its pages.
pub(super) fn check(files: &Files, told: &mut Told<'_>) -> Result<(), Error> {
    let mut members = vec![0_u64; files.new_layout.shards as usize];
    for (table, moved) in tables::moved() {
        let mut before = Digest::default();
        for file in &files.old {
            before.add(file, moved, |_| Ok(()))?;
        }
        let mut after = Digest::default();
        for (partition, file) in (0_u32..).zip(&files.new) {
            after.add(file, moved, |key| {
                let (shard, home) = moved.place.of(key, files.new_layout);
                // What one shard alone would have too much of lies on all of them.
                let is_spread = table == "base_ledger" && ItemId::counter_in(key).is_some();
                if home != partition && !is_spread {
                    return Err(Error::Differs(format!(
                        "{table}: a row of {key} lies on partition {partition}"
                    )));
                }
                if table == "memberships"
                    && let Some(members) = members.get_mut(shard as usize)
                {
                    *members += 1;
                }
                Ok(())
            })?;
        }
        if before != after {
            let why =
                format!("{table} has {} rows, it had {}, or their contents differ", after.rows, before.rows);
            return Err(Error::Differs(why));
        }
        told.rows(table, after.rows);
    }
    for (partition, file) in (0_u32..).zip(&files.new) {
        check_counters(file, (partition, files.new_layout), &members)?;
        check_pages(file)?;
    }
    Ok(())
}

impl Digest {
    fn add(
        &mut self,
        file: &Connection,
        moved: &Moved,
        mut each: impl FnMut(&str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let numbers: Vec<Number> = moved.numbers.iter().map(|(_, _, number)| *number).collect();
        let apart = 1 + numbers.len() + moved.columns.len();
        let mut select = file.prepare(&moved.read())?;
        let mut rows = select.query([])?;
        let mut bytes = Vec::new();
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_str()?)?;
            bytes.clear();
            write_row(row, apart, &numbers, &mut bytes)?;
            if moved.added.is_empty() {
                self.rows += 1;
                self.sum = self.sum.wrapping_add(xxh3_128(&bytes));
            }
            // Rows may have become one, with the sums of these columns.
            for (column, name) in (apart..).zip(moved.added) {
                let amount: i64 = row.get(column)?;
                let times = i128::from(amount).cast_unsigned();
                let of_column = xxh3_128(&[bytes.as_slice(), name.as_bytes()].concat());
                self.sum = self.sum.wrapping_add(of_column.wrapping_mul(times));
            }
        }
        Ok(())
    }
}

fn write_row(row: &Row<'_>, columns: usize, numbers: &[Number], bytes: &mut Vec<u8>) -> Result<(), Error> {
    for column in 0..columns {
        let value = row.get_ref(column)?;
        let number = column.checked_sub(1).and_then(|column| numbers.get(column));
        match (number, value) {
            // Another number in the new files, and nobody's name: that it is there is all.
            (Some(Number::WorkshopAnywhere), ValueRef::Text(_)) => bytes.push(b'w'),
            (Some(Number::Holder), ValueRef::Text([1, ..])) => bytes.push(b'f'),
            (_, ValueRef::Null) => bytes.push(b'0'),
            (_, ValueRef::Integer(value)) => {
                bytes.push(b'i');
                bytes.extend(value.to_le_bytes());
            }
            (_, ValueRef::Real(value)) => {
                bytes.push(b'r');
                bytes.extend(value.to_le_bytes());
            }
            (_, ValueRef::Text(value) | ValueRef::Blob(value)) => {
                bytes.push(b't');
                bytes.extend((value.len() as u64).to_le_bytes());
                bytes.extend(value);
            }
        }
    }
    Ok(())
}

/// That the counters of each shard add up to its members and to its ledger. Item by item they were compared with the
/// old totals when the summary was written.
fn check_counters(
    file: &Connection,
    (partition, layout): (u32, Layout),
    members: &[u64],
) -> Result<(), Error> {
    let mut select = file.prepare(
        // Of many items, and each may fill 64 bits: upper and lower halves are added up apart.
        "SELECT f.shard, (SELECT coalesce(sum(members), 0) FROM shard_counters AS c WHERE c.shard = f.shard),
                (SELECT coalesce(sum(base >> 32), 0) FROM shard_counters AS c WHERE c.shard = f.shard),
                (SELECT coalesce(sum(base & 4294967295), 0) FROM shard_counters AS c WHERE c.shard = f.shard),
                (SELECT coalesce(sum(amount >> 32), 0) FROM base_ledger AS l WHERE l.shard = f.shard),
                (SELECT coalesce(sum(amount & 4294967295), 0) FROM base_ledger AS l WHERE l.shard = f.shard)
         FROM version_floors AS f",
    )?;
    let whole = |row: &Row<'_>, upper| -> rusqlite::Result<i128> {
        Ok((i128::from(row.get::<_, i64>(upper)?) << 32) + i128::from(row.get::<_, i64>(upper + 1)?))
    };
    let mut rows = select.query([])?;
    let mut shards = 0;
    while let Some(row) = rows.next()? {
        let (shard, counted): (u32, i64) = (row.get(0)?, row.get(1)?);
        let (base, ledger) = (whole(row, 2)?, whole(row, 4)?);
        let there = members.get(shard as usize).copied().unwrap_or(0);
        if u64::try_from(counted) != Ok(there) || base != ledger {
            let why = format!("shard {shard} counts {counted} and {base}, there are {there} and {ledger}");
            return Err(Error::Differs(why));
        }
        shards += 1;
    }
    let placed = shards_of_partition(partition, layout.shards, layout.partitions);
    match placed.len() == shards {
        true => Ok(()),
        false => Err(Error::Differs(format!("partition {partition} has {shards} shards"))),
    }
}

fn check_pages(file: &Connection) -> Result<(), Error> {
    let found: String = file.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(Error::Differs(found)) }
}

/// That a table is the same in the attached file `old`.
pub(super) fn same_rows(file: &Connection, table: &str) -> Result<(), Error> {
    let digest = |of: &str| -> Result<Digest, Error> {
        let mut digest = Digest::default();
        let mut select = file.prepare(&format!("SELECT * FROM {of}.{table}"))?;
        let columns = select.column_count();
        let mut rows = select.query([])?;
        let mut bytes = Vec::new();
        while let Some(row) = rows.next()? {
            bytes.clear();
            write_row(row, columns, &[], &mut bytes)?;
            digest.rows += 1;
            digest.sum = digest.sum.wrapping_add(xxh3_128(&bytes));
        }
        Ok(digest)
    };
    if digest("old")? == digest("main")? { Ok(()) } else { Err(Error::Differs(table.to_owned())) }
}
