//! Many at once: a request that asks or does what many would.
//!
//! The paths begin with `/batch`, where no item is: `/likes/query` would be the item `query`, which anybody may like.

pub(super) mod likes;
mod lines;
pub(super) mod query;
