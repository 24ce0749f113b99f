//! What the home of a set can be asked.

use std::sync::{Arc, LazyLock};

use super::decide::{Change, Verdict, Wrong};
use crate::metrics::SetsMetrics;
use crate::partition::{Command as PartitionCommand, Refusal, Reply};
use crate::reservations::types::{HolderName, RequestId};
use crate::store::reservations::WorkshopKey;
use crate::store::sets::{SetRow, SetState};

/// Counted after the commit, like everything that others see.
pub(in crate::reservations) static METRICS: LazyLock<SetsMetrics> = LazyLock::new(SetsMetrics::default);

/// What a set asks for, from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Seats by workshop: each workshop once, by name.
    pub lines: Vec<(Arc<str>, i64)>,
    /// Hold them and do not take them for good.
    pub hold: bool,
    /// How long, in ms.
    pub ttl_ms: Option<i64>,
    /// For whom.
    pub holder: Option<HolderName>,
}

/// What is to be done with one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing: how is it?
    Look,
    /// The same set again: nothing, unless it asks for something else.
    Again(Box<Wanted>),
    /// Store it as pending, unless its id is known.
    Begin {
        /// What it asks for.
        wanted: Box<Wanted>,
        /// How long its hold lives if it does not say so itself, in ms.
        default_ttl_ms: i64,
    },
    /// Decide it, unless it is decided.
    Decide {
        /// What its workshops have said.
        verdict: Verdict,
        /// When they were asked for the seats again for so many times.
        round: i64,
    },
    /// Confirm, cancel or extend.
    Change {
        /// Which.
        change: Change,
        /// Only if it is this holder's: anybody else's is as if it were not there.
        of: Option<HolderName>,
    },
    /// Remove it, unless it has changed since: its workshops are gone, and it goes with them.
    Forget {
        /// The version that was seen.
        version: i64,
    },
    /// Every workshop has done what was decided.
    Finish {
        /// What that was.
        done: SetState,
        /// After so many times of asking for the seats again.
        round: i64,
        /// Which workshops did it, line by line.
        keys: Vec<Option<WorkshopKey>>,
    },
}

/// A set as its home tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// As it is stored.
    pub set: SetRow,
    /// For whom it is, if that is known.
    pub holder: Option<HolderName>,
    /// Whether this command stored it first.
    pub is_new: bool,
    /// When its hold ends, or would if it came to one; ms since 1970. Absent if it does not ask for one.
    pub ends_at_ms: Option<i64>,
}

/// Sets that somebody has to go on with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Todo {
    /// By id.
    pub unfinished: Vec<Arc<str>>,
    /// Whose hold has ended.
    pub due: Vec<Arc<str>>,
}

/// One question to a home, with the way back.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields say what they are")]
pub enum Command {
    /// About one set.
    One { request: RequestId, step: Step, reply: Reply<Result<Box<Told>, Wrong>> },
    /// Which sets of this partition are to be gone on with, those that are due first.
    Todo { after: Arc<str>, limit: u32, reply: Reply<Todo> },
    /// Sets of this partition by id after `after`.
    Page { after: Arc<str>, limit: u32, reply: Reply<Vec<(Arc<str>, SetRow)>> },
}

impl PartitionCommand for Command {
    fn release(self) {
        match self {
            Self::One { reply, .. } => reply.release(),
            Self::Todo { reply, .. } => reply.release(),
            Self::Page { reply, .. } => reply.release(),
        }
    }

    fn refuse(self, refusal: Refusal) {
        match self {
            Self::One { reply, .. } => reply.refuse(refusal),
            Self::Todo { reply, .. } => reply.refuse(refusal),
            Self::Page { reply, .. } => reply.refuse(refusal),
        }
    }

    fn is_chore(&self) -> bool {
        matches!(self, Self::Todo { .. })
    }
}
