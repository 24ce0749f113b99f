//! What becomes of a reservation: plain functions of state, command and time. No clock, no I/O, no SQL.
//!
//! A command is decided at a [`Desk`], which has one workshop on it, and a [`Book`] to look things up in
//! and to write things down in. The actor's book is the store and what the batch has changed so far; the
//! tests' is a map. One idea a file: [`request`](mod@request) (to take, hold, wait for, exchange), [`confirm`](mod@confirm), [`cancel`](mod@cancel),
//! [`extend`](mod@extend), [`expire`] (what is due), [`waitlist`] (who is next),
//! [`configure`](mod@configure), [`settle`](mod@settle) (what its set has decided),
//! [`retake`](mod@retake) (its set asks again); [`plain`] is the short rule for the many.

pub mod cancel;
pub mod configure;
pub mod confirm;
pub mod desk;
pub mod expire;
pub mod extend;
mod limits;
pub mod plain;
pub mod request;
pub mod retake;
pub mod settle;
pub mod waitlist;

#[cfg(test)]
mod cases;
#[cfg(test)]
pub(super) mod memory;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod waiting_model;

pub use cancel::cancel;
pub use configure::{Configure, Configured, configure};
pub use confirm::{Confirm, confirm};
pub use desk::{Book, Defaults, Desk, Due};
pub use expire::sweep;
pub use extend::extend;
pub use plain::{Decision, new_workshop, reserve};
pub use request::{Ask, First, Reserved, repeat, request};
pub use retake::retake;
pub use settle::{Settlement, settle};

use crate::store::bookings::{Booking, State};

/// What an operation on a request came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// It is so now, and was perhaps before: repeating it answers the same.
    Done(Life),
    /// It cannot be.
    Refused(Wrong),
}

/// Why an operation on a request is refused. Nothing is stored of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// No such request.
    NotFound,
    /// The hold or the offer has ended.
    HoldExpired,
    /// The seats are taken for good.
    AlreadyConfirmed,
    /// It was given up.
    AlreadyCancelled,
    /// It never got seats.
    AlreadyRejected,
    /// It has no offer yet.
    StillWaiting,
    /// It is a line of a set, which alone decides for all its lines.
    PartOfSet,
    /// More seats than it holds.
    MoreThanHeld {
        /// What it holds.
        held: i64,
    },
}

/// Where a request is in its life, as its caller is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Its state.
    pub state: State,
    /// Its seats: those that it takes, waits for, or had last.
    pub seats: i64,
    /// When its hold or offer ends.
    pub expires_at_ms: Option<i64>,
    /// How many wait before it, and itself.
    pub position: Option<i64>,
}

impl Life {
    /// As of now; `position` is the waiter's.
    fn of(booking: &Booking, now_ms: i64, position: Option<i64>) -> Self {
        let state = booking.state_at(now_ms);
        let live = matches!(state, State::Held | State::Offered);
        Self { state, seats: booking.seats, expires_at_ms: booking.expires_at_ms.filter(|_| live), position }
    }
}
