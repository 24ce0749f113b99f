//! Counters without members: views, plays, downloads.
//!
//! A counter is an item that nobody can like: its stored name begins with a character that no item's can have
//! ([`types`]), and what a shard counts of it is base. So the shards keep it, the roll-up carries it and an audit
//! adds it up as they do items. What is its own: adding ([`decide`], the rule), the ids that make an add count once,
//! the handle ([`adds`]), and the sweep of ids that are remembered no more ([`sweeper`]).

pub mod adds;
pub mod decide;
pub mod sweeper;
pub mod types;

pub use adds::{Add, Counters};
pub use types::{AddId, CounterName};
