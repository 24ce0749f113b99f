//! Backups of a running service: everything as it was at one moment, while it goes on.
//!
//! All partitions stand still between two batches for as long as it takes to begin a read transaction on each file
//! ([`hold`]). That is the moment: whatever one partition had heard from another by then, the other had
//! stored, so a set of several workshops is in the backup decided or on its way, never half; and the summary is not
//! ahead of the counters that it was carried from. Then they go on, and the files are copied from those transactions,
//! which their writers do not disturb. A copy is audited before it gets its name.

mod ask;
mod contents;
mod partial;
mod restore;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

pub use ask::{BackupOptions, ask};
pub use contents::{Contents, Entry};
use partial::Partial;
pub use restore::{RestoreOptions, Restored, restore};

use super::space::{Short, Space};
use super::steps::Steps;
use super::verify;
use crate::config::Config;
use crate::data_dir::{DataDir, Manifest};
use crate::metrics::BackupMetrics;
use crate::partition::Clock;
use crate::partition::hold::{self, Hold};
use crate::store;
use crate::store::sqlite::PARTITION_SCHEMA;
use crate::store::sqlite::copy::{Snapshot, integrity};
use crate::store::sqlite::summary::SUMMARY_SCHEMA;

/// A backup that was taken.
#[derive(Debug, Clone)]
pub struct Taken {
    /// Where it is.
    pub path: PathBuf,
    /// The moment that it shows, ms since 1970.
    pub taken_at_ms: i64,
    /// Its files together.
    pub bytes: u64,
    /// How long it took, all told.
    pub took: Duration,
    /// How long the partitions waited for each other and stood still.
    pub held: Duration,
}

/// Why there is no backup. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// A name that names no directory below the one for backups.
    #[error("a backup's name has 1 to 128 of the characters A-Z a-z 0-9 . _ - and begins with none of . _ -")]
    Name,
    /// A path somewhere else.
    #[error("backups are written into {0} (backup.dir) and nowhere else")]
    Outside(String),
    /// There is something of this name.
    #[error("{0} is there already")]
    Exists(String),
    /// One at a time.
    #[error("a backup is being taken")]
    Running,
    /// No room.
    #[error("no room for a backup: {0}")]
    Short(#[from] Short),
    /// The service stops.
    #[error("the service is stopping")]
    Stopping,
    /// The partitions did not all stand still in time.
    #[error("not all partitions stood still within backup.max_hold_ms; try again")]
    NotHeld,
    /// The copy does not add up: the data does not.
    #[error("the copy does not add up: {0}; `headcount verify` tells all that is wrong")]
    Unsound(String),
    /// A file.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The audit could not look.
    #[error(transparent)]
    Audit(#[from] verify::Error),
    /// The operating system's words.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// A cheap clone's way to take backups.
#[derive(Clone)]
pub struct Backups(Arc<Inner>);

struct Inner {
    /// `backup.dir`
    root: PathBuf,
    /// The data directory.
    data: PathBuf,
    manifest: Manifest,
    partitions: Vec<Box<dyn Hold>>,
    /// `backup.max_hold_ms`
    max_hold: Duration,
    clock: Clock,
    running: AtomicBool,
    stop: CancellationToken,
    steps: Steps,
    space: Space,
    metrics: BackupMetrics,
}

impl Backups {
    /// Of the running partitions of a data directory; none is taken once `stop` is cancelled.
    #[must_use]
    pub fn new(
        config: &Config,
        data: &DataDir,
        partitions: Vec<Box<dyn Hold>>,
        clock: Clock,
        stop: CancellationToken,
    ) -> Self {
        Self(Arc::new(Inner {
            root: config.backup.dir.clone(),
            data: data.path().to_owned(),
            manifest: data.manifest().clone(),
            partitions,
            max_hold: Duration::from_millis(config.backup.max_hold_ms),
            clock,
            running: AtomicBool::new(false),
            stop,
            steps: Steps::of(config),
            space: Space::of(config),
            metrics: BackupMetrics::default(),
        }))
    }

    /// Takes a backup: by a name, or a path, in `backup.dir`; without either it gets a name by its time. It is whole, on
    /// the disk and audited when this returns. Goes on to its end, whoever waits.
    ///
    /// # Errors
    /// See [`Refused`].
    pub async fn take(&self, dir: Option<&str>) -> Result<Taken, Refused> {
        let name = match dir {
            Some(dir) => self.0.name_of(dir)?,
            None => format!("backup-{}", self.0.clock.now_ms()),
        };
        if self.0.running.swap(true, Ordering::AcqRel) {
            return Err(Refused::Running);
        }
        let running = Running(self.clone());
        let write = tokio::task::spawn_blocking(move || {
            let inner = &running.0.0;
            let taken = inner.take(&name);
            match &taken {
                Ok(taken) => {
                    inner.metrics.taken(taken.taken_at_ms, taken.took, taken.held, taken.bytes);
                    tracing::info!(path = %taken.path.display(), bytes = taken.bytes, seconds = taken.took.as_secs_f64(),
                        held_seconds = taken.held.as_secs_f64(), "a backup is taken");
                }
                Err(error) => {
                    inner.metrics.failed.increment(1);
                    tracing::error!(%error, "no backup was taken");
                }
            }
            taken
        });
        write.await.map_err(std::io::Error::other)?
    }
}

/// While there is one, no other backup begins.
struct Running(Backups);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.running.store(false, Ordering::Release);
    }
}

impl Inner {
    /// The name below `backup.dir` that a caller means.
    fn name_of(&self, dir: &str) -> Result<String, Refused> {
        let path = Path::new(dir);
        let name = if path.is_absolute() {
            let outside = || Refused::Outside(self.root.display().to_string());
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(outside()) };
            // The very same directory, whatever links lead to it.
            std::fs::create_dir_all(&self.root)?;
            if parent.canonicalize().ok() != Some(self.root.canonicalize()?) {
                return Err(outside());
            }
            name.to_str().ok_or(Refused::Name)?
        } else {
            dir
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_name = (1..=128).contains(&name.len())
            && name.bytes().all(is_plain)
            && name.starts_with(|first: char| first.is_ascii_alphanumeric());
        if is_name { Ok(name.to_owned()) } else { Err(Refused::Name) }
    }

    fn take(&self, name: &str) -> Result<Taken, Refused> {
        let started = Instant::now();
        std::fs::create_dir_all(&self.root)?;
        let root = self.root.canonicalize()?;
        let whole = root.join(name);
        if whole.symlink_metadata().is_ok() {
            return Err(Refused::Exists(whole.display().to_string()));
        }
        let partial = Partial::create(&root, name)?;
        let (snapshots, taken_at_ms, held) = self.one_moment()?;
        let bytes = snapshots.iter().map(Snapshot::bytes).sum::<Result<u64, _>>()?;
        self.space.require(&root, bytes)??;
        let mut files = vec!["manifest.json".to_owned()];
        for snapshot in snapshots {
            files.push(snapshot.name());
            let copy = partial.path.join(snapshot.name());
            if !snapshot.copy_to(&copy, || !self.stop.is_cancelled())? {
                return Err(Refused::Stopping);
            }
            self.steps.at("backup_copied_one");
        }
        Manifest { generation: 0, complete: true, ..self.manifest.clone() }.write(&partial.path)?;
        self.steps.at("backup_copied");
        self.check(&partial.path)?;
        self.steps.at("backup_checked");
        let entries = files.iter().map(|file| Entry::of(&partial.path, file));
        let contents = Contents {
            format: contents::FORMAT,
            headcount: env!("CARGO_PKG_VERSION").to_owned(),
            taken_at_ms,
            data_id: self.manifest.data_id.clone(),
            files: entries.collect::<Result<_, _>>()?,
        };
        contents.write(&partial.path)?;
        self.steps.at("backup_written");
        let path = partial.publish(name)?;
        Ok(Taken { path, taken_at_ms, bytes: contents.bytes(), took: started.elapsed(), held })
    }

    /// A snapshot of each file, all of one moment.
    fn one_moment(&self) -> Result<(Vec<Snapshot>, i64, Duration), Refused> {
        // Opened beforehand: what takes time is over when the partitions stand still.
        let partitions = (0..self.manifest.partitions).map(|partition| {
            Snapshot::open(&self.manifest.partition_file(&self.data, partition), &PARTITION_SCHEMA)
        });
        let summary = Snapshot::open(&self.manifest.summary_file(&self.data), &SUMMARY_SCHEMA);
        let snapshots = partitions.chain(std::iter::once(summary)).collect::<Result<Vec<_>, _>>()?;
        let since = Instant::now();
        let taken = hold::while_all_stand_still(&self.partitions, self.max_hold, || {
            let taken = snapshots.iter().try_for_each(Snapshot::take);
            self.steps.at("backup_held");
            taken.map(|()| self.clock.now_ms())
        });
        let held = since.elapsed();
        let taken_at_ms = taken.ok_or(Refused::NotHeld)??;
        Ok((snapshots, taken_at_ms, held))
    }

    /// The pages of each file, and then what they say.
    fn check(&self, copy: &Path) -> Result<(), Refused> {
        let copied = Manifest { generation: 0, ..self.manifest.clone() };
        let partitions = (0..copied.partitions)
            .map(|partition| (copied.partition_file(copy, partition), PARTITION_SCHEMA));
        for (file, schema) in partitions.chain(std::iter::once((copied.summary_file(copy), SUMMARY_SCHEMA))) {
            if let Some(wrong) = integrity(&file, &schema)?.into_iter().next() {
                return Err(Refused::Unsound(wrong));
            }
        }
        let report = verify::verify(copy)?;
        for finding in &report.findings {
            tracing::error!(partition = finding.partition, what = %finding.what, why = %finding.why, "in a backup's copy");
        }
        match report.findings.first() {
            Some(first) => Err(Refused::Unsound(format!("{}: {}", first.what, first.why))),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for Backups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backups").field("root", &self.0.root).finish_non_exhaustive()
    }
}
