//! The roll-up: carries changed shard counters into the summary, which answers cached reads.
//!
//! One task runs it ([`task`]), one run at a time ([`run`]); a cron schedule only knocks ([`schedule`]),
//! and a run that took long is followed by a rest ([`pace`]).
//! What it writes is absolute, so that carrying something twice changes nothing, and it remembers how
//! far it has come in the same transaction as the totals. Readers get [`Summary`]; those who listen are told by
//! [`live`]; what became of totals over time is [`past`].

pub mod live;
mod pace;
pub mod past;
mod run;
pub mod schedule;
mod summary;
mod task;

pub use summary::{RolledUp, Summary};
pub use task::{Rollup, Start, start};
