//! headcount through its public face: the real binary, real HTTP, real files, real kill -9.
//!
//! A module a behaviour. The named cases of the field (L1, R1, …) keep their names. [`service`] starts
//! and ends the binary; [`client`] talks to it, [`raw`] byte by byte; [`history`] remembers what it said;
//! [`files`] looks at what it stored.

mod auth;
mod backup;
mod booking_cases;
mod booking_rules;
mod bulk;
mod client;
mod clock;
mod counter_cases;
mod counters;
mod data_dir;
mod decision_log;
mod disk_full;
mod durability;
mod events;
mod failures;
mod files;
mod history;
mod inputs;
mod journal;
mod kill_nine;
mod likes_cases;
mod likes_contract;
mod likes_deletion;
mod likes_feed;
mod likes_history;
mod limits;
mod linearizable;
mod live_totals;
mod mass_expiry;
mod metrics;
mod namespaces;
mod openapi;
mod raw;
mod readme;
mod reservation_cases;
mod reshard;
mod rollup;
mod rooms;
mod seed_lab;
mod service;
mod set_ends;
mod set_recovery;
mod sets;
mod shim;
mod start_and_stop;
mod store_conformance;
mod time;
mod trending;
mod unsynced;
mod upgrade;
mod usage;
mod verify;
mod workshop_deletion;
