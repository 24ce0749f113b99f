//! For every item: its history belongs to a total and is in order, and what a ranking says of it is what total and
//! history say.

use rusqlite::{Connection, Row};

use super::Report;
use crate::store::Error;
use crate::store::history::unpack;

pub(super) fn audit(summary: &Connection, report: &mut Report) -> Result<(), Error> {
    each(summary, OWNERLESS, report, |row| {
        let hours: i64 = row.get(1)?;
        Ok(Some(format!("its history has {hours} hours, and it has no total")))
    })?;
    each(summary, HOURS, report, |row| {
        let (hour, detail, opening): (i64, i64, i64) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let packed: Option<Vec<u8>> = row.get(4)?;
        let minutes = packed.as_deref().map(|packed| unpack(packed, opening).unwrap_or_default());
        let begins = minutes.as_ref().is_none_or(|of| of.first().is_some_and(|(_, first)| *first == opening));
        let known = (detail == 1) == minutes.is_some();
        let of_a_day = detail != 3 || hour.rem_euclid(24) == 0;
        let wrong = || format!("hour {hour} of its history is not what it must be");
        Ok((!begins || !known || !of_a_day).then(wrong))
    })?;
    each(summary, TOTALS, report, |row| {
        let (ranked, total, window): (i64, Option<i64>, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let is = total.unwrap_or(0);
        let wrong = || format!("it is ranked in {window} with a total of {ranked}, and the total is {is}");
        Ok((Some(ranked) != total).then(wrong))
    })?;
    each(summary, BASES, report, |row| {
        let (minute, base): (i64, i64) = (row.get(1)?, row.get(2)?);
        let (opening, packed): (Option<i64>, Option<Vec<u8>>) = (row.get(3)?, row.get(4)?);
        // Where minutes are known they are looked at; windows that begin with an hour count from the hour's first.
        let found = match (opening, packed, row.get::<_, i64>(5)?) {
            (Some(opening), Some(packed), 1) => {
                let minutes = unpack(&packed, opening).unwrap_or_default();
                minutes.iter().find(|(at, _)| i64::from(*at) == minute).map(|(_, opening)| *opening)
            }
            (opening, _, _) => opening,
        };
        let found = found.map_or("nothing".to_owned(), |found| found.to_string());
        let wrong = format!("its gain is counted from {base}, its history has {found} there");
        Ok((found != base.to_string()).then_some(wrong))
    })
}

const OWNERLESS: &str =
    "SELECT item, count(*) FROM history WHERE item NOT IN (SELECT item FROM summary) GROUP BY item";

const HOURS: &str = "SELECT item, hour, detail, opening, minutes FROM history";

/// A gain beyond 64 bits stays at their end, and adds up to nothing.
const TOTALS: &str = "SELECT t.item, t.base + t.gain, s.total,
      CASE t.span WHEN 1 THEN '1h' WHEN 2 THEN '24h' ELSE '7d' END FROM trending AS t
    LEFT JOIN summary AS s ON s.item = t.item
    WHERE t.gain BETWEEN -9223372036854775807 AND 9223372036854775806";

const BASES: &str = "SELECT t.item, t.first % 60, t.base, h.opening, h.minutes, t.span FROM trending AS t
    LEFT JOIN history AS h ON h.item = t.item AND h.hour = t.first / 60";

/// Looks at every row that a query finds, which begins with an item.
fn each(
    summary: &Connection,
    sql: &str,
    report: &mut Report,
    look: impl Fn(&Row<'_>) -> rusqlite::Result<Option<String>>,
) -> Result<(), Error> {
    let mut select = summary.prepare(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(wrong) = look(row)? {
            report.wrong(None, format!("item {}", row.get::<_, String>(0)?), wrong);
        }
    }
    Ok(())
}
