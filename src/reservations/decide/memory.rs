//! A book in memory, for tests: a map for each table, searched by looking.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::desk::Book;
use crate::reservations::types::RequestId;
use crate::store::bookings::{Booking, DueLines, DueSeats, Event, EventKind, HolderKey, Reason};
use crate::store::reservations::Attempt;

#[derive(Debug, Default, Clone)]
pub(in crate::reservations) struct MemoryBook {
    pub(in crate::reservations) attempts: BTreeMap<RequestId, Attempt>,
    pub(in crate::reservations) bookings: BTreeMap<RequestId, Booking>,
    pub(in crate::reservations) events: Vec<Event>,
}

impl Book for MemoryBook {
    type Error = Infallible;

    fn attempt(&mut self, request: &RequestId) -> Result<Option<Attempt>, Infallible> {
        Ok(self.attempts.get(request).copied())
    }

    fn booking(&mut self, request: &RequestId) -> Result<Option<Booking>, Infallible> {
        Ok(self.bookings.get(request).cloned())
    }

    fn due_seats(&mut self, after_ms: i64, until_ms: i64) -> Result<DueSeats, Infallible> {
        let ends = || self.bookings.values().filter_map(|booking| Some((booking.expires_at_ms?, booking)));
        let due = ends().filter(|(at, _)| *at > after_ms && *at <= until_ms);
        let seats = due.map(|(_, booking)| booking.taken()).sum();
        let next_at_ms = ends().map(|(at, _)| at).filter(|at| *at > until_ms).min();
        Ok(DueSeats { seats, next_at_ms })
    }

    fn due_bookings(&mut self, now_ms: i64, limit: u32) -> Result<Vec<(RequestId, Booking)>, Infallible> {
        let due = self.bookings.iter().filter(|(_, booking)| booking.is_due(now_ms));
        let mut due: Vec<_> = due.map(|(request, booking)| (request.clone(), booking.clone())).collect();
        due.sort_by_key(|(_, booking)| booking.expires_at_ms);
        due.truncate(limit as usize);
        Ok(due)
    }

    fn due_lines(&mut self, now_ms: i64, limit: u32) -> Result<DueLines, Infallible> {
        let ends = self.bookings.iter().filter_map(|(request, line)| Some((line.set_ends_at_ms?, request)));
        let mut ends: Vec<_> = ends.collect();
        ends.sort();
        let next_at_ms = ends.iter().map(|(at_ms, _)| *at_ms).find(|at_ms| *at_ms > now_ms);
        let due = ends.into_iter().filter(|(at_ms, _)| *at_ms <= now_ms).take(limit as usize);
        Ok(DueLines { requests: due.map(|(_, request)| request.shared()).collect(), next_at_ms })
    }

    fn first_waiter(&mut self, most_seats: i64) -> Result<Option<(RequestId, Booking)>, Infallible> {
        let waiting = self
            .bookings
            .iter()
            .filter(|(_, booking)| booking.place.is_some() && booking.seats <= most_seats);
        let first = waiting.min_by_key(|(_, booking)| booking.place);
        Ok(first.map(|(request, booking)| (request.clone(), booking.clone())))
    }

    fn waiters_before(&mut self, place: i64) -> Result<i64, Infallible> {
        let before = self.bookings.values().filter(|booking| booking.place.is_some_and(|at| at < place));
        Ok(before.count() as i64)
    }

    fn seats_of_holder(&mut self, holder: HolderKey, now_ms: i64) -> Result<i64, Infallible> {
        let of_the_holder = self.bookings.values().filter(|booking| booking.terms.holder == Some(holder));
        Ok(of_the_holder.filter(|booking| !booking.is_due(now_ms)).map(Booking::taken).sum())
    }

    fn seats_waited_for(&mut self, holder: HolderKey) -> Result<i64, Infallible> {
        let of_the_holder = self.bookings.values().filter(|booking| booking.terms.holder == Some(holder));
        Ok(of_the_holder.filter(|booking| booking.place.is_some()).map(|booking| booking.seats).sum())
    }

    fn skipped_for(&mut self, request: &RequestId) -> Result<Option<Reason>, Infallible> {
        let skipped = |event: &&Event| {
            event.kind == EventKind::Skipped && event.request.as_deref() == Some(request.as_str())
        };
        Ok(self.events.iter().find(skipped).and_then(|event| event.reason))
    }

    fn put_attempt(&mut self, request: &RequestId, attempt: Attempt) {
        assert!(self.attempts.insert(request.clone(), attempt).is_none(), "decided twice");
    }

    fn put_booking(&mut self, request: &RequestId, booking: Booking) {
        if let Some(before) = self.bookings.insert(request.clone(), booking.clone()) {
            assert_eq!((before.terms, before.queued), (booking.terms, booking.queued), "terms never change");
        }
    }

    fn append(&mut self, event: Event) {
        assert_eq!(event.seq, self.events.len() as i64 + 1, "no number is left out");
        self.events.push(event);
    }
}
