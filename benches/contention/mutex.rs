//! What most services do first: a lock around the database, a transaction a request. The schema, the
//! pragmas, the statements and the rules are headcount's own; memory, actors and batches are not.

use std::sync::{Mutex, MutexGuard};

use headcount::likes::decide::{View, set_like};
use headcount::likes::{ItemId, UserId};
use headcount::log::decisions::{Decision as Logged, decided};
use headcount::partition::Clock;
use headcount::reservations::decide::{Decision, new_workshop, reserve};
use headcount::reservations::types::{RequestId, Seats, WorkshopName};
use headcount::store::likes::{CounterChange, CounterKey, LikesChanges, Membership};
use headcount::store::reservations::{AttemptKey, ReservationChanges, WorkshopChange};
use headcount::store::sqlite::SqliteStore;
use headcount::store::{Durability, Error, LikesStore, ReservationsStore, Saved, Syncer, Transactions};

use crate::workload::Request;

pub struct MutexStore {
    store: Mutex<SqliteStore>,
    syncer: Mutex<Box<dyn Syncer>>,
    clock: Clock,
    default_capacity: u32,
}

impl MutexStore {
    pub fn new(store: SqliteStore, clock: Clock, default_capacity: u32) -> Result<Self, Error> {
        let syncer = Mutex::new(store.syncer()?);
        Ok(Self { store: Mutex::new(store), syncer, clock, default_capacity })
    }

    /// Whether this was the request's first decision.
    pub fn decide(&self, request: &Request) -> Result<bool, Error> {
        match request {
            Request::Like { user, item } => self.like(user, item),
            Request::Reserve { workshop, request, seats } => self.reserve(workshop, request, *seats),
        }
    }

    fn like(&self, user: &UserId, item: &ItemId) -> Result<bool, Error> {
        let (mut store, now_ms) = self.begin()?;
        let item = match only(store.load_items(&[item.as_str()])?) {
            Some(item) => item,
            None => only(store.create_items(&[item.as_str()])?),
        };
        let row = Membership { user: user.as_str(), item };
        let key = CounterKey { shard: 0, item };
        let member = only(store.load_memberships(&[row])?);
        let before = only(store.load_counters(&[key])?);
        let view = View { member, counter: before.unwrap_or_default() };
        let after = set_like(view, true, 1);
        if let Some(after) = after {
            let changes = LikesChanges {
                added: vec![row],
                counters: vec![CounterChange { key, before, after: after.counter }],
                now_s: now_ms / 1000,
                ..LikesChanges::default()
            };
            assert_eq!(store.save_likes(&changes)?, Saved::Done, "nobody else writes");
        }
        self.commit(&mut store, now_ms)?;
        Ok(after.is_some())
    }

    fn reserve(&self, name: &WorkshopName, request: &RequestId, seats: Seats) -> Result<bool, Error> {
        let (mut store, now_ms) = self.begin()?;
        let (key, before) = match only(store.load_workshops(&[name.as_str()])?) {
            Some(found) => found,
            None => {
                let new = new_workshop(self.default_capacity);
                (only(store.create_workshops(&[(name.as_str(), new)], now_ms)?), new)
            }
        };
        let attempt_key = AttemptKey { workshop: key, request: request.as_str() };
        let earlier = only(store.load_attempts(&[attempt_key])?);
        let Decision::First(attempt, mut after) = reserve(before, earlier, seats, now_ms) else {
            store.rollback()?;
            return Ok(false);
        };
        after.version += 1;
        let changes = ReservationChanges {
            workshops: vec![WorkshopChange { key, before, after }],
            attempts: vec![(attempt_key, attempt)],
            ..ReservationChanges::default()
        };
        assert_eq!(store.save_reservations(&changes)?, Saved::Done, "nobody else writes");
        self.commit(&mut store, now_ms)?;
        drop(store);
        decided(&Logged {
            workshop: name.as_str(),
            request: request.as_str(),
            seats: seats.get(),
            status: attempt.status.as_str(),
            reserved: attempt.reserved_after,
            replayed: false,
        });
        Ok(true)
    }

    /// Durable when it returns: nobody else is let in before.
    fn commit(&self, store: &mut SqliteStore, now_ms: i64) -> Result<(), Error> {
        match store.commit(now_ms)? {
            Durability::Already => Ok(()),
            Durability::AfterSync => self.syncer.lock().expect("nobody panics under it").sync(),
        }
    }

    fn begin(&self) -> Result<(MutexGuard<'_, SqliteStore>, i64), Error> {
        let mut store = self.store.lock().expect("nobody panics under it");
        store.begin()?;
        Ok((store, self.clock.now_ms()))
    }
}

/// The one answer to one question.
fn only<T>(answers: Vec<T>) -> T {
    answers.into_iter().next().expect("an answer a question")
}
