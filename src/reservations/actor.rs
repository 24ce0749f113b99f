//! The workshops placed on one partition: what they keep in memory and how they take a batch.
//!
//! Memory is a copy of what is saved, possibly ahead of the commit; whoever fails to commit calls
//! [`ReservationActors::forget`], and everything is read again.

use std::sync::Arc;

use super::alarm::Alarm;
use super::batch::{Batch, Outcome, view};
use super::book::skipped_for;
use super::command::{Command, Gone, LogPage, METRICS, OrGone, Question, Shown, Swept, View};
use super::decide::{Defaults, Due};
use super::feeds::Feeds;
use super::sets;
use super::types::{RequestId, WorkshopName};
use crate::log::decisions::Happened;
use crate::partition::{Decided, Resident};
use crate::store::bookings::{EventKind, Filter, Listed, ListedPage, State};
use crate::store::reservations::{AttemptKey, Workshop, WorkshopKey};
use crate::store::{BookingsStore, Error, ReservationsStore, Saved, SetsStore};

/// Most events in one request's history: the newest.
const HISTORY: u32 = 1_000;

/// The reservation actors of one partition.
#[derive(Debug)]
pub struct ReservationActors {
    workshops: Resident<Arc<str>, Kept>,
    pub(super) default_capacity: u32,
    pub(super) defaults: Defaults,
    feeds: Feeds,
    alarm: Alarm,
    sets_alarm: Alarm,
    /// To be told of once they are committed.
    uncommitted: Uncommitted,
    /// The last workshop whose turn it was to be swept.
    swept_up_to: WorkshopKey,
    /// For the decision log, once it is durable: behind the gate of the next reply.
    pub(super) unlogged: Vec<Happened>,
}

/// What is kept in memory of a workshop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub(super) key: WorkshopKey,
    pub(super) workshop: Workshop,
    pub(super) due: Due,
}

impl Default for Kept {
    fn default() -> Self {
        Self { key: WorkshopKey(0), workshop: Workshop::default(), due: Due::default() }
    }
}

#[derive(Debug, Default)]
struct Uncommitted {
    workshops: Vec<Arc<str>>,
    side_effects: Vec<EventKind>,
    /// What a sweep has found: the next time that something is due; absent where there was no sweep.
    next_due_at_ms: Option<Option<i64>>,
    /// When the first of the new holds ends.
    first_end_at_ms: Option<i64>,
    /// What sets came to.
    sets: sets::home::Came,
}

/// What the actors of a partition are made with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Seats of a workshop that springs up.
    pub default_capacity: u32,
    /// See [`Defaults`].
    pub defaults: Defaults,
    /// Most workshops in memory.
    pub max_resident: usize,
    /// Whom to tell of what is committed.
    pub feeds: Feeds,
    /// What to set when holds are made.
    pub alarm: Alarm,
    /// And when sets are held.
    pub sets_alarm: Alarm,
}

impl ReservationActors {
    /// Actors with nothing in memory yet.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self {
            workshops: Resident::new(setup.max_resident),
            default_capacity: setup.default_capacity,
            defaults: setup.defaults,
            feeds: setup.feeds,
            alarm: setup.alarm,
            sets_alarm: setup.sets_alarm,
            uncommitted: Uncommitted::default(),
            swept_up_to: WorkshopKey(i64::MIN),
            unlogged: Vec::new(),
        }
    }

    /// Decides commands in order and saves what changed. Runs of commands on keys are loaded and saved
    /// together, and so are runs of commands on sets; a command that reads a range or deletes stands alone
    /// between them.
    ///
    /// # Errors
    /// The store's.
    pub fn decide<S: ReservationsStore + BookingsStore + SetsStore>(
        &mut self,
        store: &mut S,
        commands: &mut [&mut Command],
        exclusive: bool,
        now_ms: i64,
    ) -> Result<Decided, Error> {
        if !exclusive {
            self.forget();
        }
        let together = |a: &Command, b: &Command| {
            (a.is_on_keys() && b.is_on_keys()) || matches!((a, b), (Command::Set(_), Command::Set(_)))
        };
        for run in commands.chunk_by_mut(|a, b| together(a, b)) {
            let decided = match run {
                [Command::Set(_), ..] => self.decide_sets(store, run, now_ms)?,
                [one] if !one.is_on_keys() => self.decide_alone(store, one, now_ms)?,
                run => self.decide_together(store, run, now_ms)?,
            };
            if decided == Decided::Conflict {
                return Ok(Decided::Conflict);
            }
        }
        Ok(Decided::Ready)
    }

    fn decide_together<S: ReservationsStore + BookingsStore>(
        &mut self,
        store: &mut S,
        commands: &mut [&mut Command],
        now_ms: i64,
    ) -> Result<Decided, Error> {
        let shared: Vec<&Command> = commands.iter().map(|command| &**command).collect();
        let mut batch = Batch::load(self, store, &shared)?;
        let mut outcomes = Vec::with_capacity(shared.len());
        for command in shared {
            outcomes.push(batch.decide_one(self, store, command, now_ms)?);
        }
        if batch.save(self, store, now_ms)? == Saved::Conflict {
            return Ok(Decided::Conflict);
        }
        if let Some(first) = commands.first_mut() {
            first.log_afterwards(std::mem::take(&mut self.unlogged));
        }
        for (command, outcome) in commands.iter_mut().zip(outcomes) {
            match (&mut **command, outcome) {
                (Command::Reserve { reply, .. }, Some(Outcome::Reserved(reserved))) => reply.set(reserved),
                (Command::Change { reply, .. }, Some(Outcome::Changed(changed))) => reply.set(changed),
                (Command::Settle { reply, .. }, Some(Outcome::Settled(settled))) => reply.set(settled),
                (Command::Configure { reply, .. }, Some(Outcome::Set(set))) => reply.set(set),
                (Command::Status { reply, .. }, Some(Outcome::Status(status))) => reply.set(status),
                // A command without its outcome answers `outcome_unknown`; no arm above makes one.
                _ => {}
            }
        }
        Ok(Decided::Ready)
    }

    fn decide_sets<S: SetsStore + BookingsStore>(
        &mut self,
        store: &mut S,
        commands: &mut [&mut Command],
        now_ms: i64,
    ) -> Result<Decided, Error> {
        let mut sets: Vec<&mut sets::Command> = commands
            .iter_mut()
            .filter_map(|command| match &mut **command {
                Command::Set(command) => Some(command),
                _ => None,
            })
            .collect();
        let Some(came) = sets::home::decide(store, &mut sets, &self.defaults, now_ms)? else {
            return Ok(Decided::Conflict);
        };
        self.uncommitted.sets.then(came);
        Ok(Decided::Ready)
    }

    fn decide_alone<S: ReservationsStore + BookingsStore>(
        &mut self,
        store: &mut S,
        command: &mut Command,
        now_ms: i64,
    ) -> Result<Decided, Error> {
        match command {
            Command::Delete { workshop, reply } => reply.set(self.delete(store, workshop, now_ms)?),
            Command::Show { workshop, request, reply } => {
                reply.set(self.show(store, workshop, request, now_ms)?);
            }
            Command::List { workshop, question, reply } => {
                reply.set(self.list(store, workshop, question, now_ms)?);
            }
            Command::Events { workshop, after, limit, reply } => {
                reply.set(self.events(store, workshop, *after, *limit)?);
            }
            Command::Workshops { after, limit, reply } => {
                reply.set(list_workshops(store, after, *limit, now_ms)?);
            }
            Command::AreThere { workshops, reply } => reply.set(store.are_there(workshops)?),
            Command::Sweep { reply } => match self.sweep(store, now_ms)? {
                Some(swept) => {
                    reply.set(swept);
                    command.log_afterwards(std::mem::take(&mut self.unlogged));
                }
                None => return Ok(Decided::Conflict),
            },
            _ => {}
        }
        Ok(Decided::Ready)
    }

    /// The key of a workshop, if it is there.
    fn key<S: ReservationsStore + BookingsStore>(
        &mut self,
        store: &mut S,
        name: &WorkshopName,
    ) -> Result<OrGone<Option<WorkshopKey>>, Error> {
        if let Some(kept) = self.kept(name.as_str()) {
            return Ok(Ok(Some(kept.key)));
        }
        if let Some((key, _)) = store.load_workshops(&[name.as_str()])?.into_iter().next().flatten() {
            return Ok(Ok(Some(key)));
        }
        let tombstone = store.load_tombstones(&[name.as_str()])?.into_iter().next().flatten();
        Ok(tombstone.map_or(Ok(None), |deleted_at_ms| Err(Gone { deleted_at_ms })))
    }

    fn delete<S: ReservationsStore + BookingsStore>(
        &mut self,
        store: &mut S,
        name: &WorkshopName,
        now_ms: i64,
    ) -> Result<OrGone<Option<i64>>, Error> {
        let key = match self.key(store, name)? {
            Ok(Some(key)) => key,
            Ok(None) => return Ok(Ok(None)),
            Err(gone) => return Ok(Err(gone)),
        };
        store.delete_workshop(key, name.as_str(), now_ms)?;
        self.workshops.remove(name.as_str());
        self.happened(name, std::iter::empty());
        self.ends_at(now_ms);
        Ok(Ok(Some(now_ms)))
    }

    fn show<S: ReservationsStore + BookingsStore>(
        &mut self,
        store: &mut S,
        name: &WorkshopName,
        request: &RequestId,
        now_ms: i64,
    ) -> Result<OrGone<Option<Box<Shown>>>, Error> {
        let workshop = match self.key(store, name)? {
            Ok(Some(workshop)) => workshop,
            Ok(None) => return Ok(Ok(None)),
            Err(gone) => return Ok(Err(gone)),
        };
        let key = [AttemptKey { workshop, request: request.as_str() }];
        let Some(attempt) = store.load_attempts(&key)?.into_iter().next().flatten() else {
            return Ok(Ok(None));
        };
        let booking = store.load_bookings(&key)?.into_iter().next().flatten();
        let holder = booking.as_ref().and_then(|booking| booking.terms.holder);
        let holder = match holder {
            Some(holder) => store.holder_name(holder)?,
            None => None,
        };
        let position = match booking.as_ref().and_then(|booking| booking.place) {
            Some(place) => Some(store.waiters_before(workshop, place)? + 1),
            None => None,
        };
        if booking.as_ref().is_some_and(|booking| booking.is_due(now_ms)) {
            store.mark_time(now_ms)?;
        }
        let mut history = store.history(workshop, request.as_str(), HISTORY + 1)?;
        let truncated = history.len() > HISTORY as usize;
        if truncated {
            history.remove(0);
        }
        let mut listed = Listed { request: request.shared(), attempt, booking, holder, skipped_for: None };
        look_up_why(store, workshop, &mut listed)?;
        Ok(Ok(Some(Box::new(Shown { listed, position, history, truncated, now_ms }))))
    }

    fn list<S: ReservationsStore + BookingsStore>(
        &mut self,
        store: &mut S,
        name: &WorkshopName,
        question: &Question,
        now_ms: i64,
    ) -> Result<OrGone<(ListedPage, i64)>, Error> {
        let workshop = match self.key(store, name)? {
            Ok(Some(workshop)) => workshop,
            Ok(None) => return Ok(Ok((ListedPage::default(), now_ms))),
            Err(gone) => return Ok(Err(gone)),
        };
        let holder = match &question.holder {
            None => None,
            Some(name) => match store.load_holders(&[name.as_str()])?.into_iter().next().flatten() {
                Some(holder) => Some(holder),
                None => return Ok(Ok((ListedPage::default(), now_ms))),
            },
        };
        let filter = Filter { state: question.state, holder };
        let mut page = store.list_requests(workshop, filter, &question.after, question.limit, now_ms)?;
        page.requests.iter_mut().try_for_each(|listed| look_up_why(store, workshop, listed))?;
        let due = |listed: &Listed| listed.booking.as_ref().is_some_and(|booking| booking.is_due(now_ms));
        // Whoever is left out because of its state has been told of, too.
        if question.state.is_some() || page.requests.iter().any(due) {
            store.mark_time(now_ms)?;
        }
        Ok(Ok((page, now_ms)))
    }

    fn events<S: ReservationsStore + BookingsStore>(
        &mut self,
        store: &mut S,
        name: &WorkshopName,
        after: i64,
        limit: u32,
    ) -> Result<OrGone<Option<LogPage>>, Error> {
        let key = match self.key(store, name)? {
            Ok(Some(key)) => key,
            Ok(None) => return Ok(Ok(None)),
            Err(gone) => return Ok(Err(gone)),
        };
        let events = store.events(key, after, limit)?;
        let last_event = match self.kept(name.as_str()) {
            Some(kept) => kept.workshop.last_event,
            None => {
                let found = store.load_workshops(&[name.as_str()])?.into_iter().next().flatten();
                found.map_or(0, |(_, workshop)| workshop.last_event)
            }
        };
        Ok(Ok(Some(LogPage { key: key.0, events, last_event })))
    }

    /// `None` is a conflict.
    fn sweep<S: ReservationsStore + BookingsStore>(
        &mut self,
        store: &mut S,
        now_ms: i64,
    ) -> Result<Option<Swept>, Error> {
        let rows_are_left = store.sweep_workshops(self.defaults.chunk)?;
        let names = self.next_to_sweep(store, now_ms)?;
        if !names.is_empty() {
            let mut batch = Batch::load_named(self, store, &names)?;
            batch.sweep(self, store, self.defaults.chunk, now_ms)?;
            if batch.save(self, store, now_ms)? == Saved::Conflict {
                return Ok(None);
            }
        }
        let next_at_ms = if rows_are_left { Some(now_ms) } else { store.next_due_at_ms()? };
        self.uncommitted.next_due_at_ms = Some(next_at_ms);
        self.uncommitted.first_end_at_ms = None;
        Ok(Some(Swept { next_at_ms }))
    }

    /// Each in its turn, so that who waits in one workshop does not wait for all that ended in another one before; and
    /// then those where most is to be done.
    fn next_to_sweep<S: BookingsStore>(
        &mut self,
        store: &mut S,
        now_ms: i64,
    ) -> Result<Vec<WorkshopName>, Error> {
        let chunk = self.defaults.chunk;
        let holding = store.holding_workshops(self.swept_up_to, now_ms, chunk)?;
        let full = holding.len() >= chunk as usize;
        let last = holding.last().filter(|_| full);
        self.swept_up_to = last.map_or(WorkshopKey(i64::MIN), |(workshop, ..)| *workshop);
        let due = holding.into_iter().filter_map(|(_, name, is_due)| is_due.then_some(name));
        let mut names: Vec<String> = due.collect();
        names.extend(store.due_workshops(now_ms, chunk)?);
        Ok(names.iter().filter_map(|name| WorkshopName::parse(name)).collect())
    }

    /// Remembers that something is due at a time.
    pub(super) fn ends_at(&mut self, at_ms: i64) {
        let first = self.uncommitted.first_end_at_ms.unwrap_or(i64::MAX);
        self.uncommitted.first_end_at_ms = Some(first.min(at_ms));
    }

    /// What memory has of a workshop.
    pub(super) fn kept(&mut self, name: &str) -> Option<Kept> {
        self.workshops.get(name).copied()
    }

    pub(super) fn keep(&mut self, name: Arc<str>, kept: Kept) {
        self.workshops.insert(name, kept);
    }

    /// Remembers that a workshop's listeners are to be told.
    pub(super) fn happened(&mut self, name: &WorkshopName, beside: impl Iterator<Item = EventKind>) {
        if self.feeds.has_listeners() {
            self.uncommitted.workshops.push(name.shared());
        }
        self.uncommitted.side_effects.extend(beside);
    }

    /// What was decided is committed: now others may hear of it.
    pub fn committed(&mut self) {
        let uncommitted = std::mem::take(&mut self.uncommitted);
        let Uncommitted { workshops, side_effects, next_due_at_ms, first_end_at_ms, sets } = uncommitted;
        if let Some(next_at_ms) = next_due_at_ms {
            self.alarm.set(next_at_ms);
        }
        if let Some(at_ms) = first_end_at_ms {
            self.alarm.bring_forward(at_ms);
        }
        if let Some(next_at_ms) = sets.next_due_at_ms {
            self.sets_alarm.set(next_at_ms);
        }
        if let Some(at_ms) = sets.first_end_at_ms {
            self.sets_alarm.bring_forward(at_ms);
        }
        for workshop in workshops {
            self.feeds.tell(&workshop);
        }
        for kind in side_effects {
            METRICS.count_beside(kind);
        }
        for turn in sets.to {
            sets::command::METRICS.count(turn);
        }
    }

    /// Drops all memory, after a failure.
    pub fn forget(&mut self) {
        self.workshops.clear();
        self.uncommitted = Uncommitted::default();
        self.unlogged.clear();
    }

    /// Drops what nobody touched for an idle period.
    pub fn forget_idle(&mut self) {
        self.workshops.rotate();
    }

    /// Workshops in memory.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.workshops.len()
    }
}

/// Looks up why a request was passed over that waited: its log says so, and no row of it.
fn look_up_why<S: BookingsStore>(
    store: &mut S,
    workshop: WorkshopKey,
    listed: &mut Listed,
) -> Result<(), Error> {
    if listed.booking.as_ref().is_some_and(|booking| booking.queued && booking.state == State::Rejected) {
        listed.skipped_for = skipped_for(store, workshop, &listed.request)?;
    }
    Ok(())
}

fn list_workshops<S: BookingsStore>(
    store: &mut S,
    after: &str,
    limit: u32,
    now_ms: i64,
) -> Result<Vec<(String, View)>, Error> {
    let page = store.list_workshops(after, limit)?;
    let mut listed = Vec::with_capacity(page.len());
    let mut saw_expiry = false;
    for (name, key, workshop) in page {
        let mut due = Due::default();
        if workshop.held > 0 {
            due.seats = store.due_seats(key, i64::MIN, now_ms)?.seats;
            saw_expiry |= due.seats > 0;
        }
        listed.push((name, view(Some(key), workshop, due)));
    }
    if saw_expiry {
        store.mark_time(now_ms)?;
    }
    Ok(listed)
}
