//! The summary of the new files: every total and its version as they are, its parts by the new shards.
//!
//! A total that is not the sum of the new counters stops the move: the old summary was computed from the old counters,
//! the new counters from memberships and ledgers, so this is also where the two are compared, item by item.

use std::path::Path;

use rusqlite::{Connection, Row, Statement};

use super::copy::Files;
use super::merge::Merged;
use super::{Error, tables};
use crate::config::Sqlite;
use crate::store::sqlite::open::create_unpublished;
use crate::store::sqlite::summary::SUMMARY_SCHEMA;

/// Parts that are sorted in memory; more are sorted in runs of so many, which are merged.
const RUN_PARTS: usize = 500_000;

/// What a shard adds to an item.
type Part = (String, u32, i64);

/// Writes the new summary beside the old one. `work` is a file for what does not fit into memory.
pub(super) fn write(
    (old, new, work): (&Path, &Path, &Path),
    files: &Files,
    (data_id, version): (&str, i64),
    settings: &Sqlite,
) -> Result<(), Error> {
    let file = create_unpublished(new, settings, &SUMMARY_SCHEMA)?;
    file.execute("ATTACH DATABASE ?1 AS old", [old.display().to_string()])?;
    file.execute_batch("BEGIN")?;
    file.execute("INSERT INTO identity (singleton, data_id) VALUES (1, ?1)", [data_id])?;
    for shard in 0..files.new_layout.shards {
        file.execute("INSERT INTO watermarks (shard, version) VALUES (?1, ?2)", (shard, version))?;
    }
    for table in tables::copied() {
        file.execute_batch(&format!("INSERT OR REPLACE INTO main.{table} SELECT * FROM old.{table}"))?;
    }
    write_totals(&file, &sort_parts(files, work)?)?;
    file.execute_batch("COMMIT")?;
    for table in tables::copied() {
        super::check::same_rows(&file, table)?;
    }
    file.execute_batch("DETACH DATABASE old")?;
    Ok(std::fs::remove_file(work)?)
}

/// All parts of all items, in runs that are sorted by item.
fn sort_parts(files: &Files, work: &Path) -> Result<Connection, Error> {
    let file = Connection::open(work)?;
    file.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
    file.pragma_update(None, "synchronous", "OFF")?;
    file.execute_batch(
        "CREATE TABLE parts (run INTEGER, item TEXT, shard INTEGER, total INTEGER, PRIMARY KEY (run, item, shard))
           STRICT, WITHOUT ROWID;
         BEGIN",
    )?;
    let (mut run, mut parts) = (0, Vec::new());
    for partition in &files.new {
        let mut select = partition.prepare(
            "SELECT i.name, c.shard, c.members + c.base
             FROM shard_counters AS c CROSS JOIN items AS i ON i.item_id = c.item_id ORDER BY c.shard, c.item_id",
        )?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            parts.push((row.get(0)?, row.get(1)?, row.get(2)?));
            if parts.len() >= RUN_PARTS {
                store_run(&file, &mut run, &mut parts)?;
            }
        }
    }
    store_run(&file, &mut run, &mut parts)?;
    file.execute_batch("COMMIT")?;
    Ok(file)
}

fn store_run(file: &Connection, run: &mut i64, parts: &mut Vec<Part>) -> Result<(), Error> {
    parts.sort_unstable();
    let mut insert =
        file.prepare_cached("INSERT INTO parts (run, item, shard, total) VALUES (?1, ?2, ?3, ?4)")?;
    for (item, shard, total) in parts.drain(..) {
        insert.execute((*run, item, shard, total))?;
    }
    *run += 1;
    Ok(())
}

/// The old totals and the new parts, side by side in the order of the items.
fn write_totals(file: &Connection, work: &Connection) -> Result<(), Error> {
    let runs: i64 = work.query_row("SELECT coalesce(max(run), -1) + 1 FROM parts", [], |row| row.get(0))?;
    let mut readers: Vec<Statement<'_>> = (0..runs)
        .map(|run| {
            let sql = "SELECT item, shard, total FROM parts WHERE run = ?1 ORDER BY item, shard";
            work.prepare(&sql.replace("?1", &run.to_string()))
        })
        .collect::<Result<_, _>>()?;
    let mut items = Items { parts: Merged::new(&mut readers)?, next: None };
    items.advance()?;
    let mut select = file.prepare("SELECT item, total, version FROM old.summary ORDER BY item")?;
    let mut insert =
        file.prepare("INSERT INTO main.summary (item, total, version, parts) VALUES (?1, ?2, ?3, ?4)")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (item, total, version): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let parts = items.of(&item)?;
        let sum = parts.iter().fold(0_i64, |sum, part| sum.saturating_add(*part));
        if sum != total {
            return Err(Error::NotCarried { item, total, sum });
        }
        insert.execute((item, total, version, to_json(&parts)))?;
    }
    items.nothing_is_left()
}

/// The parts of one item after the other.
struct Items<'s> {
    parts: Merged<'s>,
    next: Option<Part>,
}

impl Items<'_> {
    fn advance(&mut self) -> Result<(), Error> {
        let part = |row: &Row<'_>| Ok::<Part, rusqlite::Error>((row.get(0)?, row.get(1)?, row.get(2)?));
        self.next = self.parts.next()?.map(part).transpose()?;
        Ok(())
    }

    /// An item's parts, by shard; items are asked for in their order, and each that has parts must be. The parts come in
    /// any order: each run has some of the shards.
    fn of(&mut self, item: &str) -> Result<Vec<i64>, Error> {
        let mut parts = Vec::new();
        while let Some((of, shard, total)) = &self.next
            && of.as_str() <= item
        {
            if of.as_str() < item {
                return Err(Error::NotCarried { item: of.clone(), total: 0, sum: *total });
            }
            let shard = *shard as usize;
            if parts.len() <= shard {
                parts.resize(shard + 1, 0);
            }
            if let Some(part) = parts.get_mut(shard) {
                *part = *total;
            }
            self.advance()?;
        }
        Ok(parts)
    }

    fn nothing_is_left(&self) -> Result<(), Error> {
        match &self.next {
            Some((item, _, sum)) => Err(Error::NotCarried { item: item.clone(), total: 0, sum: *sum }),
            None => Ok(()),
        }
    }
}

/// At least one part, as every reader expects; what is missing at the end is 0.
fn to_json(parts: &[i64]) -> String {
    let numbers: Vec<String> = parts.iter().map(i64::to_string).collect();
    if numbers.is_empty() { "[0]".to_owned() } else { format!("[{}]", numbers.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_s_parts_come_from_all_runs() {
        let file = Connection::open_in_memory().unwrap();
        let run = |rows: &str| file.prepare(&format!("SELECT * FROM (VALUES {rows})")).unwrap();
        let mut readers =
            [run("('a', 0, 5), ('a', 4, 6), ('c', 2, 1)"), run("('a', 1, 7), ('a', 3, 8), ('b', 0, 2)")];
        let mut items = Items { parts: Merged::new(&mut readers).unwrap(), next: None };
        items.advance().unwrap();
        assert_eq!(to_json(&items.of("a").unwrap()), "[5,7,0,8,6]");
        assert_eq!(to_json(&items.of("b").unwrap()), "[2]");
        assert!(items.nothing_is_left().is_err());
        assert_eq!(to_json(&items.of("c").unwrap()), "[0,0,1]");
        assert_eq!(to_json(&items.of("d").unwrap()), "[0]");
        assert!(items.nothing_is_left().is_ok());
    }

    #[test]
    fn an_item_that_was_never_carried_is_not_passed_over() {
        let file = Connection::open_in_memory().unwrap();
        let mut readers = [file.prepare("SELECT * FROM (VALUES ('a', 0, 5), ('b', 0, 1))").unwrap()];
        let mut items = Items { parts: Merged::new(&mut readers).unwrap(), next: None };
        items.advance().unwrap();
        assert!(matches!(items.of("b"), Err(Error::NotCarried { item, .. }) if item == "a"));
    }
}
