//! What each namespace costs: requests, time in memory, messages in, bytes stored. So an operator sees what
//! a sleeping room saves.
//!
//! Counters begin at 0 when the process does, and never fall. [`active`] adds up time, [`stored`] measures
//! bytes.

pub mod active;
pub mod stored;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use active::Active;

use crate::partition::Clock;

/// What has a bill of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// Who likes what.
    Likes,
    /// Workshops and their reservations.
    Workshops,
    /// Rooms.
    Rooms,
}

impl Namespace {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Likes, Self::Workshops, Self::Rooms];

    /// As answers and labels have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Likes => "likes",
            Self::Workshops => "workshops",
            Self::Rooms => "rooms",
        }
    }

    /// Whose a route is, by its first segment; nobody's for the service's own.
    #[must_use]
    pub fn of_route(route: &str) -> Option<Self> {
        match route.split('/').nth(1)? {
            "likes" | "users" | "batch" | "counters" | "trending" => Some(Self::Likes),
            "workshops" | "reservations" => Some(Self::Workshops),
            "rooms" | "join" | "leave" | "send" => Some(Self::Rooms),
            _ => None,
        }
    }
}

/// The counters of one namespace.
#[derive(Debug)]
pub struct Meter {
    requests: AtomicU64,
    messages: AtomicU64,
    keepalives: AtomicU64,
    /// In memory: rooms awake, workshops, counters of items.
    pub active: Active,
    /// Rooms that sleep.
    pub asleep: Active,
}

impl Meter {
    fn new(clock: &Clock) -> Self {
        Self {
            requests: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            keepalives: AtomicU64::new(0),
            active: Active::new(clock.clone()),
            asleep: Active::new(clock.clone()),
        }
    }

    /// A request was answered, whatever the answer.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// A WebSocket said something.
    pub fn message(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
    }

    /// It was the keep-alive, which its connection answers by itself.
    pub fn keepalive(&self) {
        self.keepalives.fetch_add(1, Ordering::Relaxed);
    }

    /// The counters now.
    #[must_use]
    pub fn read(&self) -> Reading {
        Reading {
            requests: self.requests.load(Ordering::Relaxed),
            messages: self.messages.load(Ordering::Relaxed),
            keepalives: self.keepalives.load(Ordering::Relaxed),
            active_ms: self.active.total_ms(),
            asleep_ms: self.asleep.total_ms(),
        }
    }
}

/// What a [`Meter`] has counted since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// Requests answered.
    pub requests: u64,
    /// Messages from WebSockets, keep-alives among them.
    pub messages: u64,
    /// Keep-alives that woke nobody.
    pub keepalives: u64,
    /// Milliseconds in memory, of all actors together.
    pub active_ms: u64,
    /// Milliseconds asleep, of all rooms together.
    pub asleep_ms: u64,
}

/// The meters of the process; a cheap clone.
#[derive(Debug, Clone)]
pub struct Usage {
    /// When they began, ms since 1970.
    pub since_ms: i64,
    /// Of likes.
    pub likes: Arc<Meter>,
    /// Of workshops.
    pub workshops: Arc<Meter>,
    /// Of rooms.
    pub rooms: Arc<Meter>,
}

impl Usage {
    /// All at 0.
    #[must_use]
    pub fn new(clock: &Clock) -> Self {
        let meter = || Arc::new(Meter::new(clock));
        Self { since_ms: clock.now_ms(), likes: meter(), workshops: meter(), rooms: meter() }
    }

    /// A namespace's.
    #[must_use]
    pub fn of(&self, namespace: Namespace) -> &Arc<Meter> {
        match namespace {
            Namespace::Likes => &self.likes,
            Namespace::Workshops => &self.workshops,
            Namespace::Rooms => &self.rooms,
        }
    }
}
