//! The handle to all rooms: it finds the owner, wakes it and asks it. Who is let in is in
//! [`admission`](super::admission), what happens with nobody calling in `upkeep`.

use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use foldhash::HashMap;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::admission::Admission;
use super::alarms::Alarms;
use super::command::{Command, From, Reply, Sent, View};
use super::denied::Denied;
use super::recorder::Recorder;
use super::room::{Rejected, Room};
use super::senders::Senders;
use super::settings::Settings;
use super::state::State;
use super::types::{Message, Meta, RoomName, UserId};
use crate::metrics::RoomMetrics;
use crate::partition::{Clock, Refusal};
use crate::usage::Meter;

/// A cheap clone's way to every room.
#[derive(Debug, Clone)]
pub struct Rooms(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    rooms: RwLock<HashMap<RoomName, Arc<Room>>>,
    settings: Settings,
    clock: Clock,
    recorder: Option<Recorder>,
    pub(super) alarms: Alarms,
    metrics: RoomMetrics,
    meter: Arc<Meter>,
    runtime: Handle,
    pub(super) draining: AtomicBool,
    pub(super) next_connection: AtomicU64,
    pub(super) admission: Admission,
    senders: Senders,
    /// Of this process: hints and epochs differ from run to run.
    seed: u64,
}

/// Pause before a command that must arrive is offered again to a room whose queue is full.
pub(super) const OFFER_PAUSE: Duration = Duration::from_millis(5);

impl Rooms {
    /// All rooms, none of them known yet, with their alarms and pings running until `stop`. With a `recorder`
    /// their history is durable. Call it on a tokio runtime.
    #[must_use]
    pub fn start(
        settings: Settings,
        clock: Clock,
        recorder: Option<Recorder>,
        meter: Arc<Meter>,
        stop: &CancellationToken,
    ) -> Self {
        let now_ms = clock.now_ms();
        let mut seed = [0; 8];
        // Without randomness the time has to do: nothing rests on it but that two runs differ.
        let seed = match getrandom::fill(&mut seed) {
            Ok(()) => u64::from_le_bytes(seed),
            Err(_) => now_ms.unsigned_abs(),
        };
        let rooms = Self(Arc::new(Shared {
            rooms: RwLock::default(),
            admission: Admission::new(settings.admissions_per_s, now_ms),
            senders: Senders::new(&settings),
            settings,
            clock,
            recorder,
            alarms: Alarms::default(),
            metrics: RoomMetrics::default(),
            meter,
            runtime: Handle::current(),
            draining: AtomicBool::new(false),
            next_connection: AtomicU64::new(1),
            seed,
        }));
        rooms.keep_up(stop);
        rooms
    }

    /// A user joins over HTTP, or its session goes on; users online afterwards.
    ///
    /// # Errors
    /// The room's.
    pub async fn join(&self, room: &RoomName, user: UserId, meta: Option<Meta>) -> Result<usize, Denied> {
        self.ask(room, |reply| Command::Join { user, meta, reply }).await
    }

    /// A user leaves over HTTP; users online afterwards. Its sockets stay, unless `all`.
    ///
    /// # Errors
    /// The room's.
    pub async fn leave(&self, room: &RoomName, user: UserId, all: bool) -> Result<usize, Denied> {
        if self.find(room).is_none() {
            return Ok(0);
        }
        self.ask(room, |reply| Command::Leave { user, all, reply }).await
    }

    /// Somebody says something over HTTP, with an API key where those are needed. Where the history is
    /// durable, so is the message on return.
    ///
    /// # Errors
    /// The room's, and [`Denied::RateLimited`] before the room hears of it.
    pub async fn say(&self, room: &RoomName, message: Message, key: Option<&str>) -> Result<Sent, Denied> {
        let accepted = Instant::now();
        self.may_say(message.user.as_ref(), key, self.now_ms())?;
        self.ask(room, |reply| Command::Say { message, from: From::Http(reply), accepted }).await
    }

    /// Takes something said of a user's rate and of a key's.
    pub(super) fn may_say(
        &self,
        user: Option<&UserId>,
        key: Option<&str>,
        now_ms: i64,
    ) -> Result<(), Denied> {
        let said = self.0.senders.may_say(user, key, now_ms);
        said.inspect_err(|_| self.metrics().refused.increment(1))
    }

    /// A room as it is. One that sleeps goes on sleeping; one that is not known is empty.
    ///
    /// # Errors
    /// The room's.
    pub async fn view(&self, room: &RoomName, members: bool) -> Result<View, Denied> {
        let Some(found) = self.find(room) else {
            return Ok(View { online: 0, connections: 0, members: none(members) });
        };
        let (limits, now_ms) = (self.settings().limits, self.now_ms());
        let current = |state: &State| {
            let is_due = state.next_due_ms(&limits).is_some_and(|due_ms| due_ms <= now_ms);
            (!is_due).then(|| View::of(state, members))
        };
        match found.peek(current) {
            Some(Some(view)) => return Ok(view),
            // Something is over that nobody has been told of yet.
            Some(None) => self.deliver(&found, Command::Tick),
            None => {}
        }
        self.ask(room, |reply| Command::View { members, reply }).await
    }

    /// Whether the service stops.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::SeqCst)
    }

    /// Has the time looked at again, after it was changed on purpose.
    pub fn look_at_the_clock(&self) {
        self.0.alarms.look_again();
    }

    /// A random time to come back after, ms.
    #[must_use]
    pub fn retry_ms(&self, salt: u64) -> u64 {
        let (min, max) = self.settings().retry_ms;
        min + xxh3_64_with_seed(&salt.to_le_bytes(), self.0.seed) % (max - min + 1).max(1)
    }

    /// Sets the gauges of how many rooms there are.
    pub fn observe(&self) {
        let all = self.0.rooms.read().unwrap_or_else(PoisonError::into_inner).len();
        let awake = self.0.meter.active.now();
        self.0.metrics.observe(awake, all.saturating_sub(awake));
    }

    /// The bounds.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.0.recorder.as_ref()
    }

    pub(super) fn metrics(&self) -> &RoomMetrics {
        &self.0.metrics
    }

    pub(super) fn meter(&self) -> &Meter {
        &self.0.meter
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.0.clock.now_ms()
    }

    /// A stream's name that no other has.
    pub(super) fn new_epoch(&self) -> Arc<str> {
        let number = self.0.next_connection.fetch_add(1, Ordering::Relaxed);
        format!("{:016x}", xxh3_64_with_seed(&number.to_le_bytes(), self.0.seed)).into()
    }

    pub(super) fn set_alarm(&self, room: &Arc<Room>, due_ms: i64) {
        self.0.alarms.set(room, due_ms);
    }

    pub(super) fn woke(&self) {
        self.0.meter.asleep.end();
        self.0.meter.active.begin();
        self.0.metrics.wakes.increment(1);
    }

    pub(super) fn fell_asleep(&self) {
        self.0.meter.active.end();
        self.0.meter.asleep.begin();
    }

    pub(super) fn forget(&self, room: &Room) {
        let mut rooms = self.0.rooms.write().unwrap_or_else(PoisonError::into_inner);
        // There may be another one of the name by now.
        if rooms.get(&room.name).is_some_and(|known| std::ptr::eq(&**known, room)) {
            rooms.remove(&room.name);
            self.0.meter.asleep.end();
        }
    }

    fn find(&self, name: &RoomName) -> Option<Arc<Room>> {
        self.0.rooms.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(super) fn create(&self, name: &RoomName) -> Result<Arc<Room>, Denied> {
        if let Some(room) = self.find(name) {
            return Ok(room);
        }
        let mut rooms = self.0.rooms.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = rooms.len() >= self.settings().max_rooms;
        match rooms.entry(name.clone()) {
            Entry::Occupied(known) => Ok(Arc::clone(known.get())),
            Entry::Vacant(_) if is_full => Err(Refusal::Overloaded.into()),
            Entry::Vacant(place) => {
                let state = State::new(name.clone(), &self.settings().limits, self.now_ms());
                self.0.meter.asleep.begin();
                Ok(Arc::clone(place.insert(Arc::new(Room::new(state)))))
            }
        }
    }

    /// Its rate over HTTP starts afresh.
    pub(super) fn forget_sender(&self, user: &UserId) {
        self.0.senders.forget(user);
    }

    pub(super) fn all(&self) -> Vec<Arc<Room>> {
        self.0.rooms.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Looks at every room. No room comes or goes meanwhile: to be short, and to lock nothing else.
    pub(super) fn look_at_all(&self, look: impl FnMut(&Arc<Room>)) {
        self.0.rooms.read().unwrap_or_else(PoisonError::into_inner).values().for_each(look);
    }

    /// Offers a command to a room of this name; which one took it.
    pub(super) fn offer(
        &self,
        name: &RoomName,
        mut room: Arc<Room>,
        mut command: Command,
    ) -> Result<Arc<Room>, Denied> {
        loop {
            match room.offer(self, command, None) {
                Ok(()) => return Ok(room),
                Err(Rejected::Full(_)) => return Err(Refusal::Overloaded.into()),
                Err(Rejected::Gone(back)) => {
                    // It has been, or is just being, forgotten.
                    self.forget(&room);
                    (room, command) = (self.create(name)?, back);
                }
            }
        }
    }

    async fn ask<T>(&self, name: &RoomName, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, Denied> {
        let (reply, answer) = oneshot::channel();
        self.offer(name, self.create(name)?, command(reply))?;
        self.wait(answer).await
    }

    pub(super) async fn wait<T>(&self, answer: oneshot::Receiver<Result<T, Denied>>) -> Result<T, Denied> {
        match tokio::time::timeout(self.settings().patience, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(Refusal::OutcomeUnknown.into()),
        }
    }

    /// Gives a room a command that must arrive, however full its queue is. A room that is gone needs none.
    pub(super) fn deliver(&self, room: &Arc<Room>, command: Command) {
        if let Err(Rejected::Full(mut command)) = room.offer(self, command, None) {
            let (rooms, room) = (self.clone(), Arc::clone(room));
            self.runtime().spawn(async move {
                loop {
                    tokio::time::sleep(OFFER_PAUSE).await;
                    match room.offer(&rooms, command, None) {
                        Err(Rejected::Full(back)) => command = back,
                        Ok(()) | Err(Rejected::Gone(_)) => return,
                    }
                }
            });
        }
    }
}

fn none(members: bool) -> Option<Box<serde_json::value::RawValue>> {
    members.then(|| super::frame::members_json(std::iter::empty()))
}
