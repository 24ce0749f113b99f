//! headcount under HTTP load, beside the same load on what bounds it: `cargo bench --bench http -- --help`.
//!
//! Every side is a server and a request (`sides.rs`). Sides take turns in rounds, so that a machine that slows down slows
//! all of them, and after each run the server's counts must equal the answers counted here (`check.rs`).

mod args;
mod bare;
mod check;
mod child;
mod client;
mod compare;
mod echo;
mod expiry;
mod flood;
mod generator;
mod histogram;
mod items;
mod machine;
mod memory;
mod neighbour;
mod pace;
mod peers;
mod plan;
mod report;
mod request;
mod response;
mod scale;
mod sides;
mod stream;
mod tally;
mod tree;

use std::path::Path;
use std::process::ExitCode;

use args::{Command, Settings};
use child::Process;
use client::Client;
use generator::Load;
use plan::Spreads;
use report::Record;
use sides::{READ_LIKES, Server, Side};

/// A bench has one thing to do with an error: print it and exit 1.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match args::parse(std::env::args().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("http bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Measure(settings) => measure(&settings),
        Command::Expiry(holds, settings) => expiry::measure(holds, &settings),
        Command::Flood(connections, settings) => flood::measure(connections, &settings),
        Command::Scale(likes, settings) => scale::measure(likes, &settings),
        Command::Workshops(workshops, settings) => scale::measure_workshops(workshops, &settings),
        Command::Compare(settings) => compare::measure(&settings),
        Command::Bare(port) => Ok(bare::serve(port)?),
        Command::Echo(port) => Ok(echo::serve(port)?),
        Command::Help => {
            print!("{}", args::HELP);
            Ok(())
        }
    }
}

fn measure(settings: &Settings) -> Result<(), Failure> {
    let dir = tempfile::Builder::new().prefix("headcount-bench-").tempdir_in(&settings.dir)?;
    println!("machine: {}", report::machine(dir.path())?);
    let Settings { rounds, connections, threads, .. } = settings;
    println!("load: {connections} connections, {threads} generator thread(s), {rounds} round(s)");
    println!("server: {}\n", child::headcount_path().display());

    let processes = start_all(settings, dir.path())?;
    let mut bench = Bench { settings, processes, spreads: Spreads::new(), runs: 0 };
    let mut records: Vec<_> = settings.sides.iter().map(|side| Record::new(side)).collect();
    for round in 1..=*rounds {
        for record in &mut records {
            bench.run(round, record)?;
        }
    }
    report::print(&records);
    Ok(())
}

/// Starts each server that the chosen sides need, once. All live to the end; idle ones cost the others nothing.
fn start_all(settings: &Settings, dir: &Path) -> Result<Vec<Process>, Failure> {
    let mut processes: Vec<Process> = Vec::new();
    for side in &settings.sides {
        if !processes.iter().any(|process| process.server == side.server) {
            processes.push(Process::start(side.server, dir)?);
        }
    }
    if let Some(roomy) = processes.iter().find(|process| process.server == Server::Roomy) {
        // Something to read, on an item that no other side touches.
        Client::connect(roomy.address)?.json(&format!("PUT {READ_LIKES}/users/reader"))?;
    }
    Ok(processes)
}

struct Bench<'a> {
    settings: &'a Settings,
    processes: Vec<Process>,
    spreads: Spreads,
    runs: u64,
}

impl Bench<'_> {
    /// One run of one side, and its check.
    fn run(&mut self, round: usize, record: &mut Record) -> Result<(), Failure> {
        let side = record.side;
        self.runs += 1;
        let process = self.processes.iter().find(|process| process.server == side.server);
        let process = process.expect("start_all starts the server of every chosen side");
        child::settle(&self.processes)?;
        let plan = plan::plan(side, process.address, &self.settings.shape(), &self.spreads, self.runs);
        let load = Load::connect(plan)?;

        let (server_before, generator_before) = (process.cpu_seconds()?, machine::cpu_seconds("self")?);
        let tally = load.run().map_err(|error| in_context(side, process, &error))?;
        record.server_cpu += process.cpu_seconds()? - server_before;
        record.generator_cpu += machine::cpu_seconds("self")? - generator_before;

        record.rates.push(tally.rate());
        record.total.merge(&tally);
        eprintln!(
            "round {round}, {}: {:.0} requests/s ({})",
            side.name,
            tally.rate(),
            report::statuses(&tally)
        );
        check::verify(side, process.address, self.runs, &tally, &record.total)
            .map_err(|error| in_context(side, process, &*error))
    }
}

fn in_context(side: &Side, process: &Process, error: &dyn std::error::Error) -> Failure {
    format!("{}: {error}\nthe server's last lines:\n{}", side.name, process.log_tail()).into()
}
