//! Commands on workshops, decided together: what they touch is loaded once, each is decided in arrival
//! order, and what changed is saved once.

use std::sync::Arc;

use foldhash::HashMap;

use super::actor::{Kept, ReservationActors};
use super::book::{Shelf, ShelfBook};
use super::command::{
    Change, Command, Gone, IfMatch, OrGone, OrUndecided, Reserved, Set, Undecided, View, Wanted,
};
use super::decide::{self, Ask, Changed, Configure, Configured, Desk, Due, Settlement, new_workshop};
use super::types::{HolderName, RequestId, WorkshopName};
use crate::log::decisions;
use crate::store::bookings::{HolderKey, Terms};
use crate::store::reservations::{AttemptKey, ReservationChanges, Workshop, WorkshopChange, WorkshopKey};
use crate::store::{BookingsStore, Error, ReservationsStore, Saved};

/// A workshop's place among those that the batch names.
pub(super) type Slot = usize;

/// No person's surrogate: of a name that was never stored.
const NOBODY: HolderKey = HolderKey(-1);

/// What a batch touches, as loaded and as decided so far.
#[derive(Default)]
pub(super) struct Batch {
    slots: HashMap<Arc<str>, Slot>,
    workshops: Vec<Touched>,
    holders: HashMap<HolderName, Option<HolderKey>>,
}

struct Touched {
    name: WorkshopName,
    /// `None` for a workshop that nothing is stored of yet.
    key: Option<WorkshopKey>,
    /// Set if it was deleted, and not created again.
    gone: Option<Gone>,
    loaded: Workshop,
    now: Workshop,
    due: Due,
    saw_expiry: bool,
    shelf: Shelf,
}

/// What a command came to, until its batch is saved.
pub(super) enum Outcome {
    Reserved(OrUndecided<Reserved>),
    Changed(OrUndecided<Changed>),
    Settled(OrGone<Option<WorkshopKey>>),
    Set(OrUndecided<Set>),
    Status(OrUndecided<Box<View>>),
}

impl Batch {
    /// Loads what some commands touch.
    pub(super) fn load<S: ReservationsStore + BookingsStore>(
        actors: &mut ReservationActors,
        store: &mut S,
        commands: &[&Command],
    ) -> Result<Self, Error> {
        let mut batch = Self::default();
        let mut requests = Vec::with_capacity(commands.len());
        for command in commands {
            match command {
                Command::Reserve { workshop, request, wanted, .. } => {
                    let slot = batch.slot(actors, workshop);
                    requests.push((slot, request));
                    let terms = wanted.terms.as_deref();
                    requests.extend(terms.and_then(|terms| terms.replaces.as_ref()).map(|old| (slot, old)));
                    let holder = terms.and_then(|terms| terms.holder.as_ref());
                    batch.holders.extend(holder.map(|holder| (holder.clone(), None)));
                }
                Command::Change { workshop, request, of, .. } => {
                    requests.push((batch.slot(actors, workshop), request));
                    batch.holders.extend(of.as_ref().map(|holder| (holder.clone(), None)));
                }
                Command::Settle { workshop, request, .. } => {
                    requests.push((batch.slot(actors, workshop), request));
                }
                Command::Configure { workshop, .. } | Command::Status { workshop, .. } => {
                    batch.slot(actors, workshop);
                }
                _ => {}
            }
        }
        batch.load_workshops(actors, store)?;
        batch.load_requests(store, &requests)?;
        batch.load_holders(store)?;
        Ok(batch)
    }

    /// Loads workshops by their names, to sweep them.
    pub(super) fn load_named<S: ReservationsStore + BookingsStore>(
        actors: &mut ReservationActors,
        store: &mut S,
        names: &[WorkshopName],
    ) -> Result<Self, Error> {
        let mut batch = Self::default();
        for name in names {
            batch.slot(actors, name);
        }
        batch.load_workshops(actors, store)?;
        Ok(batch)
    }

    fn load_workshops<S: ReservationsStore + BookingsStore>(
        &mut self,
        actors: &ReservationActors,
        store: &mut S,
    ) -> Result<(), Error> {
        let missing: Vec<&mut Touched> = self.workshops.iter_mut().filter(|w| w.key.is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<WorkshopName> = missing.iter().map(|workshop| workshop.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(WorkshopName::as_str).collect();
        let found = store.load_workshops(&names)?;
        let mut unknown = Vec::new();
        for (place, found) in missing.into_iter().zip(found) {
            match found {
                Some((key, workshop)) => {
                    (place.key, place.loaded, place.now) = (Some(key), workshop, workshop);
                }
                None => unknown.push(place),
            }
        }
        let names: Vec<WorkshopName> = unknown.iter().map(|workshop| workshop.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(WorkshopName::as_str).collect();
        for (place, tombstone) in unknown.into_iter().zip(store.load_tombstones(&names)?) {
            place.gone = tombstone.map(|deleted_at_ms| Gone { deleted_at_ms });
            place.loaded = new_workshop(actors.default_capacity);
            place.now = place.loaded;
        }
        Ok(())
    }

    fn slot(&mut self, actors: &mut ReservationActors, name: &WorkshopName) -> Slot {
        if let Some(slot) = self.slots.get(name.as_str()) {
            return *slot;
        }
        let kept = actors.kept(name.as_str());
        let Kept { workshop, due, .. } = kept.unwrap_or_default();
        self.workshops.push(Touched {
            name: name.clone(),
            key: kept.map(|kept| kept.key),
            gone: None,
            loaded: workshop,
            now: workshop,
            due,
            saw_expiry: false,
            shelf: Shelf::default(),
        });
        let slot = self.workshops.len() - 1;
        self.slots.insert(name.shared(), slot);
        slot
    }

    fn load_requests<S: ReservationsStore + BookingsStore>(
        &mut self,
        store: &mut S,
        requests: &[(Slot, &RequestId)],
    ) -> Result<(), Error> {
        let mut places = Vec::with_capacity(requests.len());
        let mut keys = Vec::with_capacity(requests.len());
        for &(slot, request) in requests {
            let Some(touched) = self.workshops.get_mut(slot) else { continue };
            let first_mention = touched.shelf.attempts.insert(request.clone(), None).is_none();
            if let (true, Some(workshop)) = (first_mention, touched.key) {
                places.push((slot, request));
                keys.push(AttemptKey { workshop, request: request.as_str() });
            }
        }
        let attempts = store.load_attempts(&keys)?;
        // Most ids are new, and no life is looked for where there was no decision.
        let mut known = Vec::new();
        for ((&(slot, request), key), attempt) in places.iter().zip(keys).zip(attempts) {
            let Some(touched) = self.workshops.get_mut(slot) else { continue };
            match attempt {
                Some(_) => {
                    touched.shelf.attempts.insert(request.clone(), attempt);
                    known.push(((slot, request), key));
                }
                None => {
                    touched.shelf.bookings.insert(request.clone(), None);
                }
            }
        }
        let keys: Vec<AttemptKey<'_>> = known.iter().map(|(_, key)| *key).collect();
        for (((slot, request), _), booking) in known.into_iter().zip(store.load_bookings(&keys)?) {
            if let Some(touched) = self.workshops.get_mut(slot) {
                touched.shelf.bookings.insert(request.clone(), booking);
            }
        }
        Ok(())
    }

    fn load_holders<S: BookingsStore>(&mut self, store: &mut S) -> Result<(), Error> {
        if self.holders.is_empty() {
            return Ok(());
        }
        let names: Vec<HolderName> = self.holders.keys().cloned().collect();
        let texts: Vec<&str> = names.iter().map(HolderName::as_str).collect();
        let found = store.load_holders(&texts)?;
        self.holders = names.into_iter().zip(found).collect();
        Ok(())
    }

    /// Decides one command.
    pub(super) fn decide_one<S: ReservationsStore + BookingsStore>(
        &mut self,
        actors: &ReservationActors,
        store: &mut S,
        command: &Command,
        now_ms: i64,
    ) -> Result<Option<Outcome>, Error> {
        let name = match command {
            Command::Reserve { workshop, .. }
            | Command::Change { workshop, .. }
            | Command::Settle { workshop, .. }
            | Command::Configure { workshop, .. }
            | Command::Status { workshop, .. } => workshop.as_str(),
            _ => return Ok(None),
        };
        let Some(touched) = self.slots.get(name).and_then(|slot| self.workshops.get_mut(*slot)) else {
            return Ok(None);
        };
        let undecided = touched.undecided(actors, store, command, now_ms)?;
        Ok(Some(match command {
            Command::Reserve { request, wanted, .. } => Outcome::Reserved(match undecided {
                Some(undecided) => Err(undecided),
                None => Ok(touched.reserve(actors, store, &mut self.holders, (request, wanted), now_ms)?),
            }),
            Command::Change { request, change, of, .. } => Outcome::Changed(match undecided {
                Some(undecided) => Err(undecided),
                None => {
                    let of = of.as_ref().map(|holder| key_of(&self.holders, holder));
                    Ok(touched.change(actors, store, (request, of), *change, now_ms)?)
                }
            }),
            Command::Settle { request, settlement, .. } => Outcome::Settled(match touched.gone {
                Some(gone) => Err(gone),
                None => Ok(touched.settle(actors, store, request, *settlement, now_ms)?),
            }),
            Command::Configure { wanted, if_match, .. } => Outcome::Set(match undecided {
                Some(due @ Undecided::DueLines(_)) => Err(due),
                // A workshop that is gone is created again.
                _ => Ok(touched.configure(actors, store, **wanted, if_match.as_ref(), now_ms)?),
            }),
            _ => Outcome::Status(match undecided {
                Some(undecided) => Err(undecided),
                None => Ok(touched.view(actors, store, now_ms)?),
            }),
        }))
    }

    /// Expires what is due of the loaded workshops, `limit` holds in all, and serves who waits. Each has its share; what
    /// one leaves of it goes to the others, the first first.
    pub(super) fn sweep<S: ReservationsStore + BookingsStore>(
        &mut self,
        actors: &ReservationActors,
        store: &mut S,
        limit: u32,
        now_ms: i64,
    ) -> Result<(), Error> {
        let workshops = u32::try_from(self.workshops.len()).unwrap_or(u32::MAX);
        let share = (limit / workshops.max(1)).max(1);
        let mut left = limit;
        for most in [share, limit] {
            for touched in &mut self.workshops {
                if left == 0 {
                    return Ok(());
                }
                let most = most.min(left);
                left -=
                    touched.at_the_desk(actors, store, now_ms, |desk| decide::sweep(desk, most))?.min(left);
            }
        }
        Ok(())
    }

    /// Saves what was decided, and lets memory know.
    pub(super) fn save<S: ReservationsStore + BookingsStore>(
        mut self,
        actors: &mut ReservationActors,
        store: &mut S,
        now_ms: i64,
    ) -> Result<Saved, Error> {
        self.create_workshops(store, now_ms)?;
        if self.workshops.iter().any(|touched| touched.saw_expiry) {
            store.mark_time(now_ms)?;
        }
        let unsaved: Vec<Vec<RequestId>> =
            self.workshops.iter_mut().map(|touched| touched.shelf.take_unsaved()).collect();
        let mut changes = ReservationChanges::default();
        for (touched, unsaved) in self.workshops.iter_mut().zip(&unsaved) {
            let Some(workshop) = touched.key else { continue };
            if touched.now == touched.loaded && unsaved.is_empty() {
                changes.rests_on.push(workshop);
                continue;
            }
            touched.now.version = touched.loaded.version + 1;
            let (before, after) = (touched.loaded, touched.now);
            changes.workshops.push(WorkshopChange { key: workshop, before, after });
            let shelf = &touched.shelf;
            let key = |request| AttemptKey { workshop, request };
            changes
                .attempts
                .extend(shelf.new_attempts.iter().map(|(id, attempt)| (key(id.as_str()), *attempt)));
            changes.bookings.extend(
                unsaved.iter().filter_map(|request| {
                    Some((key(request.as_str()), shelf.bookings.get(request)?.as_ref()?))
                }),
            );
            changes.events.extend(shelf.events.iter().map(|event| (workshop, event)));
        }
        let saved = store.save_reservations(&changes)?;
        for touched in &self.workshops {
            let Some(key) = touched.key else { continue };
            actors.keep(touched.name.shared(), Kept { key, workshop: touched.now, due: touched.due });
            if !touched.shelf.events.is_empty() {
                if decisions::are_logged() {
                    actors.unlogged.extend(touched.shelf.happened(&touched.name));
                }
                actors.happened(&touched.name, touched.shelf.side_effects());
                // Where nothing is held, nothing ends.
                let ends_at_ms = Some(touched.due.next_at_ms).filter(|_| touched.now.held > 0);
                ends_at_ms
                    .into_iter()
                    .chain(touched.now.offers_due_at_ms)
                    .for_each(|at_ms| actors.ends_at(at_ms));
            }
        }
        Ok(saved)
    }

    /// Workshops spring up at their first decision, empty; what was decided is saved like any change.
    fn create_workshops<S: ReservationsStore + BookingsStore>(
        &mut self,
        store: &mut S,
        now_ms: i64,
    ) -> Result<(), Error> {
        let new: Vec<&mut Touched> =
            self.workshops.iter_mut().filter(|w| w.key.is_none() && w.now != w.loaded).collect();
        if new.is_empty() {
            return Ok(());
        }
        let rows: Vec<(WorkshopName, Workshop)> = new.iter().map(|w| (w.name.clone(), w.loaded)).collect();
        let rows: Vec<(&str, Workshop)> = rows.iter().map(|(name, row)| (name.as_str(), *row)).collect();
        for (place, key) in new.into_iter().zip(store.create_workshops(&rows, now_ms)?) {
            place.key = Some(key);
        }
        Ok(())
    }
}

impl Touched {
    fn at_the_desk<S: ReservationsStore + BookingsStore, T>(
        &mut self,
        actors: &ReservationActors,
        store: &mut S,
        now_ms: i64,
        decide: impl FnOnce(&mut Desk<'_, ShelfBook<'_, S>>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (shelf, key, name, loaded) = (&mut self.shelf, &mut self.key, self.name.as_str(), self.loaded);
        let mut book = ShelfBook { store, shelf, key, name, loaded, now_ms };
        let mut desk = Desk {
            workshop: self.now,
            due: self.due,
            saw_expiry: self.saw_expiry,
            book: &mut book,
            defaults: actors.defaults,
            now_ms,
        };
        let decided = decide(&mut desk);
        (self.now, self.due, self.saw_expiry) = (desk.workshop, desk.due, desk.saw_expiry);
        decided
    }

    /// Why a command is not to be decided now, if so.
    fn undecided<S: ReservationsStore + BookingsStore>(
        &mut self,
        actors: &ReservationActors,
        store: &mut S,
        command: &Command,
        now_ms: i64,
    ) -> Result<Option<Undecided>, Error> {
        if let Some(gone) = self.gone {
            return Ok(Some(Undecided::Gone(gone)));
        }
        let asks_after_sets = matches!(
            command,
            Command::Reserve { as_it_stands: false, .. }
                | Command::Change { as_it_stands: false, .. }
                | Command::Configure { as_it_stands: false, .. }
                | Command::Status { as_it_stands: false, .. }
        );
        if !asks_after_sets || self.now.held == 0 {
            return Ok(None);
        }
        let mut due = self.at_the_desk(actors, store, now_ms, |desk| desk.due_lines())?;
        // Whoever asks for a line knows its set better than the workshop does.
        if let Command::Reserve { request, .. } | Command::Change { request, .. } = command {
            due.retain(|set| set != request);
        }
        Ok((!due.is_empty()).then_some(Undecided::DueLines(due)))
    }

    fn reserve<S: ReservationsStore + BookingsStore>(
        &mut self,
        actors: &ReservationActors,
        store: &mut S,
        holders: &mut HashMap<HolderName, Option<HolderKey>>,
        (request, wanted): (&RequestId, &Wanted),
        now_ms: i64,
    ) -> Result<Reserved, Error> {
        let decide = |desk: &mut Desk<'_, ShelfBook<'_, S>>, ask: &Ask| match wanted.beyond_limits {
            true => decide::repeat(desk, request, ask),
            false => decide::request(desk, request, ask),
        };
        let Some(wanted_terms) = wanted.terms.as_deref() else {
            let ask = Ask {
                seats: wanted.seats,
                terms: Terms::default(),
                set_ends_at_ms: None,
                replaces_own: false,
            };
            return self.at_the_desk(actors, store, now_ms, |desk| decide(desk, &ask));
        };
        let holder = wanted_terms.holder.as_ref();
        let known = holder.map(|name| key_of(holders, name));
        let mut ask = Ask {
            seats: wanted.seats,
            terms: Terms {
                hold: wanted_terms.hold,
                ttl_ms: wanted_terms.ttl_ms,
                holder: known,
                waitlist: wanted_terms.waitlist,
                replaces: wanted_terms.replaces.as_ref().map(RequestId::shared),
                of_set: wanted_terms.of_set,
            },
            set_ends_at_ms: wanted_terms.set_ends_at_ms,
            replaces_own: wanted_terms.replaces_own,
        };
        // A name is stored with the first request that is decided for it, and with no other.
        if let (Some(name), Some(NOBODY), false) = (holder, known, wanted.beyond_limits) {
            let is_new = self.at_the_desk(actors, store, now_ms, |desk| {
                let known = decide::Book::attempt(desk.book, request)?.is_some();
                Ok(!known && decide::request::invalid(desk, &ask)?.is_none())
            })?;
            if is_new {
                ask.terms.holder = store.create_holders(&[name.as_str()])?.into_iter().next();
                holders.insert(name.clone(), ask.terms.holder);
            }
        }
        self.at_the_desk(actors, store, now_ms, |desk| decide(desk, &ask))
    }

    fn change<S: ReservationsStore + BookingsStore>(
        &mut self,
        actors: &ReservationActors,
        store: &mut S,
        (request, of): (&RequestId, Option<HolderKey>),
        change: Change,
        now_ms: i64,
    ) -> Result<Changed, Error> {
        self.at_the_desk(actors, store, now_ms, |desk| {
            if let Some(holder) = of
                && !desk.is_of(request, holder)?
            {
                return Ok(Changed::Refused(decide::Wrong::NotFound));
            }
            match change {
                Change::Confirm(confirm) => decide::confirm(desk, request, confirm),
                Change::Cancel => decide::cancel(desk, request),
                Change::Extend { ttl_ms } => decide::extend(desk, request, ttl_ms),
                Change::Retake { round } => decide::retake(desk, request, round),
            }
        })
    }

    /// Which workshop it is, if it has the line: one that was deleted and created again has none. Nothing springs up for it.
    fn settle<S: ReservationsStore + BookingsStore>(
        &mut self,
        actors: &ReservationActors,
        store: &mut S,
        request: &RequestId,
        settlement: Settlement,
        now_ms: i64,
    ) -> Result<Option<WorkshopKey>, Error> {
        let mut has_the_line = false;
        if self.key.is_some() || self.now != self.loaded {
            has_the_line =
                self.at_the_desk(actors, store, now_ms, |desk| decide::settle(desk, request, settlement))?;
            // Sprung up in this batch: what it did is saved under the key that it has from now on.
            if self.key.is_none() {
                let created = store.create_workshops(&[(self.name.as_str(), self.loaded)], now_ms)?;
                self.key = created.into_iter().next();
            }
        }
        Ok(self.key.filter(|_| has_the_line))
    }

    fn configure<S: ReservationsStore + BookingsStore>(
        &mut self,
        actors: &ReservationActors,
        store: &mut S,
        wanted: Configure,
        if_match: Option<&IfMatch>,
        now_ms: i64,
    ) -> Result<Set, Error> {
        // What is stored by now, or will be with this batch.
        let exists = self.gone.is_none() && (self.key.is_some() || self.now != self.loaded);
        let matches = match if_match {
            None => true,
            Some(IfMatch::Any) => exists,
            Some(IfMatch::None) => !exists,
            Some(IfMatch::OneOf(versions)) => exists && self.is_one_of(versions),
            Some(IfMatch::NoneOf(versions)) => !exists || !self.is_one_of(versions),
        };
        if !matches {
            return Ok(Set::Mismatch);
        }
        if self.gone.take().is_some() {
            store.remove_tombstone(self.name.as_str())?;
        }
        match self.at_the_desk(actors, store, now_ms, |desk| decide::configure(desk, wanted))? {
            Configured::InUse { minimum } => Ok(Set::InUse { minimum }),
            Configured::Done => {
                // Its tag holds its key, so it needs one now.
                if self.key.is_none() {
                    let created = store.create_workshops(&[(self.name.as_str(), self.loaded)], now_ms)?;
                    self.key = created.into_iter().next();
                }
                Ok(Set::Done { created: !exists, view: self.view(actors, store, now_ms)? })
            }
        }
    }

    fn is_one_of(&self, versions: &[(i64, i64)]) -> bool {
        let version = self.key.map(|key| (key.0, self.now.rules_version));
        version.is_some_and(|version| versions.contains(&version))
    }

    fn view<S: ReservationsStore + BookingsStore>(
        &mut self,
        actors: &ReservationActors,
        store: &mut S,
        now_ms: i64,
    ) -> Result<Box<View>, Error> {
        self.at_the_desk(actors, store, now_ms, |desk| desk.look_at_the_clock())?;
        Ok(Box::new(view(self.key, self.now, self.due)))
    }
}

/// A holder's surrogate, as the batch knows it.
fn key_of(holders: &HashMap<HolderName, Option<HolderKey>>, name: &HolderName) -> HolderKey {
    holders.get(name).copied().flatten().unwrap_or(NOBODY)
}

/// A workshop as it is seen from outside.
pub(super) fn view(key: Option<WorkshopKey>, workshop: Workshop, due: Due) -> View {
    View {
        workshop,
        used: workshop.reserved - due.seats,
        held: workshop.held - due.seats,
        key: key.map(|key| key.0),
    }
}
