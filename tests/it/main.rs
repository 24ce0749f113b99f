//! headcount through its public face: the real binary, real HTTP, real files, real kill -9.
//!
//! A module a behaviour. The named cases of the field (L1, R1, …) keep their names. [`service`] starts
//! and ends the binary; [`client`] talks to it; [`files`] looks at what it stored.

mod client;
mod files;
mod service;

mod data_dir;
mod likes_cases;
mod likes_contract;
mod likes_deletion;
mod linearizable;
mod reservation_cases;
mod rollup;
mod seed_lab;
mod start_and_stop;
mod store_conformance;
mod verify;
