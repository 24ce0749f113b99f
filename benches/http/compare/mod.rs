//! headcount beside its alternatives, on one machine in one run: `benches/compare`.
//!
//! Workloads that are compared with each other are a family: its servers run together, and all its sides take turns in rounds.
//! First in closed loop at each number of connections, then at a pace, at parts of the peak that each side has just shown.

mod bars;
mod chart;
mod family;
mod plots;
mod raw;
mod results;
mod settings;
mod svg;
mod tables;
mod workloads;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::child;
use crate::report;
use family::Family;
use results::Results;
pub use settings::Settings;

/// Measures everything, prints the tables and writes them, the plots and the raw figures.
pub fn measure(settings: &Settings) -> Result<(), Failure> {
    rlimit::increase_nofile_limit(u64::MAX)?;
    fs::create_dir_all(&settings.out)?;
    let dir = tempfile::Builder::new().prefix("headcount-compare-").tempdir_in(&settings.dir)?;
    let head = describe(settings, dir.path())?;
    eprint!("{head}");

    let mut results = Results::default();
    let mut runs = 0;
    for (number, sides) in workloads::families(settings).into_iter().enumerate() {
        let place = dir.path().join(number.to_string());
        fs::create_dir(&place)?;
        Family::start(settings, &place, sides, &mut results)?.measure(&mut runs, &mut results)?;
        fs::remove_dir_all(&place)?;
    }

    let report = [
        head,
        tables::throughput(settings, &results),
        tables::latency(&results),
        bars::list(settings, &results),
    ];
    let report = report.join("\n") + &tables::closing(&results);
    println!("{report}");
    fs::write(settings.out.join("report.md"), &report)?;
    fs::write(settings.out.join("runs.csv"), raw::csv(&results))?;
    plots::write(&settings.out, settings, &results)?;
    eprintln!("written to {}", settings.out.display());
    match results.failures.len() {
        0 => Ok(()),
        count => Err(format!("{count} side(s) failed").into()),
    }
}

/// What the figures depend on, in lines.
fn describe(settings: &Settings, dir: &Path) -> Result<String, Failure> {
    let quick = if settings.is_quick {
        " This was a quick run: it shows that all works, and measures nothing."
    } else {
        ""
    };
    Ok(format!(
        "Machine: {}. The generator shares it.\n\
        Runs: {} round(s), {:.1} s each in closed loop and {:.1} s at a pace, after {:.1} s of warm-up; sides take turns.{quick}\n\
        headcount: {}; {}; {}.\n",
        report::machine(dir)?,
        settings.rounds,
        settings.length.as_secs_f64(),
        settings.paced_length.as_secs_f64(),
        settings.warm_up.as_secs_f64(),
        child::headcount_path().display(),
        version("/usr/lib/postgresql/15/bin/postgres"),
        version("redis-server"),
    ))
}

fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(_) => format!("no {program}"),
    }
}
