//! Who is next: freed seats become offers in the transaction that frees them.
//!
//! While anybody waits, nobody else gets a free seat, so that a newcomer never overtakes.

use super::desk::{Book, Desk};
use crate::reservations::types::RequestId;
use crate::store::bookings::{Booking, EventKind, Reason, State};
use crate::store::reservations::Policy;

impl<B: Book> Desk<'_, B> {
    /// Offers free seats to those who wait, by the workshop's policy; those who can no longer be served are
    /// passed over for good. At most a chunk of them: the rest is left to a sweep that follows.
    pub(super) fn serve_waiters(&mut self) -> Result<(), B::Error> {
        self.workshop.offers_due_at_ms = None;
        for _ in 0..self.defaults.chunk.max(1) {
            if self.workshop.waiting == 0 {
                return Ok(());
            }
            if self.outside_the_sale() == Some(Reason::SaleNotOpen) {
                self.workshop.offers_due_at_ms = self.workshop.rules.opens_at_ms;
                return Ok(());
            }
            if !self.serve_next()? {
                // Its end passes over those who are left, whether anybody asks then or not.
                let closes_at_ms = self.workshop.rules.closes_at_ms;
                self.workshop.offers_due_at_ms = closes_at_ms.filter(|at_ms| *at_ms > self.now_ms);
                return Ok(());
            }
        }
        self.workshop.offers_due_at_ms = (self.workshop.waiting > 0).then_some(self.now_ms);
        Ok(())
    }

    /// Serves or passes over one; false if nobody can be now.
    fn serve_next(&mut self) -> Result<bool, B::Error> {
        let free = self.free();
        let closed = self.outside_the_sale().is_some();
        if free <= 0 && !closed {
            return Ok(false);
        }
        let Some((first, booking)) = self.book.first_waiter(i64::MAX)? else { return Ok(false) };
        if let Some(reason) = self.cannot_be_served(&booking)? {
            self.pass_over(&first, booking, reason);
            return Ok(true);
        }
        if booking.seats <= free {
            self.offer(&first, booking)?;
            return Ok(true);
        }
        let policy = self.workshop.rules.waitlist.map_or(Policy::Strict, |waitlist| waitlist.policy);
        if policy == Policy::Strict {
            return Ok(false);
        }
        let Some((fitting, booking)) = self.book.first_waiter(free)? else { return Ok(false) };
        match self.cannot_be_served(&booking)? {
            Some(reason) => self.pass_over(&fitting, booking, reason),
            None => self.offer(&fitting, booking)?,
        }
        Ok(true)
    }

    fn cannot_be_served(&mut self, waiter: &Booking) -> Result<Option<Reason>, B::Error> {
        if let Some(reason) = self.outside_the_sale() {
            return Ok(Some(reason));
        }
        if waiter.seats > self.workshop.capacity {
            return Ok(Some(Reason::NotEnoughSeats));
        }
        let exceeds = self.exceeds_share(waiter.terms.holder, waiter.seats, 0)?;
        Ok(exceeds.then_some(Reason::LimitExceeded))
    }

    /// How long offers live, in ms.
    pub(super) fn offer_lives_ms(&self) -> i64 {
        let waitlist = self.workshop.rules.waitlist;
        waitlist.map_or(self.defaults.hold_ttl_ms, |waitlist| waitlist.offer_ttl_ms)
    }

    fn offer(&mut self, request: &RequestId, waiter: Booking) -> Result<(), B::Error> {
        self.make_room(waiter.seats)?;
        let lives_ms = self.offer_lives_ms();
        // From now and not from when the seats got free: a time in which nobody could answer uses none of it.
        let expires_at_ms = self.now_ms.saturating_add(lives_ms);
        self.workshop.waiting -= 1;
        self.take(waiter.seats, true);
        self.ends_at(expires_at_ms);
        let offered = Booking {
            state: State::Offered,
            since_ms: self.now_ms,
            expires_at_ms: Some(expires_at_ms),
            place: None,
            ..waiter
        };
        self.log_hold(EventKind::Offered, request, &offered);
        self.book.put_booking(request, offered);
        Ok(())
    }

    fn pass_over(&mut self, request: &RequestId, waiter: Booking, reason: Reason) {
        self.workshop.waiting -= 1;
        self.log(EventKind::Skipped, request, waiter.seats, Some(reason));
        self.book.put_booking(request, Booking { state: State::Rejected, place: None, ..waiter });
    }

    /// How many wait before a request, and itself.
    pub(super) fn position(&mut self, booking: &Booking) -> Result<Option<i64>, B::Error> {
        match booking.place {
            Some(place) => Ok(Some(self.book.waiters_before(place)? + 1)),
            None => Ok(None),
        }
    }
}
