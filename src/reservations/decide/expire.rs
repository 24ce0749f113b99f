//! What is due: written down a chunk at a time, for whoever waits for it to be written.
//!
//! Nothing depends on it being written soon. Whether a hold is over is decided by the clock, at every
//! command and read; its seats count as free from that moment on.

use super::desk::{Book, Desk};
use crate::reservations::types::RequestId;
use crate::store::bookings::{Booking, EventKind, State};

/// Expires up to `limit` holds that are due, the first to end first, and offers what they free. Returns how
/// many there were.
///
/// # Errors
/// The book's.
pub fn sweep<B: Book>(desk: &mut Desk<'_, B>, limit: u32) -> Result<u32, B::Error> {
    desk.look_at_the_clock()?;
    let due = desk.book.due_bookings(desk.now_ms, limit)?;
    let swept = u32::try_from(due.len()).unwrap_or(u32::MAX);
    for (request, booking) in due {
        desk.expire(&request, booking);
    }
    desk.serve_waiters()?;
    Ok(swept)
}

impl<B: Book> Desk<'_, B> {
    /// Writes down that a hold is over, and frees its seats on paper.
    pub(super) fn expire(&mut self, request: &RequestId, booking: Booking) {
        let seats = booking.taken();
        self.release(&booking);
        self.due.seats -= seats;
        self.book.put_booking(request, Booking { state: State::Expired, expires_at_ms: None, ..booking });
        self.log(EventKind::Expired, request, seats, None);
    }
}
