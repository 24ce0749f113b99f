//! For every room with a durable history: its messages numbered without a gap up to the last number given,
//! and each message what its columns say of it.

use rusqlite::Row;

use super::{Place, Report};
use crate::rooms::recorder::partition_of_room;
use crate::rooms::types::{Position, RoomName};
use crate::store::Error;

/// The room's columns, then what its messages come to.
const RECOUNT: &str = "
    SELECT r.name, r.epoch, r.last_offset, m.number, m.first, m.last, m.backwards, m.repeated
    FROM rooms AS r
    LEFT JOIN (
        SELECT room_id, count(*) AS number, min(offset) AS first, max(offset) AS last,
               count(*) FILTER (WHERE at_ms < before_ms) AS backwards,
               count(message_id) - count(DISTINCT iif(message_id IS NULL, NULL, json_array(user, message_id)))
                 AS repeated
        FROM (SELECT *, lag(at_ms) OVER (PARTITION BY room_id ORDER BY offset) AS before_ms FROM room_messages)
        GROUP BY room_id
    ) AS m ON m.room_id = r.room_id";

/// Rows that are not what they should be, each kind with the query that counts them.
const WRONG: [(&str, &str); 4] = [
    (
        "belong to no room",
        "SELECT count(*) FROM room_messages WHERE room_id NOT IN (SELECT room_id FROM rooms)",
    ),
    (
        "count for other than their bytes",
        "SELECT count(*) FROM room_messages
         WHERE bytes <> octet_length(body) + coalesce(octet_length(user), 0) + coalesce(octet_length(message_id), 0)",
    ),
    (
        "are said to be JSON and are not",
        "SELECT count(*) FROM room_messages WHERE kind = 'data' AND NOT json_valid(body)",
    ),
    (
        "were kept after the latest time stored",
        // A batch that has a row in the journal has its time there.
        "SELECT count(*) FROM room_messages, identity
         WHERE at_ms > max(clock_mark_ms, coalesce((SELECT max(decided_at_ms) FROM journal), 0))",
    ),
];

pub(super) fn audit(place: &Place<'_>, report: &mut Report) -> Result<(), Error> {
    let mut select = place.connection.prepare(RECOUNT)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        report.rooms += 1;
        audit_room(place, row, report)?;
    }
    let count = |sql: &str| place.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    report.messages += u64::try_from(count("SELECT count(*) FROM room_messages")?).unwrap_or(0);
    for (why, sql) in WRONG {
        let wrong = count(sql)?;
        if wrong > 0 {
            report.wrong(place.partition, "room_messages", format!("{wrong} {why}"));
        }
    }
    Ok(())
}

fn audit_room(place: &Place<'_>, row: &Row<'_>, report: &mut Report) -> Result<(), Error> {
    let (name, epoch, given): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let mut wrong = |why: String| report.wrong(place.partition, format!("room {name}"), why);
    // The bound on a name may have been another one when it came.
    if RoomName::parse(&name, usize::MAX).is_none() {
        wrong("this is no room's name".to_owned());
    }
    let partitions = usize::try_from(place.manifest.partitions).unwrap_or(usize::MAX);
    let home = partition_of_room(&name, partitions);
    if usize::try_from(place.partition) != Ok(home) {
        wrong(format!("it belongs on partition {home}"));
    }
    if Position::parse(&format!("{epoch}:0")).is_none() {
        wrong(format!("{epoch:?} is no epoch"));
    }
    let Some(number) = row.get::<_, Option<i64>>(3)? else { return Ok(()) };
    let (first, last): (i64, i64) = (row.get(4)?, row.get(5)?);
    let (backwards, repeated): (i64, i64) = (row.get(6)?, row.get(7)?);
    if last != given {
        wrong(format!("the last number given is {given}, the last message's is {last}"));
    }
    if last - first + 1 != number {
        wrong(format!("messages {first} to {last} are kept, and there are {number}"));
    }
    if backwards > 0 {
        wrong(format!("{backwards} messages are older than the one before"));
    }
    if repeated > 0 {
        wrong(format!("{repeated} messages repeat an id of their sender's"));
    }
    Ok(())
}
