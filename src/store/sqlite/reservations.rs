//! Reservations in SQLite.

use rusqlite::{OptionalExtension, Row, params};

use super::SqliteStore;
use super::pending::Found;
use crate::store::bookings::Reason;
use crate::store::reservations::{
    Attempt, AttemptKey, Policy, ReservationChanges, ReservationsStore, Rules, Status, Waitlist, Workshop,
    WorkshopChange, WorkshopKey,
};
use crate::store::{Error, Saved};

/// A workshop's columns, in the order of [`workshop_from_row`].
pub(super) const WORKSHOP_COLUMNS: &str = "workshop_id, capacity, reserved, overbooked, held, waiting, \
    accepted_requests, rejected_requests, accepted_seats, version, last_event, max_seats_per_request, \
    max_seats_per_holder, hold_ttl_ms, waitlist_policy, offer_ttl_ms, waitlist_max_length, opens_at_ms, \
    closes_at_ms, rules_version, offers_due_at_ms";

impl ReservationsStore for SqliteStore {
    fn load_workshops(&mut self, names: &[&str]) -> Result<Vec<Option<(WorkshopKey, Workshop)>>, Error> {
        let mut select = self
            .connection
            .prepare_cached(&format!("SELECT {WORKSHOP_COLUMNS} FROM workshops WHERE name = ?1"))?;
        names.iter().map(|name| Ok(select.query_row([name], workshop_from_row).optional()?)).collect()
    }

    fn create_workshops(
        &mut self,
        workshops: &[(&str, Workshop)],
        now_ms: i64,
    ) -> Result<Vec<WorkshopKey>, Error> {
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO workshops (name, created_at_ms, capacity, reserved, overbooked, accepted_requests,
                                    rejected_requests, accepted_seats, version)
             VALUES (?1, ?2, 0, 0, 0, 0, 0, 0, -1)",
        )?;
        let keys: Vec<WorkshopKey> = workshops
            .iter()
            .map(|(name, _)| Ok(WorkshopKey(insert.insert((name, now_ms))?)))
            .collect::<Result<_, Error>>()?;
        let new = Workshop { version: -1, ..Workshop::default() };
        for (key, (_, workshop)) in keys.iter().zip(workshops) {
            let change = WorkshopChange { key: *key, before: new, after: *workshop };
            if !self.update_workshop(&change)? {
                return Err(Error::Engine("a workshop went missing while it was made".to_owned()));
            }
        }
        Ok(keys)
    }

    fn load_attempts(&mut self, keys: &[AttemptKey<'_>]) -> Result<Vec<Option<Attempt>>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT seats, status, reserved_after, decided_at_ms, reason FROM attempts
             WHERE workshop_id = ?1 AND request_id = ?2",
        )?;
        let mut load = |key: &AttemptKey<'_>| match self.pending.attempt(*key) {
            Found::Pending(attempt) => Ok(Some(attempt)),
            Found::Nowhere => Ok(None),
            Found::AskTable => {
                let key = (key.workshop.0, key.request);
                Ok(select.query_row(key, |row| attempt_from_row(row, 0)).optional()?)
            }
        };
        keys.iter().map(&mut load).collect()
    }

    fn save_reservations(&mut self, changes: &ReservationChanges<'_>) -> Result<Saved, Error> {
        for change in &changes.workshops {
            if !self.update_workshop(change)? {
                return Ok(Saved::Conflict);
            }
        }
        for (key, attempt) in &changes.attempts {
            if matches!(self.pending.attempt(*key), Found::Pending(_)) {
                return Ok(Saved::Conflict);
            }
            if attempt.seats <= 0 {
                return Err(Error::Engine(format!("{key:?}: an attempt on no seat")));
            }
            self.pending.set_attempt(*key, *attempt);
        }
        self.save_bookings(&changes.bookings)?;
        self.append_events(&changes.events)?;
        Ok(Saved::Done)
    }
}

impl SqliteStore {
    /// Whether the row was as it was loaded.
    fn update_workshop(&self, change: &WorkshopChange) -> Result<bool, Error> {
        let mut update = self.connection.prepare_cached(
            "UPDATE workshops SET capacity = ?3, reserved = ?4, overbooked = ?5, held = ?6, waiting = ?7,
                    accepted_requests = ?8, rejected_requests = ?9, accepted_seats = ?10, version = ?11,
                    last_event = ?12, max_seats_per_request = ?13, max_seats_per_holder = ?14,
                    hold_ttl_ms = ?15, waitlist_policy = ?16, offer_ttl_ms = ?17, waitlist_max_length = ?18,
                    opens_at_ms = ?19, closes_at_ms = ?20, rules_version = ?21, offers_due_at_ms = ?22
             WHERE workshop_id = ?1 AND version = ?2",
        )?;
        let (w, rules) = (&change.after, &change.after.rules);
        Ok(update.execute(params![
            change.key.0,
            change.before.version,
            w.capacity,
            w.reserved,
            w.overbooked,
            w.held,
            w.waiting,
            w.accepted_requests,
            w.rejected_requests,
            w.accepted_seats,
            w.version,
            w.last_event,
            rules.max_seats_per_request,
            rules.max_seats_per_holder,
            rules.hold_ttl_ms,
            rules.waitlist.map(|waitlist| waitlist.policy.as_str()),
            rules.waitlist.map(|waitlist| waitlist.offer_ttl_ms),
            rules.waitlist.map(|waitlist| waitlist.max_length),
            rules.opens_at_ms,
            rules.closes_at_ms,
            w.rules_version,
            w.offers_due_at_ms,
        ])? == 1)
    }
}

/// A row of [`WORKSHOP_COLUMNS`].
pub(super) fn workshop_from_row(row: &Row<'_>) -> rusqlite::Result<(WorkshopKey, Workshop)> {
    let policy = row.get_ref(14)?.as_str_or_null()?.and_then(Policy::parse);
    let waitlist = match policy {
        Some(policy) => Some(Waitlist { policy, offer_ttl_ms: row.get(15)?, max_length: row.get(16)? }),
        None => None,
    };
    let rules = Rules {
        max_seats_per_request: row.get(11)?,
        max_seats_per_holder: row.get(12)?,
        hold_ttl_ms: row.get(13)?,
        waitlist,
        opens_at_ms: row.get(17)?,
        closes_at_ms: row.get(18)?,
    };
    let workshop = Workshop {
        capacity: row.get(1)?,
        reserved: row.get(2)?,
        overbooked: row.get(3)?,
        held: row.get(4)?,
        waiting: row.get(5)?,
        accepted_requests: row.get(6)?,
        rejected_requests: row.get(7)?,
        accepted_seats: row.get(8)?,
        version: row.get(9)?,
        last_event: row.get(10)?,
        rules,
        rules_version: row.get(19)?,
        offers_due_at_ms: row.get(20)?,
    };
    Ok((WorkshopKey(row.get(0)?), workshop))
}

/// The columns seats, status, reserved_after, decided_at_ms, reason, from the `first` on.
pub(super) fn attempt_from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Attempt> {
    // The table's CHECK admits these two words only.
    let status = match row.get_ref(first + 1)?.as_str()? {
        "accepted" => Status::Accepted,
        _ => Status::Rejected,
    };
    Ok(Attempt {
        seats: row.get(first)?,
        status,
        reserved_after: row.get(first + 2)?,
        decided_at_ms: row.get(first + 3)?,
        reason: row.get_ref(first + 4)?.as_str_or_null()?.and_then(Reason::parse),
    })
}
