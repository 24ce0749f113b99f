//! Where one workshop's commands are decided, and what it takes and gives back seats with.

use std::sync::Arc;

use crate::reservations::types::RequestId;
use crate::store::bookings::{Booking, DueLines, DueSeats, Event, EventKind, HolderKey, Reason, State};
use crate::store::reservations::{Attempt, Workshop};

/// What is known of one workshop's requests, and where changes of it go. Looking something up sees every
/// change that went in before.
pub trait Book {
    /// What can go wrong when something is looked up.
    type Error;

    /// The first decision on a request id.
    ///
    /// # Errors
    /// The book's.
    fn attempt(&mut self, request: &RequestId) -> Result<Option<Attempt>, Self::Error>;

    /// The life of a request, if it has one beyond its first decision.
    ///
    /// # Errors
    /// The book's.
    fn booking(&mut self, request: &RequestId) -> Result<Option<Booking>, Self::Error>;

    /// Seats of holds that end after `after_ms` and not after `until_ms`, and when the next one ends.
    ///
    /// # Errors
    /// The book's.
    fn due_seats(&mut self, after_ms: i64, until_ms: i64) -> Result<DueSeats, Self::Error>;

    /// Holds that have ended at `now_ms`, the first to end first.
    ///
    /// # Errors
    /// The book's.
    fn due_bookings(&mut self, now_ms: i64, limit: u32) -> Result<Vec<(RequestId, Booking)>, Self::Error>;

    /// Held lines whose sets have ended as far as is known here, the first to end first.
    ///
    /// # Errors
    /// The book's.
    fn due_lines(&mut self, now_ms: i64, limit: u32) -> Result<DueLines, Self::Error>;

    /// The longest waiting request that wants at most so many seats.
    ///
    /// # Errors
    /// The book's.
    fn first_waiter(&mut self, most_seats: i64) -> Result<Option<(RequestId, Booking)>, Self::Error>;

    /// Requests that wait at lower places.
    ///
    /// # Errors
    /// The book's.
    fn waiters_before(&mut self, place: i64) -> Result<i64, Self::Error>;

    /// Seats that a holder has at `now_ms`.
    ///
    /// # Errors
    /// The book's.
    fn seats_of_holder(&mut self, holder: HolderKey, now_ms: i64) -> Result<i64, Self::Error>;

    /// Seats that a holder waits for.
    ///
    /// # Errors
    /// The book's.
    fn seats_waited_for(&mut self, holder: HolderKey) -> Result<i64, Self::Error>;

    /// Why a request that waited was passed over, if it was.
    ///
    /// # Errors
    /// The book's.
    fn skipped_for(&mut self, request: &RequestId) -> Result<Option<Reason>, Self::Error>;

    /// Keeps a first decision.
    fn put_attempt(&mut self, request: &RequestId, attempt: Attempt);

    /// Keeps a life as it is now.
    fn put_booking(&mut self, request: &RequestId, booking: Booking);

    /// Appends to the log.
    fn append(&mut self, event: Event);
}

/// What a workshop does where its operator has set nothing; the settings of the same names say more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// `reservations.hold_ttl_ms`
    pub hold_ttl_ms: i64,
    /// `reservations.max_hold_ms`: the longest that a hold lives, with all its extensions.
    pub max_hold_ms: i64,
    /// `reservations.sweep_chunk`: the most expiries, or offers, that one command writes for others.
    pub chunk: u32,
}

/// Seats of holds that have ended and are not swept yet. They count as free.
///
/// Summed over the index once a hold and not once a command: what lies before `until_ms` is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Their seats, of holds that end at `until_ms` or before.
    pub seats: i64,
    /// Up to when they are summed.
    pub until_ms: i64,
    /// No other hold ends before this.
    pub next_at_ms: i64,
    /// No set ends before this that has a line here.
    pub next_line_at_ms: i64,
}

impl Default for Due {
    /// Nothing is known.
    fn default() -> Self {
        Self { seats: 0, until_ms: i64::MIN, next_at_ms: i64::MIN, next_line_at_ms: i64::MIN }
    }
}

/// One workshop while its commands are decided.
#[derive(Debug)]
pub struct Desk<'b, B> {
    /// As it is by now.
    pub workshop: Workshop,
    /// See [`Due`].
    pub due: Due,
    /// Whether an expiry was seen that perhaps nobody has stored anything after.
    pub saw_expiry: bool,
    /// Where to look things up.
    pub book: &'b mut B,
    /// See [`Defaults`].
    pub defaults: Defaults,
    /// The time of the batch.
    pub now_ms: i64,
}

impl<B: Book> Desk<'_, B> {
    /// Sums up what has become due. Every command starts with it.
    ///
    /// # Errors
    /// The book's.
    pub fn look_at_the_clock(&mut self) -> Result<(), B::Error> {
        let nothing_held = self.workshop.held == 0;
        if nothing_held || self.now_ms < self.due.next_at_ms {
            return Ok(());
        }
        let found = self.book.due_seats(self.due.until_ms, self.now_ms)?;
        self.saw_expiry |= found.seats > 0;
        self.due.seats += found.seats;
        self.due.until_ms = self.now_ms;
        self.due.next_at_ms = found.next_at_ms.unwrap_or(i64::MAX);
        Ok(())
    }

    /// Seats taken now: what is due counts as free, swept or not.
    #[must_use]
    pub fn used(&self) -> i64 {
        self.workshop.reserved - self.due.seats
    }

    /// Seats free now; negative after the capacity was forced below what is taken.
    #[must_use]
    pub fn free(&self) -> i64 {
        self.workshop.capacity - self.used()
    }

    /// Makes sure that so many seats are free also on paper: expires holds that are due, oldest first, and
    /// no more of them than that. Call it only where [`Desk::free`] is enough.
    pub(super) fn make_room(&mut self, seats: i64) -> Result<(), B::Error> {
        loop {
            let missing = seats - (self.workshop.capacity - self.workshop.reserved);
            if missing <= 0 || self.due.seats <= 0 {
                return Ok(());
            }
            // Each has a seat at least, so more than are missing are never needed.
            let limit = u32::try_from(missing).unwrap_or(u32::MAX).min(self.defaults.chunk.max(1));
            let oldest = self.book.due_bookings(self.now_ms, limit)?;
            if oldest.is_empty() {
                return Ok(());
            }
            for (request, booking) in oldest {
                if self.workshop.capacity - self.workshop.reserved >= seats {
                    return Ok(());
                }
                self.expire(&request, booking);
            }
        }
    }

    /// Takes seats; `held` ones may end by the clock.
    pub(super) fn take(&mut self, seats: i64, held: bool) {
        self.workshop.reserved += seats;
        if held {
            self.workshop.held += seats;
        }
    }

    /// Takes note of when a new or longer hold ends.
    pub(super) fn ends_at(&mut self, expires_at_ms: i64) {
        self.due.next_at_ms = self.due.next_at_ms.min(expires_at_ms);
    }

    /// Frees seats.
    pub(super) fn give_back(&mut self, seats: i64, held: bool) {
        self.workshop.reserved -= seats;
        if held {
            self.workshop.held -= seats;
        }
        // What an operator forced out of bounds comes back into them, and stays there.
        let above = (self.workshop.reserved - self.workshop.capacity).max(0);
        self.workshop.overbooked = self.workshop.overbooked.min(above);
    }

    /// Frees the seats of a booking that takes some and is not due, whatever kind they are.
    pub(super) fn release(&mut self, booking: &Booking) {
        let held = matches!(booking.state, State::Held | State::Offered);
        self.give_back(booking.taken(), held);
    }

    /// Appends to the log what happened to a request.
    pub(super) fn log(&mut self, kind: EventKind, request: &RequestId, seats: i64, reason: Option<Reason>) {
        self.log_with(kind, Some(request.shared()), seats, reason, None);
    }

    /// The same, of a hold or an offer that begins or goes on.
    pub(super) fn log_hold(&mut self, kind: EventKind, request: &RequestId, booking: &Booking) {
        self.log_with(kind, Some(request.shared()), booking.seats, None, booking.expires_at_ms);
    }

    /// Appends to the log.
    pub(super) fn log_with(
        &mut self,
        kind: EventKind,
        request: Option<Arc<str>>,
        seats: i64,
        reason: Option<Reason>,
        expires_at_ms: Option<i64>,
    ) {
        self.workshop.last_event += 1;
        let (seq, reserved) = (self.workshop.last_event, self.used());
        let at_ms = self.now_ms;
        self.book.append(Event { seq, at_ms, kind, request, seats, reserved, reason, expires_at_ms });
    }

    /// Whether there is such a request, and it is this holder's.
    ///
    /// # Errors
    /// The book's.
    pub fn is_of(&mut self, request: &RequestId, holder: HolderKey) -> Result<bool, B::Error> {
        Ok(self.life(request)?.is_some_and(|life| life.terms.holder == Some(holder)))
    }

    /// A request's life, if there is such a request: what its booking says, or its first decision.
    pub(super) fn life(&mut self, request: &RequestId) -> Result<Option<Booking>, B::Error> {
        if let Some(booking) = self.book.booking(request)? {
            return Ok(Some(booking));
        }
        let attempt = self.book.attempt(request)?;
        Ok(attempt.map(|attempt| {
            let state = match attempt.status {
                crate::store::reservations::Status::Accepted => State::Accepted,
                crate::store::reservations::Status::Rejected => State::Rejected,
            };
            Booking {
                terms: Default::default(),
                queued: false,
                state,
                seats: attempt.seats,
                since_ms: attempt.decided_at_ms,
                expires_at_ms: None,
                place: None,
                set_ends_at_ms: None,
                set_round: 0,
            }
        }))
    }
}
