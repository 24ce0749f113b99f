//! Giving seats up, or one's place on the waiting list. Seats come back once.

use super::desk::{Book, Desk};
use super::{Changed, Life, Wrong};
use crate::reservations::types::RequestId;
use crate::store::bookings::{Booking, EventKind, State};

/// Cancels a request, whatever it has; what gets free is offered at once.
///
/// # Errors
/// The book's.
pub fn cancel<B: Book>(desk: &mut Desk<'_, B>, request: &RequestId) -> Result<Changed, B::Error> {
    desk.look_at_the_clock()?;
    let Some(booking) = desk.life(request)? else { return Ok(Changed::Refused(Wrong::NotFound)) };
    if booking.terms.of_set {
        return Ok(Changed::Refused(Wrong::PartOfSet));
    }
    match booking.state_at(desk.now_ms) {
        State::Rejected => return Ok(Changed::Refused(Wrong::AlreadyRejected)),
        State::Expired => return Ok(Changed::Refused(Wrong::HoldExpired)),
        State::Cancelled => return Ok(Changed::Done(Life::of(&booking, desk.now_ms, None))),
        State::Accepted | State::Held | State::Confirmed | State::Waiting | State::Offered => {}
    }
    let cancelled = desk.give_up(request, booking);
    desk.serve_waiters()?;
    Ok(Changed::Done(Life::of(&cancelled, desk.now_ms, None)))
}

impl<B: Book> Desk<'_, B> {
    /// Takes a live request's seats, or its place, away from it, and offers them to nobody yet.
    pub(super) fn give_up(&mut self, request: &RequestId, booking: Booking) -> Booking {
        match booking.state {
            State::Waiting => self.workshop.waiting -= 1,
            _ => self.release(&booking),
        }
        let cancelled = Booking {
            state: State::Cancelled,
            expires_at_ms: None,
            place: None,
            set_ends_at_ms: None,
            ..booking
        };
        self.log(EventKind::Cancelled, request, cancelled.seats, None);
        self.book.put_booking(request, cancelled.clone());
        cancelled
    }
}
