//! A backup that is being written: a directory by another name, which becomes the backup in one step or goes away.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::data_dir;
use crate::data_dir::generation::sync_directory;

const PREFIX: &str = ".partial-";

/// Whether this is the name of a backup that was not finished.
pub(super) fn is_partial(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
}
const LOCK: &str = "LOCK";

#[derive(Debug)]
pub(super) struct Partial {
    pub path: PathBuf,
    root: PathBuf,
    is_whole: bool,
    /// Tells others that somebody is at it.
    _lock: File,
}

impl Partial {
    /// An empty directory below `root`, from which the rests of backups that nobody writes any more are removed.
    pub(super) fn create(root: &Path, name: &str) -> io::Result<Self> {
        clear_rests(root)?;
        let path = root.join(format!("{PREFIX}{name}"));
        fs::create_dir(&path)?;
        let lock = data_dir::lock(&path).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self { path, root: root.to_owned(), is_whole: false, _lock: lock })
    }

    /// Gives it its name.
    pub(super) fn publish(mut self, name: &str) -> io::Result<PathBuf> {
        let whole = self.root.join(name);
        fs::remove_file(self.path.join(LOCK))?;
        sync_directory(&self.path)?;
        fs::rename(&self.path, &whole)?;
        self.is_whole = true;
        File::open(&self.root)?.sync_all()?;
        Ok(whole)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_whole
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "the rest of a backup is still there");
        }
    }
}

fn clear_rests(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let is_rest = entry.file_name().to_string_lossy().starts_with(PREFIX) && entry.file_type()?.is_dir();
        // Who writes one holds its lock; a killed one does not.
        if is_rest && let Ok(_lock) = data_dir::lock(&entry.path()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
