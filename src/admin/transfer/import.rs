//! `headcount import`: likes or base counts from a file into a data directory that nobody serves from.
//!
//! Offline, and through the store, by the rule that decides every like: over HTTP each row would cost a request, and the way
//! through a running service is for people, not for millions of rows at once. Rows gather in memory up to a bound and go in
//! together, in the order of the tables, so that rows which share a page are written with it once; a like is a state and a base count has its import's id, so whatever
//! interrupts it, the whole file can be imported again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::Which;
use super::rows::{Bounds, Row, Rows};
use crate::admin::offline::{self, Offline};
use crate::admin::progress::Progress;
use crate::config::Config;
use crate::likes::import::{Importer, NewBase, NewLike, base_shard};
use crate::likes::types::{partition_of_shard, shard_of};
use crate::store::{self, ImportStore, Transactions};

/// Rows that gather in memory, of all partitions together, before they go in.
const GATHERED: usize = 500_000;
/// Bad lines that are told one by one.
const MAX_TOLD: u64 = 100;

/// `headcount import`'s arguments.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Where from, and where to.
    #[command(flatten)]
    pub which: Which,
    /// The id of these base counts: what was imported under an id is not imported again
    #[arg(long, value_name = "ID", required_if_eq("base", "true"))]
    pub import_id: Option<String>,
    /// Stop at the first bad line
    #[arg(long)]
    pub strict: bool,
}

/// Why an import stopped. What was imported before stays, and can be imported again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file.
    #[error("{file}: {source}")]
    File {
        /// Which.
        file: String,
        /// What.
        source: io::Error,
    },
    /// The directory.
    #[error(transparent)]
    Offline(#[from] offline::Error),
    /// Its files.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// `--strict`.
    #[error("line {0}: {1}; what came before it is imported")]
    BadLine(u64, String),
    /// `--import-id`.
    #[error("an import's id is 1 to 64 letters, digits, `.`, `_` or `-`")]
    ImportId,
}

/// What an import came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Imported {
    /// Rows that could be read.
    pub rows: u64,
    /// Those that were not there before.
    pub new: u64,
    /// Lines that were no rows.
    pub bad: u64,
}

/// Imports.
///
/// # Errors
/// See [`Error`].
pub fn run(options: &Options, data_dir: &Path, config: &Config) -> Result<Imported, Error> {
    let named = |source| Error::File { file: options.which.file.display().to_string(), source };
    let source = options.import_id.as_deref().map(source).transpose()?;
    let (from, total_bytes): (Box<dyn BufRead>, _) = match options.which.is_standard() {
        true => (Box::new(BufReader::new(io::stdin())), None),
        false => {
            let file = File::open(&options.which.file).map_err(named)?;
            let bytes = file.metadata().map_err(named)?.len();
            (Box::new(BufReader::with_capacity(1 << 20, file)), Some(bytes))
        }
    };
    let bounds = Bounds { item: config.likes.max_item_bytes, user: config.likes.max_user_bytes };
    let mut rows = Rows::new(from, options.which.format(), options.which.base, bounds);
    let mut import = Import::begin(Offline::open(data_dir, config).map_err(Error::Offline)?, source);
    let mut progress = Progress::new("importing", total_bytes);
    let mut imported = Imported::default();
    let stopped = loop {
        let Some((line, row)) = rows.next_row().map_err(named)? else { break None };
        let why = match row {
            Ok(row) => import.take(row)?,
            Err(why) => Some(why),
        };
        match why {
            None => imported.rows += 1,
            Some(why) => {
                imported.bad += 1;
                if options.strict {
                    break Some(Error::BadLine(line, why));
                }
                tell(imported.bad, line, &why);
            }
        }
        progress.tell(imported.rows, rows.bytes());
    };
    imported.new = import.end()?;
    let rate = progress.rate(imported.rows);
    progress.end(imported.rows, rows.bytes());
    tracing::debug!(rate, "imported");
    match stopped {
        Some(error) => Err(error),
        None => Ok(imported),
    }
}

fn tell(number: u64, line: u64, why: &str) {
    match number {
        ..=MAX_TOLD => eprintln!("line {line}: {why}"),
        number if number == MAX_TOLD + 1 => eprintln!("more bad lines are only counted"),
        _ => {}
    }
}

/// What stands in the ledger for an import's id.
fn source(import_id: &str) -> Result<String, Error> {
    let is_id = (1..=64).contains(&import_id.len())
        && import_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if is_id { Ok(format!("import:{import_id}")) } else { Err(Error::ImportId) }
}

/// Rows on their way into a directory.
struct Import {
    to: Offline,
    importers: Vec<Importer>,
    likes: Vec<Vec<NewLike>>,
    /// Rows in `likes` and `bases`.
    gathered: usize,
    /// By item.
    bases: Vec<HashMap<Box<str>, i64>>,
    /// Of base counts.
    source: String,
    new: u64,
    now_s: i64,
}

impl Import {
    fn begin(to: Offline, source: Option<String>) -> Self {
        let manifest = to.data.manifest();
        let (shards, partitions) = (manifest.shards, manifest.partitions as usize);
        Self {
            importers: (0..partitions).map(|_| Importer::new(shards)).collect(),
            likes: (0..partitions).map(|_| Vec::new()).collect(),
            gathered: 0,
            bases: (0..partitions).map(|_| HashMap::new()).collect(),
            source: source.unwrap_or_default(),
            new: 0,
            now_s: to.clock.now_ms() / 1000,
            to,
        }
    }

    /// Takes a row; why not, if it cannot be.
    fn take(&mut self, row: Row) -> Result<Option<String>, store::Error> {
        let manifest = self.to.data.manifest();
        let (shards, partitions) = (manifest.shards, manifest.partitions);
        match row {
            Row::Like { item, user, when_ms } => {
                let partition = partition_of_shard(shard_of(&user, shards), partitions) as usize;
                let liked_at_s = when_ms.map_or(self.now_s, |when_ms| when_ms / 1000);
                let Some(batch) = self.likes.get_mut(partition) else { return Ok(None) };
                batch.push(NewLike { item, user, liked_at_s });
                self.has_gathered_one()?;
                Ok(None)
            }
            Row::Base { item, count } => {
                let partition = partition_of_shard(base_shard(&item, shards), partitions) as usize;
                match self.known_base(&item, partition)? {
                    Some(known) if known == count => return Ok(None),
                    Some(known) => {
                        return Ok(Some(format!("{item} has a base of {known} from this import already")));
                    }
                    None => {}
                }
                let Some(batch) = self.bases.get_mut(partition) else { return Ok(None) };
                batch.insert(item, count);
                self.has_gathered_one()?;
                Ok(None)
            }
        }
    }

    /// What this import has brought to an item's base, stored or on its way. The ledger is looked at everywhere: a base does
    /// not move with its item's hash where the number of shards has changed.
    fn known_base(&mut self, item: &str, partition: usize) -> Result<Option<i64>, store::Error> {
        if let Some(waiting) = self.bases.get(partition).and_then(|waiting| waiting.get(item)) {
            return Ok(Some(*waiting));
        }
        for partition in 0..self.to.data.manifest().partitions {
            let shards = self.to.shards_of(partition);
            let Some(store) = self.to.stores.get_mut(partition as usize) else { continue };
            if let Some(known) = store.base_from(item, &self.source, &shards)? {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    fn has_gathered_one(&mut self) -> Result<(), store::Error> {
        self.gathered += 1;
        if self.gathered >= GATHERED { self.flush_all() } else { Ok(()) }
    }

    fn flush_all(&mut self) -> Result<(), store::Error> {
        self.gathered = 0;
        (0..self.importers.len()).try_for_each(|partition| self.flush(partition))
    }

    fn flush(&mut self, partition: usize) -> Result<(), store::Error> {
        let now_ms = self.to.clock.now_ms();
        let (Some(store), Some(importer), Some(likes), Some(bases)) = (
            self.to.stores.get_mut(partition),
            self.importers.get_mut(partition),
            self.likes.get_mut(partition),
            self.bases.get_mut(partition),
        ) else {
            return Ok(());
        };
        // Of two likes of the same item by the same user the first one counts.
        likes.sort_by(|a, b| (&a.user, &a.item).cmp(&(&b.user, &b.item)));
        store.begin()?;
        self.new += importer.likes(store, likes)?;
        let bases: Vec<NewBase> = bases.drain().map(|(item, amount)| NewBase { item, amount }).collect();
        importer.bases(store, &bases, &self.source)?;
        self.new += bases.len() as u64;
        let _synced_in_the_end = store.commit(now_ms)?;
        likes.clear();
        Ok(())
    }

    /// Brings in what still waits, and makes everything durable; how many rows were new.
    fn end(mut self) -> Result<u64, store::Error> {
        self.flush_all()?;
        self.to.close()?;
        Ok(self.new)
    }
}
