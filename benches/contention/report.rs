//! The results, as a Markdown table.

use std::path::{Path, PathBuf};
use std::time::Duration;

use headcount::data_dir::{DEFAULT_PARTITIONS, DEFAULT_SHARDS};

use crate::callers::CALLERS;
use crate::contender::{CONTENDERS, Contender};
use crate::workload::{WORKLOADS, Workload};
use crate::{Failure, machine};

/// One result.
pub struct Cell {
    pub contender: &'static Contender,
    pub workload: Workload,
    /// Requests a second.
    pub rate: f64,
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
            "\nLikes or reservations a second, durable, in process, {CALLERS} callers; medians of rounds. The \
             service ships with {DEFAULT_PARTITIONS} partitions and {DEFAULT_SHARDS} shards.\n"
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
        self.cells.iter().find(is_it).map_or("-".to_owned(), |cell| format!("{:.0}", cell.rate))
    }
}

/// Without the first, the warm-up, where there is more.
pub fn median(rates: &mut [f64]) -> Option<f64> {
    let rates = if rates.len() > 1 { &mut rates[1..] } else { rates };
    rates.sort_unstable_by(f64::total_cmp);
    let (low, high) = (rates.len().checked_sub(1)? / 2, rates.len() / 2);
    Some(f64::midpoint(rates[low], rates[high]))
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
