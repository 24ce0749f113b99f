//! Likes: how many users like this item?
//!
//! Reading order: [`types`] (names, and the hash from user to shard), [`decide`] (the rule),
//! [`command`] (what a partition is asked), [`actor`] (the shards of one partition), [`segment`] (one
//! batch over the store), [`shards`] (the handle that finds the owner) with [`load`] (what it counts), [`bulk`] (many likes at once), [`counters`]
//! (counting without members), [`rollup`] (the totals); then [`forget`] (a user's likes go), [`import`] (likes from
//! elsewhere), `check` (counts again what is counted) and [`indexing`] (who likes an item).

pub mod actor;
pub mod bulk;
mod check;
pub mod command;
pub mod counters;
pub mod decide;
pub mod forget;
pub mod import;
pub mod indexing;
pub mod load;
pub mod rollup;
mod segment;
pub mod shards;
pub mod types;

pub use bulk::Bulk;
pub use command::Command;
pub use counters::Counters;
pub use shards::Shards;
pub use types::{ItemId, UserId};
