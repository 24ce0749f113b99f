//! Moving data to another number of shards or partitions, at a start or ahead of it.
//!
//! First the data is brought to rest by the very code that serves it, with the numbers by which it is placed: what is
//! declared deleted goes, deletions are finished, the roll-up carries everything, journals settle. Then
//! [`admin::reshard`](crate::admin::reshard) moves files that nobody has open.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Error, Partitions, removal};
use crate::admin::reshard::{Layout, Moved, Progress, move_data, require_space};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::likes::rollup::{self, Summary};
use crate::store::SummaryStore;
use crate::store::sqlite::summary::SqliteSummary;

/// Has a data directory placed as the settings say: refuses other numbers, or moves the data with
/// `storage.move_on_start`.
pub(super) async fn place(config: &Config, data: &mut DataDir) -> Result<(), Error> {
    let (shards, partitions) = (config.likes.shards, config.storage.partitions);
    let Err(misplaced) = data.refuse_misplaced(shards, partitions) else { return Ok(()) };
    if !config.storage.move_on_start {
        return Err(misplaced.into());
    }
    let manifest = data.manifest();
    let to = Layout {
        shards: shards.unwrap_or(manifest.shards),
        partitions: partitions.unwrap_or(manifest.partitions),
    };
    tracing::warn!(
        from_shards = manifest.shards,
        from_partitions = manifest.partitions,
        shards = to.shards,
        partitions = to.partitions,
        "moving the data (storage.move_on_start); nobody is served meanwhile"
    );
    let mut last_tenth = (String::new(), 0);
    let mut tell = |progress: &Progress| {
        let tenth = (progress.doing.to_owned(), progress.percent() / 10);
        if tenth != last_tenth {
            tracing::info!(
                percent = progress.percent(),
                rows = progress.rows,
                of = progress.of,
                "{}",
                progress.doing
            );
            last_tenth = tenth;
        }
    };
    let moved = reshard(config, data, to, &mut tell).await?;
    tracing::info!(rows = moved.rows, seconds = moved.took.as_secs_f64(), "the data is moved");
    Ok(())
}

/// Moves the data of a directory that this process has locked.
///
/// # Errors
/// See [`Error`]; nothing is changed then, unless the move was done and removing the old files failed.
pub async fn reshard(
    config: &Config,
    data: &mut DataDir,
    to: Layout,
    tell: &mut (dyn FnMut(&Progress) + Send),
) -> Result<Moved, Error> {
    // Coming to rest writes, too.
    require_space(config, data.path(), to)?;
    come_to_rest(config, data).await?;
    // Whoever waits here has nothing else to do: nobody is served.
    Ok(tokio::task::block_in_place(|| move_data(config, data, to, tell))?)
}

async fn come_to_rest(config: &Config, data: &mut DataDir) -> Result<(), Error> {
    let data_id = data.manifest().data_id.clone();
    let mut store = SqliteSummary::open(&data.summary_file(), &data_id, &config.sqlite)?;
    removal::from_summary(config, &mut store)?;
    let partitions = Partitions::start(config, data, None)?;
    let progress = store.progress(data.manifest().shards)?;
    let patience = Duration::from_millis(config.server.request_timeout_ms);
    let summary = Summary::new(store.reader()?, 1, &progress, patience);
    let stop = CancellationToken::new();
    let start = rollup::Start {
        shards: partitions.shards.clone(),
        store,
        summary,
        progress,
        clock: partitions.clock.clone(),
        page_items: config.rollup.page_items,
        gathered_items: config.rollup.gathered_items,
        kept: super::kept(config),
        // Counters are counted anew by the move itself.
        check_rows: 0,
        max_share_percent: 100,
        patience,
    };
    // Told to stop, it runs once and ends. A run that fails leaves totals that the move refuses.
    stop.cancel();
    let (_rollup, task) = rollup::start(start, stop);
    if task.await.is_err() {
        tracing::error!("the roll-up's task ended in a panic");
    }
    partitions.stop().await;
    Ok(())
}
