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

const SEAT: &str = r#"{"requestId":"r-<id>","seats":1}"#;
/// The same HTTP without a decision: what the flood costs others by its connections alone.
const NOOP: &str = "POST /noop/workshops/hot/reservations";
/// What the others ask a second, over so many connections: a load that leaves the partition idle in between.
const QUIET_RATE: f64 = 400.0;
const QUIET_CONNECTIONS: usize = 64;
/// How long the others are looked at, each time.
const LOOK: Duration = Duration::from_secs(8);
/// The flood begins before they are looked at, and ends after.
const AROUND: Duration = Duration::from_secs(1);
/// No two loads share numbers.
const RANGE: u64 = 1 << 40;

/// One workshop to be flooded, and others beside it.
struct Beside {
    /// Of its own each time: none has seats for more than one flood.
    flooded: &'static str,
    others: &'static str,
    line: String,
}

/// A flood over `connections`.
pub fn measure(connections: usize, settings: &Settings) -> Result<(), Failure> {
    let dir = tempfile::Builder::new().prefix("headcount-bench-").tempdir_in(&settings.dir)?;
    println!("machine: {}", report::machine(dir.path())?);
    let process = Process::start(Server::Roomy, dir.path())?;
    let mut floods = Floods { process, connections, loads: 0 };
    let line = |workshop: &str| format!("POST /workshops/{workshop}/reservations");
    for beside in [
        Beside {
            flooded: "flooded-1",
            others: "another workshop on its partition",
            line: line(&neighbour_of("flooded-1")),
        },
        Beside {
            flooded: "flooded-2",
            others: "workshops never touched before, on all partitions",
            line: line("cold-<id>"),
        },
    ] {
        floods.compare(&beside, &line(beside.flooded))?;
    }
    Ok(())
}

struct Floods {
    process: Process,
    connections: usize,
    loads: u64,
}

impl Floods {
    /// The others alone, during the flood, and during a flood that nobody decides.
    fn compare(&mut self, beside: &Beside, flood: &str) -> Result<(), Failure> {
        self.look(beside)?;
        child::settle(std::slice::from_ref(&self.process))?;
        let idle = self.look(beside)?;
        let noop = self.during(NOOP, beside)?;
        child::settle(std::slice::from_ref(&self.process))?;
        let (batches, started) = (self.batches(beside.flooded)?, Instant::now());
        let flooded = self.during(flood, beside)?;
        let batch_ms =
            started.elapsed().as_secs_f64() * 1e3 / (self.batches(beside.flooded)? - batches).max(1.0);

        println!("\n{}, {} connections on the flooded one\n", beside.others, self.connections);
        neighbour::print(&[
            ("idle", &idle),
            ("during the flood", &flooded),
            ("during a flood of the no-op", &noop),
        ]);
        let allowed = idle.latency.quantile_ms(0.99) + 2.0 * batch_ms;
        println!(
            "\na batch took {batch_ms:.2} ms; p99 of the idle one and two such batches: {allowed:.2} ms"
        );
        match flooded.all.status(503) {
            0 => Ok(()),
            refused => Err(format!("{refused} commands of others were refused").into()),
        }
    }

    /// What the others met while `flood` went on.
    fn during(&mut self, flood: &str, beside: &Beside) -> Result<Tally, Failure> {
        let time = LOOK + 2 * AROUND;
        let load = Load::connect(self.plan(flood, self.connections, time, None))?;
        let flooding = thread::spawn(move || load.run());
        thread::sleep(AROUND);
        let met = self.look(beside);
        let flooding = flooding.join().map_err(|_| "the flood's thread panicked")??;
        println!("{flood}: {:.0} answers/s ({})", flooding.rate(), statuses(&flooding));
        met
    }

    fn look(&mut self, beside: &Beside) -> Result<Tally, Failure> {
        Ok(Load::connect(self.plan(&beside.line, QUIET_CONNECTIONS, LOOK, Some(QUIET_RATE)))?.run()?)
    }

    fn plan(&mut self, line: &str, connections: usize, time: Duration, pace: Option<f64>) -> Plan {
        self.loads += 1;
        // The id stands once in a request: where it names the workshop, every request there is the first.
        let body = if line.contains("<id>") { SEAT.replace("<id>", "first") } else { SEAT.to_owned() };
        Plan {
            address: self.process.address,
            connections,
            threads: 1,
            warm_up: Duration::ZERO,
            length: Length::Time(time),
            request: Request::new(line, &body, None),
            then: None,
            reads: None,
            pace,
            is_stream: false,
            expect: Expect::Status(201),
            items: 1,
            first_number: self.loads * RANGE,
        }
    }

    /// Batches that the partition of `workshop` has decided.
    fn batches(&self, workshop: &str) -> Result<f64, Failure> {
        let partition = partition_of(workshop).ok_or("no name of a workshop")?;
        let series = format!("headcount_batch_commands_count{{partition=\"{partition}\"}}");
        Client::connect(self.process.admin)?.metric(&series)
    }
}
