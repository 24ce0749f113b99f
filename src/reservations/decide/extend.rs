//! Letting a hold live longer.

use super::desk::{Book, Desk};
use super::{Changed, Life, Wrong};
use crate::reservations::types::RequestId;
use crate::store::bookings::{Booking, EventKind, State};

/// Lets a hold or an offer live `ttl_ms` from its beginning, if that is longer than it does already. Counted
/// from there, and not from now, so that repeating it changes nothing; and a hold no longer than
/// `reservations.max_hold_ms` in all, an offer no longer than its workshop lets offers live.
///
/// # Errors
/// The book's.
pub fn extend<B: Book>(
    desk: &mut Desk<'_, B>,
    request: &RequestId,
    ttl_ms: i64,
) -> Result<Changed, B::Error> {
    desk.look_at_the_clock()?;
    let Some(booking) = desk.life(request)? else { return Ok(Changed::Refused(Wrong::NotFound)) };
    if booking.terms.of_set {
        return Ok(Changed::Refused(Wrong::PartOfSet));
    }
    let wrong = match booking.state_at(desk.now_ms) {
        State::Held | State::Offered => {
            let most_ms = match booking.state {
                // Others wait for these seats.
                State::Offered => desk.offer_lives_ms(),
                _ => desk.defaults.max_hold_ms,
            };
            let longest = booking.since_ms.saturating_add(ttl_ms.min(most_ms));
            let extended = match booking.expires_at_ms {
                Some(expires_at_ms) if expires_at_ms < longest => {
                    let extended = Booking { expires_at_ms: Some(longest), ..booking };
                    desk.log_hold(EventKind::Extended, request, &extended);
                    desk.book.put_booking(request, extended.clone());
                    extended
                }
                _ => booking,
            };
            return Ok(Changed::Done(Life::of(&extended, desk.now_ms, None)));
        }
        State::Expired => Wrong::HoldExpired,
        State::Confirmed | State::Accepted => Wrong::AlreadyConfirmed,
        State::Cancelled => Wrong::AlreadyCancelled,
        State::Rejected => Wrong::AlreadyRejected,
        State::Waiting => Wrong::StillWaiting,
    };
    Ok(Changed::Refused(wrong))
}
