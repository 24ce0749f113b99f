//! The lives of reservations in SQLite.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row};

use super::SqliteStore;
use super::reservations::{WORKSHOP_COLUMNS, attempt_from_row, workshop_from_row};
use crate::store::Error;
use crate::store::bookings::{
    Booking, BookingsStore, DueLines, DueSeats, Event, EventKind, Filter, HolderKey, Listed, ListedPage,
    NamedWorkshop, Reason, State, Terms,
};
use crate::store::reservations::{AttemptKey, WorkshopKey};

/// A booking's columns, in the order of [`booking_from_row`].
const COLUMNS: &str = "b.hold, b.ttl_ms, b.holder_id, b.waitlist, b.replaces, b.queued, b.state, b.seats, \
                       b.since_ms, b.expires_at_ms, b.place, b.of_set, b.set_ends_at_ms, b.set_round";
const COLUMN_COUNT: usize = 14;

/// An event's columns, in the order of [`event_from_row`].
const EVENT_COLUMNS: &str = "seq, at_ms, kind, request_id, seats, reserved, reason, expires_at_ms";

/// The rows of deleted workshops, table by table, and how each is keyed beside its workshop.
const SWEPT: [(&str, &str); 3] = [("attempts", "request_id"), ("bookings", "request_id"), ("events", "seq")];

impl BookingsStore for SqliteStore {
    fn load_bookings(&mut self, keys: &[AttemptKey<'_>]) -> Result<Vec<Option<Booking>>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM bookings AS b WHERE workshop_id = ?1 AND request_id = ?2");
        let mut select = self.connection.prepare_cached(&sql)?;
        let load = |key: &AttemptKey<'_>| {
            let row = select.query_row((key.workshop.0, key.request), |row| booking_from_row(row, 0));
            Ok(row.optional()?)
        };
        keys.iter().map(load).collect()
    }

    fn due_seats(&mut self, workshop: WorkshopKey, after_ms: i64, until_ms: i64) -> Result<DueSeats, Error> {
        let seats = self
            .connection
            .prepare_cached(
                "SELECT coalesce(sum(taken), 0) FROM bookings
                 WHERE workshop_id = ?1 AND expires_at_ms > ?2 AND expires_at_ms <= ?3",
            )?
            .query_row((workshop.0, after_ms, until_ms), |row| row.get(0))?;
        let next_at_ms = self
            .connection
            .prepare_cached(
                "SELECT min(expires_at_ms) FROM bookings WHERE workshop_id = ?1 AND expires_at_ms > ?2",
            )?
            .query_row((workshop.0, until_ms), |row| row.get(0))?;
        Ok(DueSeats { seats, next_at_ms })
    }

    fn due_bookings(
        &mut self,
        workshop: WorkshopKey,
        now_ms: i64,
        limit: u32,
    ) -> Result<Vec<(Arc<str>, Booking)>, Error> {
        let sql = format!(
            "SELECT {COLUMNS}, b.request_id FROM bookings AS b
             WHERE workshop_id = ?1 AND expires_at_ms <= ?2 ORDER BY expires_at_ms LIMIT ?3"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let rows = select.query_map((workshop.0, now_ms, limit), named_booking)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn due_lines(&mut self, workshop: WorkshopKey, now_ms: i64, limit: u32) -> Result<DueLines, Error> {
        let requests = self
            .connection
            .prepare_cached(
                "SELECT request_id FROM bookings WHERE workshop_id = ?1 AND set_ends_at_ms <= ?2
                 ORDER BY set_ends_at_ms LIMIT ?3",
            )?
            .query_map((workshop.0, now_ms, limit), |row| Ok(row.get::<_, String>(0)?.into()))?
            .collect::<Result<_, _>>()?;
        let next_at_ms = self
            .connection
            .prepare_cached(
                "SELECT min(set_ends_at_ms) FROM bookings WHERE workshop_id = ?1 AND set_ends_at_ms > ?2",
            )?
            .query_row((workshop.0, now_ms), |row| row.get(0))?;
        Ok(DueLines { requests, next_at_ms })
    }

    fn first_waiter(
        &mut self,
        workshop: WorkshopKey,
        most_seats: i64,
    ) -> Result<Option<(Arc<str>, Booking)>, Error> {
        let sql = format!(
            "SELECT {COLUMNS}, b.request_id FROM bookings AS b
             WHERE workshop_id = ?1 AND place IS NOT NULL AND seats <= ?2 ORDER BY place LIMIT 1"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        Ok(select.query_row((workshop.0, most_seats), named_booking).optional()?)
    }

    fn waiters_before(&mut self, workshop: WorkshopKey, place: i64) -> Result<i64, Error> {
        let mut select = self
            .connection
            .prepare_cached("SELECT count(*) FROM bookings WHERE workshop_id = ?1 AND place < ?2")?;
        Ok(select.query_row((workshop.0, place), |row| row.get(0))?)
    }

    fn seats_of_holder(
        &mut self,
        workshop: WorkshopKey,
        holder: HolderKey,
        now_ms: i64,
    ) -> Result<i64, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT coalesce(sum(taken), 0) FROM bookings INDEXED BY bookings_by_holder
             WHERE workshop_id = ?1 AND holder_id = ?2 AND taken > 0
               AND (expires_at_ms IS NULL OR expires_at_ms > ?3)",
        )?;
        Ok(select.query_row((workshop.0, holder.0, now_ms), |row| row.get(0))?)
    }

    fn seats_waited_for(&mut self, workshop: WorkshopKey, holder: HolderKey) -> Result<i64, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT coalesce(sum(seats), 0) FROM bookings INDEXED BY bookings_by_holder
             WHERE workshop_id = ?1 AND holder_id = ?2 AND taken = 0 AND place IS NOT NULL",
        )?;
        Ok(select.query_row((workshop.0, holder.0), |row| row.get(0))?)
    }

    fn load_holders(&mut self, names: &[&str]) -> Result<Vec<Option<HolderKey>>, Error> {
        let mut select = self.connection.prepare_cached("SELECT holder_id FROM holders WHERE name = ?1")?;
        let load = |name: &&str| Ok(select.query_row([name], |row| row.get(0).map(HolderKey)).optional()?);
        names.iter().map(load).collect()
    }

    fn create_holders(&mut self, names: &[&str]) -> Result<Vec<HolderKey>, Error> {
        let mut insert = self.connection.prepare_cached("INSERT INTO holders (name) VALUES (?1)")?;
        names.iter().map(|name| Ok(HolderKey(insert.insert([name])?))).collect()
    }

    fn holder_name(&mut self, holder: HolderKey) -> Result<Option<String>, Error> {
        let mut select = self.connection.prepare_cached("SELECT name FROM holders WHERE holder_id = ?1")?;
        Ok(select.query_row([holder.0], |row| row.get(0)).optional()?)
    }

    fn mark_time(&mut self, now_ms: i64) -> Result<(), Error> {
        self.connection
            .prepare_cached("UPDATE identity SET clock_mark_ms = ?1 WHERE clock_mark_ms < ?1")?
            .execute([now_ms])?;
        Ok(())
    }

    fn due_workshops(&mut self, now_ms: i64, limit: u32) -> Result<Vec<String>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT w.name FROM (
               SELECT DISTINCT workshop_id FROM (
                 SELECT workshop_id FROM bookings WHERE expires_at_ms <= ?1 ORDER BY expires_at_ms LIMIT ?2))
             JOIN workshops AS w USING (workshop_id)
             UNION
             SELECT name FROM (SELECT name FROM workshops WHERE offers_due_at_ms <= ?1
                               ORDER BY offers_due_at_ms LIMIT ?2)",
        )?;
        let rows = select.query_map((now_ms, limit), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn holding_workshops(
        &mut self,
        after: WorkshopKey,
        now_ms: i64,
        limit: u32,
    ) -> Result<Vec<(WorkshopKey, String, bool)>, Error> {
        // From one to the next, over however many holds of each.
        let mut select = self.connection.prepare_cached(
            "WITH RECURSIVE holding (id, place) AS (
               SELECT (SELECT min(workshop_id) FROM bookings INDEXED BY bookings_by_expiry
                       WHERE expires_at_ms IS NOT NULL AND workshop_id > ?1), 1
               UNION ALL
               SELECT (SELECT min(workshop_id) FROM bookings INDEXED BY bookings_by_expiry
                       WHERE expires_at_ms IS NOT NULL AND workshop_id > holding.id), place + 1
               FROM holding WHERE id IS NOT NULL AND place < ?3)
             SELECT id, name, EXISTS (
               SELECT 1 FROM bookings WHERE workshop_id = id AND expires_at_ms IS NOT NULL AND expires_at_ms <= ?2)
             FROM holding CROSS JOIN workshops ON workshop_id = id ORDER BY id",
        )?;
        let rows = select.query_map((after.0, now_ms, limit), |row| {
            Ok((WorkshopKey(row.get(0)?), row.get(1)?, row.get(2)?))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn next_due_at_ms(&mut self) -> Result<Option<i64>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT min(at_ms) FROM (
               SELECT min(expires_at_ms) AS at_ms FROM bookings WHERE expires_at_ms IS NOT NULL
               UNION ALL
               SELECT min(offers_due_at_ms) FROM workshops WHERE offers_due_at_ms IS NOT NULL
               UNION ALL
               SELECT 0 WHERE EXISTS (SELECT 1 FROM unswept_workshops))",
        )?;
        Ok(select.query_row([], |row| row.get(0))?)
    }

    fn list_workshops(&mut self, after: &str, limit: u32) -> Result<Vec<NamedWorkshop>, Error> {
        let sql =
            format!("SELECT {WORKSHOP_COLUMNS}, name FROM workshops WHERE name > ?1 ORDER BY name LIMIT ?2");
        let mut select = self.connection.prepare_cached(&sql)?;
        let rows = select.query_map((after, limit), |row| {
            let (key, workshop) = workshop_from_row(row)?;
            Ok((row.get(21)?, key, workshop))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn list_requests(
        &mut self,
        workshop: WorkshopKey,
        filter: Filter,
        after: &str,
        limit: u32,
        now_ms: i64,
    ) -> Result<ListedPage, Error> {
        match filter.holder {
            Some(holder) => {
                let ids = self.requests_of_holder(workshop, holder, after, limit)?;
                self.settle_attempts_of(workshop, &ids)?;
            }
            None => self.settle_page(workshop, after, limit as usize)?,
        }
        let columns = format!(
            "a.seats, a.status, a.reserved_after, a.decided_at_ms, a.reason, {COLUMNS}, a.request_id, h.name"
        );
        let sql = match filter.holder {
            Some(_) => format!(
                "SELECT {columns} FROM bookings AS b
                 JOIN attempts AS a USING (workshop_id, request_id) LEFT JOIN holders AS h USING (holder_id)
                 WHERE b.workshop_id = ?1 AND b.holder_id = ?4 AND b.request_id > ?2
                 ORDER BY b.request_id LIMIT ?3"
            ),
            None => format!(
                "SELECT {columns} FROM attempts AS a
                 LEFT JOIN bookings AS b USING (workshop_id, request_id)
                 LEFT JOIN holders AS h USING (holder_id)
                 WHERE a.workshop_id = ?1 AND a.request_id > ?2 AND ?4 IS NULL
                 ORDER BY a.request_id LIMIT ?3"
            ),
        };
        let mut select = self.connection.prepare_cached(&sql)?;
        let rows = select
            .query_map((workshop.0, after, limit, filter.holder.map(|holder| holder.0)), listed_from_row)?
            .collect::<Result<Vec<_>, _>>()?;
        let full = rows.len() >= limit as usize;
        let next = rows.last().filter(|_| full).map(|last| last.request.to_string());
        let wanted = |listed: &Listed| filter.state.is_none_or(|state| listed.state_at(now_ms) == state);
        Ok(ListedPage { requests: rows.into_iter().filter(wanted).collect(), next })
    }

    fn history(&mut self, workshop: WorkshopKey, request: &str, limit: u32) -> Result<Vec<Event>, Error> {
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events INDEXED BY events_by_booking
             WHERE workshop_id = ?1 AND booking_id =
               (SELECT booking_id FROM bookings WHERE workshop_id = ?1 AND request_id = ?2)
             ORDER BY seq DESC LIMIT ?3"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let rows = select.query_map((workshop.0, request, limit), event_from_row)?;
        let mut newest: Vec<Event> = rows.collect::<Result<_, _>>()?;
        newest.reverse();
        Ok(newest)
    }

    fn events(&mut self, workshop: WorkshopKey, after: i64, limit: u32) -> Result<Vec<Event>, Error> {
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events WHERE workshop_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let rows = select.query_map((workshop.0, after, limit), event_from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn are_there(&mut self, workshops: &[WorkshopKey]) -> Result<Vec<bool>, Error> {
        let mut select = self
            .connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM workshops WHERE workshop_id = ?1)")?;
        workshops.iter().map(|workshop| Ok(select.query_row([workshop.0], |row| row.get(0))?)).collect()
    }

    fn load_tombstones(&mut self, names: &[&str]) -> Result<Vec<Option<i64>>, Error> {
        let mut select = self
            .connection
            .prepare_cached("SELECT deleted_at_ms FROM workshop_tombstones WHERE name = ?1")?;
        names.iter().map(|name| Ok(select.query_row([name], |row| row.get(0)).optional()?)).collect()
    }

    fn delete_workshop(&mut self, workshop: WorkshopKey, name: &str, now_ms: i64) -> Result<(), Error> {
        self.connection
            .prepare_cached("DELETE FROM workshops WHERE workshop_id = ?1")?
            .execute([workshop.0])?;
        self.connection
            .prepare_cached("INSERT INTO unswept_workshops (workshop_id) VALUES (?1)")?
            .execute([workshop.0])?;
        self.connection
            .prepare_cached("INSERT INTO workshop_tombstones (name, deleted_at_ms) VALUES (?1, ?2)")?
            .execute((name, now_ms))?;
        Ok(())
    }

    fn remove_tombstone(&mut self, name: &str) -> Result<(), Error> {
        self.connection.prepare_cached("DELETE FROM workshop_tombstones WHERE name = ?1")?.execute([name])?;
        Ok(())
    }

    fn remove_tombstones(&mut self, limit: u32) -> Result<bool, Error> {
        let mut delete = self.connection.prepare_cached(
            "DELETE FROM workshop_tombstones WHERE name IN (SELECT name FROM workshop_tombstones LIMIT ?1)",
        )?;
        Ok(delete.execute([limit])? > 0)
    }

    fn sweep_workshops(&mut self, limit: u32) -> Result<bool, Error> {
        let dead: Option<i64> = self
            .connection
            .prepare_cached("SELECT workshop_id FROM unswept_workshops LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?;
        let Some(dead) = dead else { return Ok(false) };
        self.settle()?;
        let limit = limit as usize;
        let mut swept = self.sweep_holders(dead, limit)?;
        for (table, key) in SWEPT {
            if swept >= limit {
                return Ok(true);
            }
            let sql = format!(
                "DELETE FROM {table} WHERE workshop_id = ?1 AND {key} IN
                   (SELECT {key} FROM {table} WHERE workshop_id = ?1 LIMIT ?2)"
            );
            swept += self.connection.prepare_cached(&sql)?.execute((dead, (limit - swept) as i64))?;
        }
        if swept < limit {
            self.connection
                .prepare_cached("DELETE FROM unswept_workshops WHERE workshop_id = ?1")?
                .execute([dead])?;
        }
        Ok(true)
    }
}

impl SqliteStore {
    fn requests_of_holder(
        &self,
        workshop: WorkshopKey,
        holder: HolderKey,
        after: &str,
        limit: u32,
    ) -> Result<Vec<String>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT request_id FROM bookings WHERE workshop_id = ?1 AND holder_id = ?2 AND request_id > ?3
             ORDER BY request_id LIMIT ?4",
        )?;
        let ids = select.query_map((workshop.0, holder.0, after, limit), |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// A name goes with the last booking that it stands behind; the dead workshop's count no more. Only
    /// bookings are swept here, each with its name.
    fn sweep_holders(&self, dead: i64, limit: usize) -> Result<usize, Error> {
        let rows = self
            .connection
            .prepare_cached(
                "SELECT request_id, holder_id FROM bookings WHERE workshop_id = ?1 AND holder_id IS NOT NULL
                 LIMIT ?2",
            )?
            .query_map((dead, limit as i64), |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?
            .collect::<Result<Vec<_>, _>>()?;
        let mut delete = self
            .connection
            .prepare_cached("DELETE FROM bookings WHERE workshop_id = ?1 AND request_id = ?2")?;
        for (request, holder) in &rows {
            delete.execute((dead, request))?;
            self.forget_holder(*holder)?;
        }
        Ok(rows.len())
    }

    /// Removes a name that nothing stands behind any more.
    pub(super) fn forget_holder(&self, holder: i64) -> Result<(), Error> {
        self.connection
            .prepare_cached(
                "DELETE FROM holders WHERE holder_id = ?1
                 AND NOT EXISTS (SELECT 1 FROM bookings WHERE holder_id = ?1)
                 AND NOT EXISTS (SELECT 1 FROM sets WHERE holder_id = ?1)",
            )?
            .execute([holder])?;
        Ok(())
    }
}

fn booking_from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Booking> {
    let at = |column: usize| first + column;
    let replaces: Option<String> = row.get(at(4))?;
    Ok(Booking {
        terms: Terms {
            hold: row.get(at(0))?,
            ttl_ms: row.get(at(1))?,
            holder: row.get::<_, Option<i64>>(at(2))?.map(HolderKey),
            waitlist: row.get(at(3))?,
            replaces: replaces.map(Arc::from),
            of_set: row.get(at(11))?,
        },
        set_ends_at_ms: row.get(at(12))?,
        set_round: row.get(at(13))?,
        queued: row.get(at(5))?,
        state: word(row, at(6), State::parse)?,
        seats: row.get(at(7))?,
        since_ms: row.get(at(8))?,
        expires_at_ms: row.get(at(9))?,
        place: row.get(at(10))?,
    })
}

/// A booking's columns, then its request.
fn named_booking(row: &Row<'_>) -> rusqlite::Result<(Arc<str>, Booking)> {
    Ok((row.get::<_, String>(COLUMN_COUNT)?.into(), booking_from_row(row, 0)?))
}

/// An attempt's columns, a booking's (all NULL if there is none), its request, its holder's name.
fn listed_from_row(row: &Row<'_>) -> rusqlite::Result<Listed> {
    const ATTEMPT_COLUMNS: usize = 5;
    let has_booking = row.get_ref(ATTEMPT_COLUMNS)? != ValueRef::Null;
    Ok(Listed {
        request: row.get::<_, String>(ATTEMPT_COLUMNS + COLUMN_COUNT)?.into(),
        attempt: attempt_from_row(row, 0)?,
        booking: if has_booking { Some(booking_from_row(row, ATTEMPT_COLUMNS)?) } else { None },
        holder: row.get(ATTEMPT_COLUMNS + COLUMN_COUNT + 1)?,
        skipped_for: None,
    })
}

fn event_from_row(row: &Row<'_>) -> rusqlite::Result<Event> {
    let request: Option<String> = row.get(3)?;
    Ok(Event {
        seq: row.get(0)?,
        at_ms: row.get(1)?,
        kind: word(row, 2, EventKind::parse)?,
        request: request.map(Arc::from),
        seats: row.get(4)?,
        reserved: row.get(5)?,
        reason: row.get_ref(6)?.as_str_or_null()?.and_then(Reason::parse),
        expires_at_ms: row.get(7)?,
    })
}

/// A word that the deciding side knows. One that it doesn't know is damage, and no guess is made.
pub(super) fn word<T>(row: &Row<'_>, column: usize, parse: fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    parse(text).ok_or_else(|| {
        let why = format!("{text} is no word that is known here").into();
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, why)
    })
}
