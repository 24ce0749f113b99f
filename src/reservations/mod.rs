//! Reservations: is there a seat left in this workshop?
//!
//! Reading order: [`types`] (what a request is, checked once), [`decide`] (the rule), [`command`] (what
//! a partition is asked), [`actor`] (the workshops of one partition, a batch at a time), [`workshops`]
//! (the handle that finds the owner).

pub mod actor;
pub mod command;
pub mod decide;
pub mod types;
pub mod workshops;

pub use command::Command;
pub use types::{RequestId, Seats, WorkshopName};
pub use workshops::Workshops;
