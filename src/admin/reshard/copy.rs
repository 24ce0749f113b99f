//! Copying: each row to the file where it now belongs, in the order of the keys, as fast as the disk takes it.

use std::collections::HashMap;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, Statement};

use super::merge::Merged;
use super::tables::{Layout, Moved, Number, Place};
use super::{Error, Told};
use crate::likes::counters::decide::share;
use crate::likes::types::{partition_of_shard, shards_of_partition};
use crate::partition::Resident;

/// Names whose numbers are kept in memory, a file and column.
const RECENT_NAMES: usize = 100_000;
/// Counters that are kept in memory before they are written.
const MAX_COUNTED: usize = 1_000_000;
/// Rows between two reports.
const REPORT_ROWS: u64 = 20_000;

/// The files of both generations.
pub(super) struct Files {
    pub old: Vec<Connection>,
    pub new: Vec<Connection>,
    pub old_layout: Layout,
    pub new_layout: Layout,
}

/// Copies a table's rows; how many there were. Memberships are counted on the way.
pub(super) fn copy(
    files: &Files,
    (table, moved): (&'static str, &Moved),
    counters: &mut Counters,
    told: &mut Told<'_>,
) -> Result<u64, Error> {
    let read = moved.read();
    let mut readers: Vec<Statement<'_>> =
        files.old.iter().map(|file| file.prepare(&read)).collect::<Result<_, _>>()?;
    let mut rows = Merged::new(&mut readers)?;
    let mut writers: Vec<Writer<'_>> =
        files.new.iter().map(|file| Writer::new(file, table, moved)).collect::<Result<_, _>>()?;
    in_transactions(&files.new, || {
        let mut copied = 0;
        while let Some(row) = rows.next()? {
            let key = row.get_ref(0)?;
            let key = key.as_str()?;
            let (shard, partition) = moved.place.of(key, files.new_layout);
            let writer =
                writers.get_mut(partition as usize).ok_or_else(|| Error::Misplaced(key.to_owned()))?;
            writer.write(row, shard, files)?;
            if moved.place == Place::User && table == "memberships" {
                counters.count(files, (partition, shard, writer.item))?;
            }
            copied += 1;
            if copied % REPORT_ROWS == 0 {
                told.rows(table, REPORT_ROWS);
            }
        }
        told.rows(table, copied % REPORT_ROWS);
        Ok(copied)
    })
}

/// One transaction over each file. There is no way back from a failed one: the files are thrown away.
pub(super) fn in_transactions<T>(
    files: &[Connection],
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let each = |sql: &str| files.iter().try_for_each(|file| file.execute_batch(sql));
    each("BEGIN")?;
    let done = work()?;
    each("COMMIT")?;
    Ok(done)
}

/// Writes one table of one file.
struct Writer<'c> {
    insert: Statement<'c>,
    numbers: Vec<(Number, Option<Names<'c>>)>,
    columns: usize,
    /// The item and the workshop of the last row.
    item: i64,
    workshop: i64,
}

impl<'c> Writer<'c> {
    fn new(file: &'c Connection, table: &str, moved: &Moved) -> Result<Self, Error> {
        let numbers = moved.numbers.iter().map(|(_, _, number)| Ok((*number, Names::new(file, *number)?)));
        Ok(Self {
            insert: file.prepare(&moved.write(table))?,
            numbers: numbers.collect::<Result<_, Error>>()?,
            columns: moved.written().len(),
            item: 0,
            workshop: 0,
        })
    }

    fn write(&mut self, row: &Row<'_>, shard: u32, files: &Files) -> Result<(), Error> {
        for column in 1..=self.columns {
            let value = row.get_ref(column)?;
            let bound = match (self.numbers.get_mut(column - 1), value) {
                (Some((Number::Shard, _)), _) => ToSqlOutput::from(shard),
                (None, value) | (Some(_), value @ ValueRef::Null) => ToSqlOutput::Borrowed(value),
                (Some((number, names)), value) => {
                    let name = value.as_str()?;
                    let found = match names {
                        Some(names) if *number == Number::Booking => names.booking(self.workshop, name)?,
                        Some(names) => names.number(name)?,
                        None => workshop_anywhere(name, files)?,
                    };
                    match number {
                        Number::Item => self.item = found,
                        Number::Workshop => self.workshop = found,
                        _ => {}
                    }
                    ToSqlOutput::from(found)
                }
            };
            self.insert.raw_bind_parameter(column, bound)?;
        }
        self.insert.raw_execute()?;
        Ok(())
    }
}

/// The numbers of names in one file.
struct Names<'c> {
    select: Statement<'c>,
    /// Where a name that is not there gets a number.
    insert: Option<Statement<'c>>,
    recent: Resident<Box<str>, i64>,
}

impl<'c> Names<'c> {
    fn new(file: &'c Connection, number: Number) -> Result<Option<Self>, Error> {
        let (table, column, on_demand) = match number {
            Number::Item => ("items", "item_id", true),
            Number::Holder => ("holders", "holder_id", true),
            Number::Workshop => ("workshops", "workshop_id", false),
            Number::Room => ("rooms", "room_id", false),
            Number::Booking => ("bookings", "booking_id", false),
            Number::Shard | Number::WorkshopAnywhere => return Ok(None),
        };
        let by = if number == Number::Booking { "workshop_id = ?2 AND request_id = ?1" } else { "name = ?1" };
        let insert = on_demand.then(|| file.prepare(&format!("INSERT INTO {table} (name) VALUES (?1)")));
        Ok(Some(Self {
            select: file.prepare(&format!("SELECT {column} FROM {table} WHERE {by}"))?,
            insert: insert.transpose()?,
            recent: Resident::new(RECENT_NAMES),
        }))
    }

    fn booking(&mut self, workshop: i64, request: &str) -> Result<i64, Error> {
        let found = self.select.query_row((request, workshop), |row| row.get(0)).optional()?;
        found.ok_or_else(|| Error::Misplaced(request.to_owned()))
    }

    fn number(&mut self, name: &str) -> Result<i64, Error> {
        if let Some(number) = self.recent.get(name) {
            return Ok(*number);
        }
        let found = self.select.query_row([name], |row| row.get(0)).optional()?;
        let number = match (found, &mut self.insert) {
            (Some(number), _) => number,
            (None, Some(insert)) => insert.insert([name])?,
            (None, None) => return Err(Error::Misplaced(name.to_owned())),
        };
        self.recent.insert(name.into(), number);
        Ok(number)
    }
}

/// The number that the workshop of an old number has now. One that is gone gets a number that no workshop has.
fn workshop_anywhere(number_and_name: &str, files: &Files) -> Result<i64, Error> {
    let wrong = || Error::Misplaced(number_and_name.to_owned());
    let (number, name) = number_and_name.split_once(' ').ok_or_else(wrong)?;
    let number: i64 = number.parse().map_err(|_| wrong())?;
    let select = |files: &[Connection], layout, sql: &str, values: &[&dyn rusqlite::ToSql]| {
        let (_, partition) = Place::Workshop.of(name, layout);
        let file = files.get(partition as usize).ok_or_else(wrong)?;
        let mut select = file.prepare_cached(sql)?;
        let found = select.query_row(values, |row| row.get::<_, i64>(0)).optional();
        Ok::<_, Error>(found?)
    };
    let was = "SELECT workshop_id FROM workshops WHERE name = ?1 AND workshop_id = ?2";
    let is = "SELECT workshop_id FROM workshops WHERE name = ?1";
    match select(&files.old, files.old_layout, was, &[&name, &number])? {
        Some(_) => select(&files.new, files.new_layout, is, &[&name])?.ok_or_else(wrong),
        None => Ok(-number.saturating_abs()),
    }
}

/// Counts the members of each shard and item: in memory up to a bound, then into the tables, in their order.
#[derive(Debug)]
pub(super) struct Counters {
    /// By partition, shard and item.
    counted: HashMap<(u32, u32, i64), i64, foldhash::fast::RandomState>,
    /// What all counters get for their version.
    version: i64,
}

impl Counters {
    pub(super) fn new(version: i64) -> Self {
        Self { counted: HashMap::default(), version }
    }

    fn count(&mut self, files: &Files, key: (u32, u32, i64)) -> Result<(), Error> {
        *self.counted.entry(key).or_default() += 1;
        if self.counted.len() >= MAX_COUNTED {
            self.write(&files.new)?;
        }
        Ok(())
    }

    fn write(&mut self, new: &[Connection]) -> Result<(), Error> {
        let mut counted: Vec<_> = self.counted.drain().collect();
        counted.sort_unstable();
        for ((partition, shard, item), members) in counted {
            let file =
                new.get(partition as usize).ok_or_else(|| Error::Misplaced(format!("shard {shard}")))?;
            file.prepare_cached(
                "INSERT INTO shard_counters (shard, item_id, members, base, version) VALUES (?1, ?2, ?3, 0, ?4)
                 ON CONFLICT (shard, item_id) DO UPDATE SET members = members + ?3",
            )
            .and_then(|mut upsert| upsert.execute((shard, item, members, self.version)))?;
        }
        Ok(())
    }

    /// Writes what is still in memory, the bases, and how far the shards' versions have come.
    pub(super) fn finish(mut self, files: &Files) -> Result<(), Error> {
        let layout = files.new_layout;
        in_transactions(&files.new, || {
            self.write(&files.new)?;
            spread_ledgers(files)?;
            for (partition, file) in (0_u32..).zip(&files.new) {
                file.execute(
                    "INSERT INTO shard_counters (shard, item_id, members, base, version)
                     SELECT shard, item_id, 0, sum(amount), ?1 FROM base_ledger WHERE true GROUP BY shard, item_id
                     ON CONFLICT (shard, item_id) DO UPDATE SET base = excluded.base",
                    [self.version],
                )?;
                for shard in shards_of_partition(partition, layout.shards, layout.partitions) {
                    file.execute(
                        "INSERT INTO version_floors (shard, version) VALUES (?1, ?2)",
                        (shard, self.version),
                    )?;
                }
            }
            Ok(())
        })
    }
}

/// A counter without members of which one shard would hold more than its share is spread over all of them: the others would
/// have all of theirs still to give, and the total could leave 64 bits.
fn spread_ledgers(files: &Files) -> Result<(), Error> {
    let Layout { shards, partitions } = files.new_layout;
    let mut too_much: Vec<(String, String, i64)> = Vec::new();
    for file in &files.new {
        let mut take = file.prepare(
            "DELETE FROM base_ledger WHERE (amount > ?1 OR amount < -?1)
               AND item_id IN (SELECT item_id FROM items WHERE name < ' ')
             RETURNING (SELECT name FROM items WHERE item_id = base_ledger.item_id), source, amount",
        )?;
        let taken = take.query_map([share(shards)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        for row in taken {
            too_much.push(row?);
        }
    }
    for (name, source, amount) in too_much {
        let (each, rest) = (amount / i64::from(shards), amount % i64::from(shards));
        for shard in 0..shards {
            let file = files.new.get(partition_of_shard(shard, partitions) as usize);
            let file = file.ok_or_else(|| Error::Misplaced(name.clone()))?;
            let one_more = if i64::from(shard) < rest.abs() { rest.signum() } else { 0 };
            file.execute("INSERT INTO items (name) VALUES (?1) ON CONFLICT DO NOTHING", [&name])?;
            file.execute(
                "INSERT INTO base_ledger (shard, item_id, source, amount)
                 VALUES (?1, (SELECT item_id FROM items WHERE name = ?2), ?3, ?4)",
                (shard, &name, &source, each + one_more),
            )?;
        }
    }
    Ok(())
}
