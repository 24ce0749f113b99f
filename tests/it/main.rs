//! headcount through its public face: the real binary, real HTTP, real files, real kill -9.
//!
//! A module a behaviour. The named cases of the field (L1, R1, …) keep their names. [`service`] starts
//! and ends the binary; [`client`] talks to it; [`history`] remembers what it said.

mod client;
mod clock;
mod disk_full;
mod durability;
mod failures;
mod history;
mod kill_nine;
mod readme;
mod seed_lab;
mod service;
mod shim;
mod unsynced;
