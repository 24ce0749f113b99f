//! What has to be done next for a set, and the handle to all sets.
//!
//! A driver is a task of the runtime, one a set at a time in this process. It looks at what the set's home has
//! stored, does the next step, and looks again, until the set is finished. It may die anywhere: what it did not get
//! done is found unfinished, and done by the next one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use xxhash_rust::xxh3::xxh3_64;

use super::command::{Command, METRICS, Step, Todo, Told, Wanted};
use super::decide::{Change, Next, Verdict, Wrong, next, refusal, refusal_again, verdict};
use crate::partition::{Clock, Refusal};
use crate::reservations::command::{self, WantedTerms};
use crate::reservations::types::{HolderName, RequestId, Seats, WorkshopName, partition_of_workshop};
use crate::reservations::workshops::{Refused, Workshops};
use crate::store::bookings::Reason;
use crate::store::reservations::WorkshopKey;
use crate::store::sets::{SetLine, SetState};

/// Between two attempts, where a partition refused.
const PAUSE: Duration = Duration::from_millis(100);

/// A cheap clone's way to every set.
#[derive(Clone)]
pub struct Sets(Arc<Inner>);

struct Inner {
    workshops: Workshops,
    bounds: Bounds,
    clock: Clock,
    /// Who is being driven: closed when that driver ends.
    driven: Mutex<HashMap<RequestId, watch::Receiver<()>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// How many workshops were deleted.
    deletions: watch::Sender<u64>,
}

/// Bounds of all sets; the settings of the same names say what they mean.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// `server.request_timeout_ms`: how long an answer is waited for.
    pub patience: Duration,
    /// `reservations.hold_ttl_ms`
    pub hold_ttl_ms: i64,
    /// `reservations.max_open_sets`
    pub max_open: usize,
    /// `reservations.set_retry_ms`
    pub retry: Duration,
    /// `faults.stop_set_at`: where drivers stop for good. Always empty in a release build.
    pub stop_at: String,
}

/// What came of a request for a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requested {
    /// It is decided.
    Decided(Box<Told>),
    /// The id belongs to a set that asked for something else.
    Reused {
        /// What differs.
        field: &'static str,
        /// Whether it is the same holder's.
        is_own: bool,
    },
    /// A workshop limits what a holder may have, and the request names none. The id is not used up.
    HolderRequired,
    /// It asks for more than the settings allow, which only a repetition of what was allowed once may. The id is not
    /// used up.
    BeyondLimits,
    /// More seats than one request may ask for in a workshop. The id is not used up.
    TooManySeats {
        /// Which.
        workshop: Arc<str>,
        /// How many it may.
        max: i64,
    },
}

impl Sets {
    /// The sets of some workshops. Its drivers run until [`Sets::stop`].
    #[must_use]
    pub fn new(workshops: Workshops, bounds: Bounds, clock: Clock) -> Self {
        METRICS.observe(0);
        let (driven, tasks, stop) = (Mutex::default(), TaskTracker::new(), CancellationToken::new());
        let deletions = watch::Sender::new(0);
        Self(Arc::new(Inner { workshops, bounds, clock, driven, tasks, stop, deletions }))
    }

    /// Takes or holds seats of several workshops, all or none, or repeats the first answer to the same id. The
    /// decision is durable when it returns. `beyond_limits`: some of it is more than the settings of today allow, so that
    /// only a first answer is looked up.
    ///
    /// # Errors
    /// A partition's refusal; [`Refused::Gone`] if one of the workshops is; then surely not done, except for
    /// [`Refusal::OutcomeUnknown`].
    pub async fn request(
        &self,
        request: RequestId,
        wanted: Wanted,
        beyond_limits: bool,
    ) -> Result<Requested, Refused> {
        let begun = self.home(&request, Step::Again(Box::new(wanted.clone()))).await?;
        let mut begun = self.unless_gone(&request, begun).await?;
        if begun == Err(Wrong::NotFound) {
            if beyond_limits {
                return Ok(Requested::BeyondLimits);
            }
            let default_ttl_ms = match self.look_at_the_rules(&wanted).await? {
                Ok(default_ttl_ms) => default_ttl_ms,
                Err(invalid) => return Ok(invalid),
            };
            if self.driven().len() >= self.0.bounds.max_open {
                return Err(Refusal::Overloaded.into());
            }
            begun = self.home(&request, Step::Begin { wanted: Box::new(wanted), default_ttl_ms }).await?;
        }
        match begun {
            Ok(told) => {
                let is_new = told.is_new;
                let told = self.finished(&request, told).await;
                match told.set.state {
                    SetState::Pending => Err(Refusal::OutcomeUnknown.into()),
                    _ => Ok(Requested::Decided(Box::new(Told { is_new, ..*told }))),
                }
            }
            Err(Wrong::Reused { field, is_own }) => Ok(Requested::Reused { field, is_own }),
            // Beginning one is never wrong in another way.
            Err(_) => Err(Refusal::OutcomeUnknown.into()),
        }
    }

    /// Confirms, cancels or extends all lines of a set; with `of`, only if it is this holder's, and as if it were not
    /// there if it is not. Durable when it returns.
    ///
    /// # Errors
    /// The home's refusal.
    pub async fn change(
        &self,
        request: &RequestId,
        change: Change,
        of: Option<HolderName>,
    ) -> Result<Result<Box<Told>, Wrong>, Refusal> {
        if change != Change::Cancel
            && let Some(wrong) = self.lacks_a_line(request, of.as_ref()).await?
        {
            return Ok(Err(wrong));
        }
        let mut changed = self.home(request, Step::Change { change, of: of.clone() }).await?;
        if changed == Err(Wrong::StillPending) {
            let Ok(pending) = self.home(request, Step::Look).await? else { return Ok(changed) };
            self.finished(request, pending).await;
            changed = self.home(request, Step::Change { change, of }).await?;
        }
        match changed {
            Ok(told) => {
                let is_retaking = told.set.state == SetState::Retaking;
                let told = self.finished(request, told).await;
                match told.set.state {
                    SetState::Retaking => Err(Refusal::OutcomeUnknown),
                    SetState::Expired if is_retaking => Ok(Err(Wrong::HoldExpired)),
                    _ => Ok(Ok(told)),
                }
            }
            Err(Wrong::StillPending) => Err(Refusal::Unavailable),
            Err(wrong) => {
                if wrong == Wrong::HoldExpired {
                    // Perhaps this was the first to notice.
                    self.drive(request);
                }
                Ok(Err(wrong))
            }
        }
    }

    /// A set as it is now.
    ///
    /// # Errors
    /// The home's refusal.
    pub async fn show(&self, request: &RequestId) -> Result<Option<Box<Told>>, Refusal> {
        let told = self.home(request, Step::Look).await?;
        let told = self.unless_gone(request, told).await?.ok();
        if told.as_ref().is_some_and(|told| told.set.state == SetState::Expired && !told.set.finished) {
            self.drive(request);
        }
        Ok(told)
    }

    /// Lets no driver go on, and waits until all have stopped. What they have left is done at the next start.
    pub async fn stop(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    pub(super) fn inner(&self) -> (&TaskTracker, &CancellationToken, &Clock, Duration) {
        (&self.0.tasks, &self.0.stop, &self.0.clock, self.0.bounds.retry)
    }

    pub(super) fn workshops(&self) -> &Workshops {
        &self.0.workshops
    }

    pub(super) fn deletions(&self) -> &watch::Sender<u64> {
        &self.0.deletions
    }

    pub(super) async fn todo(&self, partition: u32, after: Arc<str>, limit: u32) -> Result<Todo, Refusal> {
        let todo = |reply| command::Command::Set(Command::Todo { after, limit, reply });
        self.0.workshops.chore(partition, todo).await
    }

    pub(super) async fn home(
        &self,
        request: &RequestId,
        step: Step,
    ) -> Result<Result<Box<Told>, Wrong>, Refusal> {
        self.0.workshops.ask_home(request, step).await
    }

    /// What is wrong with a set whose id is new: then nothing is stored of it. Otherwise how long its hold lives if it
    /// does not say so itself: as long as each of its workshops lets one live.
    async fn look_at_the_rules(&self, wanted: &Wanted) -> Result<Result<i64, Requested>, Refused> {
        let workshops = wanted.lines.iter().filter_map(|(workshop, _)| WorkshopName::parse(workshop));
        let views = join_all(workshops.map(|workshop| self.0.workshops.status(workshop))).await;
        let mut shortest_ttl_ms = i64::MAX;
        for ((workshop, seats), view) in wanted.lines.iter().zip(views) {
            let rules = view?.workshop.rules;
            if rules.max_seats_per_holder.is_some() && wanted.holder.is_none() {
                return Ok(Err(Requested::HolderRequired));
            }
            if let Some(max) = rules.max_seats_per_request.filter(|max| seats > max) {
                return Ok(Err(Requested::TooManySeats { workshop: Arc::clone(workshop), max }));
            }
            shortest_ttl_ms = shortest_ttl_ms.min(rules.hold_ttl_ms.unwrap_or(self.0.bounds.hold_ttl_ms));
        }
        Ok(Ok(shortest_ttl_ms))
    }

    /// Has a set finished, and waits for it as long as an answer is waited for; the last that is known of it.
    pub(super) async fn finished(&self, request: &RequestId, mut known: Box<Told>) -> Box<Told> {
        let finish = async {
            while !known.set.finished {
                let mut driven = self.drive(request);
                // Nothing is ever sent: the end of the driver ends this.
                let _ended = driven.changed().await;
                match self.home(request, Step::Look).await {
                    Ok(Ok(told)) => known = told,
                    // It went with its workshops.
                    Ok(Err(_)) => break,
                    Err(_) => {}
                }
                if self.0.stop.is_cancelled() {
                    break;
                }
            }
        };
        let _in_time = tokio::time::timeout(self.0.bounds.patience, finish).await;
        known
    }

    fn driven(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, watch::Receiver<()>>> {
        self.0.driven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a driver more has room.
    pub(super) fn has_room(&self) -> bool {
        self.driven().len() < self.0.bounds.max_open
    }

    /// Starts a set's driver, if it has none; what ends with it.
    pub(super) fn drive(&self, request: &RequestId) -> watch::Receiver<()> {
        let mut driven = self.driven();
        if let Some(driver) = driven.get(request) {
            return driver.clone();
        }
        let (ends, ended) = watch::channel(());
        driven.insert(request.clone(), ended.clone());
        METRICS.observe(driven.len());
        drop(driven);
        let driver = Driver { sets: self.clone(), request: request.clone(), _ends: ends };
        let stop = self.0.stop.clone();
        self.0.tasks.spawn(async move {
            let _stopped = stop.run_until_cancelled(driver.run()).await;
        });
        ended
    }
}

/// One set's.
struct Driver {
    sets: Sets,
    request: RequestId,
    _ends: watch::Sender<()>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let mut driven = self.sets.driven();
        driven.remove(&self.request);
        METRICS.observe(driven.len());
    }
}

impl Driver {
    async fn run(self) {
        // Whoever has asked workshops for seats tells them what came of it, whoever else has finished the set.
        let mut has_asked = false;
        loop {
            match self.step(&mut has_asked).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(_refusal) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Does what is next; whether that was the last.
    async fn step(&self, has_asked: &mut bool) -> Result<bool, Refusal> {
        let Ok(told) = self.sets.home(&self.request, Step::Look).await? else { return Ok(true) };
        match next(&told.set, *has_asked) {
            Next::Nothing => return Ok(true),
            Next::Ask => {
                self.stop_at("pending").await;
                *has_asked = true;
                let verdict = self.ask(&told).await?;
                self.stop_at("prepared").await;
                let decide = Step::Decide { verdict, round: told.set.round };
                let _decided = self.sets.home(&self.request, decide).await?;
                return Ok(false);
            }
            Next::Settle => {}
        }
        self.stop_at("decided").await;
        let keys = self.settle(&told).await?;
        *has_asked = false;
        self.stop_at("settled").await;
        let finish = Step::Finish { done: told.set.state, round: told.set.round, keys };
        let finished = self.sets.home(&self.request, finish).await?;
        Ok(finished.is_ok_and(|told| told.set.finished))
    }

    /// Asks every workshop to hold the seats of its line.
    async fn ask(&self, told: &Told) -> Result<Verdict, Refusal> {
        if let Some(first) = told.set.lines.first().filter(|_| self.stops_at("prepared_one")) {
            let _asked = self.ask_one(told, first).await?;
            self.stop_at("prepared_one").await;
        }
        let refusals = join_all(told.set.lines.iter().map(|line| self.ask_one(told, line))).await;
        let refusals = refusals.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(verdict(&told.set, refusals))
    }

    /// Why a workshop refuses, if it does.
    async fn ask_one(&self, told: &Told, line: &SetLine) -> Result<Option<Reason>, Refusal> {
        let workshop = WorkshopName::parse(&line.workshop);
        let (Some(workshop), Some(seats)) = (workshop, Seats::stored(line.seats)) else {
            return Ok(Some(Reason::NotEnoughSeats));
        };
        let workshops = &self.sets.0.workshops;
        if told.set.state == SetState::Retaking {
            let retake = command::Change::Retake { round: told.set.round };
            return match workshops.change(workshop, self.request.clone(), retake, None).await {
                Ok(changed) => Ok(refusal_again(changed)),
                Err(Refused::Gone(_)) => Ok(Some(Reason::WorkshopGone)),
                Err(Refused::Refusal(refusal)) => Err(refusal),
            };
        }
        let holder = told.holder.clone();
        let set_ends_at_ms = told.ends_at_ms;
        let terms =
            WantedTerms { hold: true, holder, of_set: true, set_ends_at_ms, ..WantedTerms::default() };
        let wanted = command::Wanted { seats, terms: Some(Box::new(terms)), beyond_limits: false };
        match workshops.request(workshop, self.request.clone(), wanted).await {
            Ok(reserved) => Ok(refusal(reserved)),
            Err(Refused::Gone(_)) => Ok(Some(Reason::WorkshopGone)),
            Err(Refused::Refusal(refusal)) => Err(refusal),
        }
    }

    /// Has every workshop do what is decided; which they were.
    async fn settle(&self, told: &Told) -> Result<Vec<Option<WorkshopKey>>, Refusal> {
        if let Some(first) = told.set.lines.first().filter(|_| self.stops_at("settled_one")) {
            let _settled = self.settle_one(told, first).await?;
            self.stop_at("settled_one").await;
        }
        let keys = join_all(told.set.lines.iter().map(|line| self.settle_one(told, line))).await;
        keys.into_iter().collect()
    }

    async fn settle_one(&self, told: &Told, line: &SetLine) -> Result<Option<WorkshopKey>, Refusal> {
        self.sets.0.workshops.settle_line(&self.request, told, line).await
    }

    fn stops_at(&self, point: &str) -> bool {
        cfg!(debug_assertions) && self.sets.0.bounds.stop_at == point
    }

    /// `faults.stop_set_at`: goes no further than here.
    async fn stop_at(&self, point: &str) {
        if self.stops_at(point) {
            std::future::pending::<()>().await;
        }
    }
}

/// The partition that is a set's home. A stored fact, as the manifest's partition count is.
#[must_use]
pub fn home_of_set(request: &str, partitions: u32) -> u32 {
    partition_of_workshop(xxh3_64(request.as_bytes()), partitions)
}

impl std::fmt::Debug for Sets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sets").field("bounds", &self.0.bounds).finish_non_exhaustive()
    }
}
