//! What is a counter's alone: no members, a ledger of adds, and ids where they belong. That its shards count what its
//! ledger adds up to, and the summary what they count, is looked at as for items.

use std::collections::HashMap;

use super::{Place, Report};
use crate::likes::types::{ItemId, partition_of_shard, shard_of};
use crate::store::Error;

pub(super) fn audit(
    place: &Place<'_>,
    items: &HashMap<i64, String>,
    report: &mut Report,
) -> Result<(), Error> {
    let counter = |item_id: &i64| items.get(item_id).and_then(|item| ItemId::counter_in(item));
    report.plain_counters += items.keys().filter(|item_id| counter(item_id).is_some()).count() as u64;
    audit_shards(place, &counter, report)?;
    audit_ids(place, items, &counter, report)
}

fn audit_shards<'a>(
    place: &Place<'_>,
    counter: &impl Fn(&i64) -> Option<&'a str>,
    report: &mut Report,
) -> Result<(), Error> {
    let mut select = place.connection.prepare(
        "SELECT c.shard, c.item_id, c.members,
           (SELECT count(*) FROM base_ledger AS l
            WHERE l.shard = c.shard AND l.item_id = c.item_id AND l.source <> 'adds')
         FROM shard_counters_now AS c",
    )?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (shard, item_id, members, others): (u32, i64, i64, i64) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let Some(counter) = counter(&item_id) else { continue };
        let what = format!("counter {counter}, shard {shard}");
        if members != 0 {
            report.wrong(
                place.partition,
                what.clone(),
                format!("has {members} members, and nobody can like it"),
            );
        }
        if others > 0 {
            report.wrong(place.partition, what, "its ledger has entries that are no adds");
        }
    }
    Ok(())
}

fn audit_ids<'a>(
    place: &Place<'_>,
    items: &HashMap<i64, String>,
    counter: &impl Fn(&i64) -> Option<&'a str>,
    report: &mut Report,
) -> Result<(), Error> {
    let mark: i64 = place.connection.query_row(
        "SELECT max(clock_mark_ms, coalesce((SELECT max(decided_at_ms) FROM journal), 0)) FROM identity",
        [],
        |row| row.get(0),
    )?;
    let mut select =
        place.connection.prepare("SELECT item_id, request_id, decided_at_ms FROM counter_requests")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (item_id, id, at_ms): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        report.add_ids += 1;
        let name = counter(&item_id);
        // The ids of a counter that is gone count no more, and go with their time.
        if name.is_none() && items.contains_key(&item_id) {
            let what = format!("id {id}");
            report.wrong(place.partition, what, format!("is one of item id {item_id}, which is no counter"));
        }
        let what = || format!("counter {}, id {id}", name.unwrap_or("?"));
        let shard = shard_of(&id, place.manifest.shards);
        if partition_of_shard(shard, place.manifest.partitions) != place.partition {
            let why = format!("its shard {shard} lives on another partition");
            report.wrong(place.partition, what(), why);
        }
        if at_ms > mark {
            report.wrong(place.partition, what(), "was decided after the latest time stored");
        }
    }
    Ok(())
}
