//! History in the summary's file, written in the transactions of the totals that it speaks of.
//!
//! A change costs a look at the hour that has begun, and a write at its first change in a minute. What is too old is
//! found in an index.

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension};

use crate::store::Error;
use crate::store::history::{Change, Kept, Openings, Standing, Step, Window, pack, unpack};

const HOUR: &str = "SELECT opening, minutes FROM history WHERE item = ?1 AND hour = ?2";

const BEGIN_HOUR: &str =
    "INSERT INTO history (item, hour, detail, opening, minutes) VALUES (?1, ?2, 1, ?3, ?4)";

const BEGIN_MINUTE: &str = "UPDATE history SET minutes = ?3 WHERE item = ?1 AND hour = ?2";

const OPENINGS: &str =
    "SELECT hour, opening, minutes FROM history WHERE item = ?1 AND hour >= ?2 ORDER BY hour";

/// Of windows that begin with an hour: its first hour with a change, that one's opening, and the lowest of all.
const HOURS: &str =
    "SELECT min(hour), (SELECT opening FROM history WHERE item = ?1 AND hour >= ?2 ORDER BY hour LIMIT 1),
    min(opening) FROM history WHERE item = ?1 AND hour >= ?2";

const FORGET_MINUTES: &str = "UPDATE history SET detail = 2, minutes = NULL WHERE (item, hour) IN
    (SELECT item, hour FROM history WHERE detail = 1 AND hour < ?1 ORDER BY hour LIMIT ?2)";

const TOO_OLD_HOURS: &str =
    "SELECT item, hour FROM history WHERE detail = 2 AND hour < ?1 ORDER BY hour LIMIT ?2";

/// The first hour of a day stands for it. It is the first to come here, too.
const STAND_FOR_DAY: &str = "UPDATE history SET detail = 3, hour = ?3 WHERE item = ?1 AND hour = ?2
    AND NOT EXISTS (SELECT 1 FROM history WHERE item = ?1 AND hour >= ?3 AND hour < ?2)";

const FORGET_HOUR: &str = "DELETE FROM history WHERE item = ?1 AND hour = ?2 AND detail = 2";

const FORGET_DAYS: &str = "DELETE FROM history WHERE (item, hour) IN
    (SELECT item, hour FROM history WHERE detail = 3 AND hour < ?1 ORDER BY hour LIMIT ?2)";

const NEWEST: &str = "SELECT hour FROM history WHERE detail = 1 ORDER BY hour DESC LIMIT 1";

/// When the newest hour with a change began, in ms since 1970; 0 without any.
pub(super) fn newest_ms(connection: &Connection) -> Result<i64, Error> {
    let newest = connection.query_row(NEWEST, [], |row| row.get(0)).optional()?;
    Ok(newest.map_or(0, |hour| Step::Hour.begins_ms(hour)))
}

/// From when on a history is whole, in ms since 1970.
pub(super) fn since_ms(connection: &Connection) -> Result<i64, Error> {
    Ok(connection.query_row("SELECT at_ms FROM history_since", [], |row| row.get(0))?)
}

/// Begins the minute of a change with the total before it, unless it has begun.
pub(super) fn begin(transaction: &Connection, change: &Change<'_>, minute: i64) -> Result<(), Error> {
    let length = Step::Hour.minutes();
    let (hour, of_hour) = (minute.div_euclid(length), u8::try_from(minute.rem_euclid(length)).unwrap_or(0));
    let begun = transaction
        .prepare_cached(HOUR)?
        .query_row((change.item, hour), |row| Ok((row.get(0)?, row.get::<_, Option<Vec<u8>>>(1)?)))
        .optional()?;
    match begun {
        None => {
            let mut packed = Vec::new();
            pack(of_hour, change.before, change.before, &mut packed);
            transaction.prepare_cached(BEGIN_HOUR)?.execute((change.item, hour, change.before, packed))?;
        }
        Some((opening, Some(mut packed))) => {
            let begun = unpack(&packed, opening).unwrap_or_default();
            if begun.last().is_none_or(|(last, _)| *last < of_hour) {
                pack(of_hour, change.before, opening, &mut packed);
                transaction.prepare_cached(BEGIN_MINUTE)?.execute((change.item, hour, packed))?;
            }
        }
        // Only its hour is known any more.
        Some((_, None)) => {}
    }
    Ok(())
}

/// The minutes of a range in which an item changed, with their openings, and the next one after it.
fn openings(connection: &Connection, item: &str, minutes: Range<i64>) -> Result<Vec<(i64, i64)>, Error> {
    let of_hour = Step::Hour.minutes();
    let mut found = Vec::new();
    let mut select = connection.prepare_cached(OPENINGS)?;
    let mut rows = select.query((item, minutes.start.div_euclid(of_hour)))?;
    while let Some(row) = rows.next()? {
        let (hour, opening): (i64, i64) = (row.get(0)?, row.get(1)?);
        let known = match row.get::<_, Option<Vec<u8>>>(2)? {
            Some(packed) => unpack(&packed, opening).ok_or_else(|| {
                Error::Engine(format!("the history of item {item} has minutes that are none"))
            })?,
            None => vec![(0, opening)],
        };
        for (minute, opening) in known {
            let minute = hour * of_hour + i64::from(minute);
            if minute >= minutes.start {
                found.push((minute, opening));
                if minute >= minutes.end {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

/// What an item gained from a minute on, which a window begins with; `None` if it has not changed since.
pub(super) fn standing(
    transaction: &Connection,
    item: &str,
    window: Window,
    first: i64,
) -> Result<Option<Standing>, Error> {
    if window.step() == Step::Minute {
        return Ok(Standing::of(openings(transaction, item, first..i64::MAX)?));
    }
    let length = Step::Hour.minutes();
    let mut hours = transaction.prepare_cached(HOURS)?;
    Ok(hours.query_row((item, first.div_euclid(length)), |row| {
        let Some(hour) = row.get::<_, Option<i64>>(0)? else { return Ok(None) };
        Ok(Some(Standing { first: hour * length, base: row.get(1)?, lowest: row.get(2)? }))
    })?)
}

/// What is stored of some minutes of an item. In one snapshot.
pub(super) fn past(connection: &Connection, item: &str, minutes: Range<i64>) -> Result<Openings, Error> {
    let snapshot = connection.unchecked_transaction()?;
    let openings = openings(&snapshot, item, minutes)?;
    let mut total = snapshot.prepare_cached("SELECT total FROM summary WHERE item = ?1")?;
    let total = total.query_row([item], |row| row.get(0)).optional()?.unwrap_or(0);
    Ok(Openings { openings, total })
}

/// Forgets an item.
pub(super) fn forget(transaction: &Connection, item: &str) -> Result<(), Error> {
    transaction.prepare_cached("DELETE FROM history WHERE item = ?1")?.execute([item])?;
    Ok(())
}

/// Forgets what is too old, at most `limit` rows of it; whether there may be more.
pub(super) fn forget_old(
    transaction: &Connection,
    now_ms: i64,
    kept: &Kept,
    limit: u32,
) -> Result<bool, Error> {
    let of_day = Step::Day.minutes() / Step::Hour.minutes();
    let first_with_minutes = kept.first(Step::Minute, now_ms).div_euclid(Step::Hour.minutes());
    let first_hour = kept.first(Step::Hour, now_ms).div_euclid(of_day) * of_day;
    let first_day = kept.first(Step::Day, now_ms) * of_day;
    let forgot_minutes = transaction.prepare_cached(FORGET_MINUTES)?.execute((first_with_minutes, limit))?;
    if forgot_minutes > 0 || forget_hours(transaction, first_hour, limit)? {
        return Ok(true);
    }
    Ok(transaction.prepare_cached(FORGET_DAYS)?.execute((first_day, limit))? > 0)
}

/// Of each day's hours the first one stands for the day, and the others go; whether there were any.
fn forget_hours(transaction: &Connection, first_hour: i64, limit: u32) -> Result<bool, Error> {
    let too_old: Vec<(String, i64)> = transaction
        .prepare_cached(TOO_OLD_HOURS)?
        .query_map((first_hour, limit), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let of_day = Step::Day.minutes() / Step::Hour.minutes();
    for (item, hour) in &too_old {
        let day = hour.div_euclid(of_day) * of_day;
        if transaction.prepare_cached(STAND_FOR_DAY)?.execute((item, hour, day))? == 0 {
            transaction.prepare_cached(FORGET_HOUR)?.execute((item, hour))?;
        }
    }
    Ok(!too_old.is_empty())
}

#[cfg(test)]
mod tests;
