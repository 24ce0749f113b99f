//! Forgetting a person in SQLite. What is deleted for it is overwritten.

use rusqlite::{OptionalExtension, Row};

use super::SqliteStore;
use super::bookings::word;
use crate::store::Error;
use crate::store::people::{Forgetting, Forgotten, MessagePlace, Noted, PeopleStore, Policy};

impl PeopleStore for SqliteStore {
    fn begin_forgetting(&mut self, forgetting: &Forgetting, now_ms: i64) -> Result<Forgetting, Error> {
        let Forgetting { id, person, policy } = forgetting;
        self.connection
            .prepare_cached(
                "INSERT INTO forgetting (forget_id, person, policy, begun_at_ms) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (person) DO NOTHING",
            )?
            .execute((id, &**person, policy.as_str(), now_ms))?;
        let mut select = self
            .connection
            .prepare_cached("SELECT forget_id, person, policy FROM forgetting WHERE person = ?1")?;
        Ok(select.query_row([&**person], forgetting_from_row)?)
    }

    fn unfinished_forgettings(&mut self) -> Result<Vec<Forgetting>, Error> {
        let mut select = self
            .connection
            .prepare_cached("SELECT forget_id, person, policy FROM forgetting ORDER BY begun_at_ms")?;
        let rows = select.query_map([], forgetting_from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn forget_holder(&mut self, name: &str) -> Result<bool, Error> {
        self.overwriting(|store| {
            let mut delete = store.connection.prepare_cached("DELETE FROM holders WHERE name = ?1")?;
            Ok(delete.execute([name])? > 0)
        })
    }

    fn forget_speaker(
        &mut self,
        name: &str,
        after: MessagePlace,
        limit: u32,
    ) -> Result<(u64, Option<MessagePlace>), Error> {
        let seen = self
            .connection
            .prepare_cached(
                "SELECT room_id, offset, user IS ?1 FROM room_messages WHERE (room_id, offset) > (?2, ?3)
                 ORDER BY room_id, offset LIMIT ?4",
            )?
            .query_map((name, after.0, after.1, limit), |row| {
                Ok(((row.get(0)?, row.get(1)?), row.get::<_, bool>(2)?))
            })?
            .collect::<Result<Vec<(MessagePlace, bool)>, _>>()?;
        let theirs = seen.iter().filter(|(_, theirs)| *theirs);
        let changed = self.overwriting(|store| {
            // The id of a message is its sender's, and may tell who that is.
            let mut update = store.connection.prepare_cached(
                "UPDATE room_messages SET user = NULL, message_id = NULL, bytes = octet_length(body)
                 WHERE room_id = ?1 AND offset = ?2",
            )?;
            let mut changed = 0;
            for (place, _) in theirs {
                changed += update.execute(*place)? as u64;
            }
            Ok(changed)
        })?;
        let last = if seen.len() < limit as usize { None } else { seen.last().map(|(place, _)| *place) };
        Ok((changed, last))
    }

    fn note_forgotten(&mut self, noted: &Noted<'_>) -> Result<(), Error> {
        let Noted { id, person_hash, policy, at_ms, what } = *noted;
        let (likes, holders, messages) =
            (what.likes.cast_signed(), what.holders.cast_signed(), what.messages.cast_signed());
        self.connection
            .prepare_cached(
                "INSERT INTO forgotten (forget_id, person, policy, at_ms, likes, holders, messages)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (forget_id) DO UPDATE SET at_ms = ?4, likes = likes + ?5, holders = holders + ?6,
                   messages = messages + ?7",
            )?
            .execute((id, person_hash, policy.as_str(), at_ms, likes, holders, messages))?;
        Ok(())
    }

    fn forgotten(&mut self, id: i64) -> Result<Forgotten, Error> {
        let mut select = self
            .connection
            .prepare_cached("SELECT likes, holders, messages FROM forgotten WHERE forget_id = ?1")?;
        let number = |row: &Row<'_>, column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        let found = select.query_row([id], |row| {
            Ok(Forgotten { likes: number(row, 0)?, holders: number(row, 1)?, messages: number(row, 2)? })
        });
        Ok(found.optional()?.unwrap_or_default())
    }

    fn end_forgetting(&mut self, id: i64) -> Result<(), Error> {
        self.overwriting(|store| {
            store.settle()?;
            store.connection.prepare_cached("DELETE FROM forgetting WHERE forget_id = ?1")?.execute([id])?;
            Ok(())
        })
    }
}

impl SqliteStore {
    /// Has SQLite overwrite what is deleted in between.
    fn overwriting<T>(&mut self, delete: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.overwrite_deleted(true)?;
        let deleted = delete(self);
        self.overwrite_deleted(false)?;
        deleted
    }
}

fn forgetting_from_row(row: &Row<'_>) -> rusqlite::Result<Forgetting> {
    let person: String = row.get(1)?;
    Ok(Forgetting { id: row.get(0)?, person: person.into(), policy: word(row, 2, Policy::parse)? })
}
