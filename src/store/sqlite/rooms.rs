//! The durable history of rooms in SQLite.

use rusqlite::{OptionalExtension, Row};

use super::SqliteStore;
use crate::store::rooms::{KeptMessage, Kind, RoomChange, RoomKey, RoomRow, RoomsStore, StoredMessage};
use crate::store::{Error, Saved};

impl RoomsStore for SqliteStore {
    fn load_rooms(&mut self, names: &[&str]) -> Result<Vec<Option<(RoomKey, RoomRow)>>, Error> {
        let mut select = self
            .connection
            .prepare_cached("SELECT room_id, epoch, last_offset FROM rooms WHERE name = ?1")?;
        names.iter().map(|name| Ok(select.query_row([name], room_from_row).optional()?)).collect()
    }

    fn create_room(&mut self, name: &str, row: &RoomRow) -> Result<RoomKey, Error> {
        let mut insert = self
            .connection
            .prepare_cached("INSERT INTO rooms (name, epoch, last_offset) VALUES (?1, ?2, ?3)")?;
        Ok(RoomKey(insert.insert((name, &*row.epoch, signed(row.last)))?))
    }

    fn load_kept(&mut self, rooms: &[RoomKey]) -> Result<Vec<Vec<KeptMessage>>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT offset, at_ms, bytes, user, message_id FROM room_messages
             WHERE room_id = ?1 ORDER BY offset",
        )?;
        let mut load = |room: &RoomKey| {
            let rows = select.query_map([room.0], kept_from_row)?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
        };
        rooms.iter().map(&mut load).collect()
    }

    fn read_messages(&mut self, room: RoomKey, from: u64) -> Result<Vec<StoredMessage>, Error> {
        let mut select = self.connection.prepare_cached(
            "SELECT offset, at_ms, user, message_id, kind, body FROM room_messages
             WHERE room_id = ?1 AND offset >= ?2 ORDER BY offset",
        )?;
        let rows = select.query_map((room.0, signed(from)), message_from_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn save_room(&mut self, change: &RoomChange<'_>) -> Result<Saved, Error> {
        let room = change.room.0;
        let updated = self
            .connection
            .prepare_cached("UPDATE rooms SET last_offset = ?3 WHERE room_id = ?1 AND last_offset = ?2")?
            .execute((room, signed(change.before), signed(change.last)))?;
        if updated != 1 {
            return Ok(Saved::Conflict);
        }
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO room_messages (room_id, offset, at_ms, bytes, user, message_id, kind, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        for new in change.messages.iter().filter(|new| new.offset >= change.first) {
            let (bytes, kind) = (signed(new.bytes as u64), new.kind.as_str());
            insert.execute((room, signed(new.offset), new.at_ms, bytes, new.user, new.id, kind, new.body))?;
        }
        self.connection
            .prepare_cached("DELETE FROM room_messages WHERE room_id = ?1 AND offset < ?2")?
            .execute((room, signed(change.first)))?;
        Ok(Saved::Done)
    }

    fn purge_messages(&mut self, at_or_before_ms: i64) -> Result<u64, Error> {
        let purged = self
            .connection
            .prepare_cached("DELETE FROM room_messages WHERE at_ms <= ?1")?
            .execute([at_or_before_ms])?;
        if purged > 0 {
            self.connection
                .prepare_cached(
                    "DELETE FROM rooms
                     WHERE NOT EXISTS (SELECT 1 FROM room_messages m WHERE m.room_id = rooms.room_id)",
                )?
                .execute([])?;
        }
        Ok(purged as u64)
    }
}

fn room_from_row(row: &Row<'_>) -> rusqlite::Result<(RoomKey, RoomRow)> {
    let epoch: String = row.get(1)?;
    Ok((RoomKey(row.get(0)?), RoomRow { epoch: epoch.into(), last: unsigned(row, 2)? }))
}

fn kept_from_row(row: &Row<'_>) -> rusqlite::Result<KeptMessage> {
    Ok(KeptMessage {
        offset: unsigned(row, 0)?,
        at_ms: row.get(1)?,
        bytes: usize::try_from(unsigned(row, 2)?).unwrap_or(usize::MAX),
        user: row.get(3)?,
        id: row.get(4)?,
    })
}

fn message_from_row(row: &Row<'_>) -> rusqlite::Result<StoredMessage> {
    // The table's CHECK admits these two words only.
    let kind = match row.get_ref(4)?.as_str()? {
        "text" => Kind::Text,
        _ => Kind::Data,
    };
    let (user, id, body) = (row.get(2)?, row.get(3)?, row.get(5)?);
    Ok(StoredMessage { offset: unsigned(row, 0)?, at_ms: row.get(1)?, user, id, kind, body })
}

/// Numbers are counted from 0 and stored as SQLite's signed integers.
fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
