//! The book that one workshop's commands are decided with: what the batch has loaded and changed, over the
//! store.

use foldhash::HashMap;

use super::decide::Book;
use super::types::{RequestId, WorkshopName};
use crate::log::decisions::Happened;
use crate::store::bookings::{Booking, DueLines, DueSeats, Event, EventKind, HolderKey, Reason};
use crate::store::reservations::{Attempt, AttemptKey, ReservationChanges, Workshop, WorkshopKey};
use crate::store::{BookingsStore, Error, ReservationsStore, Saved};

/// What a batch knows of one workshop's requests and has changed of them.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) attempts: HashMap<RequestId, Option<Attempt>>,
    pub(super) bookings: HashMap<RequestId, Option<Booking>>,
    /// First decisions of the batch.
    pub(super) new_attempts: Vec<(RequestId, Attempt)>,
    /// Requests whose booking is not in the transaction yet, perhaps twice.
    unsaved: Vec<RequestId>,
    pub(super) events: Vec<Event>,
}

impl Shelf {
    /// Bookings that are not in the transaction yet, each once, and none from now on.
    pub(super) fn take_unsaved(&mut self) -> Vec<RequestId> {
        let mut unsaved = std::mem::take(&mut self.unsaved);
        unsaved.sort_unstable();
        unsaved.dedup();
        unsaved
    }

    /// What is to be said in the decision log beside first decisions, which their commands say.
    pub(super) fn happened(&self, workshop: &WorkshopName) -> impl Iterator<Item = Happened> {
        self.events.iter().filter_map(|event| {
            let is_first = matches!(
                event.kind,
                EventKind::Accepted | EventKind::Rejected | EventKind::Held | EventKind::Waiting
            );
            let request = event.request.clone().filter(|_| !is_first)?;
            let booking = self.bookings.get(&*request).and_then(Option::as_ref);
            Some(Happened {
                workshop: workshop.shared(),
                change: event.kind.as_str(),
                seats: event.seats,
                reserved: event.reserved,
                holder: booking.and_then(|booking| booking.terms.holder).map(|holder| holder.0),
                expires_at_ms: event.expires_at_ms,
                request,
            })
        })
    }

    /// What became of requests that nobody asked about: expiries, offers, waiters passed over.
    pub(super) fn side_effects(&self) -> impl Iterator<Item = EventKind> + '_ {
        let beside =
            |kind: &EventKind| matches!(kind, EventKind::Expired | EventKind::Offered | EventKind::Skipped);
        self.events.iter().map(|event| event.kind).filter(beside)
    }
}

/// Why a request that waited was passed over, if it was: that is the last event of its life.
pub(super) fn skipped_for<S: BookingsStore>(
    store: &mut S,
    workshop: WorkshopKey,
    request: &str,
) -> Result<Option<Reason>, Error> {
    let last = store.history(workshop, request, 1)?.pop();
    Ok(last.filter(|event| event.kind == EventKind::Skipped).and_then(|event| event.reason))
}

/// See the module.
pub(super) struct ShelfBook<'s, S> {
    pub(super) store: &'s mut S,
    pub(super) shelf: &'s mut Shelf,
    /// `None` while the workshop is not stored.
    pub(super) key: &'s mut Option<WorkshopKey>,
    pub(super) name: &'s str,
    /// As the workshop is stored, or is to be created.
    pub(super) loaded: Workshop,
    pub(super) now_ms: i64,
}

impl<S: ReservationsStore + BookingsStore> ShelfBook<'_, S> {
    /// Brings changed bookings into the transaction, so that range reads see them.
    fn flush(&mut self) -> Result<Option<WorkshopKey>, Error> {
        if self.shelf.unsaved.is_empty() {
            return Ok(*self.key);
        }
        let workshop = self.created()?;
        let unsaved = self.shelf.take_unsaved();
        let bookings = unsaved.iter().filter_map(|request| {
            let booking = self.shelf.bookings.get(request)?.as_ref()?;
            Some((AttemptKey { workshop, request: request.as_str() }, booking))
        });
        let changes = ReservationChanges { bookings: bookings.collect(), ..Default::default() };
        match self.store.save_reservations(&changes)? {
            Saved::Done => Ok(*self.key),
            // Bookings are saved as they are; the workshop's own row, saved last, finds a conflict.
            Saved::Conflict => Err(Error::Engine("bookings in conflict with nothing".to_owned())),
        }
    }

    /// The workshop's key; created now if it is not stored.
    fn created(&mut self) -> Result<WorkshopKey, Error> {
        if let Some(key) = *self.key {
            return Ok(key);
        }
        let created = self.store.create_workshops(&[(self.name, self.loaded)], self.now_ms)?;
        let key = created.first().copied();
        *self.key = key;
        key.ok_or_else(|| Error::Engine("a workshop was created without a key".to_owned()))
    }

    fn as_on_the_shelf(&mut self, (request, booking): (RequestId, Booking)) -> (RequestId, Booking) {
        self.shelf.bookings.entry(request.clone()).or_insert_with(|| Some(booking.clone()));
        (request, booking)
    }
}

impl<S: ReservationsStore + BookingsStore> Book for ShelfBook<'_, S> {
    type Error = Error;

    fn attempt(&mut self, request: &RequestId) -> Result<Option<Attempt>, Error> {
        if let Some(known) = self.shelf.attempts.get(request) {
            return Ok(*known);
        }
        let Some(workshop) = *self.key else { return Ok(None) };
        let key = AttemptKey { workshop, request: request.as_str() };
        let attempt = self.store.load_attempts(&[key])?.into_iter().next().flatten();
        self.shelf.attempts.insert(request.clone(), attempt);
        Ok(attempt)
    }

    fn booking(&mut self, request: &RequestId) -> Result<Option<Booking>, Error> {
        if let Some(known) = self.shelf.bookings.get(request) {
            return Ok(known.clone());
        }
        let Some(workshop) = *self.key else { return Ok(None) };
        let key = AttemptKey { workshop, request: request.as_str() };
        let booking = self.store.load_bookings(&[key])?.into_iter().next().flatten();
        self.shelf.bookings.insert(request.clone(), booking.clone());
        Ok(booking)
    }

    fn due_seats(&mut self, after_ms: i64, until_ms: i64) -> Result<DueSeats, Error> {
        match self.flush()? {
            Some(key) => self.store.due_seats(key, after_ms, until_ms),
            None => Ok(DueSeats::default()),
        }
    }

    fn due_bookings(&mut self, now_ms: i64, limit: u32) -> Result<Vec<(RequestId, Booking)>, Error> {
        let Some(key) = self.flush()? else { return Ok(Vec::new()) };
        let due = self.store.due_bookings(key, now_ms, limit)?;
        Ok(due
            .into_iter()
            .map(|(request, booking)| self.as_on_the_shelf((request.into(), booking)))
            .collect())
    }

    fn due_lines(&mut self, now_ms: i64, limit: u32) -> Result<DueLines, Error> {
        match self.flush()? {
            Some(key) => self.store.due_lines(key, now_ms, limit),
            None => Ok(DueLines::default()),
        }
    }

    fn first_waiter(&mut self, most_seats: i64) -> Result<Option<(RequestId, Booking)>, Error> {
        let Some(key) = self.flush()? else { return Ok(None) };
        let first = self.store.first_waiter(key, most_seats)?;
        Ok(first.map(|(request, booking)| self.as_on_the_shelf((request.into(), booking))))
    }

    fn waiters_before(&mut self, place: i64) -> Result<i64, Error> {
        match self.flush()? {
            Some(key) => self.store.waiters_before(key, place),
            None => Ok(0),
        }
    }

    fn seats_of_holder(&mut self, holder: HolderKey, now_ms: i64) -> Result<i64, Error> {
        match self.flush()? {
            Some(key) => self.store.seats_of_holder(key, holder, now_ms),
            None => Ok(0),
        }
    }

    fn seats_waited_for(&mut self, holder: HolderKey) -> Result<i64, Error> {
        match self.flush()? {
            Some(key) => self.store.seats_waited_for(key, holder),
            None => Ok(0),
        }
    }

    fn skipped_for(&mut self, request: &RequestId) -> Result<Option<Reason>, Error> {
        let skipped = |event: &&Event| {
            event.kind == EventKind::Skipped && event.request.as_deref() == Some(request.as_str())
        };
        if let Some(event) = self.shelf.events.iter().find(skipped) {
            return Ok(event.reason);
        }
        match *self.key {
            Some(key) => skipped_for(self.store, key, request.as_str()),
            None => Ok(None),
        }
    }

    fn put_attempt(&mut self, request: &RequestId, attempt: Attempt) {
        self.shelf.attempts.insert(request.clone(), Some(attempt));
        self.shelf.new_attempts.push((request.clone(), attempt));
    }

    fn put_booking(&mut self, request: &RequestId, booking: Booking) {
        self.shelf.bookings.insert(request.clone(), Some(booking));
        self.shelf.unsaved.push(request.clone());
    }

    fn append(&mut self, event: Event) {
        self.shelf.events.push(event);
    }
}
