//! What other workshops notice while one is flooded: a neighbour on its partition, and workshops that nobody has touched yet.

use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::args::Settings;
use crate::child::{self, Process};
use crate::client::Client;
use crate::generator::{Length, Load, Plan};
use crate::neighbour::{self, neighbour_of, partition_of};
use crate::report::{self, statuses};
use crate::request::Request;
use crate::response::Expect;
use crate::sides::Server;
use crate::tally::Tally;

const FLOODED: &str = "flooded";
const SEAT: &str = r#"{"requestId":"r-<id>","seats":1}"#;
/// What the others ask a second, over so many connections: a load that leaves the partition idle in between.
const QUIET_RATE: f64 = 400.0;
const QUIET_CONNECTIONS: usize = 8;
/// How long the others are looked at, each time.
const LOOK: Duration = Duration::from_secs(8);
/// The flood begins before they are looked at, and ends after.
const AROUND: Duration = Duration::from_secs(1);
/// No two loads share numbers.
const RANGE: u64 = 1 << 40;

/// The load of one kind of other workshops, named for the table.
struct Others {
    name: &'static str,
    workshop: String,
}

/// A flood over `connections`.
pub fn measure(connections: usize, settings: &Settings) -> Result<(), Failure> {
    let dir = tempfile::Builder::new().prefix("headcount-bench-").tempdir_in(&settings.dir)?;
    println!("machine: {}", report::machine(dir.path())?);
    let process = Process::start(Server::Roomy, dir.path())?;
    let others = [
        Others { name: "on its partition", workshop: neighbour_of(FLOODED) },
        Others { name: "never touched before, on either partition", workshop: "cold-<id>".to_owned() },
    ];
    let mut numbers = (0..).map(|n| n * RANGE);
    let mut number = || numbers.next().unwrap_or_default();

    let mut kept = true;
    for other in others {
        let look = |first_number| -> Result<Tally, Failure> {
            Ok(Load::connect(quiet(&process, &other.workshop, first_number))?.run()?)
        };
        look(number())?;
        child::settle(std::slice::from_ref(&process))?;
        let idle = look(number())?;

        let load = Load::connect(flood(&process, connections, number()))?;
        let flooding = thread::spawn(move || load.run());
        thread::sleep(AROUND);
        let (batches, started) = (batches(&process)?, Instant::now());
        let during = look(number())?;
        let batch_ms = started.elapsed().as_secs_f64() * 1e3 / (self::batches(&process)? - batches);
        let flooding = flooding.join().map_err(|_| "the flood's thread panicked")??;

        println!(
            "\nOther workshops {}; the flood: {connections} connections, {:.0} answers/s ({})\n",
            other.name,
            flooding.measured.answers() as f64 / flooding.elapsed.as_secs_f64(),
            statuses(&flooding)
        );
        neighbour::print(&[("idle", &idle), ("during the flood", &during)]);
        let allowed = idle.latency.quantile_ms(0.99) + 2.0 * batch_ms;
        println!(
            "\na batch took {batch_ms:.2} ms; p99 allowed, the idle one and two such batches: {allowed:.2} ms"
        );
        if during.all.status(503) > 0 {
            return Err(format!("{} commands of others were refused", during.all.status(503)).into());
        }
        kept &= during.latency.quantile_ms(0.99) <= allowed;
    }
    println!("\n{}", if kept { "both kept to it" } else { "not kept" });
    Ok(())
}

fn quiet(process: &Process, workshop: &str, first_number: u64) -> Plan {
    Plan {
        pace: Some(QUIET_RATE),
        ..reservations(process, workshop, (QUIET_CONNECTIONS, LOOK), first_number)
    }
}

fn flood(process: &Process, connections: usize, first_number: u64) -> Plan {
    reservations(process, FLOODED, (connections, LOOK + 2 * AROUND), first_number)
}

fn reservations(
    process: &Process,
    workshop: &str,
    (connections, time): (usize, Duration),
    first_number: u64,
) -> Plan {
    // The id stands once in a request: where it names the workshop, every request there is the first.
    let body = if workshop.contains("<id>") { SEAT.replace("<id>", "first") } else { SEAT.to_owned() };
    Plan {
        address: process.address,
        connections,
        threads: 1,
        warm_up: Duration::ZERO,
        length: Length::Time(time),
        request: Request::new(&format!("POST /workshops/{workshop}/reservations"), &body, None),
        then: None,
        reads: None,
        pace: None,
        is_stream: false,
        expect: Expect::Status(201),
        items: 1,
        first_number,
    }
}

/// Batches that the flooded workshop's partition has decided.
fn batches(process: &Process) -> Result<f64, Failure> {
    let partition = partition_of(FLOODED).ok_or("no name of a workshop")?;
    let series = format!("headcount_batch_commands_count{{partition=\"{partition}\"}}");
    Client::connect(process.admin)?.metric(&series)
}
