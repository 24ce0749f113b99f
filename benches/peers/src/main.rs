//! What headcount is measured beside: the same two jobs, with the same routes and answers, over another store each.
//!
//! `peers postgres`, `peers redis` and `peers workerd` each start their store with its data in a directory of their own, serve
//! until they are told to stop (Ctrl-C or SIGTERM), and stop the store with them.

mod api;
mod args;
mod postgres;
mod redis;
mod serve;
mod store;
mod workerd;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Kind};

/// The service's allocator, so that no side has a better one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A peer has one thing to do with an error of its own: tell it.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.kind {
        Kind::Postgres(settings) => postgres::run(&args.common, settings),
        Kind::Redis(settings) => redis::run(&args.common, settings),
        Kind::Workerd => workerd::run(&args.common),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("peers: {failure}");
            ExitCode::FAILURE
        }
    }
}
