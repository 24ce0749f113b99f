//! The rules one by one, each as shortly as it can be told.

use super::memory::MemoryBook;
use super::*;
use crate::reservations::types::{RequestId, Seats};
use crate::store::bookings::{EventKind, HolderKey, Reason, Terms};
use crate::store::reservations::{Policy, Rules, Waitlist, Workshop};

pub(super) const MAX_HOLD_MS: i64 = 60;
pub(super) const OFFER_TTL_MS: i64 = 15;
pub(super) const STRICT: Rules = Rules {
    waitlist: Some(Waitlist { policy: Policy::Strict, offer_ttl_ms: OFFER_TTL_MS, max_length: 5 }),
    max_seats_per_request: None,
    max_seats_per_holder: None,
    hold_ttl_ms: None,
    opens_at_ms: None,
    closes_at_ms: None,
};

pub(super) struct Case {
    pub(super) workshop: Workshop,
    pub(super) due: Due,
    pub(super) book: MemoryBook,
    pub(super) now_ms: i64,
}

pub(super) fn id(text: &str) -> RequestId {
    RequestId::parse(text).unwrap()
}

/// For nobody.
fn plain() -> Terms {
    Terms::default()
}

fn of(holder: i64) -> Terms {
    Terms { holder: Some(HolderKey(holder)), ..plain() }
}

fn waits() -> Terms {
    Terms { waitlist: true, ..plain() }
}

fn holds(ttl_ms: i64) -> Terms {
    Terms { hold: true, ttl_ms: Some(ttl_ms), ..plain() }
}

fn instead_of(old: &str, terms: Terms) -> Terms {
    Terms { replaces: Some(id(old).shared()), ..terms }
}

impl Case {
    pub(super) fn new(capacity: i64, rules: Rules) -> Self {
        let mut case = Self {
            workshop: new_workshop(0),
            due: Due::default(),
            book: MemoryBook::default(),
            now_ms: 1_000,
        };
        case.configure(capacity, rules, false);
        case
    }

    pub(super) fn at_the_desk<T>(&mut self, decide: impl FnOnce(&mut Desk<'_, MemoryBook>) -> T) -> T {
        let mut desk = Desk {
            workshop: self.workshop,
            due: self.due,
            saw_expiry: false,
            book: &mut self.book,
            defaults: Defaults { hold_ttl_ms: 20, max_hold_ms: MAX_HOLD_MS, chunk: 8 },
            now_ms: self.now_ms,
        };
        let outcome = decide(&mut desk);
        (self.workshop, self.due) = (desk.workshop, desk.due);
        let most = self.workshop.capacity + self.workshop.overbooked;
        assert!((0..=most).contains(&self.workshop.reserved), "the database's check: {:?}", self.workshop);
        outcome
    }

    pub(super) fn configure(&mut self, capacity: i64, rules: Rules, force: bool) {
        let wanted = Configure { capacity, rules, force };
        assert_eq!(self.at_the_desk(|desk| configure(desk, wanted)).unwrap(), Configured::Done);
    }

    /// The first word, and why it is that.
    fn request(&mut self, request: &str, seats: i64, terms: Terms) -> (First, Option<Reason>) {
        let ask =
            Ask { seats: Seats::stored(seats).unwrap(), terms, set_ends_at_ms: None, replaces_own: false };
        match self.at_the_desk(|desk| super::request(desk, &id(request), &ask)).unwrap() {
            Reserved::Decided { status, reason, .. } => (status, reason),
            other => panic!("{other:?}"),
        }
    }

    fn takes(&mut self, request: &str, seats: i64, terms: Terms) {
        let (first, reason) = self.request(request, seats, terms);
        assert!(matches!(first, First::Accepted | First::Held), "{request}: {first:?}, {reason:?}");
    }

    fn is_refused(&mut self, request: &str, seats: i64, terms: Terms, why: Reason) {
        assert_eq!(self.request(request, seats, terms), (First::Rejected, Some(why)), "{request}");
    }

    fn queues(&mut self, request: &str, seats: i64, terms: Terms) {
        assert_eq!(self.request(request, seats, terms), (First::Waiting, None), "{request}");
    }

    fn cancel(&mut self, request: &str) {
        let changed = self.at_the_desk(|desk| super::cancel(desk, &id(request))).unwrap();
        assert!(matches!(changed, Changed::Done(_)), "{changed:?}");
    }

    fn confirm(&mut self, request: &str, seats: i64, reacquire: bool) -> Changed {
        let asked = Confirm { seats: Some(seats), reacquire };
        self.at_the_desk(|desk| super::confirm(desk, &id(request), asked)).unwrap()
    }

    fn extend(&mut self, request: &str, ttl_ms: i64) -> Option<i64> {
        match self.at_the_desk(|desk| super::extend(desk, &id(request), ttl_ms)).unwrap() {
            Changed::Done(life) => life.expires_at_ms,
            Changed::Refused(wrong) => panic!("{wrong:?}"),
        }
    }

    pub(super) fn sweep(&mut self) {
        self.at_the_desk(|desk| sweep(desk, 8)).unwrap();
    }

    fn state(&self, request: &str) -> State {
        match self.book.bookings.get(&id(request)) {
            Some(booking) => booking.state_at(self.now_ms),
            None => State::Accepted,
        }
    }

    fn ends_at(&self, request: &str) -> Option<i64> {
        self.book.bookings[&id(request)].expires_at_ms
    }
}

#[test]
fn a_request_is_its_holders_and_nobody_elses() {
    let mut case = Case::new(4, STRICT);
    case.takes("adas", 1, of(1));
    case.takes("nobodys", 1, plain());
    let mut is_of =
        |request: &str, holder| case.at_the_desk(|desk| desk.is_of(&id(request), HolderKey(holder)));
    assert_eq!((is_of("adas", 1), is_of("adas", 2)), (Ok(true), Ok(false)));
    assert_eq!((is_of("nobodys", 1), is_of("missing", 1)), (Ok(false), Ok(false)));
    for (replaced, holder, gets_it) in
        [("adas", 2, false), ("nobodys", 2, false), ("missing", 1, false), ("adas", 1, true)]
    {
        let terms = instead_of(replaced, of(holder));
        let ask = Ask { seats: Seats::stored(1).unwrap(), terms, set_ends_at_ms: None, replaces_own: true };
        let decided = case.at_the_desk(|desk| request(desk, &id("new"), &ask)).unwrap();
        assert_eq!(decided != Reserved::NothingToReplace, gets_it, "{replaced} by {holder}: {decided:?}");
    }
    let again = |case: &mut Case, holder| {
        let ask = Ask {
            seats: Seats::stored(1).unwrap(),
            terms: Terms { hold: true, ..of(holder) },
            set_ends_at_ms: None,
            replaces_own: true,
        };
        case.at_the_desk(|desk| request(desk, &id("adas"), &ask)).unwrap()
    };
    let reused = |is_own| Reserved::Reused { field: "hold", first_seats: 1, is_own };
    assert_eq!((again(&mut case, 1), again(&mut case, 2)), (reused(true), reused(false)));
}

#[test]
fn what_replaces_something_never_waits() {
    let mut case = Case::new(2, STRICT);
    case.takes("old", 1, plain());
    case.takes("other", 1, plain());
    let exchange = instead_of("old", waits());
    case.is_refused("new", 2, exchange.clone(), Reason::NotEnoughSeats);
    assert_eq!((case.state("old"), case.workshop.waiting), (State::Accepted, 0));
    case.queues("waiter", 1, waits());
    case.is_refused("newer", 2, exchange, Reason::WaitersFirst);
    assert_eq!((case.state("old"), case.workshop.waiting), (State::Accepted, 1));
}

#[test]
fn the_elder_of_two_whom_the_free_seats_are_enough_for_is_served_whether_they_are_swept_or_not() {
    let rules = Rules {
        waitlist: STRICT.waitlist.map(|list| Waitlist { policy: Policy::FitFirst, ..list }),
        ..STRICT
    };
    let mut case = Case::new(4, rules);
    case.takes("ends", 3, holds(25));
    case.takes("one", 1, plain());
    case.queues("elder", 4, waits());
    case.queues("young", 1, waits());
    case.now_ms += 25;
    case.cancel("one");
    assert_eq!((case.state("elder"), case.state("young")), (State::Offered, State::Waiting));
    assert_eq!(
        (case.workshop.reserved, case.due.seats),
        (4, 0),
        "what it takes is written down as free first"
    );
}

#[test]
fn while_anybody_waits_only_a_holder_exchanges_and_only_its_own() {
    let mut case = Case::new(3, STRICT);
    case.takes("ada", 1, of(1));
    case.takes("bob", 1, of(2));
    case.takes("nobody", 1, plain());
    case.takes("no-waiter-yet", 1, instead_of("nobody", plain()));
    case.queues("waiter", 1, waits());
    case.is_refused("newcomer", 1, instead_of("ada", plain()), Reason::WaitersFirst);
    case.is_refused("carl", 1, instead_of("ada", of(3)), Reason::WaitersFirst);
    case.is_refused("still-nobody", 1, instead_of("no-waiter-yet", plain()), Reason::WaitersFirst);
    assert_eq!(case.state("ada"), State::Accepted);
    case.takes("ada-again", 1, instead_of("ada", of(1)));
    assert_eq!((case.state("ada"), case.state("waiter")), (State::Cancelled, State::Waiting));
}

#[test]
fn a_hold_that_replaces_a_hold_goes_on_with_its_time() {
    let mut case = Case::new(1, STRICT);
    case.takes("hold-0", 1, holds(50));
    for n in 1..5 {
        case.now_ms += 14;
        case.takes(&format!("hold-{n}"), 1, instead_of(&format!("hold-{}", n - 1), holds(50)));
    }
    assert_eq!(case.ends_at("hold-4"), Some(1_000 + MAX_HOLD_MS), "capped in total");
    assert_eq!(case.extend("hold-4", 1_000), Some(1_000 + MAX_HOLD_MS));
    case.now_ms = 1_000 + MAX_HOLD_MS;
    case.takes("next", 1, holds(50));
    assert_eq!(case.ends_at("next"), Some(case.now_ms + 50));
}

#[test]
fn an_offer_lives_as_long_as_offers_do_and_no_extension_or_exchange_changes_that() {
    let mut case = Case::new(1, STRICT);
    case.takes("first", 1, plain());
    case.queues("waiter", 1, Terms { waitlist: true, ..of(1) });
    case.queues("next", 1, waits());
    case.cancel("first");
    let ends_at_ms = Some(case.now_ms + OFFER_TTL_MS);
    assert_eq!((case.state("waiter"), case.ends_at("waiter")), (State::Offered, ends_at_ms));
    assert_eq!(case.extend("waiter", MAX_HOLD_MS), ends_at_ms);
    let held_instead = Terms { hold: true, ttl_ms: Some(50), ..of(1) };
    case.is_refused("held", 1, instead_of("waiter", held_instead), Reason::WaitersFirst);
    case.now_ms += OFFER_TTL_MS;
    case.sweep();
    assert_eq!((case.state("waiter"), case.state("next")), (State::Expired, State::Offered));
}

#[test]
fn when_the_sale_closes_who_waits_is_looked_at_though_nobody_asks() {
    let rules = Rules { opens_at_ms: Some(1_050), closes_at_ms: Some(1_100), ..STRICT };
    let mut case = Case::new(1, STRICT);
    case.takes("first", 1, plain());
    case.queues("waiter", 1, waits());
    assert_eq!(case.workshop.offers_due_at_ms, None, "a sale without an end");
    case.configure(1, rules, false);
    assert_eq!(case.workshop.offers_due_at_ms, Some(1_050));
    case.now_ms = 1_050;
    case.sweep();
    assert_eq!((case.workshop.offers_due_at_ms, case.state("waiter")), (Some(1_100), State::Waiting));
    case.queues("second", 1, waits());
    case.cancel("waiter");
    assert_eq!(case.workshop.offers_due_at_ms, Some(1_100));
    case.now_ms = 1_100;
    case.sweep();
    assert_eq!((case.workshop.offers_due_at_ms, case.state("second")), (None, State::Rejected));
    let last = case.book.events.last().unwrap();
    assert_eq!((last.kind, last.reason), (EventKind::Skipped, Some(Reason::SaleClosed)));
    // The first word stays, and why it came to nothing is told with it.
    assert_eq!(case.request("second", 1, waits()), (First::Waiting, Some(Reason::SaleClosed)));
    assert_eq!(case.request("waiter", 1, waits()), (First::Waiting, None), "left of its own accord");
}

#[test]
fn an_overbooked_workshop_exchanges_seats_for_no_more() {
    let mut case = Case::new(4, STRICT);
    case.takes("two", 2, of(1));
    case.takes("others", 2, of(2));
    case.configure(2, STRICT, true);
    case.takes("same", 2, instead_of("two", of(1)));
    assert_eq!((case.workshop.reserved, case.workshop.overbooked), (4, 2));
    case.takes("fewer", 1, instead_of("same", of(1)));
    assert_eq!((case.workshop.reserved, case.workshop.overbooked), (3, 1));
    case.is_refused("more", 2, instead_of("fewer", of(1)), Reason::NotEnoughSeats);
    case.cancel("fewer");
    assert_eq!((case.workshop.reserved, case.workshop.overbooked), (2, 0));
}

/// On paper it is fuller than it is: nothing is written down for an exchange that needs no seat.
#[test]
fn an_overbooked_workshop_exchanges_seats_beside_holds_that_are_due() {
    let mut case = Case::new(4, STRICT);
    case.takes("ends", 2, holds(5));
    case.takes("two", 2, of(1));
    case.configure(1, STRICT, true);
    case.now_ms += 5;
    case.takes("same", 2, instead_of("two", of(1)));
    assert_eq!((case.workshop.reserved, case.due.seats, case.workshop.overbooked), (4, 2, 3));
    case.sweep();
    assert_eq!((case.workshop.reserved, case.due.seats, case.workshop.overbooked), (2, 0, 1));
}

#[test]
fn a_hold_that_has_ended_says_so_however_many_seats_are_asked_for() {
    let mut case = Case::new(4, STRICT);
    case.takes("held", 1, holds(5));
    let more = Changed::Refused(Wrong::MoreThanHeld { held: 1 });
    assert_eq!(case.confirm("held", 2, false), more);
    case.now_ms += 5;
    assert_eq!(case.confirm("held", 2, false), Changed::Refused(Wrong::HoldExpired));
    assert_eq!(case.confirm("held", 2, true), more);
    assert!(matches!(case.confirm("held", 1, true), Changed::Done(_)));
}

#[test]
fn what_a_holder_waits_for_counts_where_it_waits_for_more() {
    let mut case = Case::new(2, Rules { max_seats_per_holder: Some(2), ..STRICT });
    case.takes("first", 2, of(1));
    let bob = Terms { waitlist: true, ..of(2) };
    case.queues("one", 1, bob.clone());
    case.is_refused("too-many", 2, bob.clone(), Reason::LimitExceeded);
    case.queues("two", 1, bob.clone());
    case.is_refused("three", 1, bob, Reason::LimitExceeded);
    case.queues("others", 1, Terms { waitlist: true, ..of(3) });
    case.cancel("first");
    let offered = (State::Offered, State::Offered);
    assert_eq!(
        (case.state("one"), case.state("two")),
        offered,
        "what it waits for does not stand in its own way"
    );
}
