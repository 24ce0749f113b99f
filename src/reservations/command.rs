//! What a partition can be asked about reservations.

use std::sync::LazyLock;

use super::types::{RequestId, Seats, WorkshopName};
use crate::log::decisions::{Decision, decided};
use crate::metrics::ReservationMetrics;
use crate::partition::{Command as PartitionCommand, Refusal, Reply};
use crate::store::reservations::{Status, Workshop};

/// Counted after the commit, like everything that others see.
static METRICS: LazyLock<ReservationMetrics> = LazyLock::new(ReservationMetrics::default);

/// One question to a workshop, with the way back.
#[derive(Debug)]
pub enum Command {
    /// Take seats, or repeat the first answer.
    Reserve {
        /// Where.
        workshop: WorkshopName,
        /// The attempt's id.
        request: RequestId,
        /// How many.
        seats: Seats,
        /// What was decided.
        reply: Reply<Reserved>,
    },
    /// The workshop's state; the defaults if there is none, and nothing is stored.
    Status {
        /// Which.
        workshop: WorkshopName,
        /// Its state.
        reply: Reply<Workshop>,
    },
}

/// The answer to a request for seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// A decision, first or repeated.
    Decided {
        /// What was decided first.
        status: Status,
        /// The workshop's capacity now.
        capacity: i64,
        /// Seats taken just after the first decision.
        reserved: i64,
        /// Whether the id was decided before.
        replayed: bool,
    },
    /// The id belongs to an attempt with another number of seats.
    Reused {
        /// Seats of the first attempt.
        first_seats: i64,
    },
}

impl PartitionCommand for Command {
    fn release(self) {
        match self {
            Self::Reserve { workshop, request, seats, reply } => {
                let outcome = reply.outcome().copied();
                reply.release();
                if let Some(outcome) = outcome {
                    METRICS.count(outcome);
                    log_decision(&workshop, &request, seats, outcome);
                }
            }
            Self::Status { reply, .. } => reply.release(),
        }
    }

    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Reserve { reply, .. } => reply.refuse(refusal),
            Self::Status { reply, .. } => reply.refuse(refusal),
        }
    }
}

/// Logged where it is decided, after the commit: also when the caller has hung up meanwhile.
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
