//! The records of rooms that one partition keeps: it numbers the messages, in the transaction that stores
//! them.

use std::collections::HashMap;
use std::sync::Arc;

use super::history::{Bounds, History, Kept};
use super::recorder::{Appended, Command, Opened};
use super::types::{Body, Message, RoomName, UserId};
use crate::partition::{Decided, Resident};
use crate::store::rooms::{KeptMessage, Kind, NewMessage, RoomChange, RoomKey, RoomRow, StoredMessage};
use crate::store::{Error, RoomsStore, Saved};

/// The records of the rooms of one partition.
///
/// Memory is a copy of what is saved, possibly ahead of the commit; whoever fails to commit calls
/// [`forget`](Self::forget).
#[derive(Debug)]
pub struct RoomRecords {
    rooms: Resident<Arc<str>, Record>,
    bounds: Bounds,
}

/// What a partition knows of a room without reading its messages.
#[derive(Debug)]
struct Record {
    key: RoomKey,
    row: RoomRow,
    kept: History<()>,
}

/// A room that the batch touches, with what is to be saved of it.
struct Touched<'a> {
    record: Record,
    before: u64,
    new: Vec<NewMessage<'a>>,
}

/// By name.
type Rooms<'a> = HashMap<Arc<str>, Touched<'a>>;

enum Outcome {
    Opened(Option<Opened>),
    Appended(Appended),
    Read(Vec<StoredMessage>),
    Purged(u64),
}

impl RoomRecords {
    /// With at most `max_resident` rooms in memory.
    #[must_use]
    pub fn new(bounds: Bounds, max_resident: usize) -> Self {
        Self { rooms: Resident::new(max_resident), bounds }
    }

    /// Decides commands in order and saves what changed.
    ///
    /// # Errors
    /// The store's.
    pub fn decide<S: RoomsStore>(
        &mut self,
        store: &mut S,
        commands: &mut [&mut Command],
        exclusive: bool,
        now_ms: i64,
    ) -> Result<Decided, Error> {
        if commands.is_empty() {
            return Ok(Decided::Ready);
        }
        if !exclusive {
            self.forget();
        }
        let shared: Vec<&Command> = commands.iter().map(|command| &**command).collect();
        let mut touched = self.load(store, &shared, now_ms)?;
        let mut outcomes = Vec::with_capacity(shared.len());
        for command in &shared {
            match self.decide_one(store, &mut touched, command, now_ms)? {
                Some(outcome) => outcomes.push(outcome),
                None => return Ok(Decided::Conflict),
            }
        }
        for room in touched.values_mut() {
            if room.save(store)? == Saved::Conflict {
                return Ok(Decided::Conflict);
            }
        }
        for (name, room) in touched {
            self.rooms.insert(name, room.record);
        }
        for (command, outcome) in commands.iter_mut().zip(outcomes) {
            match (&mut **command, outcome) {
                (Command::Open { reply, .. }, Outcome::Opened(opened)) => reply.set(opened),
                (Command::Append { reply, .. }, Outcome::Appended(appended)) => reply.set(appended),
                (Command::Read { reply, .. }, Outcome::Read(messages)) => reply.set(messages),
                (Command::Purge { reply }, Outcome::Purged(messages)) => reply.set(messages),
                // A command without its outcome answers `outcome_unknown`; no arm above makes one.
                _ => {}
            }
        }
        Ok(Decided::Ready)
    }

    /// Every room of the batch that has a record.
    fn load<'a, S: RoomsStore>(
        &mut self,
        store: &mut S,
        commands: &[&'a Command],
        now_ms: i64,
    ) -> Result<Rooms<'a>, Error> {
        let mut touched = Rooms::new();
        let mut missing: Vec<&RoomName> = Vec::new();
        for room in commands.iter().filter_map(|command| command.room()) {
            if touched.contains_key(room.as_str()) || missing.contains(&room) {
                continue;
            }
            match self.rooms.remove(room.as_str()) {
                Some(record) => drop(touched.insert(room.shared(), Touched::new(record))),
                None => missing.push(room),
            }
        }
        let names: Vec<&str> = missing.iter().map(|name| name.as_str()).collect();
        let rows = store.load_rooms(&names)?;
        let keys: Vec<RoomKey> = rows.iter().flatten().map(|(key, _)| *key).collect();
        let mut kept = store.load_kept(&keys)?.into_iter();
        for (name, found) in missing.iter().zip(rows) {
            let Some((key, row)) = found else { continue };
            let mut kept = books(kept.next().unwrap_or_default());
            kept.expire(now_ms, self.bounds);
            touched.insert(name.shared(), Touched::new(Record { key, row, kept }));
        }
        Ok(touched)
    }

    /// `None` where somebody else changed a shared store.
    fn decide_one<'a, S: RoomsStore>(
        &mut self,
        store: &mut S,
        touched: &mut Rooms<'a>,
        command: &'a Command,
        now_ms: i64,
    ) -> Result<Option<Outcome>, Error> {
        let outcome = match command {
            Command::Open { room, .. } => {
                let row = touched.get(room.as_str()).map(|room| &room.record.row);
                Outcome::Opened(row.map(|row| Opened { epoch: Arc::clone(&row.epoch), last: row.last }))
            }
            Command::Read { room, after, .. } => match touched.get_mut(room.as_str()) {
                Some(room) => {
                    if room.save(store)? == Saved::Conflict {
                        return Ok(None);
                    }
                    room.record.kept.expire(now_ms, self.bounds);
                    let first = room.record.kept.first().unwrap_or(u64::MAX);
                    let messages =
                        store.read_messages(room.record.key, first.max(after.saturating_add(1)))?;
                    Outcome::Read(messages)
                }
                None => Outcome::Read(Vec::new()),
            },
            Command::Append { room, stream, message, .. } => {
                if !touched.contains_key(room.as_str()) {
                    let row = RoomRow { epoch: Arc::clone(&stream.epoch), last: stream.last };
                    let key = store.create_room(room.as_str(), &row)?;
                    let record = Record { key, row, kept: History::default() };
                    touched.insert(room.shared(), Touched::new(record));
                }
                let Some(room) = touched.get_mut(room.as_str()) else { return Ok(None) };
                Outcome::Appended(room.append(message, self.bounds, now_ms))
            }
            Command::Purge { .. } => {
                for room in touched.values_mut() {
                    if room.save(store)? == Saved::Conflict {
                        return Ok(None);
                    }
                }
                let purged = store.purge_messages(now_ms.saturating_sub(self.bounds.age_ms))?;
                // What memory knows of their rooms may no longer be so: the rest of the batch asks again.
                self.rooms.clear();
                let names: Vec<Arc<str>> = std::mem::take(touched).into_keys().collect();
                for (name, found) in names.iter().zip(store.load_rooms(&refs(&names))?) {
                    let Some((key, row)) = found else { continue };
                    let kept = books(store.load_kept(&[key])?.into_iter().flatten());
                    let record = Record { key, row, kept };
                    touched.insert(Arc::clone(name), Touched::new(record));
                }
                Outcome::Purged(purged)
            }
        };
        Ok(Some(outcome))
    }

    /// Drops all memory, after a failure.
    pub fn forget(&mut self) {
        self.rooms.clear();
    }

    /// Drops what nobody touched for an idle period.
    pub fn forget_idle(&mut self) {
        self.rooms.rotate();
    }

    /// Rooms in memory.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.rooms.len()
    }
}

fn books(kept: impl IntoIterator<Item = KeptMessage>) -> History<()> {
    History::from_kept(kept.into_iter().map(|kept| Kept {
        offset: kept.offset,
        at_ms: kept.at_ms,
        bytes: kept.bytes,
        id: kept.id.map(|id| (user(kept.user), id.into())),
        entry: (),
    }))
}

/// A stored user was checked when it came in; the bound may have been another one then.
fn user(stored: Option<Box<str>>) -> Option<UserId> {
    stored.and_then(|user| UserId::parse(&user, usize::MAX))
}

/// A message as it was said.
#[must_use]
pub fn message(stored: StoredMessage) -> Message {
    let body = match stored.kind {
        Kind::Text => Body::Text(stored.body),
        Kind::Data => Body::Data(stored.body),
    };
    Message { user: user(stored.user), body, id: stored.id.map(Into::into) }
}

fn refs(names: &[Arc<str>]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}

impl<'a> Touched<'a> {
    fn new(record: Record) -> Self {
        Self { before: record.row.last, record, new: Vec::new() }
    }

    /// Gives a message its number; the first number again where its id is kept already.
    fn append(&mut self, message: &'a Message, bounds: Bounds, now_ms: i64) -> Appended {
        let Record { row, kept, .. } = &mut self.record;
        kept.expire(now_ms, bounds);
        if let Some(offset) = kept.find(message) {
            return Appended { offset, at_ms: now_ms, replayed: true };
        }
        row.last += 1;
        let (offset, bytes) = (row.last, message.bytes());
        let id = message.id.clone().map(|id| (message.user.clone(), id));
        kept.push(Kept { offset, at_ms: now_ms, bytes, id, entry: () }, bounds);
        let (kind, body) = match &message.body {
            Body::Text(text) => (Kind::Text, &**text),
            Body::Data(json) => (Kind::Data, &**json),
        };
        let (user, id) = (message.user.as_ref().map(UserId::as_str), message.id.as_deref());
        self.new.push(NewMessage { offset, at_ms: now_ms, bytes, user, id, kind, body });
        Appended { offset, at_ms: now_ms, replayed: false }
    }

    /// Saves what is new, and lets go of what is kept no longer.
    fn save<S: RoomsStore>(&mut self, store: &mut S) -> Result<Saved, Error> {
        if self.new.is_empty() {
            return Ok(Saved::Done);
        }
        let last = self.record.row.last;
        let change = RoomChange {
            room: self.record.key,
            before: self.before,
            last,
            first: self.record.kept.first().unwrap_or(last + 1),
            messages: std::mem::take(&mut self.new),
        };
        self.before = last;
        store.save_room(&change)
    }
}
