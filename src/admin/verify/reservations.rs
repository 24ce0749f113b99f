//! For every workshop: `reserved` is the sum of its accepted attempts' seats, and not above its capacity.

use super::{Place, Report};
use crate::reservations::WorkshopName;
use crate::reservations::types::partition_of_workshop;
use crate::store::Error;

/// Each stored column beside the same number counted from the attempts.
const RECOUNT: &str = "
    SELECT w.name, w.capacity, w.overbooked, w.reserved,
           coalesce(a.accepted_seats, 0), w.accepted_seats,
           coalesce(a.accepted, 0), w.accepted_requests,
           coalesce(a.rejected, 0), w.rejected_requests
    FROM workshops AS w
    LEFT JOIN (
        SELECT workshop_id,
               sum(iif(status = 'accepted', seats, 0)) AS accepted_seats,
               count(*) FILTER (WHERE status = 'accepted') AS accepted,
               count(*) FILTER (WHERE status = 'rejected') AS rejected
        FROM attempts GROUP BY workshop_id
    ) AS a ON a.workshop_id = w.workshop_id";

pub(super) fn audit(place: &Place<'_>, report: &mut Report) -> Result<(), Error> {
    let mut select = place.connection.prepare(RECOUNT)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let number = |column| row.get::<_, i64>(column);
        let (capacity, overbooked, reserved, held) = (number(1)?, number(2)?, number(3)?, number(4)?);
        report.workshops += 1;
        let mut wrong = |why: String| report.wrong(place.partition, format!("workshop {name}"), why);
        if reserved != held {
            wrong(format!("reserved is {reserved}, its accepted reservations hold {held}"));
        }
        if !(0..=capacity + overbooked).contains(&reserved) {
            wrong(format!("reserved is {reserved}, capacity {capacity} (overbooked {overbooked})"));
        }
        for (what, stored, counted) in [
            ("accepted seats", number(5)?, held),
            ("accepted requests", number(7)?, number(6)?),
            ("rejected requests", number(9)?, number(8)?),
        ] {
            if stored != counted {
                wrong(format!("{what} is {stored}, there are {counted}"));
            }
        }
        match WorkshopName::parse(&name)
            .map(|name| partition_of_workshop(name.hash(), place.manifest.partitions))
        {
            None => wrong("this is no workshop's name".to_owned()),
            Some(home) if home != place.partition => wrong(format!("it belongs on partition {home}")),
            Some(_) => {}
        }
    }
    audit_attempts(place, report)
}

fn audit_attempts(place: &Place<'_>, report: &mut Report) -> Result<(), Error> {
    let count = |sql| place.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    report.attempts += u64::try_from(count("SELECT count(*) FROM attempts")?).unwrap_or(0);
    let homeless =
        count("SELECT count(*) FROM attempts WHERE workshop_id NOT IN (SELECT workshop_id FROM workshops)")?;
    if homeless > 0 {
        report.wrong(place.partition, "attempts", format!("{homeless} belong to no workshop"));
    }
    Ok(())
}
