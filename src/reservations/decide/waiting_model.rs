//! The naive workshop with a waiting list: requests in the order in which they came, added up by looking, in which every hold
//! ends and every waiter is served at once when the time has come. The machine is swept after each step, so that it has no
//! time to be lazy, and must then say and store the same.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::cases::{Case, MAX_HOLD_MS, OFFER_TTL_MS, id};
use super::*;
use crate::reservations::types::Seats;
use crate::store::bookings::{HolderKey, Reason, Terms};
use crate::store::reservations::{Policy, Rules, Status, Waitlist};

const TTL_MS: i64 = 25;
const MAX_LENGTH: i64 = 4;

#[derive(Debug, Clone)]
enum Step {
    Request {
        id: u8,
        seats: i64,
        hold: bool,
        holder: Option<i64>,
        waits: bool,
        replaces: Option<u8>,
    },
    Confirm {
        id: u8,
        reacquire: bool,
    },
    Cancel {
        id: u8,
    },
    Extend {
        id: u8,
        ttl_ms: i64,
    },
    Configure {
        capacity: i64,
        strict: bool,
        per_holder: Option<i64>,
        opens: Option<i64>,
        closes: Option<i64>,
    },
    Tick {
        ms: i64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let some = || 0..12_u8;
    let request = (
        0..40_u8,
        1..4_i64,
        any::<bool>(),
        prop::option::weighted(0.7, 0..3_i64),
        prop::bool::weighted(0.7),
        prop::option::weighted(0.3, 0..40_u8),
    )
        .prop_map(|(id, seats, hold, holder, waits, replaces)| Step::Request {
            id,
            seats,
            hold,
            holder,
            waits,
            replaces,
        });
    let in_a_while = || prop::option::weighted(0.3, 0..60_i64);
    let per_holder = prop::option::weighted(0.3, 1..6_i64);
    let configure = (0..8_i64, any::<bool>(), per_holder, in_a_while(), in_a_while()).prop_map(
        |(capacity, strict, per_holder, opens, closes)| Step::Configure {
            capacity,
            strict,
            per_holder,
            opens,
            closes,
        },
    );
    let step = prop_oneof![
        10 => request,
        2 => (some(), any::<bool>()).prop_map(|(id, reacquire)| Step::Confirm { id, reacquire }),
        4 => some().prop_map(|id| Step::Cancel { id }),
        1 => (some(), 1..80_i64).prop_map(|(id, ttl_ms)| Step::Extend { id, ttl_ms }),
        1 => configure,
        3 => (1..25_i64).prop_map(|ms| Step::Tick { ms }),
    ];
    prop::collection::vec(step, 0..80)
}

fn name(of: u8) -> String {
    format!("request-{of}")
}

#[derive(Debug, Clone)]
struct Request {
    ask: Ask,
    first: First,
    reason: Option<Reason>,
    state: State,
    since_ms: i64,
    ends_ms: Option<i64>,
    /// By which it is served.
    came: usize,
}

impl Request {
    fn seats(&self) -> i64 {
        i64::from(self.ask.seats.get())
    }

    fn taken(&self) -> i64 {
        if self.state.takes_seats() { self.seats() } else { 0 }
    }
}

#[derive(Debug, Default)]
struct Naive {
    capacity: i64,
    strict: bool,
    per_holder: Option<i64>,
    opens_ms: Option<i64>,
    closes_ms: Option<i64>,
    requests: BTreeMap<u8, Request>,
    now_ms: i64,
}

/// The first word and why, or nothing where the id is not used up or belongs to something else.
type Answer = Option<(First, Option<Reason>)>;

impl Naive {
    fn taken(&self) -> i64 {
        self.requests.values().map(Request::taken).sum()
    }

    fn waiting(&self) -> Vec<u8> {
        let waiting = self.requests.iter().filter(|(_, request)| request.state == State::Waiting);
        let mut waiting: Vec<_> = waiting.map(|(id, request)| (request.came, *id)).collect();
        waiting.sort_unstable();
        waiting.into_iter().map(|(_, id)| id).collect()
    }

    fn outside(&self) -> Option<Reason> {
        if self.opens_ms.is_some_and(|at_ms| self.now_ms < at_ms) {
            return Some(Reason::SaleNotOpen);
        }
        self.closes_ms.filter(|at_ms| self.now_ms >= *at_ms).map(|_| Reason::SaleClosed)
    }

    fn exceeds(&self, holder: Option<HolderKey>, more: i64, waiting_too: bool) -> bool {
        let (Some(most), Some(holder)) = (self.per_holder, holder) else { return false };
        let theirs = self.requests.values().filter(|request| request.ask.terms.holder == Some(holder));
        let counts = |request: &Request| match request.state {
            State::Waiting if waiting_too => request.seats(),
            _ => request.taken(),
        };
        theirs.map(counts).sum::<i64>() + more > most
    }

    fn tick(&mut self, ms: i64) {
        self.now_ms += ms;
        for request in self.requests.values_mut() {
            if request.ends_ms.is_some_and(|ends_ms| self.now_ms >= ends_ms) {
                (request.state, request.ends_ms) = (State::Expired, None);
            }
        }
        self.serve();
    }

    /// One after another, until nobody can be served now.
    fn serve(&mut self) {
        while let Some((id, reason)) = self.next() {
            let now_ms = self.now_ms;
            let request = self.requests.get_mut(&id).unwrap();
            match reason {
                Some(reason) => (request.state, request.reason) = (State::Rejected, Some(reason)),
                None => {
                    (request.state, request.since_ms) = (State::Offered, now_ms);
                    request.ends_ms = Some(now_ms + OFFER_TTL_MS);
                }
            }
        }
    }

    /// Who gets an offer, or why it never will.
    fn next(&self) -> Option<(u8, Option<Reason>)> {
        let (waiting, free) = (self.waiting(), self.capacity - self.taken());
        let first = *waiting.first()?;
        match self.outside() {
            Some(Reason::SaleNotOpen) => return None,
            Some(closed) => return Some((first, Some(closed))),
            None if free <= 0 => return None,
            None => {}
        }
        let never = |id: u8| {
            let request = &self.requests[&id];
            let exceeds = self.exceeds(request.ask.terms.holder, request.seats(), false);
            let too_many = (request.seats() > self.capacity).then_some(Reason::NotEnoughSeats);
            too_many.or(exceeds.then_some(Reason::LimitExceeded))
        };
        let fits = |id: &&u8| self.requests[*id].seats() <= free;
        if never(first).is_some() || fits(&&first) {
            return Some((first, never(first)));
        }
        let fitting = waiting.iter().find(fits).filter(|_| !self.strict)?;
        Some((*fitting, never(*fitting)))
    }

    fn request(&mut self, of: u8, ask: &Ask) -> Answer {
        if let Some(known) = self.requests.get(&of) {
            let why = known.reason.filter(|_| known.state == State::Rejected);
            return (known.ask == *ask).then_some((known.first, why));
        }
        let (seats, holder) = (i64::from(ask.seats.get()), ask.terms.holder);
        let old = ask.terms.replaces.as_deref().map(|old| old["request-".len()..].parse::<u8>().unwrap());
        let unknown = old.is_some_and(|old| !self.requests.contains_key(&old));
        if unknown || (self.per_holder.is_some() && holder.is_none()) {
            return None;
        }
        let live = |request: &Request| request.state.takes_seats() || request.state == State::Waiting;
        let old = old.map(|old| (old, self.requests[&old].clone())).filter(|(_, old)| live(old));
        let given_up = old.as_ref().map_or(0, |(_, old)| old.taken());
        let own = old.as_ref().map(|(_, old)| old);
        let own = own.filter(|old| holder.is_some() && old.ask.terms.holder == holder);
        let from_own =
            own.is_some_and(|own| seats <= own.taken() && !(ask.terms.hold && own.state == State::Offered));
        let itself = usize::from(old.as_ref().is_some_and(|(_, old)| old.state == State::Waiting));
        let free = self.capacity - self.taken();
        let why = if let Some(outside) = self.outside() {
            Some(outside)
        } else if self.exceeds(holder, seats - own.map_or(0, Request::taken), false) {
            Some(Reason::LimitExceeded)
        } else if self.waiting().len() > itself && !from_own {
            Some(Reason::WaitersFirst)
        } else {
            (seats > given_up && seats > free + given_up).then_some(Reason::NotEnoughSeats)
        };
        let begun = old.as_ref().filter(|(_, old)| ask.terms.hold && old.state == State::Held);
        let since_ms = begun.map_or(self.now_ms, |(_, old)| old.since_ms);
        let ends_ms = (self.now_ms + TTL_MS).min(since_ms + MAX_HOLD_MS);
        let came = self.requests.len();
        let mut new = Request {
            ask: ask.clone(),
            first: First::Rejected,
            reason: why,
            state: State::Rejected,
            since_ms,
            ends_ms: None,
            came,
        };
        let lacks_seats = matches!(why, Some(Reason::NotEnoughSeats | Reason::WaitersFirst));
        match why {
            None => {
                if let Some((old, _)) = old {
                    let old = self.requests.get_mut(&old).unwrap();
                    (old.state, old.ends_ms) = (State::Cancelled, None);
                }
                (new.first, new.state) = match ask.terms.hold {
                    true => (First::Held, State::Held),
                    false => (First::Accepted, State::Accepted),
                };
                new.ends_ms = ask.terms.hold.then_some(ends_ms);
            }
            Some(_)
                if lacks_seats
                    && ask.terms.waitlist
                    && ask.terms.replaces.is_none()
                    && seats <= self.capacity =>
            {
                if self.exceeds(holder, seats, true) {
                    new.reason = Some(Reason::LimitExceeded);
                } else if self.waiting().len() as i64 >= MAX_LENGTH {
                    new.reason = Some(Reason::WaitlistFull);
                } else {
                    (new.first, new.state, new.reason) = (First::Waiting, State::Waiting, None);
                }
            }
            Some(_) => {}
        }
        self.requests.insert(of, new);
        self.serve();
        let new = &self.requests[&of];
        Some((new.first, new.reason.filter(|_| new.state == State::Rejected)))
    }

    fn confirm(&mut self, of: u8, reacquire: bool) -> Result<(), Wrong> {
        let Some(known) = self.requests.get(&of) else { return Err(Wrong::NotFound) };
        match known.state {
            State::Held | State::Offered | State::Confirmed => {}
            State::Expired => {
                let free = self.capacity - self.taken();
                let may = self.waiting().is_empty() && self.outside().is_none() && known.seats() <= free;
                if !reacquire || !may || self.exceeds(known.ask.terms.holder, known.seats(), false) {
                    return Err(Wrong::HoldExpired);
                }
            }
            State::Accepted => return Err(Wrong::AlreadyConfirmed),
            State::Cancelled => return Err(Wrong::AlreadyCancelled),
            State::Rejected => return Err(Wrong::AlreadyRejected),
            State::Waiting => return Err(Wrong::StillWaiting),
        }
        let known = self.requests.get_mut(&of).unwrap();
        (known.state, known.ends_ms) = (State::Confirmed, None);
        Ok(())
    }

    fn cancel(&mut self, of: u8) -> Result<(), Wrong> {
        let Some(known) = self.requests.get_mut(&of) else { return Err(Wrong::NotFound) };
        match known.state {
            State::Expired => return Err(Wrong::HoldExpired),
            State::Rejected => return Err(Wrong::AlreadyRejected),
            _ => (known.state, known.ends_ms) = (State::Cancelled, None),
        }
        self.serve();
        Ok(())
    }

    fn extend(&mut self, of: u8, ttl_ms: i64) -> Result<(), Wrong> {
        let Some(known) = self.requests.get_mut(&of) else { return Err(Wrong::NotFound) };
        match known.state {
            State::Held => {
                known.ends_ms = known.ends_ms.max(Some(known.since_ms + ttl_ms.min(MAX_HOLD_MS)));
            }
            State::Offered => {}
            State::Expired => return Err(Wrong::HoldExpired),
            State::Confirmed | State::Accepted => return Err(Wrong::AlreadyConfirmed),
            State::Cancelled => return Err(Wrong::AlreadyCancelled),
            State::Rejected => return Err(Wrong::AlreadyRejected),
            State::Waiting => return Err(Wrong::StillWaiting),
        }
        Ok(())
    }
}

/// Until nothing is left that the clock asks for.
fn settle_down(case: &mut Case) {
    for _ in 0..100 {
        case.sweep();
        if case.due.seats == 0 && case.workshop.offers_due_at_ms.is_none_or(|at_ms| at_ms > case.now_ms) {
            return;
        }
    }
    panic!("a sweep without an end: {:?}", case.workshop);
}

fn answer(reserved: Reserved) -> Answer {
    match reserved {
        Reserved::Decided { status, reason, .. } => Some((status, reason)),
        _ => None,
    }
}

fn outcome(changed: Changed) -> Result<(), Wrong> {
    match changed {
        Changed::Done(_) => Ok(()),
        Changed::Refused(wrong) => Err(wrong),
    }
}

/// Takes the step here and there.
fn take(step: &Step, case: &mut Case, naive: &mut Naive) {
    match step {
        Step::Request { id: of, seats, hold, holder, waits, replaces } => {
            let terms = Terms {
                hold: *hold,
                ttl_ms: hold.then_some(TTL_MS),
                holder: holder.map(HolderKey),
                waitlist: *waits,
                replaces: replaces.map(|old| id(&name(old)).shared()),
                of_set: false,
            };
            let ask = Ask {
                seats: Seats::stored(*seats).unwrap(),
                terms,
                set_ends_at_ms: None,
                replaces_own: false,
            };
            let told = case.at_the_desk(|desk| request(desk, &id(&name(*of)), &ask)).unwrap();
            assert_eq!(answer(told), naive.request(*of, &ask), "{step:?}: {told:?}");
        }
        Step::Confirm { id: of, reacquire } => {
            let asked = Confirm { seats: None, reacquire: *reacquire };
            let told = case.at_the_desk(|desk| confirm(desk, &id(&name(*of)), asked)).unwrap();
            assert_eq!(outcome(told), naive.confirm(*of, *reacquire), "{step:?}");
        }
        Step::Cancel { id: of } => {
            let told = case.at_the_desk(|desk| cancel(desk, &id(&name(*of)))).unwrap();
            assert_eq!(outcome(told), naive.cancel(*of), "{step:?}");
        }
        Step::Extend { id: of, ttl_ms } => {
            let told = case.at_the_desk(|desk| extend(desk, &id(&name(*of)), *ttl_ms)).unwrap();
            assert_eq!(outcome(told), naive.extend(*of, *ttl_ms), "{step:?}");
        }
        Step::Configure { capacity, strict, per_holder, opens, closes } => {
            let opens_at_ms = opens.map(|ms| naive.now_ms + ms);
            let closes_at_ms = closes.map(|ms| naive.now_ms + opens.unwrap_or(-30) + ms + 1);
            let policy = if *strict { Policy::Strict } else { Policy::FitFirst };
            let waitlist = Waitlist { policy, offer_ttl_ms: OFFER_TTL_MS, max_length: MAX_LENGTH };
            let rules = Rules {
                max_seats_per_holder: *per_holder,
                waitlist: Some(waitlist),
                opens_at_ms,
                closes_at_ms,
                ..Rules::default()
            };
            case.configure(*capacity, rules, true);
            (naive.capacity, naive.strict, naive.per_holder) = (*capacity, *strict, *per_holder);
            (naive.opens_ms, naive.closes_ms) = (opens_at_ms, closes_at_ms);
            naive.serve();
        }
        Step::Tick { ms } => {
            case.now_ms += ms;
            naive.tick(*ms);
        }
    }
}

fn assert_alike(case: &Case, naive: &Naive) {
    for (of, expected) in &naive.requests {
        let request = id(&name(*of));
        let (state, ends_ms) = match case.book.bookings.get(&request) {
            Some(booking) => (booking.state, booking.expires_at_ms),
            None => match case.book.attempts[&request].status {
                Status::Accepted => (State::Accepted, None),
                Status::Rejected => (State::Rejected, None),
            },
        };
        assert_eq!((state, ends_ms), (expected.state, expected.ends_ms), "{request:?}: {naive:?}");
    }
    assert_eq!(case.book.attempts.len(), naive.requests.len());
    let waiting = naive.waiting();
    let place = |of: &u8| case.book.bookings[&id(&name(*of))].place;
    assert!(waiting.iter().map(place).is_sorted(), "the order of {waiting:?}");
    assert_eq!((case.workshop.reserved, case.due.seats), (naive.taken(), 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn with_a_waiting_list_it_answers_as_the_naive_workshop_does(capacity in 0..8_i64, steps in steps()) {
        let mut case = Case::new(capacity, super::cases::STRICT);
        let mut naive = Naive { capacity, strict: true, now_ms: case.now_ms, ..Naive::default() };
        let list = Waitlist { policy: Policy::Strict, offer_ttl_ms: OFFER_TTL_MS, max_length: MAX_LENGTH };
        case.configure(capacity, Rules { waitlist: Some(list), ..Rules::default() }, true);
        for step in &steps {
            take(step, &mut case, &mut naive);
            settle_down(&mut case);
            assert_alike(&case, &naive);
        }
    }
}
