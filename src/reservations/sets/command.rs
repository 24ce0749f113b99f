//! What the home of a set can be asked.

use std::sync::Arc;

use super::decide::{Change, Verdict, Wrong};
use crate::partition::{Command as PartitionCommand, Refusal, Reply};
use crate::reservations::types::{HolderName, RequestId};
use crate::store::reservations::WorkshopKey;
use crate::store::sets::{SetRow, SetState};

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
    Begin(Box<Wanted>),
    /// Decide it, unless it is decided.
    Decide(Verdict),
    /// Confirm, cancel or extend.
    Change(Change),
    /// Every workshop has done what was decided.
    Finish {
        /// What that was.
        done: SetState,
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
}

/// Sets that somebody has to go on with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Todo {
    /// By id.
    pub unfinished: Vec<Arc<str>>,
    /// Whose hold has ended.
    pub due: Vec<Arc<str>>,
    /// When the next hold ends, in ms since 1970.
    pub next_at_ms: Option<i64>,
}

/// One question to a home, with the way back.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields say what they are")]
pub enum Command {
    /// About one set.
    One { request: RequestId, step: Step, reply: Reply<Result<Box<Told>, Wrong>> },
    /// Which sets of this partition are to be gone on with, those that are due first.
    Todo { after: Arc<str>, limit: u32, reply: Reply<Todo> },
}

impl PartitionCommand for Command {
    fn release(self) {
        match self {
            Self::One { reply, .. } => reply.release(),
            Self::Todo { reply, .. } => reply.release(),
        }
    }

    fn refuse(self, refusal: Refusal) {
        match self {
            Self::One { reply, .. } => reply.refuse(refusal),
            Self::Todo { reply, .. } => reply.refuse(refusal),
        }
    }
}
