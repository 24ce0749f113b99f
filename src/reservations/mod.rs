//! Reservations: is there a seat left in this workshop?
//!
//! Reading order: [`types`] (what a request is, checked once), [`decide`] (the rule), [`command`] (what
//! a partition is asked), [`actor`] (the workshops of one partition), [`batch`] (commands decided together)
//! with its [`book`], [`workshops`] (the handle that finds the owner), [`sweeper`] with its
//! [`alarm`] (the clock's knock on a silent workshop's door), [`feeds`] (who is told of what was committed),
//! [`sets`] (several workshops at once).

pub mod actor;
pub mod alarm;
mod batch;
mod book;
pub mod command;
pub mod decide;
pub mod feeds;
pub mod removal;
pub mod sets;
pub mod sweeper;
pub mod types;
pub mod workshops;

pub use command::Command;
pub use sets::Sets;
pub use types::{HolderName, RequestId, Seats, WorkshopName};
pub use workshops::{Refused, Workshops};
