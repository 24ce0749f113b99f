//! What a store does for reservations: workshops, and the first decision on each request id. What a
//! request's life is after that is in [`bookings`](super::bookings).

use super::bookings::{Booking, Event, Reason};
use super::{Error, Saved};

/// A workshop's surrogate id, new at each creation, so that a name created again never meets its past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkshopKey(pub i64);

/// A workshop's state. The database checks `reserved BETWEEN 0 AND capacity + overbooked` once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Workshop {
    /// Seats there are.
    pub capacity: i64,
    /// Seats taken: held and confirmed. Holds that are due and not yet swept are still in it.
    pub reserved: i64,
    /// How far `reserved` may lie above the capacity, after an operator lowered it.
    pub overbooked: i64,
    /// Of `reserved`, those that are held or offered, and not confirmed.
    pub held: i64,
    /// Requests on the waiting list.
    pub waiting: i64,
    /// First decisions that accepted. Never falls.
    pub accepted_requests: i64,
    /// First decisions that rejected. Never falls.
    pub rejected_requests: i64,
    /// Seats in accepted first decisions. Never falls.
    pub accepted_seats: i64,
    /// Grows by one with each batch that changes it.
    pub version: i64,
    /// The number of the last event in the workshop's log; the first is 1.
    pub last_event: i64,
    /// What its operator has set.
    pub rules: Rules,
    /// Grows by one with each change of the capacity or the rules by its operator; 0 if there was none.
    pub rules_version: i64,
    /// When waiters are to be looked at again although no seat gets free, in ms since 1970.
    pub offers_due_at_ms: Option<i64>,
}

/// What an operator may set of a workshop beside its capacity. Absent: the settings' defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// Most seats of one request.
    pub max_seats_per_request: Option<i64>,
    /// Most seats that one holder may have at a time; every request must then name its holder.
    pub max_seats_per_holder: Option<i64>,
    /// How long a hold lives that does not say so itself, in ms.
    pub hold_ttl_ms: Option<i64>,
    /// Absent: nobody can wait.
    pub waitlist: Option<Waitlist>,
    /// Requests before this time are refused; ms since 1970.
    pub opens_at_ms: Option<i64>,
    /// Requests from this time on are refused; ms since 1970.
    pub closes_at_ms: Option<i64>,
}

/// How a workshop's waiting list is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waitlist {
    /// Who is next.
    pub policy: Policy,
    /// How long an offer lives, in ms.
    pub offer_ttl_ms: i64,
    /// Most requests that wait.
    pub max_length: i64,
}

/// Who is next on a waiting list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The longest waiting one, however many seats it wants; free seats are kept for it.
    Strict,
    /// The longest waiting one of those whom the free seats are enough for.
    FitFirst,
}

impl Policy {
    /// As stored and answered.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::FitFirst => "fit_first",
        }
    }

    /// The policy of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Strict, Self::FitFirst].into_iter().find(|policy| policy.as_str() == text)
    }
}

/// The first decision on a request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Seats asked for.
    pub seats: i64,
    /// What was decided.
    pub status: Status,
    /// `reserved` of the workshop just after.
    pub reserved_after: i64,
    /// When, in ms since 1970.
    pub decided_at_ms: i64,
    /// Why it was rejected, if for anything but a lack of seats.
    pub reason: Option<Reason>,
}

/// A decision's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The seats are taken.
    Accepted,
    /// There were not enough.
    Rejected,
}

impl Status {
    /// As stored and answered.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }
}

/// A request id within a workshop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptKey<'a> {
    /// The workshop.
    pub workshop: WorkshopKey,
    /// The request id.
    pub request: &'a str,
}

/// A changed workshop, with what it was when it was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkshopChange {
    /// Which.
    pub key: WorkshopKey,
    /// As loaded.
    pub before: Workshop,
    /// As decided.
    pub after: Workshop,
}

/// What a batch changed, and what it rests on.
#[derive(Debug, Default)]
pub struct ReservationChanges<'a> {
    /// Each workshop once, however often it was touched.
    pub workshops: Vec<WorkshopChange>,
    /// First decisions.
    pub attempts: Vec<(AttemptKey<'a>, Attempt)>,
    /// The lives of requests, as they are now.
    pub bookings: Vec<(AttemptKey<'a>, &'a Booking)>,
    /// What happened, in the order in which it did.
    pub events: Vec<(WorkshopKey, &'a Event)>,
    /// Workshops that were read and left alone: a shared store fences them, an exclusive one need not.
    pub rests_on: Vec<WorkshopKey>,
}

/// Keys are loaded and changes saved in batch-shaped calls, inside the caller's transaction. Answers
/// stand in the order of the question.
pub trait ReservationsStore {
    /// The workshops that exist.
    ///
    /// # Errors
    /// The engine's.
    fn load_workshops(&mut self, names: &[&str]) -> Result<Vec<Option<(WorkshopKey, Workshop)>>, Error>;

    /// Creates workshops that do not exist, as given.
    ///
    /// # Errors
    /// The engine's.
    fn create_workshops(
        &mut self,
        workshops: &[(&str, Workshop)],
        now_ms: i64,
    ) -> Result<Vec<WorkshopKey>, Error>;

    /// The first decisions on request ids.
    ///
    /// # Errors
    /// The engine's.
    fn load_attempts(&mut self, keys: &[AttemptKey<'_>]) -> Result<Vec<Option<Attempt>>, Error>;

    /// Saves what a batch changed, provided that everything is still as it was loaded.
    ///
    /// # Errors
    /// The engine's.
    fn save_reservations(&mut self, changes: &ReservationChanges<'_>) -> Result<Saved, Error>;
}
