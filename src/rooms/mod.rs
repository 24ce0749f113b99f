//! Rooms: who is here now, and what do they say to each other?
//!
//! Reading order: [`types`] (names and messages, checked once), [`presence`] (who is here: the rule, pure),
//! [`history`] (what can be caught up on: pure) and [`rate`] (how much is too much: pure); [`frame`] (what is
//! said, encoded once), [`link`] (one connection as its room sees it: a bounded queue), [`close`] (why a
//! socket ends); [`state`] (all of one room), [`actor`] (the task that owns it while it is awake), [`room`]
//! (asleep or awake), [`alarms`] (what wakes it in silence), [`registry`] (the handle that finds it);
//! [`socket`] (a WebSocket's own task); [`recorder`] (durable history, on a partition).
//!
//! Rooms run on the async runtime and keep presence in memory alone: after a restart nobody is a ghost.

pub mod actor;
pub mod alarms;
pub mod close;
pub mod frame;
pub mod history;
pub mod link;
pub mod presence;
pub mod rate;
pub mod recorder;
pub mod registry;
pub mod room;
pub mod socket;
pub mod state;
pub mod types;

pub use recorder::Command;
pub use registry::Rooms;
pub use types::{RoomName, UserId};
