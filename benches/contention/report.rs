//! The results, as a Markdown table.

use std::path::{Path, PathBuf};
use std::time::Duration;

use headcount::data_dir::{DEFAULT_PARTITIONS, DEFAULT_SHARDS};

use crate::callers::{CALLERS, Round};
use crate::contender::{CONTENDERS, Contender};
use crate::workload::{WORKLOADS, Workload};
use crate::{Failure, machine};

/// One result.
pub struct Cell {
    pub contender: &'static Contender,
    pub workload: Workload,
    /// Requests a second, the median of the rounds.
    pub rate: f64,
    /// CPU time of a request in all threads together, the mean of the rounds: steadier than the rate on a
    /// machine that others use too.
    pub cpu_us: f64,
}

impl Cell {
    /// From rounds of `requests` each; the first was the warm-up, unless it was all.
    pub fn new(
        contender: &'static Contender,
        workload: Workload,
        requests: u64,
        rounds: &[Round],
    ) -> Option<Self> {
        let measured = rounds.get(1..).filter(|rest| !rest.is_empty()).unwrap_or(rounds);
        let mut rates: Vec<_> =
            measured.iter().map(|round| requests as f64 / round.time.as_secs_f64()).collect();
        let cpu_seconds: f64 = measured.iter().map(|round| round.cpu_seconds).sum();
        let cpu_us = cpu_seconds * 1e6 / (requests * measured.len() as u64) as f64;
        Some(Self { contender, workload, rate: median(&mut rates)?, cpu_us })
    }
}

pub struct Report {
    dir: PathBuf,
    sync: Duration,
    cells: Vec<Cell>,
}

impl Report {
    pub fn new(dir: &Path) -> Result<Self, Failure> {
        Ok(Self { dir: dir.to_owned(), sync: machine::sync_time(dir)?, cells: Vec::new() })
    }

    pub fn add(&mut self, cell: Cell) {
        self.cells.push(cell);
    }

    pub fn print(&self) {
        println!(
            "\nLikes or reservations a second, durable, in process, {CALLERS} callers; medians of rounds \
             (and CPU time each, of all threads together). The service ships with {DEFAULT_PARTITIONS} partitions and {DEFAULT_SHARDS} shards.\n"
        );
        let names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name()).collect();
        println!("| | {} |", names.join(" | "));
        println!("|---|{}", "---:|".repeat(names.len()));
        for contender in &CONTENDERS {
            let cells: Vec<_> =
                WORKLOADS.iter().map(|&workload| self.show(contender.name, workload)).collect();
            println!("| {} | {} |", contender.name, cells.join(" | "));
        }
        println!("\nMachine: {}.", machine::describe());
        println!(
            "A 4 KiB append and fdatasync takes {:.3} ms in {} ({}).",
            self.sync.as_secs_f64() * 1e3,
            self.dir.display(),
            file_system(&self.dir),
        );
    }

    fn show(&self, contender: &str, workload: Workload) -> String {
        let is_it = |cell: &&Cell| cell.contender.name == contender && cell.workload == workload;
        self.cells
            .iter()
            .find(is_it)
            .map_or("-".to_owned(), |cell| format!("{:.0} ({:.1} µs)", cell.rate, cell.cpu_us))
    }
}

/// Of an even number, the mean of the middle two.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(values[low], values[high]))
}

/// The kind of the file system that holds `dir`: figures from one in memory would say nothing.
fn file_system(dir: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let holds = fields.filter(|(point, _)| dir.starts_with(point));
    holds.max_by_key(|(point, _)| point.len()).map_or("file system unknown", |(_, kind)| kind).to_owned()
}
