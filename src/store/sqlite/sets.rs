//! Sets in SQLite.

use std::sync::Arc;

use rusqlite::{OptionalExtension, Row, params};

use super::SqliteStore;
use super::bookings::word;
use crate::store::bookings::{HolderKey, Reason};
use crate::store::reservations::WorkshopKey;
use crate::store::sets::{SetChange, SetLine, SetRefusal, SetRow, SetState, SetsStore};
use crate::store::{Error, Saved};

impl SetsStore for SqliteStore {
    fn load_sets(&mut self, requests: &[&str]) -> Result<Vec<Option<SetRow>>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT hold, ttl_ms, holder_id, state, finished, begun_at_ms, expires_at_ms, reason, refused_by, version,
                    default_ttl_ms, round
             FROM sets WHERE request_id = ?1",
        )?;
        let mut lines = self.connection.prepare_cached(
            "SELECT workshop, seats, workshop_id FROM set_lines WHERE request_id = ?1 ORDER BY workshop",
        )?;
        let mut load = |request: &&str| {
            let Some(mut set) = select.query_row([request], set_from_row).optional()? else {
                return Ok(None);
            };
            set.lines = lines.query_map([request], line_from_row)?.collect::<Result<_, _>>()?;
            Ok(Some(set))
        };
        requests.iter().map(&mut load).collect()
    }

    fn save_sets(&mut self, changes: &[SetChange<'_>]) -> Result<Saved, Error> {
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO sets (request_id, hold, ttl_ms, holder_id, state, finished, begun_at_ms, expires_at_ms,
                               reason, refused_by, version, default_ttl_ms, round)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT DO NOTHING",
        )?;
        let mut insert_line = self.connection.prepare_cached(
            "INSERT INTO set_lines (request_id, workshop, seats, workshop_id) VALUES (?1, ?2, ?3, ?4)",
        )?;
        let mut update = self.connection.prepare_cached(
            "UPDATE sets SET state = ?3, finished = ?4, expires_at_ms = ?5, reason = ?6, refused_by = ?7,
                             version = ?8, round = ?9
             WHERE request_id = ?1 AND version = ?2",
        )?;
        let mut update_line = self.connection.prepare_cached(
            "UPDATE set_lines SET workshop_id = ?3 WHERE request_id = ?1 AND workshop = ?2
             AND workshop_id IS NOT ?3",
        )?;
        for SetChange { request, before, after } in changes {
            let reason = after.refusal.as_ref().map(|refusal| refusal.reason.as_str());
            let refused_by = after.refusal.as_ref().map(|refusal| &*refusal.workshop);
            let Some(before) = before else {
                let inserted = insert.execute(params![
                    request,
                    after.hold,
                    after.ttl_ms,
                    after.holder.map(|holder| holder.0),
                    after.state.as_str(),
                    after.finished,
                    after.begun_at_ms,
                    after.expires_at_ms,
                    reason,
                    refused_by,
                    after.version,
                    after.default_ttl_ms,
                    after.round,
                ])?;
                if inserted != 1 {
                    return Ok(Saved::Conflict);
                }
                for line in &after.lines {
                    insert_line.execute((request, &*line.workshop, line.seats, line.key.map(|key| key.0)))?;
                }
                continue;
            };
            let updated = update.execute(params![
                request,
                before,
                after.state.as_str(),
                after.finished,
                after.expires_at_ms,
                reason,
                refused_by,
                after.version,
                after.round,
            ])?;
            if updated != 1 {
                return Ok(Saved::Conflict);
            }
            for line in after.lines.iter().filter(|line| line.key.is_some()) {
                update_line.execute((request, &*line.workshop, line.key.map(|key| key.0)))?;
            }
        }
        Ok(Saved::Done)
    }

    fn unfinished_sets(&mut self, after: &str, limit: u32) -> Result<Vec<Arc<str>>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT request_id FROM sets WHERE finished = 0 AND request_id > ?1 ORDER BY request_id LIMIT ?2",
        )?;
        let rows = select.query_map((after, limit), id_from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn due_sets(&mut self, now_ms: i64, limit: u32) -> Result<Vec<Arc<str>>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT request_id FROM sets WHERE expires_at_ms <= ?1 ORDER BY expires_at_ms LIMIT ?2",
        )?;
        let rows = select.query_map((now_ms, limit), id_from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn remove_sets(&mut self, limit: u32) -> Result<bool, Error> {
        let first = "(SELECT request_id FROM sets ORDER BY request_id LIMIT ?1)";
        let lines = format!("DELETE FROM set_lines WHERE request_id IN {first}");
        self.connection.prepare_cached(&lines)?.execute([limit])?;
        let sets = format!("DELETE FROM sets WHERE request_id IN {first}");
        if self.connection.prepare_cached(&sets)?.execute([limit])? > 0 {
            return Ok(true);
        }
        let names = self
            .connection
            .prepare_cached(
                "DELETE FROM holders WHERE holder_id IN (
                   SELECT holder_id FROM holders AS h
                   WHERE NOT EXISTS (SELECT 1 FROM bookings AS b WHERE b.holder_id = h.holder_id) LIMIT ?1)",
            )?
            .execute([limit])?;
        Ok(names > 0)
    }

    fn list_sets(&mut self, after: &str, limit: u32) -> Result<Vec<Arc<str>>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT request_id FROM sets WHERE request_id > ?1 ORDER BY request_id LIMIT ?2",
        )?;
        let rows = select.query_map((after, limit), id_from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn remove_set(&mut self, request: &str) -> Result<(), Error> {
        let holder: Option<i64> = self
            .connection
            .prepare_cached("DELETE FROM sets WHERE request_id = ?1 RETURNING holder_id")?
            .query_row([request], |row| row.get(0))
            .optional()?
            .flatten();
        self.connection.prepare_cached("DELETE FROM set_lines WHERE request_id = ?1")?.execute([request])?;
        match holder {
            Some(holder) => self.forget_holder(holder),
            None => Ok(()),
        }
    }

    fn next_set_due_at_ms(&mut self) -> Result<Option<i64>, Error> {
        let mut select = self
            .connection
            .prepare_cached("SELECT min(expires_at_ms) FROM sets WHERE expires_at_ms IS NOT NULL")?;
        Ok(select.query_row([], |row| row.get(0))?)
    }
}

fn id_from_row(row: &Row<'_>) -> rusqlite::Result<Arc<str>> {
    Ok(row.get::<_, String>(0)?.into())
}

/// A set without its lines.
fn set_from_row(row: &Row<'_>) -> rusqlite::Result<SetRow> {
    let refusal = match row.get::<_, Option<String>>(8)? {
        Some(workshop) => {
            Some(SetRefusal { workshop: workshop.into(), reason: word(row, 7, Reason::parse)? })
        }
        None => None,
    };
    Ok(SetRow {
        lines: Vec::new(),
        hold: row.get(0)?,
        ttl_ms: row.get(1)?,
        holder: row.get::<_, Option<i64>>(2)?.map(HolderKey),
        state: word(row, 3, SetState::parse)?,
        finished: row.get(4)?,
        begun_at_ms: row.get(5)?,
        expires_at_ms: row.get(6)?,
        refusal,
        version: row.get(9)?,
        default_ttl_ms: row.get(10)?,
        round: row.get(11)?,
    })
}

fn line_from_row(row: &Row<'_>) -> rusqlite::Result<SetLine> {
    let workshop: String = row.get(0)?;
    let key: Option<i64> = row.get(2)?;
    Ok(SetLine { workshop: workshop.into(), seats: row.get(1)?, key: key.map(WorkshopKey) })
}
