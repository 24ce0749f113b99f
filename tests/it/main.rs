//! headcount through its public face: the real binary, real HTTP, real files, real kill -9.
//!
//! A module a behaviour. The named cases of the field (L1, R1, …) keep their names. [`service`] starts
//! and ends the binary; [`client`] talks to it, [`raw`] byte by byte.

mod client;
mod raw;
mod service;

mod auth;
mod inputs;
mod limits;
mod metrics;
mod openapi;
mod seed_lab;
