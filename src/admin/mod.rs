//! Looking at a data directory from outside the service.

pub mod verify;
