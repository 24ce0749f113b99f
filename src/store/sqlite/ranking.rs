//! Rankings in the summary's file, written in the transactions of the totals that they speak of.
//!
//! A ranking has places for so many items of those that changed in a window. Whoever finds none is noted with the most
//! that it may ever gain while it does not change, which is what an answer says it may have missed. A change costs a
//! look for its place in each window; what a window leaves behind is found in an index, and a ranking is read from
//! the top of one. Nothing here ever looks at all items.

use rusqlite::{Connection, OptionalExtension};

use super::history::standing;
use crate::store::Error;
use crate::store::history::{Change, ChangedTotals, Gains, Kept, Ranked, Standing, Step, Window};

/// A gain beyond what SQLite's integers hold stays at their end: the difference is a REAL, which the cast clamps.
pub(super) const GAIN: &str =
    "UPDATE trending SET gain = CAST(?3 - base AS INTEGER) WHERE span = ?1 AND item = ?2";

pub(super) const ENTER: &str =
    "INSERT INTO trending (span, item, first, base, gain) VALUES (?1, ?2, ?3, ?4, ?5)";

pub(super) const LEAVE: &str = "DELETE FROM trending WHERE span = ?1 AND item = ?2";

pub(super) const MISS: &str = "INSERT INTO trending_missed (span, minute, gain) VALUES (?1, ?2, ?3)
    ON CONFLICT (span, minute) DO UPDATE SET gain = excluded.gain WHERE excluded.gain > gain";

pub(super) const PLACES: &str = "SELECT count(*) FROM trending WHERE span = ?1";

pub(super) const LAST_PLACES: &str = "SELECT item, base + gain, gain FROM trending WHERE span = ?1
    ORDER BY gain, item DESC LIMIT ?2";

pub(super) const LEFT_BEHIND: &str =
    "SELECT item FROM trending WHERE span = ?1 AND first < ?2 ORDER BY first LIMIT ?3";

pub(super) const MOVE_ON: &str = "UPDATE trending SET first = ?3, base = ?4,
    gain = CAST(coalesce((SELECT total FROM summary WHERE item = ?2), 0) - ?4 AS INTEGER)
    WHERE span = ?1 AND item = ?2";

pub(super) const FORGIVE: &str = "DELETE FROM trending_missed WHERE span = ?1 AND minute < ?2";

pub(super) const TOP_GAINS: &str = "SELECT item, gain, base + gain FROM trending WHERE span = ?1 AND gain > 0
    ORDER BY gain DESC, item LIMIT ?2";

pub(super) const FIRST: &str = "SELECT first FROM trending WHERE span = ?1 ORDER BY first LIMIT 1";

pub(super) const MISSED: &str = "SELECT max(gain) FROM trending_missed WHERE span = ?1 AND minute >= ?2";

pub(super) const TOP_TOTALS: &str = "SELECT item, total, total FROM summary WHERE total > 0 AND item >= ' ' ORDER BY total DESC, item LIMIT ?1";

/// What the writer remembers of the rankings. Only effort depends on it: it may be forgotten at any time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    /// What an item must be able to gain, and more, for a place in each window's ranking.
    floors: [i64; 3],
    /// Items that have entered since each was last counted.
    entered: [u32; 3],
}

impl Default for Places {
    fn default() -> Self {
        Self { floors: [0; 3], entered: [u32::MAX; 3] }
    }
}

/// Gives changes their places.
pub(super) fn update(
    transaction: &Connection,
    changes: &ChangedTotals<'_>,
    places: &mut Places,
) -> Result<(), Error> {
    let minute = Step::Minute.bucket(changes.at_ms);
    let mut missed = [0; 3];
    for change in changes.items {
        rank(transaction, change, changes.at_ms, places, &mut missed)?;
    }
    for (window, missed) in Window::ALL.into_iter().zip(missed) {
        miss(transaction, window, minute, missed)?;
    }
    let of_windows = places.floors.iter_mut().zip(&mut places.entered);
    for (window, (floor, entered)) in Window::ALL.into_iter().zip(of_windows) {
        if *entered > changes.ranked / 4 {
            *floor = make_room(transaction, window, changes)?;
            *entered = 0;
        }
    }
    Ok(())
}

/// Gives a change its place in each ranking, or notes what it may gain without one.
fn rank(
    transaction: &Connection,
    change: &Change<'_>,
    at_ms: i64,
    places: &mut Places,
    missed: &mut [i64; 3],
) -> Result<(), Error> {
    let mut gain = transaction.prepare_cached(GAIN)?;
    let of_windows = places.floors.iter().zip(&mut places.entered).zip(missed);
    let mut of_longer: Option<Standing> = None;
    // The longest first: what began in a day stands the same in its week.
    for (window, ((floor, entered), missed)) in Window::ALL.into_iter().zip(of_windows).rev() {
        if gain.execute((window.code(), change.item, change.total))? > 0 {
            continue;
        }
        let first = window.first(at_ms);
        let standing = match of_longer {
            Some(same) if window == Window::Day && same.first >= first => Some(same),
            _ => standing(transaction, change.item, window, first)?,
        };
        of_longer = standing;
        let Some(standing) = standing else { continue };
        let ever = change.total.saturating_sub(standing.lowest);
        if ever > *floor {
            let gain = change.total.saturating_sub(standing.base);
            transaction.prepare_cached(ENTER)?.execute((
                window.code(),
                change.item,
                standing.first,
                standing.base,
                gain,
            ))?;
            *entered = entered.saturating_add(1);
        } else {
            *missed = ever.max(*missed);
        }
    }
    Ok(())
}

fn miss(transaction: &Connection, window: Window, minute: i64, gain: i64) -> Result<(), Error> {
    if gain > 0 {
        let step = window.step().minutes();
        let minute = minute.div_euclid(step) * step;
        transaction.prepare_cached(MISS)?.execute((window.code(), minute, gain))?;
    }
    Ok(())
}

/// Takes the last places away if there are too many, and notes what their items may gain; what an item must be able to
/// gain from now on.
fn make_room(transaction: &Connection, window: Window, changes: &ChangedTotals<'_>) -> Result<i64, Error> {
    let places = count(transaction, window)?;
    let excess = places.saturating_sub(changes.ranked);
    if excess == 0 {
        return Ok(0);
    }
    let last: Vec<(String, i64, i64)> = transaction
        .prepare_cached(LAST_PLACES)?
        .query_map((window.code(), excess), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let (mut missed, mut floor) = (0, 0);
    for (item, total, gain) in last {
        transaction.prepare_cached(LEAVE)?.execute((window.code(), &item))?;
        if let Some(standing) = standing(transaction, &item, window, window.first(changes.at_ms))? {
            missed = total.saturating_sub(standing.lowest).max(missed);
        }
        floor = gain.max(floor);
    }
    miss(transaction, window, Step::Minute.bucket(changes.at_ms), missed)?;
    Ok(floor)
}

fn count(transaction: &Connection, window: Window) -> Result<u32, Error> {
    Ok(transaction.prepare_cached(PLACES)?.query_row([window.code()], |row| row.get(0))?)
}

/// Takes an item's places away.
pub(super) fn forget(transaction: &Connection, item: &str) -> Result<(), Error> {
    for window in Window::ALL {
        transaction.prepare_cached(LEAVE)?.execute((window.code(), item))?;
    }
    Ok(())
}

/// Moves windows on by at most `limit` items; whether there may be more.
pub(super) fn move_windows(
    transaction: &Connection,
    now_ms: i64,
    kept: &Kept,
    limit: u32,
    places: &mut Places,
) -> Result<bool, Error> {
    for (window, floor) in Window::ALL.into_iter().zip(&mut places.floors) {
        let first = window.first(now_ms);
        let left_behind: Vec<String> = transaction
            .prepare_cached(LEFT_BEHIND)?
            .query_map((window.code(), first, limit), |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for item in &left_behind {
            move_on(transaction, window, item, first)?;
        }
        if !left_behind.is_empty() {
            return Ok(true);
        }
        transaction.prepare_cached(FORGIVE)?.execute((window.code(), first))?;
        // There is room again, for less, too.
        if *floor > 0 && count(transaction, window)? < kept.ranked {
            *floor = 0;
        }
    }
    Ok(false)
}

fn move_on(transaction: &Connection, window: Window, item: &str, first: i64) -> Result<(), Error> {
    match standing(transaction, item, window, first)? {
        Some(Standing { first, base, .. }) => {
            transaction.prepare_cached(MOVE_ON)?.execute((window.code(), item, first, base))?
        }
        None => transaction.prepare_cached(LEAVE)?.execute((window.code(), item))?,
    };
    Ok(())
}

/// The items that gained most in a window, by gain and then by name. In one snapshot.
pub(super) fn top_gains(
    connection: &Connection,
    window: Window,
    now_ms: i64,
    limit: u32,
) -> Result<Gains, Error> {
    let snapshot = connection.unchecked_transaction()?;
    let first = snapshot.prepare_cached(FIRST)?.query_row([window.code()], |row| row.get(0)).optional()?;
    let since = (window.code(), window.first(now_ms));
    let missed: Option<i64> = snapshot.prepare_cached(MISSED)?.query_row(since, |row| row.get(0))?;
    let top = ranked(&snapshot, TOP_GAINS, (window.code(), limit))?;
    Ok(Gains { top, first, missed: missed.unwrap_or(0) })
}

/// The items with the largest totals, by total and then by name.
pub(super) fn top_totals(connection: &Connection, limit: u32) -> Result<Vec<Ranked>, Error> {
    ranked(connection, TOP_TOTALS, [limit])
}

fn ranked(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> Result<Vec<Ranked>, Error> {
    let mut select = connection.prepare_cached(sql)?;
    let rows = select.query_map(parameters, |row| {
        Ok(Ranked { item: row.get(0)?, gained: row.get(1)?, total: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
