//! Making held or offered seats one's own.

use super::desk::{Book, Desk};
use super::{Changed, Life, Wrong};
use crate::reservations::types::RequestId;
use crate::store::bookings::{Booking, EventKind, State};

/// What a confirmation asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Confirm {
    /// Fewer than are held: the rest gets free. Absent: all of them.
    pub seats: Option<i64>,
    /// If the hold has ended, take the seats again, provided that they are free.
    pub reacquire: bool,
}

/// Confirms a hold or an offer.
///
/// # Errors
/// The book's.
pub fn confirm<B: Book>(
    desk: &mut Desk<'_, B>,
    request: &RequestId,
    confirm: Confirm,
) -> Result<Changed, B::Error> {
    desk.look_at_the_clock()?;
    let Some(booking) = desk.life(request)? else { return Ok(Changed::Refused(Wrong::NotFound)) };
    if booking.terms.of_set {
        return Ok(Changed::Refused(Wrong::PartOfSet));
    }
    let seats = confirm.seats.unwrap_or(booking.seats);
    let state = booking.state_at(desk.now_ms);
    let has_them =
        matches!(state, State::Held | State::Offered) || (state == State::Expired && confirm.reacquire);
    let wrong = match state {
        _ if has_them && seats > booking.seats => Wrong::MoreThanHeld { held: booking.seats },
        State::Held | State::Offered => {
            return Ok(Changed::Done(desk.confirm_held(request, booking, seats)?));
        }
        State::Expired => {
            if confirm.reacquire
                && let Some(life) = desk.reacquire(request, booking, seats)?
            {
                return Ok(Changed::Done(life));
            }
            Wrong::HoldExpired
        }
        State::Confirmed if seats == booking.seats => {
            return Ok(Changed::Done(Life::of(&booking, desk.now_ms, None)));
        }
        State::Confirmed | State::Accepted => Wrong::AlreadyConfirmed,
        State::Cancelled => Wrong::AlreadyCancelled,
        State::Rejected => Wrong::AlreadyRejected,
        State::Waiting => Wrong::StillWaiting,
    };
    Ok(Changed::Refused(wrong))
}

impl<B: Book> Desk<'_, B> {
    fn confirm_held(&mut self, request: &RequestId, held: Booking, seats: i64) -> Result<Life, B::Error> {
        let surplus = held.seats - seats;
        self.workshop.held -= seats;
        self.give_back(surplus, true);
        let confirmed = self.keep_confirmed(request, held, seats);
        if surplus > 0 {
            self.serve_waiters()?;
        }
        Ok(confirmed)
    }

    /// As a newcomer, who never overtakes and never touches anybody else's seats; of what is due, its own
    /// seats are the first that it takes.
    fn reacquire(
        &mut self,
        request: &RequestId,
        ended: Booking,
        seats: i64,
    ) -> Result<Option<Life>, B::Error> {
        if !self.may_have_again(&Booking { seats, ..ended.clone() })? {
            return Ok(None);
        }
        let ended = match ended.state {
            State::Expired => ended,
            _ => {
                self.expire(request, ended.clone());
                Booking { state: State::Expired, expires_at_ms: None, ..ended }
            }
        };
        self.make_room(seats)?;
        self.take(seats, false);
        Ok(Some(self.keep_confirmed(request, ended, seats)))
    }

    /// Whether whose hold has ended may have its seats again, as a newcomer would.
    pub(super) fn may_have_again(&mut self, ended: &Booking) -> Result<bool, B::Error> {
        let is_free =
            self.workshop.waiting == 0 && self.outside_the_sale().is_none() && ended.seats <= self.free();
        Ok(is_free && !self.exceeds_share(ended.terms.holder, ended.seats, 0)?)
    }

    fn keep_confirmed(&mut self, request: &RequestId, booking: Booking, seats: i64) -> Life {
        let confirmed = Booking { state: State::Confirmed, seats, expires_at_ms: None, ..booking };
        self.log(EventKind::Confirmed, request, seats, None);
        let life = Life::of(&confirmed, self.now_ms, None);
        self.book.put_booking(request, confirmed);
        life
    }
}
