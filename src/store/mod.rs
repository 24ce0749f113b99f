//! Where state is kept: load these keys, save these changes, in one transaction. Stores are dumb.
//!
//! A store that is exclusive (embedded SQLite: one process, one thread) lets its actors trust what
//! memory holds. A shared one (PostgreSQL, later) does not: there every batch loads what it rests on,
//! and [`Saved::Conflict`] sends the batch back to be decided again. `tests/it/store_conformance/`
//! states what every store must do.

pub mod bookings;
pub mod counters;
pub mod history;
pub mod import;
pub mod likers;
pub mod likes;
pub mod people;
pub mod reservations;
pub mod rooms;
pub mod sets;
pub mod sqlite;
pub mod summary;

pub use bookings::BookingsStore;
pub use counters::CountersStore;
pub use import::ImportStore;
pub use likers::LikersStore;
pub use likes::LikesStore;
pub use people::PeopleStore;
pub use reservations::ReservationsStore;
pub use rooms::RoomsStore;
pub use sets::SetsStore;
pub use summary::SummaryStore;

/// What goes wrong in a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No room on the disk.
    #[error("the disk is full: {0}")]
    DiskFull(String),
    /// A file written by a newer headcount.
    #[error("{file} has schema {found}, this headcount knows up to {known}: use a newer headcount")]
    Newer {
        /// The file.
        file: String,
        /// Its schema version.
        found: i64,
        /// The newest that this build knows.
        known: i64,
    },
    /// A file that is not what its place says: of another directory, another partition, another program.
    #[error("{file} does not belong here: {why}")]
    Foreign {
        /// The file.
        file: String,
        /// What differs.
        why: String,
    },
    /// Everything else, in the engine's words.
    #[error("{0}")]
    Engine(String),
}

impl Error {
    /// Whether room on the disk would help.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::DiskFull(_))
    }
}

/// Whether a save found the keys as they were loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Saved {
    /// Everything is in the transaction.
    Done,
    /// A key has changed since it was loaded: roll back, load again, decide again.
    Conflict,
}

/// Whether a loss of power leaves a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It is durable, as are all before it; or it changed nothing.
    Already,
    /// Once a sync that begins after it has ended well.
    AfterSync,
}

/// Makes durable what a store has committed.
pub trait Syncer: Send + std::fmt::Debug {
    /// Everything committed before the call is durable after it.
    ///
    /// # Errors
    /// The system's. None of it is then known to be stored, and a second sync that succeeds proves nothing:
    /// open the store afresh.
    fn sync(&mut self) -> Result<(), Error>;
}

/// One transaction at a time over everything that a partition keeps.
pub trait Transactions {
    /// True when nobody else writes, so that memory may be trusted from one batch to the next.
    const EXCLUSIVE: bool;

    /// Starts a writing transaction.
    ///
    /// # Errors
    /// The engine's.
    fn begin(&mut self) -> Result<(), Error>;

    /// Whether the open transaction has changed anything.
    fn has_changed(&self) -> bool;

    /// Commits the transaction, and makes `now_ms` the latest time known to be stored if it changed
    /// anything. Later transactions see it; whether a loss of power leaves it is the answer.
    ///
    /// # Errors
    /// The engine's. On any but [`Error::DiskFull`] the transaction may be stored.
    fn commit(&mut self, now_ms: i64) -> Result<Durability, Error>;

    /// Makes commits durable from another thread, until the store is opened afresh.
    ///
    /// # Errors
    /// The engine's.
    fn syncer(&self) -> Result<Box<dyn Syncer>, Error>;

    /// Undoes the transaction, if one is open.
    ///
    /// # Errors
    /// The engine's.
    fn rollback(&mut self) -> Result<(), Error>;

    /// Closes and opens afresh.
    ///
    /// # Errors
    /// The engine's.
    fn reopen(&mut self) -> Result<(), Error>;

    /// Brings the log of recent changes into the main file.
    ///
    /// # Errors
    /// The engine's.
    fn checkpoint(&mut self) -> Result<(), Error>;

    /// Bytes in the log of recent changes.
    fn log_bytes(&self) -> u64;
}

/// All that a partition needs of its store.
pub trait Store:
    Transactions
    + LikesStore
    + CountersStore
    + LikersStore
    + ReservationsStore
    + BookingsStore
    + SetsStore
    + RoomsStore
    + PeopleStore
    + Send
    + 'static
{
}

impl<S> Store for S where
    S: Transactions
        + LikesStore
        + CountersStore
        + LikersStore
        + ReservationsStore
        + BookingsStore
        + SetsStore
        + RoomsStore
        + PeopleStore
        + Send
        + 'static
{
}
