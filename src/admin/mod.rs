//! What an operator does to a data directory from outside: [`verify`] audits and repairs it, [`transfer`] brings likes in and
//! out.

mod offline;
mod progress;
pub mod transfer;
pub mod verify;
