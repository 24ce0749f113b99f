//! Generations: whole sets of files in one data directory, of which the manifest names the one that holds.
//!
//! The next one is written beside it and becomes the one that holds with the manifest's rename. All others are rests of
//! a move that was interrupted, before that rename or after it, and are removed by whoever opens the directory.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{DataDir, Error, Manifest, io_error, manifest_file};

const PREFIX: &str = "generation-";

pub(super) fn files_dir(path: &Path, generation: u32) -> PathBuf {
    match generation {
        0 => path.to_owned(),
        later => path.join(format!("{PREFIX}{later}")),
    }
}

/// Whether there is any but the first.
pub(super) fn any(path: &Path) -> bool {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| number(&name.to_string_lossy()).is_some())
}

fn number(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

/// Whether this is a file of the first generation.
fn is_of_the_first(name: &str) -> bool {
    let of_a_partition = name.strip_prefix("partition-").is_some_and(|rest| rest.contains(".db"));
    of_a_partition || name.starts_with("summary.db")
}

impl DataDir {
    /// An empty next generation, and the manifest that would make it the one that holds.
    ///
    /// # Errors
    /// The operating system's.
    pub fn begin_generation(&self, shards: u32, partitions: u32) -> Result<Manifest, Error> {
        let generation = self.manifest.generation.saturating_add(1);
        let next = Manifest { shards, partitions, generation, complete: true, ..self.manifest.clone() };
        let files = next.files_dir(&self.path);
        let begin = || -> io::Result<()> {
            if files.exists() {
                fs::remove_dir_all(&files)?;
            }
            fs::create_dir(&files)
        };
        begin().map_err(|source| io_error(&files, source))?;
        Ok(next)
    }

    /// Makes a written generation the one that holds, in one step: its files, which are closed, go to the disk, and
    /// then the manifest is renamed.
    ///
    /// # Errors
    /// The operating system's. Then either one may hold; the files of both are there.
    pub fn publish_generation(&mut self, next: Manifest) -> Result<(), Error> {
        let files = next.files_dir(&self.path);
        sync_directory(&files).map_err(|source| io_error(&files, source))?;
        // The directory's name must be there before the manifest speaks of it.
        let entered = File::open(&self.path).and_then(|directory| directory.sync_all());
        entered.map_err(|source| io_error(&self.path, source))?;
        next.write(&self.path).map_err(|source| io_error(&manifest_file(&self.path), source))?;
        self.manifest = next;
        Ok(())
    }

    /// Removes every generation but the one that holds.
    ///
    /// # Errors
    /// The operating system's.
    pub fn clear_other_generations(&self) -> Result<(), Error> {
        let holds = self.manifest.generation;
        let clear = || -> io::Result<()> {
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if number(&name).is_some_and(|other| other != holds) {
                    fs::remove_dir_all(entry.path())?;
                } else if holds != 0 && is_of_the_first(&name) {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        clear().map_err(|source| io_error(&self.path, source))
    }
}

/// Brings every file of a directory, and the directory, to the disk.
///
/// # Errors
/// The operating system's.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    File::open(path)?.sync_all()
}
