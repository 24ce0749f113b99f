//! A line of a set does what its set has decided. Seats of a line are held without an end from the moment they are
//! asked for, so that the set can be decided for all its lines in one place.
//!
//! Every settlement may be repeated, in any order with itself: a line that is over stays over.

use super::desk::{Book, Desk};
use crate::reservations::types::RequestId;
use crate::store::bookings::{Booking, EventKind, Reason, State, Terms};
use crate::store::reservations::{Attempt, Status};

/// What a set has decided for its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// The seats stay held.
    Keep,
    /// They are taken for good.
    Confirm,
    /// They are given up.
    Cancel,
    /// The hold of the set has ended.
    Expire,
    /// The set was refused. A workshop that was never asked, or is asked later, refuses, too.
    Refuse {
        /// Seats of the line.
        seats: i64,
    },
}

/// Has a line do what is decided.
///
/// # Errors
/// The book's.
pub fn settle<B: Book>(
    desk: &mut Desk<'_, B>,
    request: &RequestId,
    settlement: Settlement,
) -> Result<(), B::Error> {
    desk.look_at_the_clock()?;
    let Some(line) = desk.life(request)? else {
        if let Settlement::Refuse { seats } = settlement {
            desk.refuse_line(request, seats);
        }
        return Ok(());
    };
    // The id is of somebody else here, and that is why the set was refused.
    if !line.terms.of_set {
        return Ok(());
    }
    match (settlement, line.state) {
        (Settlement::Confirm, State::Held) => desk.confirm_line(request, line),
        (Settlement::Cancel | Settlement::Refuse { .. }, State::Held | State::Confirmed) => {
            desk.give_up(request, line);
            desk.serve_waiters()?;
        }
        (Settlement::Expire, State::Held) => {
            desk.expire_line(request, line);
            desk.serve_waiters()?;
        }
        _ => {}
    }
    Ok(())
}

impl<B: Book> Desk<'_, B> {
    fn confirm_line(&mut self, request: &RequestId, line: Booking) {
        self.workshop.held -= line.seats;
        self.log(EventKind::Confirmed, request, line.seats, None);
        self.book.put_booking(request, Booking { state: State::Confirmed, ..line });
    }

    fn expire_line(&mut self, request: &RequestId, line: Booking) {
        self.release(&line);
        self.log(EventKind::Expired, request, line.seats, None);
        self.book.put_booking(request, Booking { state: State::Expired, ..line });
    }

    /// A question after a line that comes late, from whoever has not heard of the refusal, finds this.
    fn refuse_line(&mut self, request: &RequestId, seats: i64) {
        let (reserved_after, decided_at_ms) = (self.used(), self.now_ms);
        let reason = Some(Reason::NotEnoughSeats);
        self.workshop.rejected_requests += 1;
        self.log(EventKind::Rejected, request, seats, reason);
        let status = Status::Rejected;
        self.book
            .put_attempt(request, Attempt { seats, status, reserved_after, decided_at_ms, reason: None });
        let terms = Terms { hold: true, of_set: true, ..Terms::default() };
        self.book.put_booking(
            request,
            Booking {
                terms,
                queued: false,
                state: State::Rejected,
                seats,
                since_ms: decided_at_ms,
                expires_at_ms: None,
                place: None,
            },
        );
    }
}
