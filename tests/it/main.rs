//! headcount through its public face: the real binary, real HTTP, real files, real kill -9.
//!
//! A module a behaviour. The named cases of the field (L1, R1, …) keep their names. [`service`] starts
//! and ends the binary; [`client`] talks to it, [`raw`] byte by byte; [`history`] remembers what it said.

mod auth;
mod client;
mod clock;
mod disk_full;
mod durability;
mod failures;
mod history;
mod inputs;
mod kill_nine;
mod limits;
mod metrics;
mod openapi;
mod raw;
mod readme;
mod seed_lab;
mod service;
mod shim;
mod unsynced;
