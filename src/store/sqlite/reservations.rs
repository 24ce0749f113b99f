//! Reservations in SQLite.

use rusqlite::{OptionalExtension, Row};

use super::SqliteStore;
use crate::store::reservations::{
    Attempt, AttemptKey, ReservationChanges, ReservationsStore, Status, Workshop, WorkshopKey,
};
use crate::store::{Error, Saved};

impl ReservationsStore for SqliteStore {
    fn load_workshops(&mut self, names: &[&str]) -> Result<Vec<Option<(WorkshopKey, Workshop)>>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT workshop_id, capacity, reserved, overbooked, accepted_requests, rejected_requests,
                    accepted_seats, version
             FROM workshops WHERE name = ?1",
        )?;
        names.iter().map(|name| Ok(select.query_row([name], workshop_from_row).optional()?)).collect()
    }

    fn create_workshops(
        &mut self,
        workshops: &[(&str, Workshop)],
        now_ms: i64,
    ) -> Result<Vec<WorkshopKey>, Error> {
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO workshops (name, capacity, reserved, overbooked, accepted_requests,
                                    rejected_requests, accepted_seats, version, created_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let mut create = |(name, w): &(&str, Workshop)| {
            let values = (
                name,
                w.capacity,
                w.reserved,
                w.overbooked,
                w.accepted_requests,
                w.rejected_requests,
                w.accepted_seats,
                w.version,
                now_ms,
            );
            Ok(WorkshopKey(insert.insert(values)?))
        };
        workshops.iter().map(&mut create).collect()
    }

    fn load_attempts(&mut self, keys: &[AttemptKey<'_>]) -> Result<Vec<Option<Attempt>>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT seats, status, reserved_after, decided_at_ms FROM attempts
             WHERE workshop_id = ?1 AND request_id = ?2",
        )?;
        let load = |key: &AttemptKey<'_>| {
            Ok(select.query_row((key.workshop.0, key.request), attempt_from_row).optional()?)
        };
        keys.iter().map(load).collect()
    }

    fn save_reservations(&mut self, changes: &ReservationChanges<'_>) -> Result<Saved, Error> {
        let mut update = self.connection.prepare_cached(
            "UPDATE workshops SET capacity = ?3, reserved = ?4, overbooked = ?5, accepted_requests = ?6,
                                  rejected_requests = ?7, accepted_seats = ?8, version = ?9
             WHERE workshop_id = ?1 AND version = ?2",
        )?;
        for change in &changes.workshops {
            let w = change.after;
            let values = (
                change.key.0,
                change.before.version,
                w.capacity,
                w.reserved,
                w.overbooked,
                w.accepted_requests,
                w.rejected_requests,
                w.accepted_seats,
                w.version,
            );
            if update.execute(values)? != 1 {
                return Ok(Saved::Conflict);
            }
        }
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO attempts (workshop_id, request_id, seats, status, reserved_after, decided_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
        )?;
        for (key, attempt) in &changes.attempts {
            let values = (
                key.workshop.0,
                key.request,
                attempt.seats,
                attempt.status.as_str(),
                attempt.reserved_after,
                attempt.decided_at_ms,
            );
            if insert.execute(values)? != 1 {
                return Ok(Saved::Conflict);
            }
        }
        Ok(Saved::Done)
    }
}

fn workshop_from_row(row: &Row<'_>) -> rusqlite::Result<(WorkshopKey, Workshop)> {
    let workshop = Workshop {
        capacity: row.get(1)?,
        reserved: row.get(2)?,
        overbooked: row.get(3)?,
        accepted_requests: row.get(4)?,
        rejected_requests: row.get(5)?,
        accepted_seats: row.get(6)?,
        version: row.get(7)?,
    };
    Ok((WorkshopKey(row.get(0)?), workshop))
}

fn attempt_from_row(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    // The table's CHECK admits these two words only.
    let status = match row.get_ref(1)?.as_str()? {
        "accepted" => Status::Accepted,
        _ => Status::Rejected,
    };
    Ok(Attempt { seats: row.get(0)?, status, reserved_after: row.get(2)?, decided_at_ms: row.get(3)? })
}
