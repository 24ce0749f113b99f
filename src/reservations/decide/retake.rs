//! A line of a set whose hold has ended is asked for its seats again: it holds them, or refuses. What becomes of them is
//! the set's word, as with the first question.

use super::desk::{Book, Desk};
use super::{Changed, Life, Wrong};
use crate::reservations::types::RequestId;
use crate::store::bookings::{Booking, EventKind, State};

/// Holds a line's seats again, if they are free. `round`: how often its set has asked for them again, this time
/// included; a question of an earlier time, or one that was answered already by the set's word, gets nothing.
///
/// # Errors
/// The book's.
pub fn retake<B: Book>(desk: &mut Desk<'_, B>, request: &RequestId, round: i64) -> Result<Changed, B::Error> {
    desk.look_at_the_clock()?;
    let line = desk.life(request)?.filter(|line| line.terms.of_set);
    let Some(line) = line else { return Ok(Changed::Refused(Wrong::NotFound)) };
    let held = match line.state {
        State::Held | State::Confirmed if line.set_round >= round => line,
        // Its set has ended, and nobody has told it yet.
        State::Held => Booking { set_round: round, set_ends_at_ms: None, ..line },
        State::Expired if line.set_round < round && desk.may_have_again(&line)? => {
            desk.make_room(line.seats)?;
            desk.take(line.seats, true);
            desk.log(EventKind::Extended, request, line.seats, None);
            Booking { state: State::Held, since_ms: desk.now_ms, set_round: round, ..line }
        }
        State::Expired if line.set_round < round => {
            desk.book.put_booking(request, Booking { set_round: round, ..line });
            return Ok(Changed::Refused(Wrong::HoldExpired));
        }
        _ => return Ok(Changed::Refused(Wrong::HoldExpired)),
    };
    let life = Life::of(&held, desk.now_ms, None);
    desk.book.put_booking(request, held);
    Ok(Changed::Done(life))
}
