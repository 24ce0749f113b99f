//! `backup.json`: what a backup holds, and how to tell that it still does. Written last: a directory without it is no
//! backup.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::data_dir::BACKUP;

/// The newest format that this build knows.
pub(super) const FORMAT: u32 = 1;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// The format of this file.
    pub format: u32,
    /// The headcount that wrote it.
    pub headcount: String,
    /// The moment that the backup shows, ms since 1970.
    pub taken_at_ms: i64,
    /// The data directory's id.
    pub data_id: String,
    /// Every file but this one.
    pub files: Vec<Entry>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in the directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its digest, in hex.
    pub sha256: String,
}

impl Contents {
    pub(super) fn read(backup: &Path) -> std::io::Result<Option<Self>> {
        match std::fs::read(backup.join(BACKUP)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn write(&self, backup: &Path) -> std::io::Result<()> {
        let mut file = File::create_new(backup.join(BACKUP))?;
        file.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl Entry {
    /// Of a file that is there.
    pub(super) fn of(directory: &Path, name: &str) -> std::io::Result<Self> {
        read_through(File::open(directory.join(name))?, name, |_| Ok(()))
    }

    /// Copies a file; what was copied.
    pub(super) fn copy(from: &Path, to: &Path, name: &str) -> std::io::Result<Self> {
        let mut copy = File::create(to.join(name))?;
        let entry = read_through(File::open(from.join(name))?, name, |bytes| copy.write_all(bytes))?;
        copy.sync_all()?;
        Ok(entry)
    }
}

fn read_through(
    mut file: File,
    name: &str,
    mut each: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> std::io::Result<Entry> {
    let (mut digest, mut bytes) = (Sha256::new(), 0);
    let mut chunk = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut chunk)?;
        let part = chunk.get(..read).unwrap_or_default();
        if part.is_empty() {
            break;
        }
        digest.update(part);
        each(part)?;
        bytes += part.len() as u64;
    }
    let sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Entry { name: name.to_owned(), bytes, sha256 })
}
