//! What a store does for the life of a reservation after its first decision: holds, offers, waiting, and
//! the log of everything that happened.
//!
//! A request that is decided once and for ever has no row here. Range reads see what was saved before in
//! the same transaction.

use std::sync::Arc;

use super::Error;
use super::reservations::{Attempt, AttemptKey, Status, Workshop, WorkshopKey};

/// A person's surrogate id. Rows and logs hold this; the name stands in one row of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HolderKey(pub i64);

/// What a request asked for beside its seats. The same id with other terms is another request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// Hold the seats instead of taking them for good.
    pub hold: bool,
    /// How long, in ms, if the request said so.
    pub ttl_ms: Option<i64>,
    /// For whom.
    pub holder: Option<HolderKey>,
    /// Wait if there are not enough seats.
    pub waitlist: bool,
    /// The request whose seats it gives up in exchange.
    pub replaces: Option<Arc<str>>,
    /// It is one of the lines of a set, which alone says what becomes of it.
    pub of_set: bool,
}

/// The life of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booking {
    /// What it asked for.
    pub terms: Terms,
    /// Whether its first decision put it on the waiting list.
    pub queued: bool,
    /// Where it is now.
    pub state: State,
    /// Seats that it takes, waits for, or had last.
    pub seats: i64,
    /// When its hold or offer began, in ms since 1970; extensions count from here.
    pub since_ms: i64,
    /// When its hold or offer ends: from this very millisecond on it is no more. Held seats without it
    /// don't end by the clock.
    pub expires_at_ms: Option<i64>,
    /// Its place on the waiting list while it waits: lower ones come first.
    pub place: Option<i64>,
    /// When the hold of the set ends whose line it is, while it is held and as far as the workshop has heard. From then on
    /// the set's home is to be asked; it alone knows whether that was put off.
    pub set_ends_at_ms: Option<i64>,
    /// How often its set has asked for its seats again, as far as the workshop has heard.
    pub set_round: i64,
}

/// Where a request is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the words that clients read; docs/http.md has a line on each")]
pub enum State {
    Accepted,
    Rejected,
    Held,
    Confirmed,
    Cancelled,
    Expired,
    Waiting,
    Offered,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Accepted,
        Self::Rejected,
        Self::Held,
        Self::Confirmed,
        Self::Cancelled,
        Self::Expired,
        Self::Waiting,
        Self::Offered,
    ];

    /// As stored and answered.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Held => "held",
            Self::Confirmed => "confirmed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Waiting => "waiting",
            Self::Offered => "offered",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether seats are taken in it.
    #[must_use]
    pub fn takes_seats(self) -> bool {
        matches!(self, Self::Accepted | Self::Held | Self::Confirmed | Self::Offered)
    }
}

impl Booking {
    /// Seats that it takes now.
    #[must_use]
    pub fn taken(&self) -> i64 {
        if self.state.takes_seats() { self.seats } else { 0 }
    }

    /// Whether its hold or offer has ended, swept or not.
    #[must_use]
    pub fn is_due(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|expires_at_ms| now_ms >= expires_at_ms)
    }

    /// Its state at a time: a hold that is due is expired, whoever has written it down or not.
    #[must_use]
    pub fn state_at(&self, now_ms: i64) -> State {
        if self.is_due(now_ms) { State::Expired } else { self.state }
    }
}

/// Why seats were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the words that clients read; docs/http.md has a line on each")]
pub enum Reason {
    NotEnoughSeats,
    SaleNotOpen,
    SaleClosed,
    LimitExceeded,
    WaitersFirst,
    WaitlistFull,
    RequestIdTaken,
    WorkshopGone,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::NotEnoughSeats,
        Self::SaleNotOpen,
        Self::SaleClosed,
        Self::LimitExceeded,
        Self::WaitersFirst,
        Self::WaitlistFull,
        Self::RequestIdTaken,
        Self::WorkshopGone,
    ];

    /// As stored and answered.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotEnoughSeats => "not_enough_seats",
            Self::SaleNotOpen => "sale_not_open",
            Self::SaleClosed => "sale_closed",
            Self::LimitExceeded => "limit_exceeded",
            Self::WaitersFirst => "waiters_first",
            Self::WaitlistFull => "waitlist_full",
            Self::RequestIdTaken => "request_id_taken",
            Self::WorkshopGone => "workshop_gone",
        }
    }

    /// The reason of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// One line of a workshop's log, which is only ever appended to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number in the log: the first is 1, and none is left out.
    pub seq: i64,
    /// When, in ms since 1970.
    pub at_ms: i64,
    /// What.
    pub kind: EventKind,
    /// Of which request; absent where it is the workshop's own.
    pub request: Option<Arc<str>>,
    /// The request's seats; the capacity, where it is the workshop's own.
    pub seats: i64,
    /// Seats taken just after.
    pub reserved: i64,
    /// Why, where something was refused.
    pub reason: Option<Reason>,
    /// When the hold or offer ends, where one begins.
    pub expires_at_ms: Option<i64>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the words that clients read; docs/http.md has a line on each")]
pub enum EventKind {
    Configured,
    Accepted,
    Rejected,
    Held,
    Confirmed,
    Cancelled,
    Expired,
    Extended,
    Waiting,
    Offered,
    Skipped,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Configured,
        Self::Accepted,
        Self::Rejected,
        Self::Held,
        Self::Confirmed,
        Self::Cancelled,
        Self::Expired,
        Self::Extended,
        Self::Waiting,
        Self::Offered,
        Self::Skipped,
    ];

    /// As stored and answered.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Held => "held",
            Self::Confirmed => "confirmed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Extended => "extended",
            Self::Waiting => "waiting",
            Self::Offered => "offered",
            Self::Skipped => "skipped",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Holds that end in a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DueSeats {
    /// Their seats.
    pub seats: i64,
    /// When the first one ends after the span, in ms since 1970.
    pub next_at_ms: Option<i64>,
}

/// Lines whose set has perhaps ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DueLines {
    /// By the ends that the workshop has heard of.
    pub requests: Vec<Arc<str>>,
    /// When the first one ends after now, in ms since 1970; what is due and was not listed is left out.
    pub next_at_ms: Option<i64>,
}

/// Which requests to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter {
    /// Those in this state.
    pub state: Option<State>,
    /// Those of this holder.
    pub holder: Option<HolderKey>,
}

/// A request as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub request: Arc<str>,
    /// Its first decision.
    pub attempt: Attempt,
    /// Its life, if it has one beyond that.
    pub booking: Option<Booking>,
    /// Its holder's name, if it has a holder whose name is known.
    pub holder: Option<String>,
    /// Why it was passed over, if it waited and was, and that was looked up.
    pub skipped_for: Option<Reason>,
}

impl Listed {
    /// Its state at a time.
    #[must_use]
    pub fn state_at(&self, now_ms: i64) -> State {
        match (&self.booking, self.attempt.status) {
            (Some(booking), _) => booking.state_at(now_ms),
            (None, Status::Accepted) => State::Accepted,
            (None, Status::Rejected) => State::Rejected,
        }
    }
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedPage {
    /// By request id.
    pub requests: Vec<Listed>,
    /// The last id that was looked at, if there may be more after it.
    pub next: Option<String>,
}

/// The name and state of a workshop, as listed.
pub type NamedWorkshop = (String, WorkshopKey, Workshop);

/// Range reads, names and deletion. Answers stand in the order of the question.
pub trait BookingsStore {
    /// The lives of requests.
    ///
    /// # Errors
    /// The engine's.
    fn load_bookings(&mut self, keys: &[AttemptKey<'_>]) -> Result<Vec<Option<Booking>>, Error>;

    /// Seats of a workshop's holds that end after `after_ms` and not after `until_ms`.
    ///
    /// # Errors
    /// The engine's.
    fn due_seats(&mut self, workshop: WorkshopKey, after_ms: i64, until_ms: i64) -> Result<DueSeats, Error>;

    /// Holds of a workshop that have ended at `now_ms`, the first to end first.
    ///
    /// # Errors
    /// The engine's.
    fn due_bookings(
        &mut self,
        workshop: WorkshopKey,
        now_ms: i64,
        limit: u32,
    ) -> Result<Vec<(Arc<str>, Booking)>, Error>;

    /// Held lines of a workshop whose sets have ended at `now_ms`, as far as it has heard, the first to end first and at
    /// most `limit`.
    ///
    /// # Errors
    /// The engine's.
    fn due_lines(&mut self, workshop: WorkshopKey, now_ms: i64, limit: u32) -> Result<DueLines, Error>;

    /// The longest waiting request of a workshop that wants at most so many seats.
    ///
    /// # Errors
    /// The engine's.
    fn first_waiter(
        &mut self,
        workshop: WorkshopKey,
        most_seats: i64,
    ) -> Result<Option<(Arc<str>, Booking)>, Error>;

    /// Requests of a workshop that wait at lower places.
    ///
    /// # Errors
    /// The engine's.
    fn waiters_before(&mut self, workshop: WorkshopKey, place: i64) -> Result<i64, Error>;

    /// Seats that a holder has in a workshop at `now_ms`.
    ///
    /// # Errors
    /// The engine's.
    fn seats_of_holder(
        &mut self,
        workshop: WorkshopKey,
        holder: HolderKey,
        now_ms: i64,
    ) -> Result<i64, Error>;

    /// Seats that a holder waits for in a workshop.
    ///
    /// # Errors
    /// The engine's.
    fn seats_waited_for(&mut self, workshop: WorkshopKey, holder: HolderKey) -> Result<i64, Error>;

    /// The surrogates of people's names.
    ///
    /// # Errors
    /// The engine's.
    fn load_holders(&mut self, names: &[&str]) -> Result<Vec<Option<HolderKey>>, Error>;

    /// Gives surrogates to names that have none.
    ///
    /// # Errors
    /// The engine's.
    fn create_holders(&mut self, names: &[&str]) -> Result<Vec<HolderKey>, Error>;

    /// A holder's name; `None` once the person was forgotten.
    ///
    /// # Errors
    /// The engine's.
    fn holder_name(&mut self, holder: HolderKey) -> Result<Option<String>, Error>;

    /// Stores a time as the latest one, whatever else the transaction changes: what somebody was told to be
    /// over must stay so, also when the machine's clock is set back before the next start.
    ///
    /// # Errors
    /// The engine's.
    fn mark_time(&mut self, now_ms: i64) -> Result<(), Error>;

    /// Workshops of the holds that ended first, `limit` of these holds, and as many with waiters to be looked at.
    ///
    /// # Errors
    /// The engine's.
    fn due_workshops(&mut self, now_ms: i64, limit: u32) -> Result<Vec<String>, Error>;

    /// Workshops with holds that end, by surrogate id after `after`, at most `limit`, and whether one has ended at `now_ms`.
    ///
    /// # Errors
    /// The engine's.
    fn holding_workshops(
        &mut self,
        after: WorkshopKey,
        now_ms: i64,
        limit: u32,
    ) -> Result<Vec<(WorkshopKey, String, bool)>, Error>;

    /// When the next hold ends or the next waiters are to be looked at, in ms since 1970; in the past if there
    /// are rows of deleted workshops.
    ///
    /// # Errors
    /// The engine's.
    fn next_due_at_ms(&mut self) -> Result<Option<i64>, Error>;

    /// Workshops by name, after `after`.
    ///
    /// # Errors
    /// The engine's.
    fn list_workshops(&mut self, after: &str, limit: u32) -> Result<Vec<NamedWorkshop>, Error>;

    /// Requests of a workshop by id, after `after`, as they are at `now_ms`. Looks at `limit` at most.
    ///
    /// # Errors
    /// The engine's.
    fn list_requests(
        &mut self,
        workshop: WorkshopKey,
        filter: Filter,
        after: &str,
        limit: u32,
        now_ms: i64,
    ) -> Result<ListedPage, Error>;

    /// What happened to a request after a decision that was its first and last, in order; the newest `limit` of it.
    ///
    /// # Errors
    /// The engine's.
    fn history(&mut self, workshop: WorkshopKey, request: &str, limit: u32) -> Result<Vec<Event>, Error>;

    /// A workshop's log after the event `after`.
    ///
    /// # Errors
    /// The engine's.
    fn events(&mut self, workshop: WorkshopKey, after: i64, limit: u32) -> Result<Vec<Event>, Error>;

    /// Whether the workshops of these surrogate ids are there, and have not been deleted.
    ///
    /// # Errors
    /// The engine's.
    fn are_there(&mut self, workshops: &[WorkshopKey]) -> Result<Vec<bool>, Error>;

    /// When the workshops of these names were deleted, of those that were and are not there again.
    ///
    /// # Errors
    /// The engine's.
    fn load_tombstones(&mut self, names: &[&str]) -> Result<Vec<Option<i64>>, Error>;

    /// Deletes a workshop and leaves a tombstone; its rows are still to be swept.
    ///
    /// # Errors
    /// The engine's.
    fn delete_workshop(&mut self, workshop: WorkshopKey, name: &str, now_ms: i64) -> Result<(), Error>;

    /// Takes a tombstone away.
    ///
    /// # Errors
    /// The engine's.
    fn remove_tombstone(&mut self, name: &str) -> Result<(), Error>;

    /// Takes up to `limit` tombstones away, whosever they are; whether there were any.
    ///
    /// # Errors
    /// The engine's.
    fn remove_tombstones(&mut self, limit: u32) -> Result<bool, Error>;

    /// Removes up to `limit` rows of deleted workshops; whether there are more.
    ///
    /// # Errors
    /// The engine's.
    fn sweep_workshops(&mut self, limit: u32) -> Result<bool, Error>;
}
