//! Rooms: who is here now, and what do they say to each other?
//!
//! Reading order: [`types`] (names and messages, checked once), [`presence`] (who is here: the rule, pure),
//! [`history`] (what can be caught up on: pure) and [`rate`] (how much is too much: pure); [`frame`] (what is
//! said, encoded once), [`link`] (one connection as its room sees it: a bounded queue), [`close`] (why a
//! socket ends); [`state`] (all of one room), [`command`] (what it can be told), [`denied`] (why it says no),
//! [`actor`] (the task that owns it while it is awake), `turns` (what it tells, in order), [`room`] (asleep or
//! awake); [`registry`] (the handle that finds it), [`settings`] (its bounds), [`admission`] (who is let in),
//! `senders` (who speaks too much over HTTP), [`alarms`] and `upkeep` (what happens in silence); [`socket`]
//! (a WebSocket's own task), `wire` and `boundary` (its connection), `said` (what it says); [`recorder`]
//! and [`records`] (durable history, on a partition); `forgetting` (a user is forgotten in every room);
//! [`overview`] (all of them at a glance).
//!
//! Rooms run on the async runtime and keep presence in memory alone: after a restart nobody is a ghost.

pub mod actor;
pub mod admission;
pub mod alarms;
mod boundary;
pub mod close;
pub mod command;
pub mod denied;
mod forgetting;
pub mod frame;
pub mod history;
pub mod link;
mod outgoing;
pub mod overview;
pub mod presence;
pub mod rate;
pub mod recorder;
pub mod records;
pub mod registry;
pub mod room;
mod said;
mod senders;
pub mod settings;
pub mod socket;
pub mod state;
mod turns;
pub mod types;
mod upkeep;
mod wire;

pub use recorder::Command;
pub use registry::Rooms;
pub use types::{RoomName, UserId};
