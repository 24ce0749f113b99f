//! Checkpoints beside the partition: a thread with a connection of its own brings the write-ahead log into the file while
//! batches go on being committed.
//!
//! SQLite begins the log anew only after a checkpoint that has left nothing of it, and while batches come the thread is always
//! a little behind. So it makes rounds until little is left, syncs the file, and the writer itself does the rest, between two
//! batches: few pages in place of the whole log.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::open::{self, Pragmas};
use crate::config::Synchronous;
use crate::store::Error;

/// What the writer may be left to do, in pages.
const LITTLE: u32 = 64;
/// Rounds at most: a log that grows as fast as it is emptied is the writer's to finish.
const ROUNDS: u32 = 4;
/// Logs this many times the size that starts a checkpoint make the writer wait for its end: the disk is slower than what comes.
const TOO_LONG: u32 = 4;

/// The writer's end.
#[derive(Debug)]
pub(super) struct Checkpointer {
    /// Pages in the log after the writer's last commit.
    pages: Arc<AtomicU32>,
    /// Pages that start a checkpoint.
    threshold: u32,
    /// Pages at which the next one starts: more than the threshold after one that could not empty the log, because somebody
    /// reads an old state or the disk is full.
    next_at: u32,
    stage: Arc<Stage>,
    /// `None` once it is to end.
    start: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Step {
    #[default]
    Idle,
    /// The thread is at work.
    Running,
    /// The rest is the writer's.
    Rest,
    /// The file was not synced, or not read or written.
    Failed,
}

#[derive(Debug, Default)]
struct Stage {
    step: Mutex<Step>,
    changed: Condvar,
}

impl Checkpointer {
    /// Starts the thread, and takes over from SQLite when the log of `writer` is brought into its file. `to_sync` is that file
    /// once more, and outlives all connections to it: closing it ends the locks that they hold.
    pub(super) fn spawn(
        file: &Path,
        to_sync: Arc<File>,
        writer: &mut Connection,
        pragmas: &Pragmas,
    ) -> Result<Self, Error> {
        let connection = Connection::open(file)?;
        connection.busy_timeout(Duration::from_millis(pragmas.busy_timeout_ms))?;
        open::leave_commits_unsynced(&connection, pragmas)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;

        let pages = Arc::new(AtomicU32::new(0));
        let in_log = Arc::clone(&pages);
        writer.wal_hook(Some(move |_: &mut _, pages| {
            in_log.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;

        let stage = Arc::new(Stage::default());
        let (start, starts) = sync_channel(1);
        let to_sync = (pragmas.synchronous != Synchronous::Off).then_some(to_sync);
        let thread = std::thread::Builder::new().name("checkpoint".to_owned()).spawn({
            let stage = Arc::clone(&stage);
            move || run(&connection, to_sync.as_deref(), &starts, &stage)
        });
        let thread = thread.map_err(|error| Error::Engine(format!("starting a thread: {error}")))?;
        let threshold = pragmas.wal_autocheckpoint_pages;
        Ok(Self { pages, threshold, next_at: threshold, stage, start: Some(start), thread: Some(thread) })
    }

    /// After each commit of the writer: starts a checkpoint, or does the rest of one.
    ///
    /// # Errors
    /// The disk's: what was moved may be in neither file. Open the store afresh, which moves the whole log again.
    pub(super) fn step(&mut self, writer: &Connection) -> Result<(), Error> {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.threshold {
            self.next_at = self.threshold;
        }
        if pages < self.next_at {
            return Ok(());
        }
        match self.stage.get() {
            Step::Idle => self.begin(),
            Step::Running if pages < self.next_at.saturating_mul(TOO_LONG) => {}
            Step::Running | Step::Rest | Step::Failed => self.finish(writer, pages)?,
        }
        Ok(())
    }

    /// Waits until the writer is alone with its file.
    pub(super) fn wait_until_alone(&self) {
        self.stage.wait_while_running();
        self.stage.set(Step::Idle);
    }

    fn begin(&self) {
        self.stage.set(Step::Running);
        if self.start.as_ref().is_none_or(|start| start.try_send(()).is_err()) {
            self.stage.set(Step::Rest);
        }
    }

    fn finish(&mut self, writer: &Connection, pages: u32) -> Result<(), Error> {
        if self.stage.wait_while_running() == Step::Failed {
            return Err(Error::Engine("a checkpoint failed".to_owned()));
        }
        self.stage.set(Step::Idle);
        self.next_at = match round(writer)? {
            0 => self.threshold,
            _ => pages.saturating_add(self.threshold / 4),
        };
        Ok(())
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.start = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("a checkpoint's thread ended in a panic");
        }
    }
}

impl Stage {
    fn get(&self) -> Step {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, step: Step) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = step;
        self.changed.notify_all();
    }

    fn wait_while_running(&self) -> Step {
        let step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        let is_running = |step: &mut Step| *step == Step::Running;
        *self.changed.wait_while(step, is_running).unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(connection: &Connection, to_sync: Option<&File>, starts: &Receiver<()>, stage: &Stage) {
    while starts.recv().is_ok() {
        let step = match rounds(connection, to_sync) {
            Ok(()) => Step::Rest,
            Err(error) => {
                tracing::error!(%error, "a checkpoint failed");
                Step::Failed
            }
        };
        stage.set(step);
    }
}

fn rounds(connection: &Connection, to_sync: Option<&File>) -> Result<(), Error> {
    let mut left = u32::MAX;
    for _ in 0..ROUNDS {
        let before = std::mem::replace(&mut left, round(connection)?);
        // Where there is no room, or somebody reads an old state, another round would move no more.
        if left <= LITTLE || left >= before {
            break;
        }
    }
    // SQLite leaves this to whoever moves the last page, and the writer should not have to wait for it.
    to_sync
        .map_or(Ok(()), File::sync_data)
        .map_err(|error| Error::Engine(format!("syncing the file: {error}")))
}

/// Brings into the file what the log holds and nobody needs there any more; how many pages are left. Without room for them
/// they stay where they are, and nothing is lost.
fn round(connection: &Connection) -> Result<u32, Error> {
    let moved = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        let (in_log, moved): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(u32::try_from(in_log - moved).unwrap_or(0))
    });
    match moved.map_err(Error::from) {
        Err(error) if error.is_disk_full() => {
            tracing::warn!(%error, "a checkpoint had no room; what it would have moved stays in the log");
            Ok(u32::MAX)
        }
        moved => moved,
    }
}
