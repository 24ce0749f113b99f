//! Likes: how many users like this item?
//!
//! Reading order: [`types`] (names, and the hash from user to shard), [`decide`] (the rule),
//! [`command`] (what a partition is asked), [`actor`] (the shards of one partition), [`segment`] (one
//! batch over the store), [`shards`] (the handle that finds the owner), [`rollup`] (the totals).

pub mod actor;
pub mod command;
pub mod decide;
pub mod rollup;
mod segment;
pub mod shards;
pub mod types;

pub use command::Command;
pub use shards::Shards;
pub use types::{ItemId, UserId};
