//! People: what concerns a person whatever it did. Forgetting one takes its likes, its name behind reservations, its place in
//! rooms and its name on what it said there; so this stands above those features and not beside them.
//!
//! Reading order: [`command`] (what a partition is asked), `desk` (how it does that), [`forgetter`] (the task that has every
//! partition and every room do it, one person after another, and goes on after a restart), [`hash`] (whom an audit names).

pub mod command;
pub(crate) mod desk;
pub mod forgetter;
pub mod hash;

pub use command::Command;
pub use forgetter::{Done, Forgetter, NotForgotten};

use std::fmt;
use std::sync::Arc;

use crate::names::free_name;

/// A person's name, as any of the features knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person(Arc<str>);
free_name!(Person);

impl Person {
    /// The text, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
