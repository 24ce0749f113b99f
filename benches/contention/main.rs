//! The same durable work done three ways, in process: `cargo bench --bench contention`.
//!
//! Contenders (`contender.rs`) differ in who may decide and how many decisions share a commit; workloads
//! (`workload.rs`) differ in how many keys the callers meet on. Everybody has the same callers
//! (`callers.rs`), schema and pragmas, and what is stored at the end is counted (`audit.rs`).

mod audit;
mod callers;
mod contender;
#[path = "../http/machine.rs"]
mod machine;
mod mutex;
mod report;
mod running;
mod workload;

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput};
use headcount::config::Log;
use headcount::{log, metrics};

use contender::{CONTENDERS, Contender};
use report::{Cell, Report};
use running::Running;
use workload::{WORKLOADS, Workload};

type Failure = Box<dyn std::error::Error>;

const SAMPLES: usize = 10;
/// Criterion repeats rounds until all samples of a measure have taken about so long together.
const MEASURE: Duration = Duration::from_secs(5);
/// Requests a round when `cargo test` only looks whether everything works.
const SMOKE_REQUESTS: u64 = 400;

fn main() -> Result<(), Failure> {
    // What the service does beside deciding is part of its cost: it logs decisions and counts.
    let _log = log::start_into(&Log::default(), std::fs::File::create("/dev/null")?)?;
    let metrics = metrics::install()?;
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            metrics.run_upkeep();
        }
    });
    // On the disk of the build, as /tmp may be in memory.
    let dir = tempfile::Builder::new().prefix("contention-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let mut report = Report::new(dir.path())?;
    // One round to warm up is enough: the first one is the one that creates the items.
    let mut criterion = Criterion::default()
        .sample_size(SAMPLES)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(MEASURE)
        .configure_from_args();
    for workload in WORKLOADS {
        for contender in CONTENDERS.iter().filter(|contender| contender.takes_part(workload)) {
            if let Some(cell) = measure(&mut criterion, contender, workload, dir.path())? {
                report.add(cell);
            }
        }
    }
    if !is_smoke_run() {
        report.print();
    }
    criterion.final_summary();
    Ok(())
}

/// Measures, stops and audits; `None` if a filter on the command line left it out.
fn measure(
    criterion: &mut Criterion,
    contender: &'static Contender,
    workload: Workload,
    dir: &Path,
) -> Result<Option<Cell>, Failure> {
    let requests = if is_smoke_run() { SMOKE_REQUESTS } else { contender.requests_a_round };
    let mut running = None;
    let mut rounds_run = Vec::new();
    let mut group = criterion.benchmark_group(workload.name());
    group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(requests));
    group.bench_function(contender.name, |bencher| {
        bencher.iter_custom(|rounds| {
            let running =
                running.get_or_insert_with(|| Running::start(contender, workload, dir).expect("a start"));
            let timed = (0..rounds).map(|_| running.round(requests).expect("a round"));
            timed.inspect(|round| rounds_run.push(*round)).map(|round| round.time).sum()
        });
    });
    group.finish();
    running.map(|running| running.stop_and_audit()).transpose()?;
    Ok(Cell::new(contender, workload, requests, &rounds_run))
}

/// As criterion tells `cargo bench` from `cargo test`.
fn is_smoke_run() -> bool {
    let given = |flag: &str| std::env::args().any(|argument| argument == flag);
    given("--test") || !given("--bench")
}
