//! Sets: seats of several workshops at once, all or none.
//!
//! The workshops of a set may live on different partitions, so no single commit covers them. One decides for all:
//! the partition of the set's id, its home. Reading order: [`decide`] (what becomes of a set: the rule, pure),
//! [`command`] (what a home is asked), [`home`] (how it answers), [`driver`] (what has to be done next for a set,
//! and the handle to all of them), [`keeper`] (who sees to it that it is done), `due` (sets that have ended, before
//! anybody gets their seats), `gone` (what becomes of a set whose workshops are deleted).
//!
//! A set is first stored as pending. Each of its workshops then holds the seats of its line, without an end, or
//! refuses at once. If all hold, the home stores that the set is held or confirmed, else that it is refused: that
//! one commit is the decision. Then each workshop does what was decided, and the home notes that it is finished.
//! Every step may be repeated; whoever finds a set unfinished goes on with it from what is stored. No partition ever
//! waits for another: the one who waits is a task of the runtime, and it acts on replies alone, which come out after
//! their commits.

pub mod command;
pub mod decide;
pub mod driver;
mod due;
mod gone;
pub mod home;
pub mod keeper;

#[cfg(test)]
mod properties;

pub use command::Command;
pub use driver::{Requested, Sets};
