//! Lines whose set has ended: settled before anything is decided on the seats of their workshop.
//!
//! A workshop knows when each set ends that it holds a line of, unless that was put off; only the set's home knows what
//! became of it. So a workshop that finds such a line due decides nothing and names the set, and whoever asked it, a task of
//! the runtime, asks the home, has the line do what was decided, and asks the workshop again. No partition waits.

use futures_util::future::join_all;
use xxhash_rust::xxh3::xxh3_64;

use super::command::{Command, Step, Told};
use super::decide::{Wrong, settlement};
use crate::partition::Refusal;
use crate::reservations::command;
use crate::reservations::types::{RequestId, WorkshopName};
use crate::reservations::workshops::{Refused, Workshops};
use crate::store::reservations::WorkshopKey;
use crate::store::sets::SetLine;

impl Workshops {
    /// Asks the home of a set.
    pub(super) async fn ask_home(
        &self,
        request: &RequestId,
        step: Step,
    ) -> Result<Result<Box<Told>, Wrong>, Refusal> {
        let (owner, request) = (xxh3_64(request.as_str().as_bytes()), request.clone());
        let one = |reply| command::Command::Set(Command::One { request, step, reply });
        self.ask(owner, one).await
    }

    /// Has a set's line do what is decided; which of the workshops of its name it is, if there is one.
    pub(super) async fn settle_line(
        &self,
        request: &RequestId,
        told: &Told,
        line: &SetLine,
    ) -> Result<Option<WorkshopKey>, Refusal> {
        let workshop = WorkshopName::parse(&line.workshop);
        let (Some(workshop), Some(settlement)) = (workshop, settlement(&told.set, line.seats)) else {
            return Ok(None);
        };
        match self.settle(workshop, request.clone(), settlement).await {
            Ok(key) => Ok(key),
            // Its seats are gone with it.
            Err(Refused::Gone(_)) => Ok(None),
            Err(Refused::Refusal(refusal)) => Err(refusal),
        }
    }

    /// Has lines of a workshop do what became of their sets; whether any had to. A home that does not answer, or has
    /// not decided, leaves its line as it is.
    pub(in crate::reservations) async fn settle_due(
        &self,
        workshop: &WorkshopName,
        sets: Vec<RequestId>,
    ) -> bool {
        let settle = |request: RequestId| async move {
            let Ok(Ok(told)) = self.ask_home(&request, Step::Look).await else { return false };
            let line = told.set.lines.iter().find(|line| *line.workshop == *workshop.as_str());
            let decided = line.filter(|line| settlement(&told.set, line.seats).is_some());
            match decided {
                Some(line) => self.settle_line(&request, &told, line).await.is_ok(),
                None => false,
            }
        };
        join_all(sets.into_iter().map(settle)).await.contains(&true)
    }
}
