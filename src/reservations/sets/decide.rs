//! What becomes of a set: plain functions of state, command and time.

use std::sync::Arc;

use crate::reservations::decide::{Changed, Defaults, First, Reserved, Settlement};
use crate::store::bookings::{HolderKey, Reason, State};
use crate::store::reservations::WorkshopKey;
use crate::store::sets::{SetLine, SetRefusal, SetRow, SetState};

/// What a set asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Seats by workshop: each workshop once, by name.
    pub lines: Vec<(Arc<str>, i64)>,
    /// Hold them and do not take them for good.
    pub hold: bool,
    /// How long, in ms.
    pub ttl_ms: Option<i64>,
    /// For whom.
    pub holder: Option<HolderKey>,
}

/// What its workshops have said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All of them hold the seats.
    AllHold,
    /// One of them refuses.
    Refused(SetRefusal),
}

/// What has to be done next for a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Ask every workshop to hold the seats of its line, and have the home decide.
    Ask,
    /// Have every workshop do what is decided, and the home note it.
    Settle,
    /// Nothing: it is finished.
    Nothing,
}

/// What is to be done with a set that is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Take all its lines for good.
    Confirm {
        /// If its hold has ended, take all its seats again, provided that they are free.
        reacquire: bool,
    },
    /// Give them all up.
    Cancel,
    /// Give up what is only held: it is no more than a part of it, because a workshop is gone.
    Release,
    /// Hold them longer.
    Extend {
        /// From the set's beginning, in ms.
        ttl_ms: i64,
    },
}

/// Why something cannot be done with a set. Nothing is stored of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// No such set.
    NotFound,
    /// Its workshops are still being asked.
    StillPending,
    /// Its hold has ended.
    HoldExpired,
    /// Its seats are taken for good.
    AlreadyConfirmed,
    /// It was given up.
    AlreadyCancelled,
    /// It never got seats.
    AlreadyRejected,
    /// A workshop of it was deleted, and its seats with it; the others are given up.
    WorkshopGone,
    /// The id belongs to a set that asked for something else.
    Reused {
        /// What differs.
        field: &'static str,
        /// Whether it is the same holder's.
        is_own: bool,
    },
}

/// A set that is first heard of; `default_ttl_ms` is how long its hold lives if it does not say so itself.
#[must_use]
pub fn begin(ask: Ask, default_ttl_ms: i64, now_ms: i64) -> SetRow {
    let line = |(workshop, seats)| SetLine { workshop, seats, key: None };
    SetRow {
        lines: ask.lines.into_iter().map(line).collect(),
        hold: ask.hold,
        ttl_ms: ask.ttl_ms,
        default_ttl_ms: Some(default_ttl_ms),
        holder: ask.holder,
        state: SetState::Pending,
        finished: false,
        begun_at_ms: now_ms,
        expires_at_ms: None,
        refusal: None,
        round: 0,
        version: 0,
    }
}

/// The first field in which a request differs from the one whose id it carries.
#[must_use]
pub fn what_differs(set: &SetRow, ask: &Ask) -> Option<&'static str> {
    let same_lines = set.lines.len() == ask.lines.len()
        && set
            .lines
            .iter()
            .zip(&ask.lines)
            .all(|(line, (workshop, seats))| line.workshop == *workshop && line.seats == *seats);
    [
        ("lines", !same_lines),
        ("hold", set.hold != ask.hold),
        ("ttlMs", set.ttl_ms != ask.ttl_ms),
        ("holder", set.holder != ask.holder),
    ]
    .into_iter()
    .find_map(|(field, differs)| differs.then_some(field))
}

/// Writes down that a hold has ended, if it has. Every command and read starts with it, so that whoever is told of
/// an end has it stored.
pub fn look_at_the_clock(set: &mut SetRow, now_ms: i64) {
    if set.state == SetState::Held && set.expires_at_ms.is_some_and(|expires_at_ms| now_ms >= expires_at_ms) {
        turn(set, SetState::Expired);
    }
}

/// Decides a set whose workshops were asked in a round; a decision that is made already stays. A hold that has ended
/// meanwhile ends at once.
pub fn decide(set: &mut SetRow, verdict: Verdict, round: i64, defaults: &Defaults, now_ms: i64) {
    match verdict {
        _ if set.round != round => {}
        Verdict::AllHold if set.state == SetState::Retaking => turn(set, SetState::Confirmed),
        Verdict::Refused(_) if set.state == SetState::Retaking => turn(set, SetState::Expired),
        _ if set.state != SetState::Pending => {}
        Verdict::AllHold if set.hold => {
            let ends_at_ms = would_end_at(set, defaults);
            turn(set, SetState::Held);
            set.expires_at_ms = Some(ends_at_ms);
            look_at_the_clock(set, now_ms);
        }
        Verdict::AllHold => turn(set, SetState::Confirmed),
        Verdict::Refused(refusal) => {
            turn(set, SetState::Refused);
            set.refusal = Some(refusal);
        }
    }
}

/// Confirms, cancels or extends all lines.
///
/// # Errors
/// See [`Wrong`].
pub fn change(set: &mut SetRow, change: Change, defaults: &Defaults) -> Result<(), Wrong> {
    match (change, set.state) {
        (_, SetState::Pending | SetState::Retaking) => return Err(Wrong::StillPending),
        (_, SetState::Refused) => return Err(Wrong::AlreadyRejected),
        (Change::Confirm { reacquire: true }, SetState::Expired) => {
            turn(set, SetState::Retaking);
            set.round += 1;
        }
        (_, SetState::Expired) => return Err(Wrong::HoldExpired),
        (Change::Confirm { .. }, SetState::Held) => turn(set, SetState::Confirmed),
        (Change::Confirm { .. }, SetState::Confirmed) if set.hold => {}
        (Change::Cancel, SetState::Held | SetState::Confirmed) | (Change::Release, SetState::Held) => {
            turn(set, SetState::Cancelled);
        }
        (Change::Cancel | Change::Release, SetState::Cancelled) | (Change::Release, SetState::Confirmed) => {}
        (Change::Extend { ttl_ms }, SetState::Held) => {
            let longest = Some(ends_at(set, ttl_ms, defaults));
            if set.expires_at_ms < longest {
                set.expires_at_ms = longest;
                // Its workshops are told.
                set.finished = false;
            }
        }
        (Change::Confirm { .. } | Change::Extend { .. }, SetState::Confirmed) => {
            return Err(Wrong::AlreadyConfirmed);
        }
        (Change::Confirm { .. } | Change::Extend { .. }, SetState::Cancelled) => {
            return Err(Wrong::AlreadyCancelled);
        }
    }
    Ok(())
}

/// Notes that every workshop has done what was decided in a round, unless something else has been decided meanwhile.
/// `keys` are the workshops that did it, line by line; none for a line that went with its workshop.
pub fn finish(set: &mut SetRow, done: SetState, round: i64, keys: &[Option<WorkshopKey>]) {
    let is_decided = !matches!(done, SetState::Pending | SetState::Retaking);
    if (set.state, set.round) == (done, round) && is_decided {
        set.finished = true;
        for (line, key) in set.lines.iter_mut().zip(keys) {
            line.key = key.or(line.key);
        }
    }
}

/// Whether a set that was seen at this version may be removed: nobody has anything left to do for it.
#[must_use]
pub fn may_be_forgotten(set: &SetRow, version: i64) -> bool {
    set.finished && set.version == version
}

/// What whoever drives a set has to do next. `has_asked`: whether it has asked workshops for seats itself, and has
/// not told them since what came of it; whoever else has finished the set meanwhile, they may have been asked last.
#[must_use]
pub fn next(set: &SetRow, has_asked: bool) -> Next {
    match set.state {
        SetState::Pending | SetState::Retaking => Next::Ask,
        _ if set.finished && !has_asked => Next::Nothing,
        _ => Next::Settle,
    }
}

/// What the workshops have said, line by line: why each refuses, if it does.
#[must_use]
pub fn verdict(set: &SetRow, refusals: impl IntoIterator<Item = Option<Reason>>) -> Verdict {
    let refusal = set.lines.iter().zip(refusals).find_map(|(line, reason)| {
        Some(SetRefusal { workshop: Arc::clone(&line.workshop), reason: reason? })
    });
    refusal.map_or(Verdict::AllHold, Verdict::Refused)
}

/// Why a workshop does not hold the seats of a line, if it does not.
#[must_use]
pub fn refusal(reserved: Reserved) -> Option<Reason> {
    match reserved {
        Reserved::Decided { status: First::Held, life, .. } => {
            let holds = life.is_some_and(|life| matches!(life.state, State::Held | State::Confirmed));
            // Given back already: then the set is decided, and this changes nothing.
            (!holds).then_some(Reason::NotEnoughSeats)
        }
        Reserved::Decided { reason, .. } => Some(reason.unwrap_or(Reason::NotEnoughSeats)),
        Reserved::Reused { .. } => Some(Reason::RequestIdTaken),
        // Its rules have changed since they were looked at.
        Reserved::HolderRequired
        | Reserved::TooManySeats { .. }
        | Reserved::BeyondLimits
        | Reserved::NothingToReplace
        | Reserved::ReplacesPartOfSet => Some(Reason::LimitExceeded),
    }
}

/// Why a workshop does not hold the seats of a line again, if it does not.
#[must_use]
pub fn refusal_again(changed: Changed) -> Option<Reason> {
    match changed {
        Changed::Done(_) => None,
        Changed::Refused(_) => Some(Reason::NotEnoughSeats),
    }
}

/// What a line of a set has to do; `None` while nothing is decided.
#[must_use]
pub fn settlement(set: &SetRow, seats: i64) -> Option<Settlement> {
    match set.state {
        SetState::Pending | SetState::Retaking => None,
        SetState::Held => set.expires_at_ms.map(|ends_at_ms| Settlement::Keep { ends_at_ms }),
        SetState::Confirmed => Some(Settlement::Confirm),
        SetState::Refused => Some(Settlement::Refuse { seats }),
        SetState::Cancelled => Some(Settlement::Cancel),
        SetState::Expired => Some(Settlement::Expire { round: set.round }),
    }
}

fn turn(set: &mut SetRow, state: SetState) {
    set.state = state;
    set.finished = false;
    set.expires_at_ms = None;
}

/// When a set's hold ends that is not decided yet and not extended; ms since 1970.
#[must_use]
pub fn would_end_at(set: &SetRow, defaults: &Defaults) -> i64 {
    let default_ttl_ms = set.default_ttl_ms.unwrap_or(defaults.hold_ttl_ms);
    ends_at(set, set.ttl_ms.unwrap_or(default_ttl_ms), defaults)
}

fn ends_at(set: &SetRow, ttl_ms: i64, defaults: &Defaults) -> i64 {
    set.begun_at_ms.saturating_add(ttl_ms.min(defaults.max_hold_ms))
}
