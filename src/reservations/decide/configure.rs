//! What an operator sets of a workshop.

use super::desk::{Book, Desk};
use crate::store::bookings::EventKind;
use crate::store::reservations::Rules;

/// What an operator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configure {
    /// Seats there are to be.
    pub capacity: i64,
    /// Everything else, whole: what it leaves out is not set any more.
    pub rules: Rules,
    /// Whether the capacity may fall below what is taken.
    pub force: bool,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Configured {
    /// It is so now.
    Done,
    /// The capacity would be below what is taken.
    InUse {
        /// Seats taken: the lowest capacity that needs no force.
        minimum: i64,
    },
}

/// Sets capacity and rules. Seats that are new go to those who wait, in the same step; when there are fewer
/// than are taken, nobody is thrown out.
///
/// # Errors
/// The book's.
pub fn configure<B: Book>(desk: &mut Desk<'_, B>, wanted: Configure) -> Result<Configured, B::Error> {
    desk.look_at_the_clock()?;
    if wanted.capacity < desk.used() && wanted.capacity < desk.workshop.capacity && !wanted.force {
        return Ok(Configured::InUse { minimum: desk.used() });
    }
    let workshop = &mut desk.workshop;
    let changes = (workshop.capacity, workshop.rules) != (wanted.capacity, wanted.rules);
    // The first time counts as a change: from then on the workshop is its operator's.
    if !changes && workshop.rules_version > 0 {
        return Ok(Configured::Done);
    }
    workshop.capacity = wanted.capacity;
    workshop.rules = wanted.rules;
    workshop.rules_version += 1;
    // Holds that are due but not yet swept are still in `reserved`, and are no overbooking.
    workshop.overbooked = (workshop.reserved - workshop.capacity).max(0);
    desk.log_with(EventKind::Configured, None, wanted.capacity, None, None);
    desk.serve_waiters()?;
    Ok(Configured::Done)
}
