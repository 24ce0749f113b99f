//! What a roll-up costs, by how many items have changed.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{FIRST_NUMBER, PATIENCE, in_turn};
use crate::Failure;
use crate::child::{self, Process};
use crate::client::Client;
use crate::generator::{Length, Load, Plan};
use crate::request::Request;
use crate::response::Expect;
use crate::sides::Server;

const CHANGED: [u64; 4] = [10, 1_000, 10_000, 100_000];
const ITEMS: &str = "headcount_rollup_changed_items_total";
const SECONDS: &str = "headcount_rollup_seconds_sum";
/// Numbers that no other load has.
const NUMBERS: u64 = FIRST_NUMBER << 16;

/// So seldom that likes come before a run and not beside it.
const SELDOM: (&str, &str) = ("HEADCOUNT__ROLLUP__SCHEDULE", "0,20,40 * * * * *");

/// Likes so many different items, one each, and waits until the roll-up has carried them all.
pub fn measure(dir: &Path, items: u64) -> Result<(), Failure> {
    let mut process = Process::start_with(Server::Roomy, dir, &[SELDOM])?;
    by_changes(&process, items)?;
    process.stop()
}

fn by_changes(process: &Process, items: u64) -> Result<(), Failure> {
    println!("\n| items that changed | roll-up ms, all its runs | µs an item |\n|---:|---:|---:|");
    let mut first_number = NUMBERS;
    for changed in CHANGED {
        child::settle(std::slice::from_ref(process))?;
        let (items_before, seconds_before) = look(process)?;
        let plan = Plan {
            address: process.address,
            connections: 64.min(changed as usize),
            threads: 1,
            warm_up: Duration::ZERO,
            length: Length::Requests(changed),
            request: Request::new("POST /likes/i<item>", r#"{"userId":"<id>"}"#, Some(in_turn(items))),
            then: None,
            reads: None,
            pace: None,
            is_stream: false,
            expect: Expect::Body(br#""changed":true"#),
            items: items as usize,
            first_number,
        };
        first_number += changed;
        Load::connect(plan)?.run()?;
        let started = Instant::now();
        let ms = loop {
            let (items, seconds) = look(process)?;
            if items - items_before >= changed as f64 {
                break (seconds - seconds_before) * 1e3;
            }
            if started.elapsed() > PATIENCE {
                return Err(format!(
                    "of {changed} changed items only {} were rolled up",
                    items - items_before
                )
                .into());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        println!("| {changed} | {ms:.1} | {:.1} |", ms * 1e3 / changed as f64);
    }
    Ok(())
}

fn look(process: &Process) -> Result<(f64, f64), Failure> {
    let mut client = Client::connect(process.admin)?;
    Ok((client.metric(ITEMS)?, client.metric(SECONDS)?))
}
