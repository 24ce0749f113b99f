//! The data directory: its lock, its manifest, and the names of its files.
//!
//! The manifest holds what the stored data depends on. Users were placed by a hash over so many shards,
//! and shards and workshops over so many partitions: with other numbers they would be looked for in the
//! wrong place, so other numbers are refused, unless the data is moved first. A move writes a whole new set of files, a
//! [`generation`], and the manifest says which one holds.

pub(crate) mod generation;

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The manifest format that this build writes, and the newest that it reads.
pub const FORMAT: u32 = 1;
/// The only user-to-shard hash so far.
pub const HASH: &str = "xxh3_64";
/// Of a new directory, when the settings are silent.
pub const DEFAULT_SHARDS: u32 = 16;
/// Of a new directory, when the settings are silent. Chosen by measurement and not from this machine's
/// cores: a directory must mean the same on another machine.
pub const DEFAULT_PARTITIONS: u32 = 2;

/// What the stored data depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The format of this file and of the layout it speaks of.
    pub format: u32,
    /// This directory's id, random at its creation; every file in it carries it.
    pub data_id: String,
    /// `likes.shards`
    pub shards: u32,
    /// `storage.partitions`
    pub partitions: u32,
    /// How users are placed on shards, and workshops on partitions.
    pub hash: String,
    /// Whether all files have been created. From then on a missing one is a loss and not a beginning.
    pub complete: bool,
    /// Which set of files holds: 0 lies in the directory itself, n in `generation-n` below it. Grows with each move.
    #[serde(default, skip_serializing_if = "is_first")]
    pub generation: u32,
}

fn is_first(generation: &u32) -> bool {
    *generation == 0
}

/// A data directory that this process alone may write to, until it is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    manifest: Manifest,
    /// The operating system releases the lock with the file, also after a kill -9.
    _lock: File,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has it.
    #[error("{0} is in use by another headcount process (it holds the lock on {0}/LOCK)")]
    InUse(String),
    /// Another number than the stored data was placed by.
    #[error(
        "{setting} is {wanted}, but the data in {path} is placed by {stored}: it would be misplaced. Leave {setting} out \
         to use what is stored, or have the data moved: at the start with storage.move_on_start = true, or ahead of it \
         with `headcount reshard --{flag} {wanted}`"
    )]
    Misplaced {
        /// The setting.
        setting: &'static str,
        /// The flag of `headcount reshard` for it.
        flag: &'static str,
        /// What the settings say.
        wanted: u32,
        /// What the manifest says.
        stored: u32,
        /// The directory.
        path: String,
    },
    /// Written by a newer headcount.
    #[error("{path} has format {found}, this headcount knows up to {FORMAT}: use a newer headcount")]
    Newer {
        /// The directory.
        path: String,
        /// Its format.
        found: u32,
    },
    /// A manifest that makes no sense.
    #[error("{path}: {why}")]
    Manifest {
        /// The manifest.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// A file that was there is gone.
    #[error(
        "{0} is missing, and {1} was complete: restore the file, or the whole directory, from a backup. \
         An empty file in its place would forget what was answered"
    )]
    Lost(String, String),
    /// A backup, which is to stay what it is.
    #[error("{0} is a backup: `headcount restore {0} --data-dir DIR` makes a data directory of it")]
    Backup(String),
    /// No data directory, where one must be.
    #[error(
        "{0} is no data directory: it has no manifest.json. Give --data-dir; a service keeps its data in `data` below the \
         directory that it was started in"
    )]
    Absent(String),
    /// The operating system's words.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: String,
        /// What.
        source: std::io::Error,
    },
}

impl Error {
    /// No data directory, named so that whoever stands elsewhere sees which was meant.
    #[must_use]
    pub fn absent(path: &Path) -> Self {
        Self::Absent(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string())
    }
}

impl DataDir {
    /// Locks a directory and reads its manifest, creating both if they are missing. `shards` and
    /// `partitions` are the settings; `None` means what is stored.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn open(path: &Path, shards: Option<u32>, partitions: Option<u32>) -> Result<Self, Error> {
        let data = Self::open_as_placed(path, shards, partitions)?;
        data.refuse_misplaced(shards, partitions)?;
        Ok(data)
    }

    /// The same, whatever numbers the data is placed by; a new directory is created with the given ones. What a move
    /// left unfinished, or behind, is removed.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn open_as_placed(path: &Path, shards: Option<u32>, partitions: Option<u32>) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(|source| io_error(path, source))?;
        let lock = lock(path)?;
        if path.join(BACKUP).exists() {
            return Err(Error::Backup(path.display().to_string()));
        }
        let manifest = match Manifest::read(path)? {
            Some(manifest) => manifest,
            None => Manifest::create(
                path,
                shards.unwrap_or(DEFAULT_SHARDS),
                partitions.unwrap_or(DEFAULT_PARTITIONS),
            )?,
        };
        let data = Self { path: path.to_owned(), manifest, _lock: lock };
        data.refuse_lost_files()?;
        data.clear_other_generations()?;
        Ok(data)
    }

    /// Refuses other numbers than the data is placed by; `None` means what is stored.
    ///
    /// # Errors
    /// [`Error::Misplaced`].
    pub fn refuse_misplaced(&self, shards: Option<u32>, partitions: Option<u32>) -> Result<(), Error> {
        let Manifest { shards: stored_shards, partitions: stored_partitions, .. } = self.manifest;
        for (setting, flag, wanted, stored) in [
            ("likes.shards", "shards", shards, stored_shards),
            ("storage.partitions", "partitions", partitions, stored_partitions),
        ] {
            if let Some(wanted) = wanted.filter(|wanted| *wanted != stored) {
                let path = self.path.display().to_string();
                return Err(Error::Misplaced { setting, flag, wanted, stored, path });
            }
        }
        Ok(())
    }

    fn refuse_lost_files(&self) -> Result<(), Error> {
        let mut files = (0..self.manifest.partitions).map(|partition| self.partition_file(partition));
        match files.find(|file| !file.exists()) {
            Some(lost) if self.manifest.complete => {
                Err(Error::Lost(lost.display().to_string(), self.path.display().to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Notes that all files are there, once they are. The summary is none of them: it is only a projection,
    /// and a lost one is rolled up again.
    ///
    /// # Errors
    /// The operating system's.
    pub fn complete(&mut self) -> Result<(), Error> {
        if self.manifest.complete {
            return Ok(());
        }
        self.manifest.complete = true;
        self.manifest.write(&self.path).map_err(|source| io_error(&manifest_file(&self.path), source))
    }

    /// What the stored data depends on.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A partition's file.
    #[must_use]
    pub fn partition_file(&self, partition: u32) -> PathBuf {
        self.manifest.partition_file(&self.path, partition)
    }

    /// The summary's file.
    #[must_use]
    pub fn summary_file(&self) -> PathBuf {
        self.manifest.summary_file(&self.path)
    }
}

/// What makes a directory a backup: see [`admin::backup`](crate::admin::backup).
pub const BACKUP: &str = "backup.json";
/// What a directory has in which a restoration is not finished.
pub const RESTORING: &str = "RESTORING";

impl Manifest {
    /// Where the files are that hold, in a data directory with this manifest.
    #[must_use]
    pub fn files_dir(&self, path: &Path) -> PathBuf {
        generation::files_dir(path, self.generation)
    }

    /// A partition's file, in a data directory with this manifest.
    #[must_use]
    pub fn partition_file(&self, path: &Path, partition: u32) -> PathBuf {
        self.files_dir(path).join(format!("partition-{partition:03}.db"))
    }

    /// The summary's file, in a data directory with this manifest.
    #[must_use]
    pub fn summary_file(&self, path: &Path) -> PathBuf {
        self.files_dir(path).join("summary.db")
    }

    /// Reads a directory's manifest; `None` if it has none.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }

        let file = manifest_file(path);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io_error(&file, source)),
        };
        let wrong = |why: String| Error::Manifest { path: file.display().to_string(), why };
        // The format first: a newer one may have other fields.
        let Format { format } = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if format > FORMAT {
            return Err(Error::Newer { path: path.display().to_string(), found: format });
        }
        let manifest: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if manifest.hash != HASH {
            return Err(wrong(format!(
                "users were placed by {}, this headcount knows {HASH}",
                manifest.hash
            )));
        }
        if manifest.shards == 0 || manifest.partitions == 0 {
            return Err(wrong("no shards or no partitions".to_owned()));
        }
        Ok(Some(manifest))
    }

    fn create(path: &Path, shards: u32, partitions: u32) -> Result<Self, Error> {
        let data_id = random_id().map_err(|source| io_error(path, source))?;
        let hash = HASH.to_owned();
        let manifest =
            Self { format: FORMAT, data_id, shards, partitions, hash, complete: false, generation: 0 };
        let is_used = manifest.partition_file(path, 0).exists() || generation::any(path);
        if is_used || path.join(RESTORING).exists() {
            let why = "there are partition files but no manifest; restore it, or use another data directory";
            let path = manifest_file(path).display().to_string();
            return Err(Error::Manifest { path, why: why.to_owned() });
        }
        manifest.write(path).map_err(|source| io_error(&manifest_file(path), source))?;
        Ok(manifest)
    }

    /// All of it or nothing: written beside, synced, renamed, and the directory synced.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let beside = path.join("manifest.json.new");
        let mut file = File::create(&beside)?;
        file.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&beside, manifest_file(path))?;
        File::open(path)?.sync_all()
    }
}

fn manifest_file(path: &Path) -> PathBuf {
    path.join("manifest.json")
}

/// Takes a directory for this process alone, until the file is closed.
///
/// # Errors
/// [`Error::InUse`], or the operating system's.
pub fn lock(path: &Path) -> Result<File, Error> {
    let file = path.join("LOCK");
    let lock = File::options().create(true).truncate(false).write(true).open(&file);
    let lock = lock.map_err(|source| io_error(&file, source))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::InUse(path.display().to_string())),
        Err(TryLockError::Error(source)) => Err(io_error(&file, source)),
    }
}

fn random_id() -> std::io::Result<String> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

fn io_error(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.display().to_string(), source }
}
