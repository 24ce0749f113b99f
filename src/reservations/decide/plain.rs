//! The short rule, for the many: a request for seats and nothing else, of a workshop that nobody holds
//! seats of, waits for, or has set rules for. [`reserve`](super::reserve) hands it what is that simple.

use crate::reservations::types::Seats;
use crate::store::reservations::{Attempt, Status, Workshop};

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "made and taken apart on one stack, never kept")]
pub enum Decision {
    /// The id's first decision; the workshop as it is now.
    First(Attempt, Workshop),
    /// The id was decided before: the same answer, and no seat is taken.
    Replay(Attempt),
    /// The id was decided before for another number of seats: nothing happens.
    Reused(Attempt),
}

/// A workshop as it springs up at first use.
#[must_use]
pub fn new_workshop(capacity: u32) -> Workshop {
    Workshop { capacity: i64::from(capacity), ..Workshop::default() }
}

/// Decides a request for seats. `earlier` is the first decision on its id: looked at before anything
/// that depends on the workshop's state, so that a replay always meets its first answer.
#[must_use]
pub fn reserve(workshop: Workshop, earlier: Option<Attempt>, seats: Seats, now_ms: i64) -> Decision {
    match earlier {
        Some(earlier) if earlier.seats == i64::from(seats.get()) => Decision::Replay(earlier),
        Some(earlier) => Decision::Reused(earlier),
        None => {
            let (attempt, after) = first(workshop, seats, now_ms);
            Decision::First(attempt, after)
        }
    }
}

/// The first decision on an id, and the workshop after it.
pub(super) fn first(workshop: Workshop, seats: Seats, now_ms: i64) -> (Attempt, Workshop) {
    let seats = i64::from(seats.get());
    let mut after = workshop;
    // Not `reserved + seats <= capacity`: an operator may have forced the capacity below what is taken.
    let status = if seats <= workshop.capacity - workshop.reserved {
        after.reserved += seats;
        after.accepted_requests += 1;
        after.accepted_seats += seats;
        Status::Accepted
    } else {
        after.rejected_requests += 1;
        Status::Rejected
    };
    let reserved_after = after.reserved;
    (Attempt { seats, status, reserved_after, decided_at_ms: now_ms, reason: None }, after)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the naive model: the list of accepted requests, added up by looking.
        #[test]
        fn never_one_seat_too_many_and_never_one_lost(
            capacity in 0..30_u32,
            requests in prop::collection::vec((0..40_u8, 1..5_u32), 0..120),
        ) {
            let mut workshop = new_workshop(capacity);
            let mut attempts: HashMap<u8, Attempt> = HashMap::new();
            let mut model: HashMap<u8, (u32, bool)> = HashMap::new();
            for (now_ms, (id, seats)) in (0..).zip(requests) {
                let taken: u32 = model.values().filter(|(_, taken)| *taken).map(|(seats, _)| seats).sum();
                let seats_typed = Seats::parse(&seats.to_string(), 4).unwrap();
                match (reserve(workshop, attempts.get(&id).copied(), seats_typed, now_ms), model.get(&id)) {
                    (Decision::First(attempt, after), None) => {
                        let fits = taken + seats <= capacity;
                        prop_assert_eq!(attempt.status == Status::Accepted, fits);
                        model.insert(id, (seats, fits));
                        attempts.insert(id, attempt);
                        workshop = after;
                        prop_assert_eq!(attempt.reserved_after, workshop.reserved);
                    }
                    (Decision::Replay(attempt), Some((first_seats, fitted))) => {
                        prop_assert_eq!(*first_seats, seats);
                        prop_assert_eq!(attempt.status == Status::Accepted, *fitted);
                    }
                    (Decision::Reused(attempt), Some((first_seats, _))) => {
                        prop_assert_ne!(*first_seats, seats);
                        prop_assert_eq!(attempt.seats, i64::from(*first_seats));
                    }
                    (decision, known) => prop_assert!(false, "{:?} of {:?}", decision, known),
                }
                let accepted = model.values().filter(|(_, taken)| *taken);
                let seats_taken: u32 = accepted.clone().map(|(seats, _)| seats).sum();
                prop_assert_eq!(workshop.reserved, i64::from(seats_taken));
                prop_assert!(workshop.reserved <= workshop.capacity);
                prop_assert_eq!(workshop.accepted_seats, workshop.reserved);
                prop_assert_eq!(workshop.accepted_requests, accepted.count() as i64);
                prop_assert_eq!(
                    workshop.accepted_requests + workshop.rejected_requests,
                    model.len() as i64
                );
            }
        }
    }

    #[test]
    fn a_workshop_forced_below_what_is_taken_has_no_seat_left() {
        let workshop = Workshop { capacity: 1, reserved: 3, overbooked: 2, ..new_workshop(1) };
        let one = Seats::parse("1", 4).unwrap();
        let Decision::First(attempt, after) = reserve(workshop, None, one, 0) else { panic!("not first") };
        assert_eq!((attempt.status, after.reserved), (Status::Rejected, 3));
    }
}
