//! The files of a data directory, opened: by the service, and by a command that changes a directory without it.

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::partition::Clock;
use crate::partition::clock::SteppedBack;
use crate::store;
use crate::store::sqlite::{Identity, SqliteStore};

/// Opens the store of every partition, in their order, creating what is missing.
///
/// # Errors
/// The store's.
pub fn stores(data: &DataDir, config: &Config) -> Result<Vec<SqliteStore>, store::Error> {
    let open = |partition| {
        let identity = Identity { data_id: data.manifest().data_id.clone(), partition };
        SqliteStore::open(&data.partition_file(partition), identity, config.sqlite.clone())
    };
    (0..data.manifest().partitions).map(open).collect()
}

/// A clock that goes on from the latest time in the stores, as far as `clock.*` allows.
///
/// # Errors
/// The store's, and [`SteppedBack`].
pub fn clock<E: From<store::Error> + From<SteppedBack>>(
    stores: &[SqliteStore],
    config: &Config,
) -> Result<Clock, E> {
    let marks = stores.iter().map(SqliteStore::clock_mark_ms).collect::<Result<Vec<_>, _>>()?;
    let mark_ms = marks.into_iter().max().unwrap_or(0);
    let max_step_ms = match config.clock.allow_step_back {
        true => i64::MAX,
        false => i64::try_from(config.clock.max_step_ms).unwrap_or(i64::MAX),
    };
    Ok(Clock::system(mark_ms, max_step_ms)?)
}
