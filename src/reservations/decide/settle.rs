//! A line of a set does what its set has decided. Seats of a line are held without an end from the moment they are
//! asked for, so that the set can be decided for all its lines in one place.
//!
//! Every settlement may be repeated, in any order with itself: a line that is over stays over.

use super::desk::{Book, Desk};
use crate::reservations::types::RequestId;
use crate::store::bookings::{Booking, EventKind, Reason, State, Terms};
use crate::store::reservations::{Attempt, Status};

/// Most sets that are asked after at a time before a command is decided.
const MOST_DUE_LINES: u32 = 32;

/// What a set has decided for its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// The seats stay held.
    Keep {
        /// When that ends, unless it is put off; ms since 1970.
        ends_at_ms: i64,
    },
    /// They are taken for good.
    Confirm,
    /// They are given up.
    Cancel,
    /// The hold of the set has ended.
    Expire {
        /// How often the set had asked for its seats again by then.
        round: i64,
    },
    /// The set was refused. A workshop that was never asked, or is asked later, refuses, too.
    Refuse {
        /// Seats of the line.
        seats: i64,
    },
}

/// Has a line do what is decided; whether the workshop has this line, or has refused it.
///
/// # Errors
/// The book's.
pub fn settle<B: Book>(
    desk: &mut Desk<'_, B>,
    request: &RequestId,
    settlement: Settlement,
) -> Result<bool, B::Error> {
    desk.look_at_the_clock()?;
    let Some(line) = desk.life(request)? else {
        let Settlement::Refuse { seats } = settlement else { return Ok(false) };
        desk.refuse_line(request, seats);
        return Ok(true);
    };
    // The id is of somebody else here, and that is why the set was refused.
    if !line.terms.of_set {
        return Ok(matches!(settlement, Settlement::Refuse { .. }));
    }
    match (settlement, line.state) {
        (Settlement::Keep { ends_at_ms }, State::Held) => desk.keep_line(request, line, ends_at_ms),
        (Settlement::Confirm, State::Held) => desk.confirm_line(request, line),
        (Settlement::Cancel | Settlement::Refuse { .. }, State::Held | State::Confirmed) => {
            desk.give_up(request, line);
            desk.serve_waiters()?;
        }
        (Settlement::Expire { round }, State::Held) if line.set_round <= round => {
            desk.expire_line(request, line, round);
            desk.serve_waiters()?;
        }
        // Whoever asks for its seats in this round comes too late.
        (Settlement::Expire { round }, State::Expired) if line.set_round < round => {
            desk.book.put_booking(request, Booking { set_round: round, ..line });
        }
        _ => {}
    }
    Ok(true)
}

impl<B: Book> Desk<'_, B> {
    /// Held lines whose sets have perhaps ended: what becomes of them is to be asked before anything is decided on the
    /// seats that are left. Each set's home knows, and has its line settled.
    ///
    /// # Errors
    /// The book's.
    pub fn due_lines(&mut self) -> Result<Vec<RequestId>, B::Error> {
        if self.workshop.held == 0 || self.now_ms < self.due.next_line_at_ms {
            return Ok(Vec::new());
        }
        let found = self.book.due_lines(self.now_ms, MOST_DUE_LINES)?;
        if found.requests.is_empty() {
            self.due.next_line_at_ms = found.next_at_ms.unwrap_or(i64::MAX);
        }
        Ok(found.requests.into_iter().map(RequestId::from).collect())
    }

    /// Takes note of when the set of a held line ends.
    pub(super) fn line_ends_at(&mut self, ends_at_ms: Option<i64>) {
        self.due.next_line_at_ms = self.due.next_line_at_ms.min(ends_at_ms.unwrap_or(i64::MAX));
    }

    fn keep_line(&mut self, request: &RequestId, line: Booking, ends_at_ms: i64) {
        let ends_at_ms = Some(ends_at_ms);
        if line.set_ends_at_ms != ends_at_ms {
            self.line_ends_at(ends_at_ms);
            self.log_with(EventKind::Extended, Some(request.shared()), line.seats, None, ends_at_ms);
            self.book.put_booking(request, Booking { set_ends_at_ms: ends_at_ms, ..line });
        }
    }

    fn confirm_line(&mut self, request: &RequestId, line: Booking) {
        self.workshop.held -= line.seats;
        self.log(EventKind::Confirmed, request, line.seats, None);
        self.book.put_booking(request, Booking { state: State::Confirmed, set_ends_at_ms: None, ..line });
    }

    fn expire_line(&mut self, request: &RequestId, line: Booking, round: i64) {
        self.release(&line);
        self.log(EventKind::Expired, request, line.seats, None);
        self.book.put_booking(
            request,
            Booking { state: State::Expired, set_ends_at_ms: None, set_round: round, ..line },
        );
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
                set_ends_at_ms: None,
                set_round: 0,
            },
        );
    }
}
