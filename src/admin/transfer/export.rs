//! `headcount export`: a data directory's likes or base counts into a file, beside the service or without it.
//!
//! Each partition is read as it is at one moment. What is exported can be imported elsewhere: likes, and base counts under an
//! id of its own, give the same totals.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use rusqlite::Connection;

use super::rows::{write_base, write_header, write_like};
use super::{Format, Which};
use crate::admin::progress::Progress;
use crate::data_dir::{self, Manifest};
use crate::store;
use crate::store::sqlite::PARTITION_SCHEMA;
use crate::store::sqlite::open::snapshot;

/// Items of which base counts are read from a partition at a time.
const PAGE: u32 = 1_000;

/// Why an export stopped.
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
    DataDir(#[from] data_dir::Error),
    /// Its files.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Exports; how many rows.
///
/// # Errors
/// See [`Error`].
pub fn run(which: &Which, data_dir: &Path) -> Result<u64, Error> {
    let manifest = Manifest::read(data_dir)?;
    let manifest = manifest.ok_or_else(|| data_dir::Error::absent(data_dir))?;
    let partitions = (0..manifest.partitions)
        .map(|partition| snapshot(&manifest.partition_file(data_dir, partition), &PARTITION_SCHEMA))
        .collect::<Result<Vec<_>, _>>()?;
    let named = |source| Error::File { file: which.file.display().to_string(), source };
    let file = match which.is_standard() {
        true => None,
        false => Some(File::create(&which.file).map_err(named)?),
    };
    let to: Box<dyn Write> = match &file {
        Some(file) => Box::new(file.try_clone().map_err(named)?),
        None => Box::new(io::stdout().lock()),
    };
    let mut export = Export { to: BufWriter::with_capacity(1 << 18, to), format: which.format(), rows: 0 };
    write_header(&mut export.to, export.format, which.base).map_err(named)?;
    let mut progress = Progress::new("exporting", None);
    match which.base {
        true => export.bases(&partitions, &mut progress, named)?,
        false => partitions.iter().try_for_each(|file| export.likes(file, &mut progress, named))?,
    }
    export.to.flush().map_err(named)?;
    if let Some(file) = file {
        file.sync_all().map_err(named)?;
    }
    progress.end(export.rows, 0);
    Ok(export.rows)
}

struct Export {
    to: BufWriter<Box<dyn Write>>,
    format: Format,
    rows: u64,
}

impl Export {
    fn likes(
        &mut self,
        partition: &Connection,
        progress: &mut Progress,
        named: impl Fn(io::Error) -> Error,
    ) -> Result<(), Error> {
        // Rows of deleted items have no name to go by.
        let mut select = partition.prepare(
            "SELECT i.name, m.user, m.liked_at FROM memberships_now AS m JOIN items AS i ON i.item_id = m.item_id",
        )?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
            let when_ms = row.get::<_, i64>(2)?.saturating_mul(1_000);
            write_like(&mut self.to, self.format, (text(0)?, text(1)?, when_ms)).map_err(&named)?;
            self.rows += 1;
            progress.tell(self.rows, 0);
        }
        Ok(())
    }

    /// An item's base may stand on several partitions: they are read side by side, in the order of the names.
    fn bases(
        &mut self,
        partitions: &[Connection],
        progress: &mut Progress,
        named: impl Fn(io::Error) -> Error,
    ) -> Result<(), Error> {
        // No item begins with a control character; counters without members do, and are not likes.
        let mut after = "\u{1f}".to_owned();
        let shards = partitions.iter().map(shards_with_bases).collect::<Result<Vec<_>, _>>()?;
        loop {
            let mut counts: BTreeMap<String, i64> = BTreeMap::new();
            // Up to the first name at which a full page ends, every partition's names are known.
            let mut known_up_to: Option<String> = None;
            for (partition, shards) in partitions.iter().zip(&shards) {
                let page = bases_page(partition, shards, &after)?;
                if page.len() >= PAGE as usize
                    && let Some((last, _)) = page.last()
                    && known_up_to.as_ref().is_none_or(|known| last < known)
                {
                    known_up_to = Some(last.clone());
                }
                for (item, base) in page {
                    let count = counts.entry(item).or_default();
                    *count = count.saturating_add(base);
                }
            }
            let known = |item: &String| known_up_to.as_ref().is_none_or(|known| item <= known);
            for (item, count) in counts.iter().filter(|(item, count)| **count != 0 && known(item)) {
                write_base(&mut self.to, self.format, item, *count).map_err(&named)?;
                self.rows += 1;
                progress.tell(self.rows, 0);
            }
            match known_up_to {
                Some(known) => after = known,
                None => return Ok(()),
            }
        }
    }
}

/// Items after a name with their bases on this partition, most of them 0.
fn bases_page(
    partition: &Connection,
    shards: &[u32],
    after: &str,
) -> Result<Vec<(String, i64)>, rusqlite::Error> {
    let mut items =
        partition.prepare_cached("SELECT name, item_id FROM items WHERE name > ?1 ORDER BY name LIMIT ?2")?;
    let items = items.query_map((after, PAGE), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let items: Vec<(String, i64)> = items.collect::<Result<_, _>>()?;
    let mut base = partition.prepare_cached(
        "SELECT coalesce(sum(amount), 0) FROM base_ledger WHERE shard = ?1 AND item_id = ?2",
    )?;
    let mut of_item = |item: i64| -> Result<i64, rusqlite::Error> {
        let of_shard = |shard: &u32| base.query_row((shard, item), |row| row.get::<_, i64>(0));
        shards.iter().map(of_shard).try_fold(0_i64, |sum, base| Ok(sum.saturating_add(base?)))
    };
    items.into_iter().map(|(name, item)| Ok((name, of_item(item)?))).collect()
}

/// The shards that have bases on a partition.
fn shards_with_bases(partition: &Connection) -> Result<Vec<u32>, rusqlite::Error> {
    let mut select = partition.prepare("SELECT DISTINCT shard FROM base_ledger")?;
    let shards = select.query_map([], |row| row.get(0))?;
    shards.collect()
}
