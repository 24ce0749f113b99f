//! `verify --repair`: puts right what is wrong about likes, each part from its own source: members from the memberships, bases
//! from their ledger, totals from the shards' counters. It changes nothing else, and a data directory that nobody serves from
//! alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use super::likes::Recount;
use super::{Error, Finding, Place, in_file, read_manifest};
use crate::admin::offline::{self, Offline};
use crate::config::Config;
use crate::likes::ItemId;
use crate::likes::types::partition_of_shard;
use crate::store::history::{Change, ChangedTotals};
use crate::store::likes::{CounterKey, ItemKey};
use crate::store::sqlite::PARTITION_SCHEMA;
use crate::store::sqlite::open::snapshot;
use crate::store::sqlite::repair::Part;
use crate::store::sqlite::summary::SqliteSummary;
use crate::store::summary::SummaryRow;
use crate::store::{self, LikesStore, SummaryStore, Transactions};

/// Items of which totals are read at a time, and repaired in one transaction.
const PAGE: u32 = 1_000;

/// Repairs; what was wrong, and what it is now.
///
/// # Errors
/// See [`Error`].
pub(super) fn repair(path: &Path, config: &Config) -> Result<Vec<Finding>, Error> {
    // Nothing is made where nothing is.
    let manifest = read_manifest(path)?;
    let mut config = config.clone();
    (config.likes.shards, config.storage.partitions) = (None, None);
    let mut offline = Offline::open(path, &config).map_err(|error| match error {
        offline::Error::DataDir(error) => Error::DataDir(error),
        offline::Error::Store(source) => Error::File { file: path.display().to_string(), source },
        offline::Error::Clock(error) => Error::Clock(error),
    })?;
    let mut repaired = Vec::new();
    let summary_file = offline.data.summary_file();
    let (mut summary, carried) = in_file(&summary_file, || {
        let mut summary = offline.summary(&config)?;
        let carried = summary.progress(manifest.shards)?.watermarks;
        Ok((summary, carried))
    })?;
    for partition in 0..manifest.partitions {
        let file = manifest.partition_file(path, partition);
        in_file(&file, || {
            repair_versions(&mut offline, partition, &carried, &mut repaired)?;
            repair_counters(&mut offline, partition, &file, &mut repaired)
        })?;
    }
    in_file(&summary_file, || {
        repair_totals(&mut offline, &mut summary, config.rollup.trending_items, &mut repaired)
    })?;
    offline.close().map_err(|source| Error::File { file: path.display().to_string(), source })?;
    Ok(repaired)
}

/// A shard whose counters are lost would begin its versions anew, and what changes would hide behind what was carried.
fn repair_versions(
    offline: &mut Offline,
    partition: u32,
    carried: &[i64],
    repaired: &mut Vec<Finding>,
) -> Result<(), store::Error> {
    let shards = offline.shards_of(partition);
    let Some(store) = offline.stores.get_mut(partition as usize) else { return Ok(()) };
    for shard in shards {
        let carried = carried.get(shard as usize).copied().unwrap_or(0);
        let newest = store.newest_version(shard)?;
        if newest < carried {
            store.raise_version(shard, carried)?;
            let why = format!("its versions ended at {newest}, go on from {carried}");
            repaired.push(Finding { partition: Some(partition), what: format!("shard {shard}"), why });
        }
    }
    Ok(())
}

fn repair_counters(
    offline: &mut Offline,
    partition: u32,
    file: &Path,
    repaired: &mut Vec<Finding>,
) -> Result<(), store::Error> {
    let manifest = offline.data.manifest().clone();
    let Some(store) = offline.stores.get_mut(partition as usize) else { return Ok(()) };
    store.checkpoint()?;
    let connection = snapshot(file, &PARTITION_SCHEMA)?;
    let place = Place { connection, partition, manifest: &manifest };
    let mut rights = Vec::new();
    for Recount { shard, item_id, item, stored, members, base } in super::likes::recount(&place)? {
        let belongs = shard < manifest.shards && partition_of_shard(shard, manifest.partitions) == partition;
        let right = (item.is_some() && belongs).then_some((members, base));
        if stored == right || (stored.is_none() && right == Some((0, 0))) {
            continue;
        }
        let what = match &item {
            Some(item) => format!("item {item}, shard {shard}"),
            None => format!("item id {item_id}, shard {shard}"),
        };
        let word = |counter: Option<(i64, i64)>| {
            counter.map_or("absent".to_owned(), |(members, base)| {
                format!("{members} members and a base of {base}")
            })
        };
        let why = format!("was {}, is {}", word(stored), word(right));
        repaired.push(Finding { partition: Some(partition), what, why });
        rights.push((CounterKey { shard, item: ItemKey(item_id) }, right));
    }
    let index_is_wrong = super::likes::index_differs(&place)? > 0;
    drop(place);
    if !rights.is_empty() {
        store.repair_counters(&rights)?;
    }
    if index_is_wrong {
        store.keep_index_by_item(false)?;
        let why = "was not what the memberships say; the next start builds it anew".to_owned();
        repaired.push(Finding { partition: Some(partition), what: "the index by item".to_owned(), why });
    }
    Ok(())
}

/// Totals and counters are read side by side, in the order of the items' names.
fn repair_totals(
    offline: &mut Offline,
    summary: &mut SqliteSummary,
    ranked: u32,
    repaired: &mut Vec<Finding>,
) -> Result<(), store::Error> {
    let shards = offline.data.manifest().shards;
    let mut progress = summary.progress(shards)?;
    let carried = progress.watermarks.clone();
    progress.run += 1;
    progress.as_of_ms = offline.clock.now_ms();
    for shard in 0..shards {
        let partition = partition_of_shard(shard, offline.data.manifest().partitions);
        if let (Some(store), Some(watermark)) =
            (offline.stores.get_mut(partition as usize), progress.watermarks.get_mut(shard as usize))
        {
            *watermark = (*watermark).max(store.newest_version(shard)?);
        }
    }
    let leaving: BTreeSet<String> =
        summary.unfinished_deletions()?.into_iter().map(|(item, _)| item).collect();
    let mut after = String::new();
    let mut changed = progress.watermarks != carried;
    loop {
        let (page, more) = read_page(offline, summary, &after)?;
        let mut rows = Vec::new();
        let mut wrong = Vec::new();
        // A deletion that is under way is finished by the next start.
        for (item, Both { stored, parts, is_there }) in
            page.iter().filter(|(item, _)| !leaving.contains(*item))
        {
            let mut right = vec![0; shards as usize];
            let mut is_pending = false;
            for part in parts {
                if let Some(place) = right.get_mut(part.shard as usize) {
                    *place = part.total;
                }
                is_pending |= carried.get(part.shard as usize).is_none_or(|carried| part.version > *carried);
            }
            let total = right.iter().fold(0, |sum: i64, part| sum.saturating_add(*part));
            let same = |row: &SummaryRow| {
                let mut parts = row.parts.clone();
                parts.resize(right.len().max(parts.len()), 0);
                row.total == total && parts == right
            };
            let was = stored.as_ref().map_or(0, |row| row.total);
            match (stored, is_there) {
                (Some(row), true) if same(row) => continue,
                (None, true) if right.iter().all(|part| *part == 0) => continue,
                (None, false) => continue,
                (_, true) => {
                    let row = SummaryRow { total, version: progress.run, parts: right };
                    // A counter without members has no history; what the roll-up has not come to is no damage.
                    if is_pending || ItemId::counter_in(item).is_some() {
                        rows.push((item.as_str(), row, was));
                    } else {
                        wrong.push((item.as_str(), Some(row)));
                    }
                }
                (Some(_), false) => wrong.push((item.as_str(), None)),
            }
            if !is_pending {
                let why = format!("total was {was}, is {total}; its parts were counted again");
                let what = match ItemId::counter_in(item) {
                    Some(counter) => format!("counter {counter}"),
                    None => format!("item {item}"),
                };
                repaired.push(Finding { partition: None, what, why });
            }
        }
        changed |= !rows.is_empty() || !wrong.is_empty();
        for (item, row) in &wrong {
            // Its history rests on what was wrong: it begins anew.
            let now = ChangedTotals { at_ms: progress.as_of_ms, items: &[], ranked };
            summary.finish_deletion(item, row.as_ref(), progress.run, &now)?;
        }
        if changed && (!rows.is_empty() || !more) {
            // Only with the last page is everything carried that the watermarks claim.
            let mut so_far = progress.clone();
            if more {
                so_far.watermarks.clone_from(&carried);
            }
            let changes: Vec<Change<'_>> = rows
                .iter()
                .map(|(item, row, before)| Change { item, before: *before, total: row.total })
                .filter(|change| change.before != change.total && ItemId::counter_in(change.item).is_none())
                .collect();
            let changes = ChangedTotals { at_ms: progress.as_of_ms, items: &changes, ranked };
            let rows: Vec<(&str, SummaryRow)> =
                rows.iter().map(|(item, row, _)| (*item, row.clone())).collect();
            summary.save(&rows, &so_far, &changes)?;
        }
        let Some(last) = page.into_iter().next_back().map(|(item, _)| item).filter(|_| more) else {
            return Ok(());
        };
        after = last;
    }
}

/// What is said of an item on both sides.
#[derive(Default)]
struct Both {
    stored: Option<SummaryRow>,
    parts: Vec<Part>,
    /// Whether a partition knows it.
    is_there: bool,
}

/// Items after a name, all that any side knows up to the last of them; whether there are more.
fn read_page(
    offline: &Offline,
    summary: &SqliteSummary,
    after: &str,
) -> Result<(BTreeMap<String, Both>, bool), store::Error> {
    let mut page: BTreeMap<String, Both> = BTreeMap::new();
    let mut ends = BTreeSet::new();
    let stored = summary.page(after, PAGE)?;
    ends.extend(stored.last().filter(|_| stored.len() >= PAGE as usize).map(|(item, _)| item.clone()));
    for (item, row) in stored {
        page.entry(item).or_default().stored = Some(row);
    }
    for (partition, store) in (0..).zip(&offline.stores) {
        let named = store.parts_page(after, PAGE, &offline.shards_of(partition))?;
        ends.extend(named.last().filter(|_| named.len() >= PAGE as usize).map(|(item, _)| item.clone()));
        for (item, parts) in named {
            let both = page.entry(item).or_default();
            both.parts.extend(parts);
            both.is_there = true;
        }
    }
    let first_end = ends.into_iter().next();
    if let Some(end) = &first_end {
        page.retain(|item, _| item <= end);
    }
    Ok((page, first_end.is_some()))
}

/// What was repaired, in words.
pub(super) fn print(repaired: &[Finding], mut to: impl Write) -> io::Result<()> {
    for Finding { partition, what, why } in repaired {
        match partition {
            Some(partition) => writeln!(to, "REPAIRED partition {partition}, {what}: {why}")?,
            None => writeln!(to, "REPAIRED summary, {what}: {why}")?,
        }
    }
    writeln!(to, "repaired: {}", repaired.len())
}
