//! What a store does for reservations.

use super::{Error, Saved};

/// A workshop's surrogate id, new at each creation, so that a name created again never meets its past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkshopKey(pub i64);

/// A workshop's state. The database checks `reserved BETWEEN 0 AND capacity + overbooked` once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workshop {
    /// Seats there are.
    pub capacity: i64,
    /// Seats taken.
    pub reserved: i64,
    /// Seats taken beyond the capacity, after an operator forced it down.
    pub overbooked: i64,
    /// First decisions that accepted. Never falls.
    pub accepted_requests: i64,
    /// First decisions that rejected. Never falls.
    pub rejected_requests: i64,
    /// Seats in accepted first decisions. Never falls.
    pub accepted_seats: i64,
    /// Grows by one with each batch that changes it.
    pub version: i64,
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
