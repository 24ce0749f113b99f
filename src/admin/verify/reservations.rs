//! For every workshop: each number beside the same number counted from the rows that it sums up, and its log
//! whole and in agreement with the decisions.

use rusqlite::Row;

use super::{Place, Report};
use crate::reservations::WorkshopName;
use crate::reservations::types::partition_of_workshop;
use crate::store::Error;

/// The workshop's columns, then what its rows add up to.
///
/// Seats are taken by first decisions that accepted and were nothing more, and by bookings, which say what
/// became of the others.
const RECOUNT: &str = "
    SELECT w.name, w.capacity, w.overbooked,
           w.reserved, coalesce(a.plain_seats, 0) + coalesce(b.taken, 0),
           w.held, coalesce(b.held, 0),
           w.waiting, coalesce(b.waiting, 0),
           w.accepted_seats, coalesce(a.accepted_seats, 0),
           w.accepted_requests, coalesce(a.accepted, 0),
           w.rejected_requests, coalesce(a.rejected, 0),
           w.last_event, coalesce(e.last, 0), coalesce(e.number, 0),
           coalesce(e.accepted, 0), coalesce(e.accepted_seats, 0), coalesce(e.rejected, 0)
    FROM workshops AS w
    LEFT JOIN (
        SELECT workshop_id,
               sum(iif(status = 'accepted' AND b.request_id IS NULL, a.seats, 0)) AS plain_seats,
               sum(iif(status = 'accepted', a.seats, 0)) AS accepted_seats,
               count(*) FILTER (WHERE status = 'accepted') AS accepted,
               count(*) FILTER (WHERE status = 'rejected') AS rejected
        FROM attempts_now AS a LEFT JOIN bookings AS b USING (workshop_id, request_id) GROUP BY workshop_id
    ) AS a ON a.workshop_id = w.workshop_id
    LEFT JOIN (
        SELECT workshop_id,
               sum(iif(state IN ('accepted', 'held', 'confirmed', 'offered'), seats, 0)) AS taken,
               sum(iif(state IN ('held', 'offered'), seats, 0)) AS held,
               count(*) FILTER (WHERE state = 'waiting') AS waiting
        FROM bookings GROUP BY workshop_id
    ) AS b ON b.workshop_id = w.workshop_id
    LEFT JOIN (
        SELECT workshop_id, max(seq) AS last, count(*) AS number,
               count(*) FILTER (WHERE kind IN ('accepted', 'held')) AS accepted,
               sum(iif(kind IN ('accepted', 'held'), seats, 0)) AS accepted_seats,
               count(*) FILTER (WHERE kind IN ('rejected', 'waiting')) AS rejected
        FROM events GROUP BY workshop_id
    ) AS e ON e.workshop_id = w.workshop_id";

/// Rows without what they are about, each kind with the query that counts them.
const HOMELESS: [(&str, &str, &str); 7] = [
    ("attempts", "belong to no workshop", "SELECT count(*) FROM attempts_now WHERE workshop_id NOT IN known"),
    ("bookings", "belong to no workshop", "SELECT count(*) FROM bookings WHERE workshop_id NOT IN known"),
    ("events", "belong to no workshop", "SELECT count(*) FROM events WHERE workshop_id NOT IN known"),
    (
        "bookings",
        "were never decided",
        "SELECT count(*) FROM bookings AS b JOIN workshops USING (workshop_id)
         WHERE (b.workshop_id, b.request_id) NOT IN (SELECT workshop_id, request_id FROM attempts_now)",
    ),
    (
        "events",
        "are of requests that were never decided",
        "SELECT count(*) FROM events AS e JOIN workshops USING (workshop_id)
         WHERE e.request_id IS NOT NULL
           AND (e.workshop_id, e.request_id) NOT IN (SELECT workshop_id, request_id FROM attempts_now)",
    ),
    (
        "events",
        "are found under another request, or none",
        "SELECT count(*) FROM events AS e JOIN workshops USING (workshop_id)
         LEFT JOIN bookings AS b ON b.workshop_id = e.workshop_id AND b.request_id = e.request_id
         WHERE e.booking_id IS NOT iif(e.kind IN ('accepted', 'rejected'), NULL, b.booking_id)",
    ),
    (
        "workshops",
        "are there and have a tombstone",
        "SELECT count(*) FROM workshops JOIN workshop_tombstones USING (name)",
    ),
];

/// Workshops that are there, and those whose rows are yet to be swept.
const KNOWN: &str =
    "WITH known AS (SELECT workshop_id FROM workshops UNION ALL SELECT workshop_id FROM unswept_workshops) ";

pub(super) fn audit(place: &Place<'_>, report: &mut Report) -> Result<(), Error> {
    let mut select = place.connection.prepare(RECOUNT)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        report.workshops += 1;
        audit_workshop(place, row, report)?;
    }
    let count = |sql: &str| place.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    report.attempts += u64::try_from(count("SELECT count(*) FROM attempts_now")?).unwrap_or(0);
    for (rows, why, sql) in HOMELESS {
        let homeless = count(&format!("{KNOWN}{sql}"))?;
        if homeless > 0 {
            report.wrong(place.partition, rows, format!("{homeless} {why}"));
        }
    }
    Ok(())
}

fn audit_workshop(place: &Place<'_>, row: &Row<'_>, report: &mut Report) -> Result<(), Error> {
    let name: String = row.get(0)?;
    let number = |column| row.get::<_, i64>(column);
    let (capacity, overbooked, reserved, held) = (number(1)?, number(2)?, number(3)?, number(4)?);
    let mut wrong = |why: String| report.wrong(place.partition, format!("workshop {name}"), why);
    if reserved != held {
        wrong(format!("reserved is {reserved}, its accepted reservations hold {held}"));
    }
    if !(0..=capacity + overbooked).contains(&reserved) {
        wrong(format!("reserved is {reserved}, capacity {capacity} (overbooked {overbooked})"));
    }
    for (what, stored, counted) in [
        ("held seats", number(5)?, number(6)?),
        ("waiting requests", number(7)?, number(8)?),
        ("accepted seats", number(9)?, number(10)?),
        ("accepted requests", number(11)?, number(12)?),
        ("rejected requests", number(13)?, number(14)?),
        ("the last event", number(15)?, number(16)?),
        ("the last event", number(16)?, number(17)?),
        ("accepted requests", number(11)?, number(18)?),
        ("accepted seats", number(9)?, number(19)?),
        ("rejected requests", number(13)?, number(20)?),
    ] {
        if stored != counted {
            wrong(format!("{what} is {stored}, there are {counted}"));
        }
    }
    match WorkshopName::parse(&name).map(|name| partition_of_workshop(name.hash(), place.manifest.partitions))
    {
        None => wrong("this is no workshop's name".to_owned()),
        Some(home) if home != place.partition => wrong(format!("it belongs on partition {home}")),
        Some(_) => {}
    }
    Ok(())
}
