//! For every item, and every counter without members: members + base = shard counter = summary.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::{Place, Report, counters};
use crate::data_dir::Manifest;
use crate::likes::types::{ItemId, partition_of_shard, shard_of};
use crate::store::Error;
use crate::store::sqlite::PARTITION_SCHEMA;
use crate::store::sqlite::open::snapshot;

/// The summary, in the snapshot that it was opened with.
pub(super) struct SummaryAudit {
    connection: Connection,
    watermarks: HashMap<u32, i64>,
    deletions: HashSet<String>,
}

/// (shard, item id)
type Key = (u32, i64);

impl SummaryAudit {
    pub(super) fn begin(connection: Connection) -> Result<Self, Error> {
        let watermarks = connection
            .prepare("SELECT shard, version FROM watermarks")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let deletions = connection
            .prepare("SELECT item FROM deletions")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        Ok(Self { connection, watermarks, deletions })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn part(&self, item: &str, shard: u32) -> Result<Option<i64>, Error> {
        let part = self
            .connection
            .prepare_cached("SELECT json_extract(parts, '$[' || ?2 || ']') FROM summary WHERE item = ?1")?
            .query_row((item, shard), |row| row.get::<_, Option<i64>>(0))
            .optional()?;
        Ok(part.flatten())
    }

    /// Totals are the sum of their parts, and no part speaks of a counter that is not there.
    pub(super) fn audit(&self, manifest: &Manifest, path: &Path, report: &mut Report) -> Result<(), Error> {
        let partitions = (0..manifest.partitions)
            .map(|partition| {
                Counters::of(snapshot(&manifest.partition_file(path, partition), &PARTITION_SCHEMA)?)
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let mut rows = self.connection.prepare(
            "SELECT s.item, s.total, (SELECT sum(value) FROM json_each(s.parts)), p.key, p.value
             FROM summary AS s LEFT JOIN json_each(s.parts) AS p ON p.value <> 0 ORDER BY s.item",
        )?;
        let mut rows = rows.query([])?;
        let mut last_item = String::new();
        while let Some(row) = rows.next()? {
            let (item, total, sum): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            if item != last_item {
                report.summary_rows += 1;
                if total != sum {
                    report.wrong(None, named(&item), format!("total is {total}, its parts add up to {sum}"));
                }
                last_item.clone_from(&item);
            }
            let (Some(shard), Some(part)) = (row.get::<_, Option<u32>>(3)?, row.get::<_, Option<i64>>(4)?)
            else {
                continue;
            };
            let home = partitions.get(partition_of_shard(shard, manifest.partitions) as usize);
            if let Some(home) = home
                && !self.deletions.contains(&item)
                && !home.has(shard, &item)?
            {
                let what = format!("{}, shard {shard}", named(&item));
                report.wrong(None, what, format!("part is {part}, but the shard has no such counter"));
            }
        }
        Ok(())
    }
}

/// Which counters a partition has: its table is looked up by key, and what its journal still holds is known by heart, for a
/// view over both could only be searched from end to end.
struct Counters {
    connection: Connection,
    journalled: HashSet<Key>,
}

impl Counters {
    fn of(connection: Connection) -> Result<Self, Error> {
        let journalled = connection
            .prepare("SELECT r.value ->> 0, r.value ->> 1 FROM journal, json_each(journal.counters) AS r")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        Ok(Self { connection, journalled })
    }

    fn has(&self, shard: u32, item: &str) -> Result<bool, Error> {
        let mut select = self.connection.prepare_cached("SELECT item_id FROM items WHERE name = ?1")?;
        let Some(item_id) = select.query_row([item], |row| row.get(0)).optional()? else { return Ok(false) };
        let mut select = self
            .connection
            .prepare_cached("SELECT 1 FROM shard_counters WHERE shard = ?1 AND item_id = ?2")?;
        Ok(self.journalled.contains(&(shard, item_id)) || select.exists((shard, item_id))?)
    }
}

/// A counter that is not what its sources say, or that should not be there.
pub(super) struct Recount {
    pub shard: u32,
    pub item_id: i64,
    /// Its name, if it has one.
    pub item: Option<String>,
    /// Members and base as they are stored.
    pub stored: Option<(i64, i64)>,
    /// As the memberships say.
    pub members: i64,
    /// As the ledger says.
    pub base: i64,
}

/// Counts one partition's likes again, for a repair; what is right is left out.
pub(super) fn recount(place: &Place<'_>) -> Result<Vec<Recount>, Error> {
    let items = load_items(place)?;
    let mut members = count_members(place, &items, &mut Report::default())?;
    let mut ledger = add_up_ledger(place)?;
    let mut recounts = Vec::new();
    let mut recount = |(shard, item_id): Key, stored, members, base| {
        let item = items.get(&item_id).cloned();
        let belongs = partition_of_shard(shard, place.manifest.partitions) == place.partition
            && shard < place.manifest.shards;
        if stored != Some((members, base)) || item.is_none() || !belongs {
            recounts.push(Recount { shard, item_id, item, stored, members, base });
        }
    };
    let mut counters =
        place.connection.prepare("SELECT shard, item_id, members, base FROM shard_counters_now")?;
    let mut rows = counters.query([])?;
    while let Some(row) = rows.next()? {
        let key = (row.get(0)?, row.get(1)?);
        let stored = Some((row.get(2)?, row.get(3)?));
        recount(key, stored, members.remove(&key).unwrap_or(0), ledger.remove(&key).unwrap_or(0));
    }
    for (key, members) in members {
        recount(key, None, members, ledger.remove(&key).unwrap_or(0));
    }
    for (key, base) in ledger {
        recount(key, None, 0, base);
    }
    recounts.sort_unstable_by(|a, b| (&a.item, a.shard).cmp(&(&b.item, b.shard)));
    Ok(recounts)
}

/// Rows by which the index by item differs from the memberships, where it is said to be whole. Both are tables: what waits in
/// the journal is in neither.
pub(super) fn index_differs(place: &Place<'_>) -> Result<i64, Error> {
    let differs = place.connection.query_row(
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM item_index WHERE complete) THEN
           (SELECT count(*) FROM memberships AS m
            WHERE NOT EXISTS (SELECT 1 FROM item_members AS i WHERE i.item_id = m.item_id AND i.user = m.user))
         + (SELECT count(*) FROM item_members AS i
            WHERE NOT EXISTS (SELECT 1 FROM memberships AS m WHERE m.user = i.user AND m.item_id = i.item_id))
         ELSE 0 END",
        [],
        |row| row.get(0),
    )?;
    Ok(differs)
}

/// Recounts one partition's likes.
pub(super) fn audit(place: &Place<'_>, summary: &SummaryAudit, report: &mut Report) -> Result<(), Error> {
    let items = load_items(place)?;
    report.items += items.len() as u64;
    counters::audit(place, &items, report)?;
    let mut members = count_members(place, &items, report)?;
    let mut ledger = add_up_ledger(place)?;
    let mut newest: HashMap<u32, i64> = place
        .connection
        .prepare("SELECT shard, version FROM version_floors")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut counters =
        place.connection.prepare("SELECT shard, item_id, members, base, version FROM shard_counters_now")?;
    let mut rows = counters.query([])?;
    while let Some(row) = rows.next()? {
        let (shard, item_id, stored, base, version): (u32, i64, i64, i64, i64) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
        report.counters += 1;
        newest.entry(shard).and_modify(|newest| *newest = version.max(*newest)).or_insert(version);
        let Some(item) = items.get(&item_id) else {
            report.wrong(
                place.partition,
                format!("item id {item_id}, shard {shard}"),
                "counts an item without a name",
            );
            continue;
        };
        let what = format!("{}, shard {shard}", named(item));
        if partition_of_shard(shard, place.manifest.partitions) != place.partition
            || shard >= place.manifest.shards
        {
            report.wrong(place.partition, what.clone(), "this shard does not belong on this partition");
        }
        let counted = members.remove(&(shard, item_id)).unwrap_or(0);
        if stored != counted {
            report.wrong(place.partition, what.clone(), format!("members is {stored}, there are {counted}"));
        }
        let summed = ledger.remove(&(shard, item_id)).unwrap_or(0);
        if base != summed {
            report.wrong(
                place.partition,
                what.clone(),
                format!("base is {base}, its ledger adds up to {summed}"),
            );
        }
        if version > summary.watermarks.get(&shard).copied().unwrap_or(0) {
            report.pending += 1;
            continue;
        }
        let part = summary.part(item, shard)?.unwrap_or(0);
        if part != stored + base {
            let why = format!("the shard counts {}, the summary has {part}", stored + base);
            report.wrong(None, what, why);
        }
    }
    for ((shard, item_id), counted) in members {
        let what =
            format!("{}, shard {shard}", items.get(&item_id).map_or("item ?".to_owned(), |item| named(item)));
        report.wrong(place.partition, what, format!("{counted} members and no counter"));
    }
    for ((shard, item_id), _) in ledger {
        let what =
            format!("{}, shard {shard}", items.get(&item_id).map_or("item ?".to_owned(), |item| named(item)));
        report.wrong(place.partition, what, "a base ledger and no counter");
    }
    for (shard, carried) in &summary.watermarks {
        let newest = newest.get(shard).copied().unwrap_or(0);
        if partition_of_shard(*shard, place.manifest.partitions) == place.partition && newest < *carried {
            let why = format!("its versions end at {newest}, and the summary has carried {carried}");
            report.wrong(place.partition, format!("shard {shard}"), why);
        }
    }
    let differs = index_differs(place)?;
    if differs > 0 {
        let why = format!("{differs} rows are not what the memberships say");
        report.wrong(place.partition, "the index by item", why);
    }
    Ok(())
}

/// As a finding says it.
fn named(item: &str) -> String {
    match ItemId::counter_in(item) {
        Some(counter) => format!("counter {counter}"),
        None => format!("item {item}"),
    }
}

fn load_items(place: &Place<'_>) -> Result<HashMap<i64, String>, Error> {
    let mut select = place.connection.prepare("SELECT item_id, name FROM items")?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn count_members(
    place: &Place<'_>,
    items: &HashMap<i64, String>,
    report: &mut Report,
) -> Result<HashMap<Key, i64>, Error> {
    let unswept: HashSet<i64> = place
        .connection
        .prepare("SELECT item_id FROM unswept_items")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut counted = HashMap::new();
    let mut select = place.connection.prepare("SELECT user, item_id FROM memberships_now")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (user, item_id) = (row.get_ref(0)?.as_str().unwrap_or_default(), row.get::<_, i64>(1)?);
        report.memberships += 1;
        let shard = shard_of(user, place.manifest.shards);
        if partition_of_shard(shard, place.manifest.partitions) != place.partition {
            report.wrong(
                place.partition,
                format!("user {user}"),
                format!("its shard {shard} lives on another partition"),
            );
        }
        if items.contains_key(&item_id) {
            *counted.entry((shard, item_id)).or_insert(0) += 1;
        } else if !unswept.contains(&item_id) {
            report.wrong(
                place.partition,
                format!("user {user}"),
                format!("likes item id {item_id}, which is no item"),
            );
        }
    }
    Ok(counted)
}

fn add_up_ledger(place: &Place<'_>) -> Result<HashMap<Key, i64>, Error> {
    let mut select = place
        .connection
        .prepare("SELECT shard, item_id, sum(amount) FROM base_ledger GROUP BY shard, item_id")?;
    let rows = select.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
