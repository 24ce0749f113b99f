//! headcount counts people when they all arrive at once, and never gets it wrong.
//!
//! One idea: a single owner decides, and one commit covers many decisions. The house in reading order,
//! which is also the way of a request:
//!
//! - [`config`]: every setting, from defaults, file, environment and flags.
//! - [`server`]: the wiring: what starts, in which order, and how it stops.
//! - [`http`]: the edge: sockets, limits, keys, routes; bytes become types here and answers become bytes.
//! - [`names`]: what a name has to be, for all features.
//! - [`likes`], [`reservations`], [`rooms`]: the features. In each, `decide` is the rule, pure; the rest carries
//!   commands to it and changes from it.
//! - [`people`]: what concerns a person whatever it did, over all features.
//! - [`engine`]: the features together on one partition.
//! - [`partition`]: the thread that takes a batch, commits it and lets the answers out. Knows no feature.
//! - [`store`]: where state is kept; [`data_dir`]: whose it is; [`opening`]: its files, opened.
//! - [`admin`]: a data directory from outside: audit, repair, import, export.
//! - [`usage`]: what each namespace costs; [`metrics`], [`log`], [`telemetry`]: what operators see.
//!
//! Dependencies point one way: http, feature, partition, store. No feature knows another.

#![forbid(unsafe_code)]
#![deny(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::indexing_slicing, clippy::await_holding_lock, clippy::cast_possible_truncation)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod admin;
pub mod config;
pub mod data_dir;
pub mod engine;
pub mod http;
pub mod likes;
pub mod log;
pub mod metrics;
pub mod names;
pub mod opening;
pub mod partition;
pub mod people;
pub mod reservations;
pub mod rooms;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod usage;
