//! Very many workshops, each with one seat taken: how soon a service over them is there, and what the first touch of each costs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{FIRST_NUMBER, in_turn, start};
use crate::Failure;
use crate::args::Settings;
use crate::child::Process;
use crate::generator::{Length, Load, Plan};
use crate::report;
use crate::request::Request;
use crate::response::Expect;
use crate::tally::Tally;

const LINE: &str = "POST /workshops/w<item>/reservations";
const SEAT: &str = r#"{"requestId":"r-<id>","seats":1}"#;
/// Each the first of its workshop since the start.
const TOUCHES: u64 = 5_000;

pub fn measure(dir: &Path, workshops: u64, settings: &Settings) -> Result<(), Failure> {
    let dir = dir.join("workshops");
    fs::create_dir(&dir)?;
    let (mut process, _) = start(&dir)?;
    let filled = reserve(&process, workshops, settings.connections, (workshops, 0))?;
    println!("\n{workshops} workshops, a seat of each taken: {:.0} a second", filled.rate());
    process.stop()?;
    let (process, started) = start(&dir)?;
    let touched = reserve(&process, workshops, 1, (TOUCHES, FIRST_NUMBER - FIRST_NUMBER % workshops))?;
    println!(
        "start with them: ready in {:.2?}; the first touch of {TOUCHES} of them, one after the other: p50 {:.2} ms, p99 {:.2} ms",
        started.ready_in,
        touched.latency.quantile_ms(0.5),
        touched.latency.quantile_ms(0.99)
    );
    Ok(())
}

/// So many requests, numbered from the second of `numbers` on, each of another workshop.
fn reserve(
    process: &Process,
    workshops: u64,
    connections: usize,
    numbers: (u64, u64),
) -> Result<Tally, Failure> {
    let plan = Plan {
        address: process.address,
        connections,
        threads: 1,
        warm_up: Duration::ZERO,
        length: Length::Requests(numbers.0),
        request: Request::new(LINE, SEAT, Some(in_turn(workshops))),
        then: None,
        reads: None,
        pace: None,
        is_stream: false,
        expect: Expect::Status(201),
        items: workshops as usize,
        first_number: numbers.1,
    };
    let tally = Load::connect(plan)?.run()?;
    match tally.all.met == numbers.0 {
        true => Ok(tally),
        false => Err(format!("workshops: {}", report::statuses(&tally)).into()),
    }
}
