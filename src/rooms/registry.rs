//! The handle to all rooms: it finds the owner, wakes it and asks it; and what concerns all rooms at once:
//! how many there may be, who is let in how fast, alarms, pings, the end.

use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use foldhash::HashMap;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::actor::{Command, From, Reply, Sent, View, ping};
use super::alarms::Alarms;
use super::close::Close;
use super::history::Bounds;
use super::link::{Link, QueueBounds, Wishes};
use super::presence::{End, Times};
use super::rate::Bucket;
use super::recorder::Recorder;
use super::room::{Rejected, Room};
use super::state::{Denied, Limits, State};
use super::types::{ConnectionId, Message, Meta, Position, RoomName, UserId};
use crate::config;
use crate::metrics::RoomMetrics;
use crate::partition::{Clock, Refusal};

/// A cheap clone's way to every room.
#[derive(Debug, Clone)]
pub struct Rooms(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    rooms: RwLock<HashMap<RoomName, Arc<Room>>>,
    settings: Settings,
    clock: Clock,
    recorder: Option<Recorder>,
    alarms: Alarms,
    metrics: RoomMetrics,
    runtime: Handle,
    draining: AtomicBool,
    awake: AtomicUsize,
    next_connection: AtomicU64,
    admissions: Mutex<Bucket>,
    /// Connections by API key.
    by_key: Mutex<HashMap<Arc<str>, usize>>,
    /// Of this process: hints and epochs differ from run to run.
    seed: u64,
}

/// Bounds of rooms and of their sockets; the settings of the same names say what they mean.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the settings of the same names are documented")]
pub struct Settings {
    pub limits: Limits,
    pub sleep_after: Duration,
    pub ping_interval: Option<Duration>,
    pub keepalive_request: Box<str>,
    pub keepalive_response: bytes::Bytes,
    pub max_message_bytes: usize,
    pub max_meta_bytes: usize,
    pub max_rooms: usize,
    pub max_connections_per_key: usize,
    pub admissions_per_s: u32,
    pub socket_messages_per_s: u32,
    pub mailbox: usize,
    pub close_timeout: Duration,
    pub retry_ms: (u64, u64),
    /// Alarms of one room are at least so far apart.
    pub alarm_spacing_ms: i64,
    /// `server.request_timeout_ms`: how long an answer is waited for.
    pub patience: Duration,
}

impl std::convert::From<&config::Config> for Settings {
    fn from(config: &config::Config) -> Self {
        let rooms = &config.rooms;
        let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let times = Times { idle_ms: signed(rooms.idle_timeout_ms), grace_ms: signed(rooms.grace_ms) };
        Self {
            limits: Limits {
                times,
                history: history_bounds(rooms),
                queue: QueueBounds { frames: rooms.queue_frames, bytes: rooms.queue_bytes },
                max_members: rooms.max_members,
                max_connections: rooms.max_connections_per_room,
                max_connections_per_user: rooms.max_connections_per_user,
                room_messages_per_s: rooms.room_messages_per_s,
            },
            sleep_after: Duration::from_millis(rooms.sleep_after_ms),
            ping_interval: (rooms.ping_interval_ms > 0)
                .then(|| Duration::from_millis(rooms.ping_interval_ms)),
            keepalive_request: rooms.keepalive_request.as_str().into(),
            keepalive_response: super::frame::text_frame(&rooms.keepalive_response),
            max_message_bytes: rooms.max_message_bytes,
            max_meta_bytes: rooms.max_meta_bytes,
            max_rooms: rooms.max_rooms,
            max_connections_per_key: rooms.max_connections_per_key,
            admissions_per_s: rooms.admissions_per_s,
            socket_messages_per_s: rooms.socket_messages_per_s,
            mailbox: rooms.mailbox,
            close_timeout: Duration::from_millis(rooms.close_timeout_ms),
            retry_ms: (rooms.retry_min_ms, rooms.retry_max_ms),
            alarm_spacing_ms: (times.idle_ms.min(times.grace_ms.max(1)) / 100).clamp(1, 1_000),
            patience: Duration::from_millis(config.server.request_timeout_ms),
        }
    }
}

/// What is kept of a room.
#[must_use]
pub fn history_bounds(rooms: &config::Rooms) -> Bounds {
    Bounds {
        messages: rooms.history_messages,
        bytes: rooms.history_bytes,
        age_ms: i64::try_from(rooms.history_age_ms).unwrap_or(i64::MAX),
    }
}

/// How often old messages of silent rooms leave the disk.
const PURGE_INTERVAL: Duration = Duration::from_secs(60);
/// Pause before a command that must arrive is offered again to a room whose queue is full.
const OFFER_PAUSE: Duration = Duration::from_millis(5);
/// Alarms that lie further away are looked at again then.
const LONGEST_WAIT_MS: i64 = 60_000;

impl Rooms {
    /// All rooms, none of them known yet, with their alarms and pings running until `stop`. With a `recorder`
    /// their history is durable. Call it on a tokio runtime.
    #[must_use]
    pub fn start(
        settings: Settings,
        clock: Clock,
        recorder: Option<Recorder>,
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
            admissions: Mutex::new(Bucket::full(settings.admissions_per_s, now_ms)),
            settings,
            clock,
            recorder,
            alarms: Alarms::default(),
            metrics: RoomMetrics::default(),
            runtime: Handle::current(),
            draining: AtomicBool::new(false),
            awake: AtomicUsize::new(0),
            next_connection: AtomicU64::new(1),
            by_key: Mutex::default(),
            seed,
        }));
        let until_stopped = |task: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
            let stop = stop.clone();
            tokio::spawn(async move { stop.run_until_cancelled(task).await });
        };
        until_stopped(Box::pin(rooms.clone().watch_alarms()));
        if let Some(every) = rooms.settings().ping_interval {
            until_stopped(Box::pin(rooms.clone().ping_all(every)));
        }
        if let Some(recorder) = rooms.recorder().cloned() {
            until_stopped(Box::pin(async move {
                let mut every = tokio::time::interval(PURGE_INTERVAL);
                loop {
                    every.tick().await;
                    recorder.purge().await;
                }
            }));
        }
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

    /// Somebody says something over HTTP. Where the history is durable, so is the message on return.
    ///
    /// # Errors
    /// The room's.
    pub async fn say(&self, room: &RoomName, message: Message) -> Result<Sent, Denied> {
        let accepted = Instant::now();
        self.ask(room, |reply| Command::Say { message, from: From::Http(reply), accepted }).await
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

    /// Lets a connection in: at the return it is counted, and hears everything from its snapshot on.
    ///
    /// # Errors
    /// The room's, [`Denied::NotAdmitted`], and [`Refusal::Unavailable`] while the service stops.
    pub async fn connect(
        &self,
        room: &RoomName,
        user: Option<UserId>,
        wishes: Wishes,
        key: Option<&str>,
        since: Option<Position>,
    ) -> Result<Membership, Denied> {
        if self.is_draining() {
            return Err(Refusal::Unavailable.into());
        }
        let now_ms = self.now_ms();
        let admissions_per_s = self.settings().admissions_per_s;
        if !lock(&self.0.admissions).take(admissions_per_s, now_ms) {
            return Err(Denied::NotAdmitted);
        }
        let key = key.map(|key| self.count_key(key)).transpose()?;
        let id = ConnectionId(self.0.next_connection.fetch_add(1, Ordering::Relaxed));
        let link = Arc::new(Link::new(id, user, wishes, now_ms));
        self.0.metrics.connections(link.is_socket()).increment(1.0);
        let mut membership = Membership {
            rooms: self.clone(),
            room: self.create(room)?,
            link: Arc::clone(&link),
            key,
            end: End::Clean,
        };
        let (reply, answer) = oneshot::channel();
        let command = Command::Connect { link, since, reply };
        membership.room = self.offer(room, Arc::clone(&membership.room), command)?;
        // Dropped while it waits, the membership ends what may have begun.
        self.wait(answer).await?;
        Ok(membership)
    }

    /// Sends every connection away, each with a time of its own to come back. Nobody is let in any more.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::SeqCst);
        for room in self.all() {
            let asleep = room.peek(|state| state.links().iter().for_each(|link| self.send_away(link)));
            if asleep.is_none() {
                self.deliver(&room, Command::Drain);
            }
        }
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
        let awake = self.0.awake.load(Ordering::Relaxed);
        self.0.metrics.observe(awake, all.saturating_sub(awake));
    }

    pub(super) fn send_away(&self, link: &Link) {
        link.close(Close::Restart(Duration::from_millis(self.retry_ms(link.id.0))));
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
        self.0.awake.fetch_add(1, Ordering::Relaxed);
        self.0.metrics.wakes.increment(1);
    }

    pub(super) fn fell_asleep(&self) {
        self.0.awake.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn forget(&self, room: &Room) {
        let mut rooms = self.0.rooms.write().unwrap_or_else(PoisonError::into_inner);
        // There may be another one of the name by now.
        if rooms.get(&room.name).is_some_and(|known| std::ptr::eq(&**known, room)) {
            rooms.remove(&room.name);
        }
    }

    fn find(&self, name: &RoomName) -> Option<Arc<Room>> {
        self.0.rooms.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn create(&self, name: &RoomName) -> Result<Arc<Room>, Denied> {
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
                Ok(Arc::clone(place.insert(Arc::new(Room::new(state)))))
            }
        }
    }

    fn all(&self) -> Vec<Arc<Room>> {
        self.0.rooms.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Offers a command to a room of this name; which one took it.
    fn offer(&self, name: &RoomName, mut room: Arc<Room>, mut command: Command) -> Result<Arc<Room>, Denied> {
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

    async fn wait<T>(&self, answer: oneshot::Receiver<Result<T, Denied>>) -> Result<T, Denied> {
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

    fn count_key(&self, key: &str) -> Result<Arc<str>, Denied> {
        let mut by_key = lock(&self.0.by_key);
        let count = by_key.entry(key.into()).or_default();
        if *count >= self.settings().max_connections_per_key {
            return Err(Denied::TooManyConnections("rooms.max_connections_per_key"));
        }
        *count += 1;
        Ok(key.into())
    }

    fn uncount_key(&self, key: &Arc<str>) {
        let mut by_key = lock(&self.0.by_key);
        if let Entry::Occupied(mut count) = by_key.entry(Arc::clone(key)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    async fn watch_alarms(self) {
        loop {
            let now_ms = self.now_ms();
            for room in self.0.alarms.ring(now_ms) {
                self.ring(&room, now_ms);
            }
            let wait_ms = self.0.alarms.next_ms().map_or(LONGEST_WAIT_MS, |next_ms| next_ms - now_ms);
            let wait_ms = wait_ms.clamp(1, LONGEST_WAIT_MS).unsigned_abs();
            let _either = tokio::time::timeout(Duration::from_millis(wait_ms), self.0.alarms.changed()).await;
        }
    }

    /// A sleeping room is woken only if something is over.
    fn ring(&self, room: &Arc<Room>, now_ms: i64) {
        match room.peek(|state| state.next_due_ms(&self.settings().limits)) {
            Some(None) => {}
            Some(Some(due_ms)) if due_ms > now_ms => {
                self.set_alarm(room, due_ms.max(now_ms + self.settings().alarm_spacing_ms));
            }
            Some(Some(_)) | None => self.deliver(room, Command::Tick),
        }
    }

    async fn ping_all(self, every: Duration) {
        let mut every = tokio::time::interval_at(Instant::now() + every, every);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            for room in self.all() {
                let queue = self.settings().limits.queue;
                let asleep = room.peek(|state| state.links().iter().for_each(|link| ping(link, queue)));
                if asleep.is_none() {
                    self.deliver(&room, Command::Ping);
                }
            }
        }
    }
}

fn none(members: bool) -> Option<Box<serde_json::value::RawValue>> {
    members.then(|| super::frame::members_json(std::iter::empty()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection's place in its room. Dropped, it gives the place up: whatever happens to a request or a
/// socket, its room hears of the end.
#[derive(Debug)]
pub struct Membership {
    pub(super) rooms: Rooms,
    pub(super) room: Arc<Room>,
    /// The connection's queue.
    pub link: Arc<Link>,
    key: Option<Arc<str>>,
    /// What the end is if it comes now: until a socket lives, nobody waits for it to come back.
    pub(super) end: End,
}

impl Membership {
    pub(super) fn offer(&self, command: Command, waiter: &std::task::Waker) -> Result<(), Rejected> {
        self.room.offer(&self.rooms, command, Some(waiter))
    }

    /// Counts a connection's end.
    pub(super) fn count_end(&self, cause: &'static str) {
        self.rooms.metrics().ended(cause);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.link.end();
        self.rooms.deliver(&self.room, Command::Gone { link: Arc::clone(&self.link), end: self.end });
        self.rooms.metrics().connections(self.link.is_socket()).decrement(1.0);
        if let Some(key) = &self.key {
            self.rooms.uncount_key(key);
        }
    }
}
