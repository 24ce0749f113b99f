//! Power loss for tests: what `kill -9` leaves out.
//!
//! A killed process loses nothing it has written, because the page cache belongs to the kernel. A test that kills the
//! service and finds every acknowledged answer again has therefore not shown that the answers were synced: it passes
//! with `PRAGMA synchronous = OFF` too. `unsynced.c`, preloaded into the service, keeps an undo record of every write
//! to a database file until the file is synced. [`lose_unsynced_writes`] plays those records back, so that each file is
//! as it was when its last sync returned.
//!
//! ```ignore
//! let shim = unsynced::build_shim();
//! let child = Command::new(env!("CARGO_BIN_EXE_headcount"))
//!     .env("LD_PRELOAD", &shim)
//!     .env("UNSYNCED_DIR", &data_dir)
//!     .env("UNSYNCED_UNDO_DIR", &undo_dir) // exists, one per data directory, outside it
//!     .spawn();
//! // ... requests; child.kill(); child.wait(); ...
//! let lost = unsynced::lose_unsynced_writes(&undo_dir);
//! // ... start again, under the shim or not; every acknowledged answer must be there ...
//! ```
//!
//! That a loop of this kind is green means something only if it was seen red: with `synchronous = OFF`, or with the
//! answer sent before `COMMIT`. One round may lose nothing (the kill came just after a sync), so assert on the sum of
//! [`Lost::records`] over many rounds, not on each.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::shim;

const MAGIC: u64 = 0x756e_7379_6e63_6564;
/// magic, offset, written, `old_len`, `old_size`
const HEAD: usize = 5 * 8;
/// `record_len`, magic
const TAIL: usize = 2 * 8;

/// What a simulated power cut took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Files that had unsynced changes.
    pub files: usize,
    /// Changes (writes, truncations) taken back.
    pub records: usize,
    /// Bytes those writes had written.
    pub bytes: u64,
}

/// Compiles the shim and returns its path, for `LD_PRELOAD`.
pub fn build_shim() -> PathBuf {
    shim::build("unsynced", include_str!("unsynced.c"))
}

/// Takes back every write that was not synced, after the service was killed **and waited for**.
///
/// Each undo file is applied from its last record to its first, which leaves its file as at its last sync, and is then
/// emptied. A torn record at the end is one whose write had not happened: it is ignored. A file that was created and
/// never synced is left empty; one that was deleted stays deleted.
///
/// The `*-shm` files of the data directory are removed. They are an index of the WAL in shared memory, never synced and
/// rebuilt from the WAL by the first connection, and would now describe frames that are no longer there.
///
/// # Panics
///
/// If the service still runs, or if the shim never met a database file (it was not preloaded, or watched another
/// directory): nothing would be lost then, and the test would pass for no reason. Kill the service only once it has
/// opened its files.
pub fn lose_unsynced_writes(undo_dir: &Path) -> Lost {
    let data_dir = fs::read_link(undo_dir.join("data")).unwrap_or_else(|e| {
        panic!("the shim saw no database file, {} has no link `data`: {e}", undo_dir.display())
    });
    let mut lost = Lost::default();
    for entry in entries(undo_dir) {
        let Some(name) = entry.file_name().and_then(|name| name.as_bytes().strip_suffix(b".undo")) else {
            continue;
        };
        let path = data_dir.join(decode(name));
        let mut undo = OpenOptions::new().read(true).write(true).open(&entry).expect("open an undo file");
        // The shim holds this lock for as long as its process lives.
        undo.try_lock().unwrap_or_else(|e| panic!("the service still runs, {}: {e}", entry.display()));
        let mut bytes = Vec::new();
        undo.read_to_end(&mut bytes).expect("read an undo file");
        let records = records(&bytes);
        // No file: the kill came after it was deleted and before its undo file was emptied.
        if !records.is_empty() && path.exists() {
            let file = OpenOptions::new().write(true).open(&path).expect("open a data file");
            for record in records.iter().rev() {
                take_back(&file, record).unwrap_or_else(|e| panic!("undo in {}: {e}", path.display()));
            }
            lost.files += 1;
            lost.records += records.len();
            lost.bytes += records.iter().map(|record| record.written).sum::<u64>();
        }
        undo.set_len(0).expect("empty an undo file");
    }
    remove_shm_files(&data_dir);
    lost
}

struct Record<'a> {
    offset: u64,
    written: u64,
    old: &'a [u8],
    old_size: u64,
}

/// The whole records of an undo file, oldest first, up to its end or to a torn one.
fn records(mut bytes: &[u8]) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    while let Some((record, rest)) = first_record(bytes) {
        records.push(record);
        bytes = rest;
    }
    records
}

fn first_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (old, rest) = rest.split_at_checked(usize::try_from(word(head, 3)).ok()?)?;
    let (tail, rest) = rest.split_at_checked(TAIL)?;
    let whole = word(head, 0) == MAGIC && word(tail, 1) == MAGIC;
    let length = u64::try_from(HEAD + old.len() + TAIL).ok()?;
    (whole && word(tail, 0) == length).then_some((
        Record { offset: word(head, 1), written: word(head, 2), old, old_size: word(head, 4) },
        rest,
    ))
}

/// The `index`-th u64 of a head or tail, as the shim's machine, which is this one, wrote it.
fn word(bytes: &[u8], index: usize) -> u64 {
    u64::from_ne_bytes(bytes[index * 8..][..8].try_into().expect("eight bytes"))
}

/// The bytes before the size: they may lie beyond a file that was truncated and grow it, but never beyond `old_size`.
fn take_back(file: &File, record: &Record<'_>) -> std::io::Result<()> {
    file.write_all_at(record.old, record.offset)?;
    file.set_len(record.old_size)
}

/// `a%2Fb.db` is `a/b.db`: the shim writes `/` and `%` of a path that way.
fn decode(name: &[u8]) -> OsString {
    let mut parts = name.split(|&b| b == b'%');
    let mut path = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2).expect("two digits after %");
        path.push(if code == b"2F" { b'/' } else { b'%' });
        path.extend_from_slice(rest);
    }
    OsString::from_vec(path)
}

fn remove_shm_files(dir: &Path) {
    for entry in entries(dir) {
        // Not following links, as they may lead out of the data directory.
        if entry.symlink_metadata().expect("stat a data file").is_dir() {
            remove_shm_files(&entry);
        } else if entry.file_name().is_some_and(|name: &OsStr| name.as_bytes().ends_with(b"-shm")) {
            fs::remove_file(&entry).expect("remove a -shm file");
        }
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(dir).unwrap_or_else(|e| panic!("list {}: {e}", dir.display()));
    read.map(|entry| entry.expect("list a directory").path()).collect()
}
