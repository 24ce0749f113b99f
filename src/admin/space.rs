//! Whether there is room on a disk for what is about to be written: asked before it is begun.

use std::path::{Path, PathBuf};

/// There is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{needed} bytes are needed in {} and {free} are free: make room", path.display())]
pub struct Short {
    /// Bytes that are needed.
    pub needed: u64,
    /// Bytes that are free for this process.
    pub free: u64,
    /// Where.
    pub path: PathBuf,
}

/// Asks the file system.
#[derive(Debug, Clone, Default)]
pub struct Space {
    /// `faults.free_bytes`: what it answers in a test; 0: the truth.
    pretended: u64,
}

impl Space {
    /// As the settings say.
    #[must_use]
    pub fn of(config: &crate::config::Config) -> Self {
        #[cfg(debug_assertions)]
        let pretended = config.faults.free_bytes;
        #[cfg(not(debug_assertions))]
        let pretended = {
            let _has_none = config;
            0
        };
        Self { pretended }
    }

    /// Bytes that are free for this process in the file system of an existing directory.
    ///
    /// # Errors
    /// The operating system's.
    pub fn free(&self, path: &Path) -> std::io::Result<u64> {
        if self.pretended > 0 {
            return Ok(self.pretended);
        }
        let found = rustix::fs::statvfs(path)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Refuses what does not fit.
    ///
    /// # Errors
    /// [`Short`], or the operating system's.
    pub fn require(&self, path: &Path, needed: u64) -> std::io::Result<Result<(), Short>> {
        let free = self.free(path)?;
        Ok(if needed <= free { Ok(()) } else { Err(Short { needed, free, path: path.to_owned() }) })
    }
}
