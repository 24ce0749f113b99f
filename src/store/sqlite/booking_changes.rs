//! Saving what a batch made of bookings, and what it appends to logs.

use std::sync::LazyLock;

use rusqlite::params;

use super::SqliteStore;
use super::rows::Insert;
use crate::store::Error;
use crate::store::bookings::{Booking, Event, EventKind, Reason};
use crate::store::reservations::{AttemptKey, WorkshopKey};

impl SqliteStore {
    pub(super) fn save_bookings(&self, bookings: &[(AttemptKey<'_>, &Booking)]) -> Result<(), Error> {
        if bookings.is_empty() {
            return Ok(());
        }
        let mut update = self.connection.prepare_cached(
            "UPDATE bookings SET state = ?3, seats = ?4, taken = ?5, since_ms = ?6, expires_at_ms = ?7, place = ?8,
                                 set_ends_at_ms = ?9, set_round = ?10
             WHERE workshop_id = ?1 AND request_id = ?2",
        )?;
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO bookings (workshop_id, request_id, hold, ttl_ms, holder_id, waitlist, replaces, queued,
                                   state, seats, taken, since_ms, expires_at_ms, place, of_set, set_ends_at_ms,
                                   set_round)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        )?;
        for (key, booking) in bookings {
            // Not an upsert, which would check and build a row that is only to be changed from scratch first.
            let updated = update.execute(params![
                key.workshop.0,
                key.request,
                booking.state.as_str(),
                booking.seats,
                booking.taken(),
                booking.since_ms,
                booking.expires_at_ms,
                booking.place,
                booking.set_ends_at_ms,
                booking.set_round,
            ])?;
            if updated > 0 {
                continue;
            }
            insert.execute(params![
                key.workshop.0,
                key.request,
                booking.terms.hold,
                booking.terms.ttl_ms,
                booking.terms.holder.map(|holder| holder.0),
                booking.terms.waitlist,
                booking.terms.replaces.as_deref(),
                booking.queued,
                booking.state.as_str(),
                booking.seats,
                booking.taken(),
                booking.since_ms,
                booking.expires_at_ms,
                booking.place,
                booking.terms.of_set,
                booking.set_ends_at_ms,
                booking.set_round,
            ])?;
        }
        Ok(())
    }

    pub(super) fn append_events(&self, events: &[(WorkshopKey, &Event)]) -> Result<(), Error> {
        if events.is_empty() {
            return Ok(());
        }
        // A first decision that may have been all is told by the attempt: no index holds it.
        let is_told_otherwise =
            |event: &Event| matches!(event.kind, EventKind::Accepted | EventKind::Rejected);
        let mut insert_of_booking = self.connection.prepare_cached(
            "INSERT INTO events (workshop_id, seq, at_ms, kind, request_id, seats, reserved, reason, expires_at_ms,
                                 booking_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
                     (SELECT booking_id FROM bookings WHERE workshop_id = ?1 AND request_id = ?5))",
        )?;
        for run in events.chunk_by(|(_, a), (_, b)| is_told_otherwise(a) == is_told_otherwise(b)) {
            if run.first().is_some_and(|(_, event)| is_told_otherwise(event)) {
                EVENTS.execute(&self.connection, run, |(workshop, event), values| {
                    values.add(workshop.0)?;
                    values.add(event.seq)?;
                    values.add(event.at_ms)?;
                    values.add(event.kind.as_str())?;
                    values.add(event.request.as_deref())?;
                    values.add(event.seats)?;
                    values.add(event.reserved)?;
                    values.add(event.reason.map(Reason::as_str))?;
                    values.add(event.expires_at_ms)
                })?;
                continue;
            }
            for (workshop, event) in run {
                insert_of_booking.execute(params![
                    workshop.0,
                    event.seq,
                    event.at_ms,
                    event.kind.as_str(),
                    event.request.as_deref(),
                    event.seats,
                    event.reserved,
                    event.reason.map(Reason::as_str),
                    event.expires_at_ms,
                ])?;
            }
        }
        Ok(())
    }
}

static EVENTS: LazyLock<Insert> = LazyLock::new(|| {
    let into = "events (workshop_id, seq, at_ms, kind, request_id, seats, reserved, reason, expires_at_ms)";
    Insert::new(into, 9, "")
});
