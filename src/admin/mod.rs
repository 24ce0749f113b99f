//! What an operator does to a data directory: [`verify`] audits and repairs it, [`transfer`] brings likes in and out,
//! [`reshard`] moves it to other numbers, [`backup`] copies it.

pub mod backup;
pub mod call;
pub mod health;
pub mod manual;
mod offline;
mod progress;
pub mod reshard;
pub mod space;
pub mod steps;
pub mod transfer;
pub mod verify;
