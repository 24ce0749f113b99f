//! The edge: bytes become types here, and answers become bytes.
//!
//! [`serve`] accepts connections; [`router`] finds the handler; [`auth`], [`origins`], [`body`] and [`query`] turn a
//! request into types; [`own`] keeps end users to their own reservations; [`likes`], [`batch`] (many of them at once), [`counters`], [`reservations`] (asking for seats),
//! [`changes`] (what becomes of them), [`bookings`] (looking them up), [`sets`] (several workshops at once), [`workshops`],
//! [`events`], [`live_totals`], [`history`], [`likers`] (who likes an item), [`people`] (what a person likes, and forgetting
//! one) and [`rooms`]
//! ask a feature and word its answer; [`web`] is what browsers load; [`ending`] ends streams with their tokens; [`usage`] tells
//! what it cost; [`backup`] has all of it copied; [`console`] is the operator's page; [`problem`] words every error; [`takeover`]
//! hands a connection on that leaves HTTP. [`observe`] counts what
//! goes out; [`openapi`] and [`schema`] describe it all.

pub mod auth;
mod backup;
mod batch;
mod beyond;
mod body;
mod bookings;
mod changes;
pub mod console;
mod counters;
mod deleted;
mod elsewhere;
mod ending;
mod events;
mod fields;
mod health;
mod history;
mod likers;
mod likes;
mod live_totals;
mod noop;
pub mod observe;
pub mod openapi;
pub mod origins;
mod own;
mod path;
mod people;
mod problem;
mod query;
mod reservations;
mod rooms;
pub mod router;
mod schema;
pub mod serve;
mod sets;
mod takeover;
mod usage;
mod web;
mod workshops;
mod write_timeout;

pub use router::App;
