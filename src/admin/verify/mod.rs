//! `headcount verify`: an independent audit. It reads the files and adds everything up again from the
//! rows that nothing else is computed from (memberships, ledgers, attempts); it shares no code with the
//! deciding side but the hashes that place users and workshops.
//!
//! It runs beside the service or without it. The summary is read first: a counter whose version is not
//! above the summary's watermark has not changed since, so the two must agree; newer ones are pending.
//!
//! `--repair` puts right what is wrong about likes, and audits afterwards.

mod absence;
mod counters;
mod history;
mod likes;
mod repair;
mod report;
mod reservations;
mod rooms;
mod sets;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rusqlite::Connection;

use crate::config::Config;
use crate::data_dir::{self, Manifest};
use crate::partition::clock::SteppedBack;
use crate::store;
use crate::store::sqlite::PARTITION_SCHEMA;
use crate::store::sqlite::open::snapshot;
use crate::store::sqlite::summary::SUMMARY_SCHEMA;
pub use absence::Namespace;
use likes::SummaryAudit;
pub use report::{Finding, Report};
use sets::SetsAudit;

/// `headcount verify`'s arguments.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The data directory [default: the settings' storage.data_dir]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The settings file [default: config/headcount.toml if it exists]
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// Pass only if nothing of this namespace is stored: likes, workshops or rooms
    #[arg(long, value_name = "NAMESPACE")]
    pub deleted: Option<Namespace>,
    /// Put right what is wrong about likes: counters from memberships and ledgers, totals from counters. Without the service
    #[arg(long, conflicts_with = "deleted")]
    pub repair: bool,
}

/// Why an audit could not look. Never taken for a pass.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// The clock, for a repair.
    #[error(transparent)]
    Clock(#[from] SteppedBack),
    /// A file.
    #[error("{file}: {source}")]
    File {
        /// Which.
        file: String,
        /// What the store says.
        source: store::Error,
    },
}

/// Attempts before a finding beside a running service is believed: it may have moved between two files.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(1500);

/// Runs the command: exit 0 if all is right, 1 if something is wrong, 2 if it could not look.
#[must_use]
pub fn command(data_dir: &Path, options: &Options, config: &Config) -> ExitCode {
    let outcome = match options.deleted {
        Some(namespace) => absence::prove(data_dir, namespace),
        None if options.repair => repair::repair(data_dir, config).and_then(|repaired| {
            let _read_enough = repair::print(&repaired, io::stdout());
            verify(data_dir)
        }),
        None => verify_patiently(data_dir),
    };
    match outcome {
        Ok(report) => {
            // Whoever reads it may have read enough; the exit code says it all.
            let _read_enough = write!(io::stdout(), "{report}");
            if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(error) => {
            eprintln!("headcount verify: could not look: {error}");
            ExitCode::from(2)
        }
    }
}

/// Audits, and audits again what looks wrong, so that only what stays wrong is reported.
///
/// # Errors
/// See [`Error`].
pub fn verify_patiently(path: &Path) -> Result<Report, Error> {
    let mut report = verify(path)?;
    for _ in 1..ATTEMPTS {
        if report.findings.is_empty() {
            break;
        }
        std::thread::sleep(PAUSE);
        let again = verify(path)?;
        let stays = |finding: &Finding| report.findings.iter().any(|earlier| earlier.what == finding.what);
        report = Report { findings: again.findings.iter().filter(|f| stays(f)).cloned().collect(), ..again };
    }
    Ok(report)
}

/// Audits a data directory once.
///
/// # Errors
/// See [`Error`].
pub fn verify(path: &Path) -> Result<Report, Error> {
    let manifest = read_manifest(path)?;
    let mut report = Report::default();
    let file = manifest.summary_file(path);
    let summary = in_file(&file, || SummaryAudit::begin(snapshot(&file, &SUMMARY_SCHEMA)?))?;
    let mut sets = SetsAudit::default();
    for partition in 0..manifest.partitions {
        let file = manifest.partition_file(path, partition);
        in_file(&file, || {
            let connection = snapshot(&file, &PARTITION_SCHEMA)?;
            let place = Place { connection, partition, manifest: &manifest };
            place.check_file(&mut report)?;
            likes::audit(&place, &summary, &mut report)?;
            reservations::audit(&place, &mut report)?;
            rooms::audit(&place, &mut report)?;
            sets.look_at(&place, &mut report)
        })?;
    }
    sets.audit(&mut report);
    in_file(&file, || summary.audit(&manifest, path, &mut report))?;
    in_file(&file, || history::audit(summary.connection(), &mut report))?;
    Ok(report)
}

fn read_manifest(path: &Path) -> Result<Manifest, Error> {
    let manifest = Manifest::read(path)?;
    Ok(manifest.ok_or_else(|| data_dir::Error::absent(path))?)
}

fn in_file<T>(file: &Path, look: impl FnOnce() -> Result<T, store::Error>) -> Result<T, Error> {
    look().map_err(|source| Error::File { file: file.display().to_string(), source })
}

/// A partition's file under audit.
struct Place<'a> {
    connection: Connection,
    partition: u32,
    manifest: &'a Manifest,
}

impl Place<'_> {
    fn check_file(&self, report: &mut Report) -> Result<(), store::Error> {
        let identity = self.connection.query_row("SELECT data_id, partition FROM identity", [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, u32>(1)?))
        })?;
        if identity != (self.manifest.data_id.clone(), self.partition) {
            report.wrong(
                self.partition,
                "file",
                format!("it says it is partition {} of {}", identity.1, identity.0),
            );
        }
        let mut check = self.connection.prepare("PRAGMA quick_check(20)")?;
        for line in check.query_map([], |row| row.get::<_, String>(0))? {
            let line = line?;
            if line != "ok" {
                report.wrong(self.partition, "file", line);
            }
        }
        Ok(())
    }
}
