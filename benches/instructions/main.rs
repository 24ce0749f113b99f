//! Instructions that a durable decision takes, counted by callgrind and held to a budget: `cargo bench --bench instructions`.
//!
//! Counted is what a partition's thread does for one command in batches of [`BATCH`]: deciding, saving, committing, syncing
//! and letting the answer out (`work.rs`). Sockets and the wake-ups of threads are not in it. A count repeats, whatever else the
//! machine does, where a time would not; the budget (`budget.toml`) is raised on purpose only.

mod budget;
mod valgrind;
mod work;

use std::process::ExitCode;

use budget::Budget;
use work::Kind;

type Failure = Box<dyn std::error::Error>;

/// Commands in a batch: about what a partition finds at 256 connections.
const BATCH: u64 = 64;
/// The difference between two runs of so many commands has no start and no end in it, and as many rows settle in their tables
/// as come to the journal: it is `sqlite.pending_rows` twice.
const COMMANDS: (u64, u64) = (100_032, 300_032);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--work", kind, commands] => do_work(kind, commands).map(|()| true),
        _ => compare(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("instructions: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The child that callgrind watches.
fn do_work(kind: &str, commands: &str) -> Result<(), Failure> {
    let kind = Kind::parse(kind).ok_or_else(|| format!("no such work: {kind}"))?;
    work::run(kind, commands.parse()?)
}

/// Whether every count keeps to its budget.
fn compare() -> Result<bool, Failure> {
    let budget = Budget::read()?;
    let mut keeps = true;
    println!("| | instructions | budget | |\n|---|---:|---:|---|");
    for kind in Kind::ALL {
        let (few, many) = (valgrind::count(kind, COMMANDS.0)?, valgrind::count(kind, COMMANDS.1)?);
        let each = many.saturating_sub(few) / (COMMANDS.1 - COMMANDS.0);
        let verdict = budget.verdict(kind, each);
        println!("| {} | {each} | {} | {verdict} |", kind.name(), budget.of(kind));
        keeps &= verdict.keeps();
    }
    Ok(keeps)
}
