use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::rule::{Keys, Rule, whole};

/// `[storage]`: where the data is, and in how many files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// Directory of the data, created when missing; a relative path starts at the working directory. 1 to 4,096
    /// characters.
    pub data_dir: PathBuf,
    /// Partitions: a thread and an SQLite file each. 1 to 256. Absent: what the data directory's manifest says, 2 for
    /// a new one. A number other than the manifest's refuses the start, unless `move_on_start`.
    pub partitions: Option<u32>,
    /// Whether a start with other numbers of shards or partitions than the manifest's moves the data first.
    pub move_on_start: bool,
    /// Milliseconds after which the bytes stored are measured again when somebody asks for them. 10 to 86,400,000 (a day).
    pub usage_age_ms: u64,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("data"),
            partitions: None,
            move_on_start: false,
            usage_age_ms: 300_000,
        }
    }
}

impl Storage {
    pub(crate) const KEYS: Keys = &[
        ("data_dir", Rule::Text { min: 1, max: 4_096 }),
        ("partitions", whole(1, 256)),
        ("move_on_start", Rule::Switch),
        ("usage_age_ms", whole(10, 86_400_000)),
    ];
}

/// `[sqlite]`: how each partition's SQLite file is driven. Sizes are a partition's, not the process's.
/// Signed where SQLite's pragma may exceed 32 bits: its integers are signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sqlite {
    /// When a commit counts as stored.
    pub synchronous: Synchronous,
    /// Bytes a page, in files that are yet to be made; existing files keep theirs. A power of two from 512 to 65,536.
    pub page_size_bytes: u32,
    /// KiB of page cache. 64 to 16,777,216 (16 GiB).
    pub cache_kib: u32,
    /// Pages in the write-ahead log that start a checkpoint. 1 to 1,000,000; 0 would never start one.
    pub wal_autocheckpoint_pages: u32,
    /// Bytes that the write-ahead log's file keeps after a checkpoint. 0 to 1,099,511,627,776 (1 TiB).
    pub journal_size_limit_bytes: i64,
    /// Bytes of the file that are read through a memory map; 0 maps nothing. 0 to 2,147,418,112 (SQLite's own limit).
    pub mmap_size_bytes: i64,
    /// Changes that wait in the journal before they move into their tables. More make fewer page writes and take memory,
    /// about 100 bytes each, twice over. 1 to 10,000,000.
    pub pending_rows: usize,
    /// KiB of memory by which it is known at once that a like or a request is new, without a look at its table. Ten bits a
    /// stored row make that sure for 98 in 100. 0 to 4,194,304; 0: none, each is looked up.
    pub filter_kib: u32,
    /// Milliseconds to wait for a lock that another process (a backup, an audit) holds. 1 to 600,000.
    pub busy_timeout_ms: u64,
    /// Prepared statements kept. 1 to 4,096.
    pub statement_cache: u32,
}

impl Default for Sqlite {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::Full,
            page_size_bytes: 4_096,
            cache_kib: 32_768,
            wal_autocheckpoint_pages: 16_000,
            journal_size_limit_bytes: 67_108_864,
            mmap_size_bytes: 0,
            pending_rows: 100_000,
            filter_kib: 8_192,
            busy_timeout_ms: 5_000,
            statement_cache: 128,
        }
    }
}

impl Sqlite {
    pub(crate) const KEYS: Keys = &[
        ("synchronous", Rule::Word(&["OFF", "NORMAL", "FULL", "EXTRA"])),
        ("page_size_bytes", Rule::PowerOfTwo { min: 512, max: 65_536 }),
        ("cache_kib", whole(64, 16_777_216)),
        ("wal_autocheckpoint_pages", whole(1, 1_000_000)),
        ("journal_size_limit_bytes", whole(0, 1_099_511_627_776)),
        ("mmap_size_bytes", whole(0, 2_147_418_112)),
        ("pending_rows", whole(1, 10_000_000)),
        ("filter_kib", whole(0, 4_194_304)),
        ("busy_timeout_ms", whole(1, 600_000)),
        ("statement_cache", whole(1, 4_096)),
    ];
}

/// SQLite's `PRAGMA synchronous`. In WAL mode only `Full` and `Extra` keep what was answered through a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Synchronous {
    /// Never syncs: a loss of power may damage the file.
    Off,
    /// Syncs at checkpoints only: a loss of power may lose the last commits.
    Normal,
    /// Syncs at every commit.
    Full,
    /// As `Full`, and syncs directories where SQLite's rollback journal needs it.
    Extra,
}

impl Synchronous {
    /// The word that the pragma takes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "OFF",
            Self::Normal => "NORMAL",
            Self::Full => "FULL",
            Self::Extra => "EXTRA",
        }
    }
}
