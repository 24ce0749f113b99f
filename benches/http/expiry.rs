//! What a workshop notices while very many holds of another one, on the same partition, end in the same second.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use headcount::config::Config;

use crate::Failure;
use crate::args::Settings;
use crate::child::{self, Process};
use crate::client::Client;
use crate::generator::{Length, Load, Plan};
use crate::neighbour::{self, neighbour_of};
use crate::report::statuses;
use crate::request::Request;
use crate::response::Expect;
use crate::sides::Server;
use crate::tally::Tally;

/// Holds that are made with the same `ttlMs`: so few that they end within a fraction of a second.
const SLICE: u64 = 2_000;
/// Holds a second that are surely made: how far away the end is set.
const SLOWEST: u64 = 1_000;
/// Connections of the neighbour: a load that leaves the partition idle in between.
const CONNECTIONS: usize = 8;
const IDLE: Duration = Duration::from_secs(5);
/// How often the sweep is looked at.
const LOOK: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(120);

pub fn measure(holds: u64, settings: &Settings) -> Result<(), Failure> {
    let dir = tempfile::Builder::new().prefix("headcount-bench-").tempdir_in(&settings.dir)?;
    let process = Process::start(Server::Roomy, dir.path())?;
    let neighbour = neighbour_of("mass");
    let end = Instant::now() + IDLE + Duration::from_secs(10 + holds / SLOWEST);

    let mut made = 0;
    while made < holds {
        let ttl_ms = end.saturating_duration_since(Instant::now()).as_millis();
        let body = format!(r#"{{"requestId":"r-<id>","seats":1,"hold":true,"ttlMs":{ttl_ms}}}"#);
        let length = Length::Requests(SLICE.min(holds - made));
        let tally = Load::connect(plan(&process, "mass", &body, length, made))?.run()?;
        if tally.all.status(201) != tally.all.answers() {
            return Err(format!("not every hold was made: {}", statuses(&tally)).into());
        }
        made += tally.all.answers();
    }
    child::settle(std::slice::from_ref(&process))?;
    let seat = r#"{"requestId":"r-<id>","seats":1}"#;
    let mut first_number = 1 << 40;
    let mut look = |length| -> Result<Tally, Failure> {
        first_number += 1 << 30;
        Ok(Load::connect(plan(&process, &neighbour, seat, Length::Time(length), first_number))?.run()?)
    };
    let idle = look(IDLE)?;
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err("the holds ended before they were all made: the machine is too slow for this".into());
    }
    println!(
        "{made} holds end in {left:.1?}, at {} ms since 1970",
        (SystemTime::now() + left).duration_since(UNIX_EPOCH)?.as_millis()
    );
    thread::sleep(left);

    let (mut during, mut swept) = (Tally::new(1), 0);
    let started = Instant::now();
    let mut elapsed = Duration::ZERO;
    while swept < made {
        if started.elapsed() > PATIENCE {
            return Err(format!("only {swept} of {made} were swept").into());
        }
        let tally = look(LOOK)?;
        elapsed += tally.elapsed;
        during.merge(&tally);
        swept = expired(&process)?;
    }
    during.elapsed = elapsed;
    let chunk = Config::default().reservations.sweep_chunk;
    let batch_ms = started.elapsed().as_secs_f64() * 1e3 / (made as f64 / f64::from(chunk));
    println!("swept in {:.2?}: a chunk of {chunk} every {batch_ms:.2} ms\n", started.elapsed());
    neighbour::print(&[("idle", &idle), ("during the sweep", &during)]);
    let allowed = idle.latency.quantile_ms(0.99) + 2.0 * batch_ms;
    println!("\np99 allowed, the idle one and two such batches: {allowed:.2} ms");
    match during.all.status(503) {
        0 => Ok(()),
        refused => Err(format!("{refused} commands were refused").into()),
    }
}

fn plan(process: &Process, workshop: &str, body: &str, length: Length, first_number: u64) -> Plan {
    let connections = if workshop == "mass" { 64 } else { CONNECTIONS };
    Plan {
        address: process.address,
        connections,
        threads: 1,
        warm_up: Duration::ZERO,
        length,
        request: Request::new(&format!("POST /workshops/{workshop}/reservations"), body, None),
        then: None,
        reads: None,
        pace: None,
        is_stream: false,
        expect: Expect::Status(201),
        items: 1,
        first_number,
    }
}

fn expired(process: &Process) -> Result<u64, Failure> {
    // A connection that was idle meanwhile would be closed by now.
    Ok(Client::connect(process.admin)?.metric("headcount_reservations_total{outcome=\"expired\"}")? as u64)
}
