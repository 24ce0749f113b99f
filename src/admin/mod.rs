//! Looking at a data directory from outside the service, moving its data, and copying it.

pub mod backup;
pub mod reshard;
pub mod space;
pub mod steps;
pub mod verify;
