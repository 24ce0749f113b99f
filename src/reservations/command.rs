//! What a partition can be asked about reservations.

use std::sync::{Arc, LazyLock};

use super::decide::Settlement;
pub use super::decide::{Changed, Configure, Configured, Confirm, First, Reserved};
use super::sets;
use super::types::{HolderName, RequestId, Seats, WorkshopName};
use crate::log::decisions::{Decision, Happened, decided};
use crate::metrics::ReservationMetrics;
use crate::partition::{Command as PartitionCommand, Refusal, Reply};
use crate::store::bookings::{Event, ListedPage, State};
use crate::store::reservations::{Workshop, WorkshopKey};

/// Counted after the commit, like everything that others see.
pub(super) static METRICS: LazyLock<ReservationMetrics> = LazyLock::new(ReservationMetrics::default);

/// The answer of a workshop, unless it has been deleted.
pub type OrGone<T> = Result<T, Gone>;

/// The workshop was deleted, and nobody has created it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone {
    /// When, in ms since 1970.
    pub deleted_at_ms: i64,
}

/// The answer of a workshop, unless it is not to decide.
pub type OrUndecided<T> = Result<T, Undecided>;

/// Why a workshop has not decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undecided {
    /// It was deleted.
    Gone(Gone),
    /// It holds lines of these sets, which have ended as far as it has heard: their homes are to be asked first.
    DueLines(Vec<RequestId>),
}

/// What a request for seats asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// How many.
    pub seats: Seats,
    /// What else; most want nothing else, and then nothing is carried about.
    pub terms: Option<Box<WantedTerms>>,
    /// Whether some of it is more than the settings of today allow: then only a first answer is looked up.
    pub beyond_limits: bool,
}

/// What a request for seats asks for beside them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WantedTerms {
    /// Whether to hold them and not to take them for good.
    pub hold: bool,
    /// How long to hold them, in ms.
    pub ttl_ms: Option<i64>,
    /// For whom.
    pub holder: Option<HolderName>,
    /// Whether to wait if there are not enough.
    pub waitlist: bool,
    /// A request whose seats are given up for these.
    pub replaces: Option<RequestId>,
    /// Whether that has to be the same holder's: anybody else's is as if it were not there.
    pub replaces_own: bool,
    /// Whether it is a line of a set.
    pub of_set: bool,
    /// Of a line of a set that holds: when that ends, in ms since 1970.
    pub set_ends_at_ms: Option<i64>,
}

impl Wanted {
    /// Seats for good, and nothing else.
    #[must_use]
    pub fn seats(seats: Seats) -> Self {
        Self { seats, terms: None, beyond_limits: false }
    }
}

/// What is to be done with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Make its seats its own.
    Confirm(Confirm),
    /// Give them up.
    Cancel,
    /// Hold them longer.
    Extend {
        /// From the hold's beginning, in ms.
        ttl_ms: i64,
    },
    /// Hold its seats again for its set.
    Retake {
        /// How often the set has asked for that.
        round: i64,
    },
}

/// A workshop as its owner sees it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Its state, holds that are due and not swept included.
    pub workshop: Workshop,
    /// Seats taken now: what is due counts as free.
    pub used: i64,
    /// Of those, held or offered.
    pub held: i64,
    /// Its surrogate id; absent if nothing is stored of it.
    pub key: Option<i64>,
}

/// Which version of a workshop's rules a change is made to, as `If-Match` says, or `If-None-Match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// Any, as long as there is one.
    Any,
    /// One of these, each a surrogate id and a version.
    OneOf(Vec<(i64, i64)>),
    /// None: there is no such workshop yet.
    None,
    /// Any but these.
    NoneOf(Vec<(i64, i64)>),
}

/// What came of setting a workshop's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Set {
    /// It is so now.
    Done {
        /// Whether the workshop is new.
        created: bool,
        /// As it is now.
        view: Box<View>,
    },
    /// The capacity would be below what is taken.
    InUse {
        /// The lowest that needs no force.
        minimum: i64,
    },
    /// `If-Match` names another version, or `If-None-Match` this one.
    Mismatch,
}

/// A request with its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// As in a listing.
    pub listed: crate::store::bookings::Listed,
    /// Its place among those who wait.
    pub position: Option<i64>,
    /// What happened to it after a first decision that is a life's beginning; the newest of it, if that is very much.
    pub history: Vec<Event>,
    /// Whether older events are left out.
    pub truncated: bool,
    /// The time of the answer, which its state is of.
    pub now_ms: i64,
}

/// A page of a workshop's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    /// Which of the workshops that had this name.
    pub key: i64,
    /// In order.
    pub events: Vec<Event>,
    /// The last one there is.
    pub last_event: i64,
}

/// How far a sweep has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// When there is more to do, in ms since 1970.
    pub next_at_ms: Option<i64>,
}

/// One question to a workshop, with the way back.
#[derive(Debug)]
#[expect(
    missing_docs,
    reason = "workshop and request say which, reply is the way back; of: anybody else's request is as if it were not there; \
              as_it_stands: lines of sets that are due are not asked after"
)]
pub enum Command {
    /// Take seats, or repeat the first answer.
    Reserve {
        workshop: WorkshopName,
        request: RequestId,
        wanted: Wanted,
        as_it_stands: bool,
        reply: Reply<OrUndecided<Reserved>>,
    },
    /// Confirm, cancel or extend.
    Change {
        workshop: WorkshopName,
        request: RequestId,
        change: Change,
        of: Option<HolderName>,
        as_it_stands: bool,
        reply: Reply<OrUndecided<Changed>>,
    },
    /// Have a line do what its set has decided; which of the workshops of this name has the line, if one has.
    Settle {
        workshop: WorkshopName,
        request: RequestId,
        settlement: Settlement,
        reply: Reply<OrGone<Option<WorkshopKey>>>,
    },
    /// Set capacity and rules, create what is missing.
    Configure {
        workshop: WorkshopName,
        wanted: Box<Configure>,
        if_match: Option<IfMatch>,
        as_it_stands: bool,
        reply: Reply<OrUndecided<Set>>,
    },
    /// The workshop's state; the defaults if there is none, and nothing is stored.
    Status { workshop: WorkshopName, as_it_stands: bool, reply: Reply<OrUndecided<Box<View>>> },
    /// Delete the workshop: whether it was there.
    Delete { workshop: WorkshopName, reply: Reply<OrGone<Option<i64>>> },
    /// One request with its history.
    Show { workshop: WorkshopName, request: RequestId, reply: Reply<OrGone<Option<Box<Shown>>>> },
    /// A page of requests.
    List { workshop: WorkshopName, question: Question, reply: Reply<OrGone<(ListedPage, i64)>> },
    /// A page of the log.
    Events { workshop: WorkshopName, after: i64, limit: u32, reply: Reply<OrGone<Option<LogPage>>> },
    /// A page of the workshops placed on this partition, after a name.
    Workshops { after: Arc<str>, limit: u32, reply: Reply<Vec<(String, View)>> },
    /// Which of these workshops, by surrogate id, are there.
    AreThere { workshops: Vec<WorkshopKey>, reply: Reply<Vec<bool>> },
    /// Write down what is due, a chunk of it, and remove rows of what is deleted.
    Sweep { reply: Reply<Swept> },
    /// About sets whose home this partition is.
    Set(sets::Command),
}

/// Which requests to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Those in this state.
    pub state: Option<State>,
    /// Those of this holder.
    pub holder: Option<HolderName>,
    /// Those after this id.
    pub after: String,
    /// Most to look at.
    pub limit: u32,
}

impl Command {
    /// Whether it is about one workshop and what is loaded by key, so that it is decided together with
    /// others.
    pub(super) fn is_on_keys(&self) -> bool {
        matches!(
            self,
            Self::Reserve { .. }
                | Self::Change { .. }
                | Self::Settle { .. }
                | Self::Configure { .. }
                | Self::Status { .. }
        )
    }

    /// Has the decision log hear of what happened when this command's answer goes out: of all that its batch did, not of
    /// its own doing alone.
    pub(super) fn log_afterwards(&mut self, happened: Vec<Happened>) {
        if happened.is_empty() {
            return;
        }
        let log = move || happened.iter().for_each(Happened::log);
        match self {
            Self::Reserve { reply, .. } => reply.then(log),
            Self::Change { reply, .. } => reply.then(log),
            Self::Settle { reply, .. } => reply.then(log),
            Self::Configure { reply, .. } => reply.then(log),
            Self::Status { reply, .. } => reply.then(log),
            Self::Sweep { reply } => reply.then(log),
            // They change nothing that is logged.
            Self::Delete { .. }
            | Self::Show { .. }
            | Self::List { .. }
            | Self::Events { .. }
            | Self::Workshops { .. }
            | Self::AreThere { .. }
            | Self::Set(_) => {}
        }
    }
}

impl PartitionCommand for Command {
    fn release(self) {
        match self {
            Self::Reserve { workshop, request, wanted, reply, .. } => {
                let outcome = decided_by(&reply);
                reply.release();
                if let Some(outcome) = outcome {
                    METRICS.count(outcome);
                    log_decision(&workshop, &request, wanted.seats, outcome);
                }
            }
            Self::Change { change, reply, .. } => {
                let outcome = decided_by(&reply);
                reply.release();
                if let Some(outcome) = outcome {
                    METRICS.count_change(change, outcome);
                }
            }
            Self::Settle { reply, .. } => reply.release(),
            Self::Configure { reply, .. } => reply.release(),
            Self::Status { reply, .. } => reply.release(),
            Self::Delete { reply, .. } => reply.release(),
            Self::Show { reply, .. } => reply.release(),
            Self::List { reply, .. } => reply.release(),
            Self::Events { reply, .. } => reply.release(),
            Self::Workshops { reply, .. } => reply.release(),
            Self::AreThere { reply, .. } => reply.release(),
            Self::Sweep { reply } => reply.release(),
            Self::Set(command) => command.release(),
        }
    }

    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Reserve { reply, .. } => reply.refuse(refusal),
            Self::Change { reply, .. } => reply.refuse(refusal),
            Self::Settle { reply, .. } => reply.refuse(refusal),
            Self::Configure { reply, .. } => reply.refuse(refusal),
            Self::Status { reply, .. } => reply.refuse(refusal),
            Self::Delete { reply, .. } => reply.refuse(refusal),
            Self::Show { reply, .. } => reply.refuse(refusal),
            Self::List { reply, .. } => reply.refuse(refusal),
            Self::Events { reply, .. } => reply.refuse(refusal),
            Self::Workshops { reply, .. } => reply.refuse(refusal),
            Self::AreThere { reply, .. } => reply.refuse(refusal),
            Self::Sweep { reply } => reply.refuse(refusal),
            Self::Set(command) => command.refuse(refusal),
        }
    }

    fn is_chore(&self) -> bool {
        match self {
            Self::Sweep { .. } => true,
            Self::Set(command) => command.is_chore(),
            _ => false,
        }
    }
}

fn decided_by<T: Copy>(reply: &Reply<OrUndecided<T>>) -> Option<T> {
    reply.outcome().and_then(|outcome| outcome.as_ref().ok()).copied()
}

/// Logged where it is decided, after the commit: also when the caller has hung up meanwhile. Never the
/// holder's name.
fn log_decision(workshop: &WorkshopName, request: &RequestId, seats: Seats, outcome: Reserved) {
    if let Reserved::Decided { status, reserved, replayed, .. } = outcome {
        decided(&Decision {
            workshop: workshop.as_str(),
            request: request.as_str(),
            seats: seats.get(),
            status: status.as_str(),
            reserved,
            replayed,
        });
    }
}
