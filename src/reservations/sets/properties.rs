//! Sets under any interleaving: drivers that take one step at a time, several on one set, and die anywhere; other
//! people who take and cancel seats; time that passes. Each step is one commit of one partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::decide::{self as rule, Ask, Change, Next, Verdict};
use crate::reservations::decide::memory::MemoryBook;
use crate::reservations::decide::{self, Defaults, Desk, Due, new_workshop};
use crate::reservations::types::{RequestId, Seats};
use crate::store::bookings::{Reason, State, Terms};
use crate::store::reservations::{Workshop, WorkshopKey};
use crate::store::sets::{SetRow, SetState};

const WORKSHOPS: usize = 3;
const SETS: usize = 4;
const DEFAULTS: Defaults = Defaults { hold_ttl_ms: 50, max_hold_ms: 100, chunk: 2 };

#[derive(Debug, Clone)]
enum Event {
    Begin {
        set: usize,
        seats: [i64; WORKSHOPS],
        hold: bool,
    },
    Change {
        set: usize,
        change: Change,
    },
    /// A driver starts on a set.
    Drive {
        set: usize,
    },
    /// One of the drivers that there are takes a step.
    Step {
        driver: usize,
    },
    Die {
        driver: usize,
    },
    Somebody {
        workshop: usize,
        id: u8,
        seats: i64,
    },
    SomebodyCancels {
        workshop: usize,
        id: u8,
    },
    Time {
        ms: i64,
    },
    /// With everything in it.
    Delete {
        workshop: usize,
    },
    /// Again, and it never meets its past.
    Create {
        workshop: usize,
    },
    /// Somebody asks for a set, or looks after a deletion.
    Look {
        set: usize,
    },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let set = 0..SETS;
    let change = prop_oneof![
        any::<bool>().prop_map(|reacquire| Change::Confirm { reacquire }),
        Just(Change::Cancel),
        Just(Change::Release),
        (1..200_i64).prop_map(|ttl_ms| Change::Extend { ttl_ms })
    ];
    let seats = [0..3_i64, 0..3, 0..3];
    let event = prop_oneof![
        2 => (set.clone(), seats, any::<bool>()).prop_map(|(set, seats, hold)| Event::Begin { set, seats, hold }),
        2 => (set.clone(), change).prop_map(|(set, change)| Event::Change { set, change }),
        2 => set.prop_map(|set| Event::Drive { set }),
        20 => (0..8_usize).prop_map(|driver| Event::Step { driver }),
        1 => (0..8_usize).prop_map(|driver| Event::Die { driver }),
        1 => (0..WORKSHOPS, any::<u8>(), 1..3_i64).prop_map(|(workshop, id, seats)| Event::Somebody { workshop, id, seats }),
        1 => (0..WORKSHOPS, any::<u8>()).prop_map(|(workshop, id)| Event::SomebodyCancels { workshop, id }),
        1 => (1..60_i64).prop_map(|ms| Event::Time { ms }),
        1 => (0..WORKSHOPS, prop::bool::weighted(0.2)).prop_map(|(workshop, stays_away)| match stays_away {
            true => Event::Delete { workshop },
            false => Event::Create { workshop },
        }),
        1 => (0..SETS).prop_map(|set| Event::Look { set }),
    ];
    prop::collection::vec(event, 0..250)
}

#[derive(Debug)]
struct Pool {
    /// Which of the workshops of its name.
    key: i64,
    is_gone: bool,
    workshop: Workshop,
    due: Due,
    book: MemoryBook,
}

#[derive(Debug, Clone)]
struct Driver {
    set: usize,
    has_asked: bool,
    doing: Doing,
}

#[derive(Debug, Clone)]
enum Doing {
    Look,
    /// What has been said so far, line by line.
    Asking(SetRow, Vec<Option<Reason>>),
    Deciding(Verdict, i64),
    /// Which workshops have done it, of the lines that have been told.
    Settling(SetRow, Vec<Option<WorkshopKey>>),
    Over,
}

struct World {
    pools: Vec<Pool>,
    sets: BTreeMap<usize, SetRow>,
    drivers: Vec<Driver>,
    now_ms: i64,
    capacity: u32,
    /// Which workshop a line was first asked for in, by set and pool.
    asked: BTreeMap<(usize, usize), i64>,
}

fn set_id(set: usize) -> RequestId {
    RequestId::parse(&format!("set-{set}")).unwrap()
}

fn pool_of(workshop: &str) -> usize {
    workshop.parse().unwrap()
}

impl Pool {
    fn new(key: i64, capacity: u32) -> Self {
        let (workshop, due, book) = (new_workshop(capacity), Due::default(), MemoryBook::default());
        Self { key, is_gone: false, workshop, due, book }
    }
}

impl World {
    fn new(capacity: u32) -> Self {
        let pools = (0..WORKSHOPS).map(|_| Pool::new(1, capacity)).collect();
        let (sets, drivers, asked) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        Self { pools, sets, drivers, now_ms: 1_000, capacity, asked }
    }

    fn at_the_desk<T>(&mut self, pool: usize, decide: impl FnOnce(&mut Desk<'_, MemoryBook>) -> T) -> T {
        let pool = &mut self.pools[pool];
        let mut desk = Desk {
            workshop: pool.workshop,
            due: pool.due,
            saw_expiry: false,
            book: &mut pool.book,
            defaults: DEFAULTS,
            now_ms: self.now_ms,
        };
        let outcome = decide(&mut desk);
        (pool.workshop, pool.due) = (desk.workshop, desk.due);
        outcome
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Begin { set, seats, hold } => {
                let lines: Vec<_> = (0..).zip(seats).filter(|(_, seats)| **seats > 0).collect();
                let lines: Vec<(Arc<str>, i64)> = lines
                    .into_iter()
                    .map(|(pool, seats): (usize, _)| (pool.to_string().into(), *seats))
                    .collect();
                if !lines.is_empty() {
                    let ask = Ask { lines, hold: *hold, ttl_ms: None, holder: None };
                    let now_ms = self.now_ms;
                    self.sets.entry(*set).or_insert_with(|| rule::begin(ask, 50, now_ms));
                    self.drive(*set);
                }
            }
            Event::Change { set, change } => {
                let now_ms = self.now_ms;
                if let Some(row) = self.sets.get_mut(set) {
                    rule::look_at_the_clock(row, now_ms);
                    let _wrong = rule::change(row, *change, &DEFAULTS);
                }
            }
            Event::Drive { set } => self.drive(*set),
            Event::Step { driver } => self.step(*driver),
            Event::Die { driver } => {
                if *driver < self.drivers.len() {
                    self.drivers.remove(*driver);
                }
            }
            Event::Delete { workshop } => self.pools[*workshop].is_gone = true,
            Event::Create { workshop } => {
                // One drives a set at a time, so nobody asks for one that somebody else has decided meanwhile.
                self.drivers.retain(|driver| !matches!(driver.doing, Doing::Asking(..)));
                let key = self.pools[*workshop].key + 1;
                self.pools[*workshop] = Pool::new(key, self.capacity);
            }
            Event::Look { set } => self.forget_if_gone(*set),
            Event::Somebody { workshop, .. } | Event::SomebodyCancels { workshop, .. }
                if self.pools[*workshop].is_gone => {}
            Event::Somebody { workshop, id, seats } => {
                let request = RequestId::parse(&format!("somebody-{id}")).unwrap();
                let (seats, terms) = (Seats::stored(*seats).unwrap(), Terms::default());
                let ask = decide::Ask { seats, terms, set_ends_at_ms: None, replaces_own: false };
                self.settle_due(*workshop);
                self.at_the_desk(*workshop, |desk| decide::request(desk, &request, &ask)).unwrap();
            }
            Event::SomebodyCancels { workshop, id } => {
                let request = RequestId::parse(&format!("somebody-{id}")).unwrap();
                self.at_the_desk(*workshop, |desk| decide::cancel(desk, &request)).unwrap();
            }
            Event::Time { ms } => self.now_ms += ms,
        }
    }

    fn drive(&mut self, set: usize) {
        self.drivers.push(Driver { set, has_asked: false, doing: Doing::Look });
    }

    fn step(&mut self, driver: usize) {
        let Some(mut driver_now) = self.drivers.get(driver).cloned() else { return };
        self.advance(&mut driver_now);
        match driver_now.doing {
            Doing::Over => drop(self.drivers.remove(driver)),
            _ => self.drivers[driver] = driver_now,
        }
    }

    /// One commit, as the real driver does it.
    fn advance(&mut self, driver: &mut Driver) {
        let (id, now_ms) = (set_id(driver.set), self.now_ms);
        driver.doing = match driver.doing.clone() {
            Doing::Look => {
                let Some(row) = self.sets.get_mut(&driver.set) else {
                    driver.doing = Doing::Over;
                    return;
                };
                rule::look_at_the_clock(row, now_ms);
                match rule::next(row, driver.has_asked) {
                    Next::Nothing => Doing::Over,
                    Next::Settle => Doing::Settling(row.clone(), Vec::new()),
                    Next::Ask => {
                        driver.has_asked = true;
                        Doing::Asking(row.clone(), Vec::new())
                    }
                }
            }
            Doing::Asking(row, mut said) => {
                let line = &row.lines[said.len()];
                let pool = pool_of(&line.workshop);
                if self.pools[pool].is_gone {
                    said.push(Some(Reason::WorkshopGone));
                } else if row.state == SetState::Retaking {
                    let retake = |desk: &mut Desk<'_, MemoryBook>| decide::retake(desk, &id, row.round);
                    said.push(rule::refusal_again(self.at_the_desk(pool, retake).unwrap()));
                } else {
                    let terms = Terms { hold: true, of_set: true, ..Terms::default() };
                    let set_ends_at_ms = row.hold.then(|| rule::would_end_at(&row, &DEFAULTS));
                    let ask = decide::Ask {
                        seats: Seats::stored(line.seats).unwrap(),
                        terms,
                        set_ends_at_ms,
                        replaces_own: false,
                    };
                    let request = |desk: &mut Desk<'_, MemoryBook>| decide::request(desk, &id, &ask);
                    said.push(rule::refusal(self.at_the_desk(pool, request).unwrap()));
                    self.asked.entry((driver.set, pool)).or_insert(self.pools[pool].key);
                }
                match said.len() == row.lines.len() {
                    true => Doing::Deciding(rule::verdict(&row, said), row.round),
                    false => Doing::Asking(row, said),
                }
            }
            Doing::Deciding(verdict, round) => {
                // Another driver may have decided and finished it, and it may be forgotten since.
                if let Some(row) = self.sets.get_mut(&driver.set) {
                    rule::look_at_the_clock(row, now_ms);
                    rule::decide(row, verdict, round, &DEFAULTS, now_ms);
                }
                Doing::Look
            }
            Doing::Settling(row, mut keys) => match row.lines.get(keys.len()) {
                Some(line) => {
                    let settlement = rule::settlement(&row, line.seats).unwrap();
                    let pool = pool_of(&line.workshop);
                    let has_it = !self.pools[pool].is_gone
                        && self.at_the_desk(pool, |desk| decide::settle(desk, &id, settlement)).unwrap();
                    keys.push(has_it.then_some(WorkshopKey(self.pools[pool].key)));
                    Doing::Settling(row, keys)
                }
                None => {
                    driver.has_asked = false;
                    if let Some(now) = self.sets.get_mut(&driver.set) {
                        rule::look_at_the_clock(now, now_ms);
                        rule::finish(now, row.state, row.round, &keys);
                    }
                    Doing::Look
                }
            },
            Doing::Over => Doing::Over,
        };
    }

    /// What whoever asks a workshop has done first: lines of sets that have ended are settled.
    fn settle_due(&mut self, pool: usize) {
        let (due, now_ms) = (self.at_the_desk(pool, |desk| desk.due_lines()).unwrap(), self.now_ms);
        for (set, row) in &mut self.sets {
            rule::look_at_the_clock(row, now_ms);
            let line = row.lines.iter().find(|line| pool_of(&line.workshop) == pool);
            if let Some(line) = line.filter(|_| due.contains(&set_id(*set)))
                && let Some(settlement) = rule::settlement(row, line.seats)
            {
                let Pool { workshop, due, book, .. } = &mut self.pools[pool];
                let (was, saw_expiry, defaults) = (*workshop, false, DEFAULTS);
                let mut desk = Desk { workshop: was, due: *due, saw_expiry, book, defaults, now_ms };
                decide::settle(&mut desk, &set_id(*set), settlement).unwrap();
                (*workshop, *due) = (desk.workshop, desk.due);
            }
        }
        let held = |set: usize| {
            let booking = self.pools[pool].book.bookings.get(&set_id(set));
            booking.is_some_and(|booking| booking.state == State::Held)
        };
        for (set, row) in self.sets.iter().filter(|(_, row)| row.state == SetState::Expired && row.round == 0)
        {
            assert!(!held(*set), "{row:?} has ended, and its seats are not free");
        }
    }

    /// What a restart does: a driver for each set that is not finished, to its end.
    fn recover(&mut self) {
        self.drivers.clear();
        for set in self.sets.keys().copied().collect::<Vec<_>>() {
            let mut driver = Driver { set, has_asked: false, doing: Doing::Look };
            while !matches!(driver.doing, Doing::Over) {
                self.advance(&mut driver);
                self.check();
            }
        }
    }

    /// States of its lines, without those that went with their workshops.
    fn lines_of(&self, set: usize) -> Vec<Option<State>> {
        let line = |line: &crate::store::sets::SetLine| {
            let pool = &self.pools[pool_of(&line.workshop)];
            let asked = self.asked.get(&(set, pool_of(&line.workshop))).copied();
            let never_had_it = self.sets[&set].finished.then(|| line.key.map_or(0, |key| key.0));
            if pool.is_gone || asked.or(never_had_it).is_some_and(|key| key != pool.key) {
                return None;
            }
            Some(pool.book.bookings.get(&set_id(set)).map(|booking| booking.state))
        };
        self.sets[&set].lines.iter().filter_map(line).collect()
    }

    /// Which lines are left, as the rest of the service finds out.
    fn is_there(&self, line: &crate::store::sets::SetLine) -> bool {
        let pool = &self.pools[pool_of(&line.workshop)];
        !pool.is_gone && line.key == Some(WorkshopKey(pool.key))
    }

    fn forget_if_gone(&mut self, set: usize) {
        let Some(row) = self.sets.get(&set) else { return };
        let is_left = row.lines.iter().any(|line| self.is_there(line));
        if !is_left && rule::may_be_forgotten(row, row.version) {
            let lines = self.lines_of(set);
            assert!(lines.iter().all(Option::is_none), "{row:?} is forgotten, and has {lines:?}");
            self.sets.remove(&set);
            self.asked.retain(|(of, _), _| *of != set);
        }
    }

    /// What holds at every instant.
    fn check(&self) {
        for pool in &self.pools {
            let plain = pool.book.attempts.iter().filter(|(id, _)| !pool.book.bookings.contains_key(*id));
            let plain =
                plain.filter(|(_, attempt)| attempt.status == crate::store::reservations::Status::Accepted);
            let booked = pool.book.bookings.values();
            let taken = plain.map(|(_, attempt)| attempt.seats).sum::<i64>()
                + booked.clone().map(crate::store::bookings::Booking::taken).sum::<i64>();
            assert_eq!(pool.workshop.reserved, taken);
            assert!(taken <= pool.workshop.capacity, "one seat too many");
            let held = booked.filter(|booking| booking.state == State::Held).map(|booking| booking.seats);
            assert_eq!(pool.workshop.held, held.sum::<i64>());
        }
        for (set, row) in &self.sets {
            let lines = self.lines_of(*set);
            if matches!(row.state, SetState::Held | SetState::Confirmed) {
                let takes = |line: &Option<State>| matches!(line, Some(State::Held | State::Confirmed));
                assert!(lines.iter().all(takes), "half of {row:?}: {lines:?}");
            }
        }
    }

    /// What holds once every set is finished and nobody drives any.
    fn check_at_rest(&self) {
        for (set, row) in &self.sets {
            assert!(row.finished, "{row:?}");
            // What `verify` asks for: whoever is said to have a line has it.
            for line in row.lines.iter().filter(|line| self.is_there(line)) {
                let pool = &self.pools[pool_of(&line.workshop)];
                assert!(pool.book.attempts.contains_key(&set_id(*set)), "no {line:?} of {row:?}");
            }
            for line in self.lines_of(*set) {
                let fits = match row.state {
                    SetState::Pending | SetState::Retaking => false,
                    SetState::Held => line == Some(State::Held),
                    SetState::Confirmed => line == Some(State::Confirmed),
                    SetState::Refused => matches!(line, Some(State::Cancelled | State::Rejected)),
                    SetState::Cancelled => line == Some(State::Cancelled),
                    SetState::Expired => line == Some(State::Expired),
                };
                assert!(fits, "a line of {row:?} is {line:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn a_set_is_whole_at_every_instant_and_after_every_crash(capacity in 1..6_u32, events in events()) {
        let mut world = World::new(capacity);
        let mut decided: BTreeMap<usize, SetState> = BTreeMap::new();
        for event in &events {
            world.take(event);
            world.check();
            decided.retain(|set, _| world.sets.contains_key(set));
            for (set, row) in &world.sets {
                let before = decided.insert(*set, row.state).unwrap_or(SetState::Pending);
                let follows = match before {
                    SetState::Pending => true,
                    SetState::Held => !matches!(row.state, SetState::Pending | SetState::Refused),
                    SetState::Confirmed => matches!(row.state, SetState::Confirmed | SetState::Cancelled),
                    SetState::Expired | SetState::Retaking => {
                        matches!(row.state, SetState::Expired | SetState::Retaking | SetState::Confirmed)
                    }
                    over => row.state == over,
                };
                prop_assert!(follows, "{:?} after {:?}", row.state, before);
            }
        }
        world.recover();
        world.check_at_rest();
        // Nothing is left to do, and doing it again changes nothing.
        let before: Vec<_> = world.pools.iter().map(|pool| pool.workshop).collect();
        world.recover();
        prop_assert_eq!(before, world.pools.iter().map(|pool| pool.workshop).collect::<Vec<_>>());
    }
}
