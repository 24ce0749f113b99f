//! After a start, a thread walks through the tables beside the partition and notes their keys for its [`filter`](super::filter).
//!
//! What changes meanwhile the partition notes itself, so the two together know every key. The walk takes at most half of a
//! core, a few milliseconds at a time, and holds no checkpoint up: between two steps it reads nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use rusqlite::Connection;

use super::PARTITION_SCHEMA;
use super::filter::{Filter, Hashed};
use super::open::{self, Pragmas};
use super::pending::{ATTEMPTS, MEMBERS};
use crate::store::Error;

/// Rows of a step.
const STEP: u32 = 2_000;

/// A walk on its way. Dropped, it ends.
#[derive(Debug)]
pub(super) struct Walk {
    thread: Option<JoinHandle<Result<Filter, Error>>>,
    stop: Arc<AtomicBool>,
}

impl Walk {
    /// Starts to walk through a file.
    pub(super) fn start(file: &Path, pragmas: &Pragmas) -> Result<Self, Error> {
        let connection = open::open_for_reading(file, &PARTITION_SCHEMA)?;
        let (kib, stop) = (pragmas.filter_kib, Arc::new(AtomicBool::new(false)));
        let thread = std::thread::Builder::new().name("walk".to_owned()).spawn({
            let stop = Arc::clone(&stop);
            move || walk(&connection, kib, &stop)
        });
        let thread = thread.map_err(|error| Error::Engine(format!("starting a thread: {error}")))?;
        Ok(Self { thread: Some(thread), stop })
    }

    /// Whether there is something to [`finish`](Self::finish).
    pub(super) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What it found, if it came to its end.
    pub(super) fn finish(mut self) -> Option<Filter> {
        match self.thread.take()?.join() {
            Ok(Ok(found)) => Some(found),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the keys of a partition were not read; each is looked up until the next start");
                None
            }
            Err(_) => {
                tracing::error!("the thread that reads keys ended in a panic");
                None
            }
        }
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _nobody_needs_it = thread.join();
        }
    }
}

/// The tables, by the numbers of their keys' hashes: number and text of what comes after a key, in order.
const TABLES: [(u8, &str); 2] = [
    (
        MEMBERS,
        "SELECT item_id, user FROM memberships WHERE (user, item_id) > (?2, ?1) ORDER BY user, item_id LIMIT ?3",
    ),
    (
        ATTEMPTS,
        "SELECT workshop_id, request_id FROM attempts WHERE (workshop_id, request_id) > (?1, ?2)
         ORDER BY workshop_id, request_id LIMIT ?3",
    ),
];

fn walk(connection: &Connection, kib: u32, stop: &AtomicBool) -> Result<Filter, Error> {
    let mut found = Filter::new(kib);
    for (table, sql) in TABLES {
        let mut select = connection.prepare(sql)?;
        let mut at = (i64::MIN, String::new());
        step_by_step(stop, || {
            let mut rows = select.query((at.0, &at.1, STEP))?;
            let mut count = 0;
            while let Some(row) = rows.next()? {
                let (number, text) = (row.get(0)?, row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?);
                found.note(Hashed::of(table, number, text));
                count += 1;
                if count == STEP {
                    at = (number, text.to_owned());
                }
            }
            Ok(count < STEP)
        })?;
    }
    Ok(found)
}

/// Goes on until `step` was the last one, resting after each for as long as it took.
fn step_by_step(stop: &AtomicBool, mut step: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
    loop {
        let began = Instant::now();
        if step()? {
            return Ok(());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Engine("told to stop".to_owned()));
        }
        std::thread::sleep(began.elapsed());
    }
}
