//! What a store does for sets: requests for seats of several workshops at once, on the partition of their ids.

use std::sync::Arc;

use super::bookings::{HolderKey, Reason};
use super::reservations::WorkshopKey;
use super::{Error, Saved};

/// A set as its home has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetRow {
    /// What it asks for: each workshop once, by name.
    pub lines: Vec<SetLine>,
    /// Hold the seats instead of taking them for good.
    pub hold: bool,
    /// How long, in ms, if the request said so.
    pub ttl_ms: Option<i64>,
    /// How long if it did not, in ms; absent: `reservations.hold_ttl_ms`.
    pub default_ttl_ms: Option<i64>,
    /// For whom; the home's surrogate.
    pub holder: Option<HolderKey>,
    /// What is decided.
    pub state: SetState,
    /// How often it has asked for its seats again.
    pub round: i64,
    /// Whether every workshop has done what is decided.
    pub finished: bool,
    /// When it was first heard of, in ms since 1970; a hold lives from here.
    pub begun_at_ms: i64,
    /// When its hold ends, while it is held.
    pub expires_at_ms: Option<i64>,
    /// Who refused and why, if it was refused.
    pub refusal: Option<SetRefusal>,
    /// Grows by one with each change; the first is 1.
    pub version: i64,
}

/// Seats of one workshop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetLine {
    /// The workshop's name.
    pub workshop: Arc<str>,
    /// How many.
    pub seats: i64,
    /// Which of the workshops of this name did what was decided; absent before, and where none was there.
    pub key: Option<WorkshopKey>,
}

/// Why a set is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetRefusal {
    /// The workshop that refused.
    pub workshop: Arc<str>,
    /// Why.
    pub reason: Reason,
}

/// Where a set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetState {
    /// Nothing is decided: its workshops are being asked.
    Pending,
    /// All lines are held.
    Held,
    /// All lines are taken for good.
    Confirmed,
    /// It never got anything.
    Refused,
    /// It was given up.
    Cancelled,
    /// Its hold has ended.
    Expired,
    /// Its hold has ended, and its workshops are being asked for the seats again.
    Retaking,
}

impl SetState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Held,
        Self::Confirmed,
        Self::Refused,
        Self::Cancelled,
        Self::Expired,
        Self::Retaking,
    ];

    /// As stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Held => "held",
            Self::Confirmed => "confirmed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Retaking => "retaking",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A changed set, with what it was when it was loaded.
#[derive(Debug, Clone, Copy)]
pub struct SetChange<'a> {
    /// Which.
    pub request: &'a str,
    /// Its version as loaded; absent if it is new.
    pub before: Option<i64>,
    /// As decided.
    pub after: &'a SetRow,
}

/// Keys are loaded and changes saved in batch-shaped calls, inside the caller's transaction. Answers stand in the
/// order of the question.
pub trait SetsStore {
    /// The sets of these ids.
    ///
    /// # Errors
    /// The engine's.
    fn load_sets(&mut self, requests: &[&str]) -> Result<Vec<Option<SetRow>>, Error>;

    /// Saves what a batch changed, each set once, provided that all are still as they were loaded. Lines, terms
    /// and the beginning of a set never change.
    ///
    /// # Errors
    /// The engine's.
    fn save_sets(&mut self, changes: &[SetChange<'_>]) -> Result<Saved, Error>;

    /// Sets of which not every workshop has done what is decided, those that are pending included, by id after
    /// `after`.
    ///
    /// # Errors
    /// The engine's.
    fn unfinished_sets(&mut self, after: &str, limit: u32) -> Result<Vec<Arc<str>>, Error>;

    /// Sets whose hold has ended at `now_ms`, the first to end first.
    ///
    /// # Errors
    /// The engine's.
    fn due_sets(&mut self, now_ms: i64, limit: u32) -> Result<Vec<Arc<str>>, Error>;

    /// Removes up to `limit` sets with their lines, whatever became of them, and once there is none, as many names
    /// that nothing stands behind; whether there may be more.
    ///
    /// # Errors
    /// The engine's.
    fn remove_sets(&mut self, limit: u32) -> Result<bool, Error>;

    /// Sets by id after `after`.
    ///
    /// # Errors
    /// The engine's.
    fn list_sets(&mut self, after: &str, limit: u32) -> Result<Vec<Arc<str>>, Error>;

    /// Removes a set with its lines, and its holder's name if nothing else stands behind that.
    ///
    /// # Errors
    /// The engine's.
    fn remove_set(&mut self, request: &str) -> Result<(), Error>;

    /// When the next hold of a set ends, in ms since 1970, whether that is over or not.
    ///
    /// # Errors
    /// The engine's.
    fn next_set_due_at_ms(&mut self) -> Result<Option<i64>, Error>;
}
