//! A family of workloads: its servers, and the turns of its sides.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::results::{Failed, Mode, Point, Results, Sample};
use super::settings::Settings;
use super::workloads::{Entrant, NOOP, READ_LIKES};
use crate::Failure;
use crate::check;
use crate::child::{self, Process};
use crate::client::{Client, count};
use crate::generator::{Length, Load, Plan};
use crate::machine;
use crate::plan::{self, Shape, Spreads};
use crate::request::Request;
use crate::sides::{Check, Server, Side, Spread, USER};
use crate::tally::Tally;

/// Parts of a side's own peak at which its latency is measured.
pub const PERCENTS: [u32; 3] = [25, 50, 75];
/// Connections over which requests at a pace are sent.
pub const PACED_CONNECTIONS: usize = 256;
/// Connections over which every item is asked for once.
const OPENING: usize = 64;
const OPENED_AT_A_TIME: u64 = 1_000;
/// A read says one like well within this: totals are rolled up every second.
const ROLL_UP_LIMIT: Duration = Duration::from_secs(10);

pub struct Family<'a> {
    settings: &'a Settings,
    processes: Vec<Process>,
    turns: Vec<Turn>,
    spreads: Spreads,
}

/// A side that has its turn in each round.
struct Turn {
    entrant: Entrant,
    /// All its runs together, whatever the load: what its server must agree with.
    total: Tally,
    has_failed: bool,
}

impl<'a> Family<'a> {
    /// Starts the servers with their data in `dir`. A side whose server does not start is a failure of that side.
    pub fn start(
        settings: &'a Settings,
        dir: &Path,
        entrants: Vec<Entrant>,
        results: &mut Results,
    ) -> Result<Self, Failure> {
        let mut family = Self { settings, processes: Vec::new(), turns: Vec::new(), spreads: Spreads::new() };
        for entrant in entrants {
            match family.prepare(&entrant, dir) {
                Ok(true) => {
                    let total = Tally::new(entrant.side.items());
                    family.turns.push(Turn { entrant, total, has_failed: false });
                }
                Ok(false) => {
                    let Entrant { workload, side, .. } = &entrant;
                    results.notes.push(format!(
                        "{}: no ceiling, for this headcount does not answer `{}` under `server.noop_routes`.",
                        workload.title,
                        side.reads.unwrap_or(side.line)
                    ));
                }
                Err(failure) => results.failures.push(failed(&entrant, &*failure)),
            }
        }
        Ok(family)
    }

    /// Makes sure that the server runs, and that it can do what the side asks. Whether it knows its no-op.
    fn prepare(&mut self, entrant: &Entrant, dir: &Path) -> Result<bool, Failure> {
        let Entrant { side, .. } = entrant;
        if !self.processes.iter().any(|process| process.server == side.server) {
            self.processes.push(Process::start(side.server, dir)?);
        }
        let mut client = Client::connect(self.process(side.server)?.address)?;
        if entrant.name == NOOP {
            let read = side.reads.or(side.body.is_empty().then_some(side.line));
            return match read {
                Some(line) => Ok(client.send(line)?.0 == 200),
                None => Ok(true),
            };
        }
        if side.line == format!("GET {READ_LIKES}") {
            client.exchange(Request::new(&format!("POST {READ_LIKES}"), USER, None).bytes())?;
            let since = Instant::now();
            while count(&client.json(side.line)?, "total")? != 1 {
                if since.elapsed() > ROLL_UP_LIMIT {
                    return Err("a like was not rolled up".into());
                }
                thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(true)
    }

    /// Measures every side in every way. The servers end with it.
    pub fn measure(mut self, runs: &mut u64, results: &mut Results) -> Result<(), Failure> {
        if !self.settings.is_quick {
            self.open(runs, results);
        }
        for &connections in &self.settings.connections {
            self.rounds(Mode::Closed { connections }, runs, results)?;
        }
        for percent in PERCENTS {
            self.rounds(Mode::Paced { percent }, runs, results)?;
        }
        for turn in &self.turns {
            let side = &turn.entrant.side;
            if turn.has_failed || side.items() == 1 {
                continue;
            }
            // Every item of many, once: that was not affordable after each run.
            let address = self.process(side.server)?.address;
            match check::verify(side, address, 0, &turn.total, &turn.total) {
                Ok(()) => results.checks += 1,
                Err(failure) => results.failures.push(failed(&turn.entrant, &*failure)),
            }
        }
        Ok(())
    }

    /// Asks every side of many items once for each: what is measured is the use of them, and not that they come to be, which
    /// would be done at another time on each side.
    fn open(&mut self, runs: &mut u64, results: &mut Results) {
        for index in 0..self.turns.len() {
            let Entrant { workload, name, side } = self.turns[index].entrant.clone();
            if side.items() > 1 {
                eprintln!("{}, {name}: each item once", workload.name);
                *runs += 1;
                let opened = self.open_one(&side, *runs).map(|tally| self.turns[index].total.merge(&tally));
                self.judge(index, opened, results);
            }
        }
    }

    /// In several loads, for the slowest takes a minute and more, which is longer than a load may.
    fn open_one(&self, side: &Side, run: u64) -> Result<Tally, Failure> {
        let side = Side { spread: Spread::Evenly, ..*side };
        let (mut all, mut opened) = (Tally::new(side.items()), 0);
        while opened < side.items() as u64 {
            let length = Length::Requests(OPENED_AT_A_TIME);
            let shape =
                Shape { connections: OPENING, threads: 1, warm_up: Duration::ZERO, length, pace: None };
            let mut plan = plan::plan(&side, self.process(side.server)?.address, &shape, &self.spreads, run);
            plan.first_number += opened;
            all.merge(&self.load(&side, plan)?.0);
            opened += OPENED_AT_A_TIME;
        }
        Ok(all)
    }

    /// Notes the failure of a side, which has no turn from then on.
    fn judge<T>(&mut self, index: usize, done: Result<T, Failure>, results: &mut Results) -> Option<T> {
        let turn = &mut self.turns[index];
        done.map_err(|failure| {
            turn.has_failed = true;
            eprintln!("{}, {}: {failure}", turn.entrant.workload.name, turn.entrant.name);
            results.failures.push(failed(&turn.entrant, &*failure));
        })
        .ok()
    }

    /// All rounds of one way.
    fn rounds(&mut self, mode: Mode, runs: &mut u64, results: &mut Results) -> Result<(), Failure> {
        for round in 1..=self.settings.rounds {
            for index in 0..self.turns.len() {
                let turn = &self.turns[index];
                let Entrant { workload, name, .. } = turn.entrant;
                let is_server =
                    !matches!(turn.entrant.side.server, Server::Echo | Server::Bare) && name != NOOP;
                let is_out = matches!(mode, Mode::Paced { .. }) && !(workload.is_paced && is_server);
                if turn.has_failed || is_out {
                    continue;
                }
                *runs += 1;
                child::settle(&self.processes)?;
                let run = self.run(index, mode, *runs, results);
                if let Some(point) = self.judge(index, run, results) {
                    let (workload, side) = (workload.name, name);
                    eprintln!("{}", progress(workload, side, mode, round, &point));
                    results.samples.push(Sample { workload, side, mode, round, point });
                }
            }
        }
        Ok(())
    }

    /// One run of one side, and its check.
    fn run(&mut self, index: usize, mode: Mode, run: u64, results: &mut Results) -> Result<Point, Failure> {
        let entrant = self.turns[index].entrant.clone();
        let Entrant { workload, name, side } = entrant;
        let (connections, length, pace) = match mode {
            Mode::Closed { connections } => (connections, self.settings.length, None),
            Mode::Paced { percent } => {
                let peak = results.peak(workload.name, name).ok_or("no peak to take a part of")?;
                let pace = (peak * f64::from(percent) / 100.0).max(1.0);
                (PACED_CONNECTIONS, self.settings.paced_length, Some(pace))
            }
        };
        let warm_up = self.settings.warm_up;
        let shape = Shape { connections, threads: 1, warm_up, length: Length::Time(length), pace };
        let address = self.process(side.server)?.address;
        let plan = plan::plan(&side, address, &shape, &self.spreads, run);
        let (tally, (server_cpu, generator_cpu)) = self.load(&side, plan)?;
        let total = &mut self.turns[index].total;
        total.merge(&tally);
        if side.items() == 1 && side.check != Check::Nothing {
            check::verify(&side, address, run, &tally, total)?;
            results.checks += 1;
        }
        Ok(Point::of(&tally, pace, server_cpu, generator_cpu))
    }

    /// The load itself, and the CPU seconds that the server and the generator used for it.
    fn load(&self, side: &Side, plan: Plan) -> Result<(Tally, (f64, f64)), Failure> {
        let process = self.process(side.server)?;
        let load = Load::connect(plan)?;
        let (server_before, generator_before) = (process.cpu_seconds()?, machine::cpu_seconds("self")?);
        let tally =
            load.run().map_err(|error| format!("{error}; its last lines:\n{}", process.log_tail()))?;
        let server_cpu = process.cpu_seconds()? - server_before;
        Ok((tally, (server_cpu, machine::cpu_seconds("self")? - generator_before)))
    }

    fn process(&self, server: Server) -> Result<&Process, Failure> {
        let process = self.processes.iter().find(|process| process.server == server);
        process.ok_or_else(|| "its server is not there".into())
    }
}

fn failed(entrant: &Entrant, failure: &dyn std::error::Error) -> Failed {
    Failed { workload: entrant.workload.title, side: entrant.name, why: failure.to_string() }
}

fn progress(workload: &str, side: &str, mode: Mode, round: usize, point: &Point) -> String {
    let how = match mode {
        Mode::Closed { connections } => format!("{connections} connections"),
        Mode::Paced { percent } => format!("{percent} % of its peak, {:.0}/s", point.offered),
    };
    let Point { rate, p50_ms, p99_ms, .. } = point;
    format!("{workload}, {side}, {how}, round {round}: {rate:.0}/s, p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms")
}
