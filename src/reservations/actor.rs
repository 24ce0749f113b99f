//! The workshops placed on one partition: what they keep in memory and how they take a batch.
//!
//! Memory is a copy of what is saved, possibly ahead of the commit; whoever fails to commit calls
//! [`ReservationActors::forget`], and everything is read again.

use std::sync::Arc;

use foldhash::HashMap;

use super::command::{Command, Reserved};
use super::decide::{Decision, new_workshop, reserve};
use super::types::{RequestId, Seats};
use crate::partition::{Decided, Resident};
use crate::store::reservations::{
    Attempt, AttemptKey, ReservationChanges, Workshop, WorkshopChange, WorkshopKey,
};
use crate::store::{Error, ReservationsStore, Saved};

/// The reservation actors of one partition.
#[derive(Debug)]
pub struct ReservationActors {
    workshops: Resident<Arc<str>, (WorkshopKey, Workshop)>,
    default_capacity: u32,
}

/// A workshop's place among those that the batch names.
type Slot = usize;

/// What a batch touches, as loaded and as decided so far.
#[derive(Default)]
struct Batch<'a> {
    slots: HashMap<&'a str, Slot>,
    workshops: Vec<Touched<'a>>,
    attempts: HashMap<(Slot, &'a str), Option<Attempt>>,
    first_decisions: Vec<(Slot, &'a RequestId, Attempt)>,
}

struct Touched<'a> {
    name: &'a super::WorkshopName,
    /// `None` for a workshop that nobody has reserved in yet.
    key: Option<WorkshopKey>,
    loaded: Workshop,
    now: Workshop,
}

enum Outcome {
    Reserved(Reserved),
    Status(Workshop),
}

impl ReservationActors {
    /// Actors with at most `max_resident` workshops in memory. A workshop springs up with
    /// `default_capacity` seats.
    #[must_use]
    pub fn new(default_capacity: u32, max_resident: usize) -> Self {
        Self { workshops: Resident::new(max_resident), default_capacity }
    }

    /// Decides commands in order and saves what changed.
    ///
    /// # Errors
    /// The store's.
    pub fn decide<S: ReservationsStore>(
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
        let mut batch = Batch::default();
        batch.load(self, store, &shared)?;
        let outcomes: Vec<Outcome> = shared.iter().map(|command| batch.decide_one(command, now_ms)).collect();
        if batch.save(self, store, now_ms)? == Saved::Conflict {
            return Ok(Decided::Conflict);
        }
        for (command, outcome) in commands.iter_mut().zip(outcomes) {
            match (&mut **command, outcome) {
                (Command::Reserve { reply, .. }, Outcome::Reserved(reserved)) => reply.set(reserved),
                (Command::Status { reply, .. }, Outcome::Status(workshop)) => reply.set(workshop),
                // A command without its outcome answers `outcome_unknown`; no arm above makes one.
                _ => {}
            }
        }
        Ok(Decided::Ready)
    }

    /// Drops all memory, after a failure.
    pub fn forget(&mut self) {
        self.workshops.clear();
    }

    /// Drops what nobody touched for an idle period.
    pub fn forget_idle(&mut self) {
        self.workshops.rotate();
    }

    /// Workshops in memory.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.workshops.len()
    }
}

impl<'a> Batch<'a> {
    fn load<S: ReservationsStore>(
        &mut self,
        actors: &mut ReservationActors,
        store: &mut S,
        commands: &[&'a Command],
    ) -> Result<(), Error> {
        let mut requests = Vec::with_capacity(commands.len());
        for command in commands {
            match command {
                Command::Reserve { workshop, request, .. } => {
                    requests.push((self.slot(actors, workshop), request.as_str()));
                }
                Command::Status { workshop, .. } => {
                    self.slot(actors, workshop);
                }
            }
        }
        let missing: Vec<&mut Touched<'a>> = self.workshops.iter_mut().filter(|w| w.key.is_none()).collect();
        let names: Vec<&str> = missing.iter().map(|workshop| workshop.name.as_str()).collect();
        for (place, found) in missing.into_iter().zip(store.load_workshops(&names)?) {
            if let Some((key, workshop)) = found {
                actors.workshops.insert(place.name.shared(), (key, workshop));
                *place = Touched { name: place.name, key: Some(key), loaded: workshop, now: workshop };
            }
        }
        self.load_attempts(store, &requests)
    }

    fn slot(&mut self, actors: &mut ReservationActors, name: &'a super::WorkshopName) -> Slot {
        *self.slots.entry(name.as_str()).or_insert_with(|| {
            let resident = actors.workshops.get(name.as_str()).copied();
            let workshop = resident.map_or_else(|| new_workshop(actors.default_capacity), |(_, found)| found);
            let key = resident.map(|(key, _)| key);
            self.workshops.push(Touched { name, key, loaded: workshop, now: workshop });
            self.workshops.len() - 1
        })
    }

    fn load_attempts<S: ReservationsStore>(
        &mut self,
        store: &mut S,
        requests: &[(Slot, &'a str)],
    ) -> Result<(), Error> {
        let mut places = Vec::with_capacity(requests.len());
        let mut keys = Vec::with_capacity(requests.len());
        for &(slot, request) in requests {
            let first_mention = self.attempts.insert((slot, request), None).is_none();
            let key = self.workshops.get(slot).and_then(|workshop| workshop.key);
            if let (true, Some(workshop)) = (first_mention, key) {
                places.push((slot, request));
                keys.push(AttemptKey { workshop, request });
            }
        }
        for (place, attempt) in places.into_iter().zip(store.load_attempts(&keys)?) {
            self.attempts.insert(place, attempt);
        }
        Ok(())
    }

    fn decide_one(&mut self, command: &'a Command, now_ms: i64) -> Outcome {
        match command {
            Command::Reserve { workshop, request, seats, .. } => {
                let slot = self.slots.get(workshop.as_str()).copied().unwrap_or(Slot::MAX);
                Outcome::Reserved(self.reserve(slot, request, *seats, now_ms))
            }
            Command::Status { workshop, .. } => {
                let touched = self.slots.get(workshop.as_str()).and_then(|slot| self.workshops.get(*slot));
                Outcome::Status(touched.map_or_else(|| new_workshop(0), |touched| touched.now))
            }
        }
    }

    fn reserve(&mut self, slot: Slot, request: &'a RequestId, seats: Seats, now_ms: i64) -> Reserved {
        let known = self.attempts.entry((slot, request.as_str())).or_default();
        let Some(workshop) = self.workshops.get_mut(slot) else {
            return Reserved::Reused { first_seats: 0 };
        };
        let (attempt, replayed) = match reserve(workshop.now, *known, seats, now_ms) {
            Decision::First(attempt, after) => {
                *known = Some(attempt);
                workshop.now = after;
                self.first_decisions.push((slot, request, attempt));
                (attempt, false)
            }
            Decision::Replay(attempt) => (attempt, true),
            Decision::Reused(attempt) => return Reserved::Reused { first_seats: attempt.seats },
        };
        Reserved::Decided {
            status: attempt.status,
            capacity: workshop.now.capacity,
            reserved: attempt.reserved_after,
            replayed,
        }
    }

    fn save<S: ReservationsStore>(
        &mut self,
        actors: &mut ReservationActors,
        store: &mut S,
        now_ms: i64,
    ) -> Result<Saved, Error> {
        self.create_workshops(store, now_ms)?;
        let mut changes = ReservationChanges::default();
        for workshop in &mut self.workshops {
            let Some(key) = workshop.key else { continue };
            if workshop.now == workshop.loaded {
                changes.rests_on.push(key);
                continue;
            }
            workshop.now.version = workshop.loaded.version + 1;
            changes.workshops.push(WorkshopChange { key, before: workshop.loaded, after: workshop.now });
        }
        for (slot, request, attempt) in &self.first_decisions {
            if let Some(workshop) = self.workshops.get(*slot).and_then(|workshop| workshop.key) {
                changes.attempts.push((AttemptKey { workshop, request: request.as_str() }, *attempt));
            }
        }
        let saved = store.save_reservations(&changes)?;
        for workshop in &self.workshops {
            if let Some(key) = workshop.key {
                actors.workshops.insert(workshop.name.shared(), (key, workshop.now));
            }
        }
        Ok(saved)
    }

    /// Workshops spring up at their first decision, empty; what was decided is saved like any change.
    fn create_workshops<S: ReservationsStore>(&mut self, store: &mut S, now_ms: i64) -> Result<(), Error> {
        let new: Vec<&mut Touched<'a>> =
            self.workshops.iter_mut().filter(|w| w.key.is_none() && w.now != w.loaded).collect();
        let rows: Vec<(&str, Workshop)> = new.iter().map(|w| (w.name.as_str(), w.loaded)).collect();
        for (place, key) in new.into_iter().zip(store.create_workshops(&rows, now_ms)?) {
            place.key = Some(key);
        }
        Ok(())
    }
}
