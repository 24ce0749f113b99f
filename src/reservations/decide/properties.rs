//! Any sequence of commands, steps of the clock and reloads: seats are conserved, never one too many, and
//! nobody who waits is overtaken. Beside it the naive model: a list of requests, added up by looking, in which
//! every hold ends at once when its time has come.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::memory::MemoryBook;
use super::*;
use crate::reservations::types::{RequestId, Seats};
use crate::store::bookings::{HolderKey, Reason, Terms};
use crate::store::reservations::{Policy, Rules, Waitlist, Workshop};

#[derive(Debug, Clone)]
enum Step {
    Request {
        id: u8,
        seats: u32,
        hold: bool,
        ttl_ms: i64,
        holder: Option<i64>,
        waits: bool,
        replaces: Option<u8>,
    },
    Confirm {
        id: u8,
        seats: Option<i64>,
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
        force: bool,
        policy: Policy,
        per_holder: Option<i64>,
        closed: bool,
    },
    Tick {
        ms: i64,
    },
    Sweep {
        limit: u32,
    },
    /// Memory is lost; what is stored stays.
    Reload,
    /// What was decided since the last commit is stored, and its time with it.
    Commit,
    /// It was not, and never happened; the clock was set back meanwhile, and goes on from the stored time at least.
    Crash {
        back_ms: i64,
    },
}

fn steps(waitlists: bool) -> impl Strategy<Value = Vec<Step>> {
    let id = || 0..14_u8;
    let request = (
        0..60_u8,
        1..4_u32,
        any::<bool>(),
        1..40_i64,
        prop::option::of(0..3_i64),
        any::<bool>(),
        prop::option::weighted(0.15, 0..60_u8),
    )
        .prop_map(move |(id, seats, hold, ttl_ms, holder, waits, replaces)| Step::Request {
            id,
            seats,
            hold,
            ttl_ms,
            holder,
            waits: waits && waitlists,
            replaces,
        });
    let confirm = (id(), prop::option::of(1..4_i64), any::<bool>())
        .prop_map(|(id, seats, reacquire)| Step::Confirm { id, seats, reacquire });
    let policy = prop_oneof![Just(Policy::Strict), Just(Policy::FitFirst)];
    let configure = (0..12_i64, any::<bool>(), policy, prop::option::of(1..5_i64), prop::bool::weighted(0.1))
        .prop_map(|(capacity, force, policy, per_holder, closed)| Step::Configure {
            capacity,
            force,
            policy,
            per_holder,
            closed,
        });
    let step = prop_oneof![
        8 => request,
        3 => confirm,
        3 => id().prop_map(|id| Step::Cancel { id }),
        1 => (id(), 1..80_i64).prop_map(|(id, ttl_ms)| Step::Extend { id, ttl_ms }),
        1 => configure,
        4 => (1..25_i64).prop_map(|ms| Step::Tick { ms }),
        2 => (1..4_u32).prop_map(|limit| Step::Sweep { limit }),
        1 => Just(Step::Reload),
        2 => Just(Step::Commit),
        1 => (0..60_i64).prop_map(|back_ms| Step::Crash { back_ms }),
    ];
    prop::collection::vec(step, 0..80)
}

fn request_id(id: u8) -> RequestId {
    RequestId::parse(&format!("request-{id}")).unwrap()
}

/// The machine under test, and what is forced on it.
struct Machine {
    workshop: Workshop,
    due: Due,
    book: MemoryBook,
    now_ms: i64,
    chunk: u32,
    forced: bool,
    stored: Stored,
}

/// As of the last commit.
#[derive(Clone)]
struct Stored {
    workshop: Workshop,
    book: MemoryBook,
    mark_ms: i64,
    forced: bool,
}

impl Machine {
    fn new(capacity: u32, chunk: u32) -> Self {
        let workshop = new_workshop(capacity);
        let (due, book, now_ms) = (Due::default(), MemoryBook::default(), 1_000);
        let stored = Stored { workshop, book: book.clone(), mark_ms: now_ms, forced: false };
        Self { workshop, due, book, now_ms, chunk, forced: false, stored }
    }

    fn at_the_desk<T>(&mut self, decide: impl FnOnce(&mut Desk<'_, MemoryBook>) -> T) -> T {
        let defaults = Defaults { hold_ttl_ms: 20, max_hold_ms: 60, chunk: self.chunk };
        let mut desk = Desk {
            workshop: self.workshop,
            due: self.due,
            saw_expiry: false,
            book: &mut self.book,
            defaults,
            now_ms: self.now_ms,
        };
        let outcome = decide(&mut desk);
        (self.workshop, self.due) = (desk.workshop, desk.due);
        outcome
    }

    fn ask(step: &Step) -> Option<(RequestId, Ask)> {
        let Step::Request { id, seats, hold, ttl_ms, holder, waits, replaces } = step else { return None };
        let terms = Terms {
            hold: *hold,
            ttl_ms: hold.then_some(*ttl_ms),
            holder: holder.map(HolderKey),
            waitlist: *waits,
            replaces: replaces.map(|id| request_id(id).shared()),
            of_set: false,
        };
        let seats = Seats::parse(&seats.to_string(), 9).unwrap();
        Some((request_id(*id), Ask { seats, terms, set_ends_at_ms: None, replaces_own: false }))
    }

    /// Takes a step; what it came to, if somebody is told.
    fn take(&mut self, step: &Step) -> Told {
        match step {
            Step::Request { .. } => {
                let (id, ask) = Self::ask(step).unwrap();
                Told::Reserved(self.at_the_desk(|desk| request(desk, &id, &ask)).unwrap())
            }
            Step::Confirm { id, seats, reacquire } => {
                let asked = Confirm { seats: *seats, reacquire: *reacquire };
                let id = request_id(*id);
                let changed = self.at_the_desk(|desk| confirm(desk, &id, asked)).unwrap();
                // Repeated, it answers the same.
                let again = self.at_the_desk(|desk| confirm(desk, &id, asked)).unwrap();
                assert_eq!(changed, again);
                Told::Changed(changed)
            }
            Step::Cancel { id } => {
                let id = request_id(*id);
                let changed = self.at_the_desk(|desk| cancel(desk, &id)).unwrap();
                assert_eq!(changed, self.at_the_desk(|desk| cancel(desk, &id)).unwrap());
                Told::Changed(changed)
            }
            Step::Extend { id, ttl_ms } => {
                let id = request_id(*id);
                let changed = self.at_the_desk(|desk| extend(desk, &id, *ttl_ms)).unwrap();
                assert_eq!(changed, self.at_the_desk(|desk| extend(desk, &id, *ttl_ms)).unwrap());
                Told::Changed(changed)
            }
            Step::Configure { capacity, force, policy, per_holder, closed } => {
                let rules = Rules {
                    max_seats_per_holder: *per_holder,
                    waitlist: Some(Waitlist { policy: *policy, offer_ttl_ms: 15, max_length: 5 }),
                    closes_at_ms: closed.then_some(0),
                    ..Rules::default()
                };
                let wanted = Configure { capacity: *capacity, rules, force: *force };
                let configured = self.at_the_desk(|desk| configure(desk, wanted)).unwrap();
                self.forced |= *force;
                Told::Configured(configured)
            }
            Step::Tick { ms } => {
                self.now_ms += ms;
                Told::Nothing
            }
            Step::Sweep { limit } => {
                self.at_the_desk(|desk| sweep(desk, *limit)).unwrap();
                Told::Nothing
            }
            Step::Reload => {
                self.due = Due::default();
                Told::Nothing
            }
            Step::Commit => {
                let (workshop, book, forced) = (self.workshop, self.book.clone(), self.forced);
                self.stored = Stored { workshop, book, mark_ms: self.now_ms, forced };
                Told::Nothing
            }
            Step::Crash { back_ms } => {
                let Stored { workshop, book, mark_ms, forced } = self.stored.clone();
                (self.workshop, self.book, self.forced) = (workshop, book, forced);
                (self.due, self.now_ms) = (Due::default(), mark_ms.max(self.now_ms - back_ms));
                Told::Nothing
            }
        }
    }

    /// Everything added up again by looking.
    fn check(&mut self) {
        self.at_the_desk(|desk| desk.look_at_the_clock()).unwrap();
        let (workshop, now_ms) = (self.workshop, self.now_ms);
        let lives: Vec<_> = self.book.bookings.values().collect();
        let plain: i64 = self
            .book
            .attempts
            .iter()
            .filter(|(id, attempt)| {
                !self.book.bookings.contains_key(*id)
                    && attempt.status == crate::store::reservations::Status::Accepted
            })
            .map(|(_, attempt)| attempt.seats)
            .sum();
        let stored: i64 = plain + lives.iter().map(|life| life.taken()).sum::<i64>();
        let live: i64 = plain
            + lives
                .iter()
                .filter(|life| life.state_at(now_ms).takes_seats())
                .map(|life| life.seats)
                .sum::<i64>();
        assert_eq!(workshop.reserved, stored, "reserved");
        assert_eq!(workshop.reserved - self.due.seats, live, "what is due counts as free, and nothing else");
        let held = lives.iter().filter(|life| matches!(life.state, State::Held | State::Offered));
        assert_eq!(workshop.held, held.map(|life| life.seats).sum::<i64>(), "held");
        assert_eq!(workshop.waiting, lives.iter().filter(|life| life.state == State::Waiting).count() as i64);
        assert!(workshop.reserved <= workshop.capacity + workshop.overbooked, "the database's check");
        assert!(workshop.held >= 0 && workshop.held <= workshop.reserved && workshop.waiting >= 0);
        if !self.forced {
            assert!(live <= workshop.capacity, "{live} of {}", workshop.capacity);
        }
        let decided = workshop.accepted_requests + workshop.rejected_requests;
        assert_eq!(decided, self.book.attempts.len() as i64);
        assert_eq!(workshop.last_event, self.book.events.len() as i64);
        for life in lives {
            assert_eq!(life.place.is_some(), life.state == State::Waiting);
            assert!(life.expires_at_ms.is_none() || matches!(life.state, State::Held | State::Offered));
            if let Some(expires_at_ms) = life.expires_at_ms {
                assert!(expires_at_ms - life.since_ms <= 60, "no hold lives longer than it may");
            }
        }
    }

    fn waiters(&self) -> Vec<(RequestId, i64)> {
        let waiting = self.book.bookings.iter().filter_map(|(id, life)| Some((id.clone(), life.place?)));
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_by_key(|(_, place)| *place);
        waiting
    }
}

#[derive(Debug, PartialEq)]
enum Told {
    Reserved(Reserved),
    Changed(Changed),
    Configured(Configured),
    Nothing,
}

/// A workshop that expires everything at once and looks at everything every time; without a waiting list.
#[derive(Debug, Default, Clone)]
struct Naive {
    capacity: i64,
    per_holder: Option<i64>,
    closed: bool,
    requests: BTreeMap<RequestId, NaiveRequest>,
    stored: Option<Box<Self>>,
}

#[derive(Debug, Clone)]
struct NaiveRequest {
    ask: Ask,
    first: bool,
    reason: Option<Reason>,
    state: State,
    seats: i64,
    since_ms: i64,
    ends_ms: i64,
}

impl Naive {
    fn expire(&mut self, now_ms: i64) {
        for request in self.requests.values_mut() {
            if request.state == State::Held && request.ends_ms <= now_ms {
                request.state = State::Expired;
            }
        }
    }

    fn taken(&self) -> i64 {
        self.requests
            .values()
            .filter(|request| request.state.takes_seats())
            .map(|request| request.seats)
            .sum()
    }

    fn of_holder(&self, holder: Option<HolderKey>) -> i64 {
        let theirs = self.requests.values().filter(|request| request.ask.terms.holder == holder);
        theirs.filter(|request| request.state.takes_seats()).map(|request| request.seats).sum()
    }

    /// What a request must be told: its first word, why, and whether it is a repetition; or `None` if it is
    /// invalid or another's id.
    fn request(&mut self, id: &RequestId, ask: &Ask, now_ms: i64) -> Option<(bool, Option<Reason>, bool)> {
        if let Some(known) = self.requests.get(id) {
            return (known.ask == *ask).then_some((known.first, known.reason, true));
        }
        let seats = i64::from(ask.seats.get());
        let (limit, holder) = (self.per_holder, ask.terms.holder);
        let old = ask.terms.replaces.clone().map(RequestId::from);
        if (limit.is_some() && holder.is_none())
            || old.as_ref().is_some_and(|old| !self.requests.contains_key(old))
        {
            return None;
        }
        let given_up =
            old.as_ref().and_then(|old| self.requests.get(old)).filter(|old| old.state.takes_seats());
        let gives = given_up.map_or(0, |old| old.seats);
        let of_theirs = given_up.filter(|old| old.ask.terms.holder == holder).map_or(0, |old| old.seats);
        let begun = given_up.filter(|old| ask.terms.hold && old.state == State::Held);
        let since_ms = begun.map_or(now_ms, |old| old.since_ms);
        let ends_ms = (now_ms + ask.terms.ttl_ms.unwrap_or(20)).min(since_ms + 60);
        let reason = if self.closed {
            Some(Reason::SaleClosed)
        } else if limit.is_some_and(|most| self.of_holder(holder) - of_theirs + seats > most) {
            Some(Reason::LimitExceeded)
        } else if seats > gives && self.taken() - gives + seats > self.capacity {
            Some(Reason::NotEnoughSeats)
        } else {
            None
        };
        let accepted = reason.is_none();
        if let (true, Some(old)) = (accepted, old.and_then(|old| self.requests.get_mut(&old)))
            && old.state.takes_seats()
        {
            old.state = State::Cancelled;
        }
        let state = match (accepted, ask.terms.hold) {
            (false, _) => State::Rejected,
            (true, true) => State::Held,
            (true, false) => State::Accepted,
        };
        let request =
            NaiveRequest { ask: ask.clone(), first: accepted, reason, state, seats, since_ms, ends_ms };
        self.requests.insert(id.clone(), request);
        Some((accepted, reason, false))
    }

    fn confirm(&mut self, id: &RequestId, asked: Confirm) -> Result<(), Wrong> {
        let (taken, closed, capacity, limit) = (self.taken(), self.closed, self.capacity, self.per_holder);
        let theirs = self.requests.get(id).map_or(0, |known| match known.ask.terms.holder {
            Some(holder) => self.of_holder(Some(holder)),
            None => i64::MIN / 2,
        });
        let Some(known) = self.requests.get_mut(id) else { return Err(Wrong::NotFound) };
        let seats = asked.seats.unwrap_or(known.seats);
        let more = Wrong::MoreThanHeld { held: known.seats };
        match known.state {
            State::Held if seats > known.seats => return Err(more),
            State::Expired if asked.reacquire && seats > known.seats => return Err(more),
            State::Held => {}
            State::Expired => {
                let fits =
                    taken + seats <= capacity && !closed && limit.is_none_or(|most| theirs + seats <= most);
                if !(asked.reacquire && fits) {
                    return Err(Wrong::HoldExpired);
                }
            }
            State::Confirmed if seats == known.seats => return Ok(()),
            State::Confirmed | State::Accepted => return Err(Wrong::AlreadyConfirmed),
            State::Cancelled => return Err(Wrong::AlreadyCancelled),
            _ => return Err(Wrong::AlreadyRejected),
        }
        (known.state, known.seats) = (State::Confirmed, seats);
        Ok(())
    }

    fn cancel(&mut self, id: &RequestId) -> Result<(), Wrong> {
        let Some(known) = self.requests.get_mut(id) else { return Err(Wrong::NotFound) };
        match known.state {
            State::Expired => return Err(Wrong::HoldExpired),
            State::Rejected => return Err(Wrong::AlreadyRejected),
            _ => known.state = State::Cancelled,
        }
        Ok(())
    }

    fn extend(&mut self, id: &RequestId, ttl_ms: i64) -> Result<(), Wrong> {
        let Some(known) = self.requests.get_mut(id) else { return Err(Wrong::NotFound) };
        match known.state {
            State::Held => known.ends_ms = known.ends_ms.max(known.since_ms + ttl_ms.min(60)),
            State::Expired => return Err(Wrong::HoldExpired),
            State::Confirmed | State::Accepted => return Err(Wrong::AlreadyConfirmed),
            State::Cancelled => return Err(Wrong::AlreadyCancelled),
            _ => return Err(Wrong::AlreadyRejected),
        }
        Ok(())
    }

    /// Whether what the machine told of a step is what a naive workshop tells.
    fn agrees(&mut self, step: &Step, told: &Told, now_ms: i64) {
        self.expire(now_ms);
        match (step, told) {
            (Step::Request { .. }, Told::Reserved(reserved)) => {
                let (id, ask) = Machine::ask(step).unwrap();
                let expected = self.request(&id, &ask, now_ms);
                let found = match reserved {
                    Reserved::Decided { status, reason, replayed, .. } => {
                        let taken = matches!(status, First::Accepted | First::Held);
                        Some((taken, *reason, *replayed))
                    }
                    _ => None,
                };
                assert_eq!(found, expected, "{step:?}: {reserved:?}");
            }
            (Step::Confirm { id, seats, reacquire }, Told::Changed(changed)) => {
                let asked = Confirm { seats: *seats, reacquire: *reacquire };
                assert_eq!(outcome(*changed), self.confirm(&request_id(*id), asked), "{step:?}");
            }
            (Step::Cancel { id }, Told::Changed(changed)) => {
                assert_eq!(outcome(*changed), self.cancel(&request_id(*id)), "{step:?}");
            }
            (Step::Extend { id, ttl_ms }, Told::Changed(changed)) => {
                assert_eq!(outcome(*changed), self.extend(&request_id(*id), *ttl_ms), "{step:?}");
            }
            (Step::Configure { capacity, force, per_holder, closed, .. }, Told::Configured(configured)) => {
                let taken = self.taken();
                if *capacity < taken && *capacity < self.capacity && !force {
                    assert_eq!(*configured, Configured::InUse { minimum: taken });
                } else {
                    assert_eq!(*configured, Configured::Done);
                    (self.capacity, self.per_holder, self.closed) = (*capacity, *per_holder, *closed);
                }
            }
            (Step::Tick { .. } | Step::Sweep { .. } | Step::Reload, Told::Nothing) => {}
            (Step::Commit, Told::Nothing) => {
                self.stored = Some(Box::new(Self { stored: None, ..self.clone() }));
            }
            (Step::Crash { .. }, Told::Nothing) => {
                let stored = self.stored.clone().expect("the beginning is stored");
                *self = Self { stored: self.stored.take(), ..*stored };
                self.expire(now_ms);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn outcome(changed: Changed) -> Result<(), Wrong> {
    match changed {
        Changed::Done(_) => Ok(()),
        Changed::Refused(wrong) => Err(wrong),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn without_a_waiting_list_it_answers_as_the_naive_workshop_does(
        capacity in 0..10_u32,
        chunk in 1..5_u32,
        steps in steps(false),
    ) {
        let mut machine = Machine::new(capacity, chunk);
        let mut naive = Naive { capacity: i64::from(capacity), ..Naive::default() };
        naive.stored = Some(Box::new(naive.clone()));
        for step in &steps {
            let told = machine.take(step);
            naive.agrees(step, &told, machine.now_ms);
            machine.check();
            prop_assert_eq!(machine.workshop.reserved - machine.due.seats, naive.taken());
        }
    }

    #[test]
    fn with_a_waiting_list_seats_are_conserved_and_nobody_is_overtaken(
        capacity in 0..10_u32,
        chunk in 1..5_u32,
        steps in steps(true),
    ) {
        let mut machine = Machine::new(capacity, chunk);
        for step in &steps {
            let before = machine.waiters();
            let told = machine.take(step);
            machine.check();
            let after = machine.waiters();
            if let (Step::Request { replaces: None, .. }, Told::Reserved(Reserved::Decided { status, replayed: false, .. })) =
                (step, &told)
            {
                let took = matches!(status, First::Accepted | First::Held);
                prop_assert!(before.is_empty() || !took, "a newcomer overtook {before:?}");
            }
            // Whatever the order, swept or not: no elder for whom the seats were enough stays behind a younger one.
            let offered = |id: &RequestId| {
                machine.book.bookings.get(id).is_some_and(|life| life.state == State::Offered)
            };
            let newcomer = match (step, &told) {
                (
                    Step::Request { id, .. },
                    Told::Reserved(Reserved::Decided { status: First::Waiting, replayed: false, .. }),
                ) => Some((request_id(*id), i64::MAX)),
                _ => None,
            };
            let served: Vec<_> = before.iter().chain(&newcomer).filter(|(id, _)| offered(id)).collect();
            let mut free = machine.workshop.capacity - machine.workshop.reserved + machine.due.seats;
            for (young, place) in served.into_iter().rev() {
                free += machine.book.bookings[young].seats;
                for (elder, _) in after.iter().filter(|(_, elder)| elder < place) {
                    let wants = machine.book.bookings[elder].seats;
                    prop_assert!(wants > free, "{young:?} was served before {elder:?}, who wants {wants} of {free}");
                }
            }
            // Strictly: those who stay are not older than those who were served, passed over or left.
            let strict = machine.workshop.rules.waitlist.is_none_or(|list| list.policy == Policy::Strict);
            if strict {
                let still = |id: &RequestId| after.iter().any(|(other, _)| other == id);
                let oldest_left = before.iter().position(|(id, _)| still(id));
                let last_offered = before.iter().rposition(|(id, _)| {
                    !still(id) && machine.book.bookings.get(id).is_some_and(|life| life.state == State::Offered)
                });
                if let (Some(left), Some(offered)) = (oldest_left, last_offered) {
                    prop_assert!(offered < left, "{before:?} became {after:?}");
                }
            }
        }
        // In the end, time passes and everything is swept: nobody waits whom the free seats are enough for.
        machine.now_ms += 1_000;
        for _ in 0..200 {
            machine.at_the_desk(|desk| sweep(desk, 3)).unwrap();
            machine.check();
            if machine.workshop.offers_due_at_ms.is_none() && machine.due.seats == 0 {
                break;
            }
        }
        let free = machine.workshop.capacity - machine.workshop.reserved;
        if let Some((first, _)) = machine.waiters().first() {
            prop_assert!(machine.book.bookings[first].seats > free, "somebody waits in vain");
        }
    }
}

#[test]
fn a_raised_capacity_is_offered_a_chunk_at_a_time_and_nobody_slips_in_between() {
    let mut machine = Machine::new(0, 2);
    let configure = |capacity| Step::Configure {
        capacity,
        force: false,
        policy: Policy::Strict,
        per_holder: None,
        closed: false,
    };
    machine.take(&configure(1));
    let request = |id, waits| Step::Request {
        id,
        seats: 1,
        hold: false,
        ttl_ms: 1,
        holder: None,
        waits,
        replaces: None,
    };
    machine.take(&request(0, false));
    for id in 1..6 {
        machine.take(&request(id, true));
    }
    machine.take(&configure(9));
    assert_eq!((machine.waiters().len(), machine.workshop.offers_due_at_ms), (3, Some(1_000)));
    let Told::Reserved(Reserved::Decided { reason, .. }) = machine.take(&request(20, false)) else {
        panic!()
    };
    assert_eq!(reason, Some(Reason::WaitersFirst));
    machine.take(&Step::Sweep { limit: 1 });
    machine.take(&Step::Sweep { limit: 1 });
    assert_eq!((machine.waiters().len(), machine.workshop.offers_due_at_ms), (0, None));
    machine.check();
}
