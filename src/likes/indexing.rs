//! Builds the index by item beside the likes, a few rows a command, wherever it was switched on.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Shards;

/// Rows that one command looks at: some milliseconds of its partition.
const ROWS: u32 = 2_000;
/// Pause before a partition that was busy or down is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// Goes on until every partition's index is whole, or until `stop`; the next start takes it up where it was.
pub fn start(shards: &Shards, stop: &CancellationToken) {
    for partition in 0..shards.partitions() {
        let (shards, stop) = (shards.clone(), stop.clone());
        tokio::spawn(async move {
            let building = async {
                loop {
                    match shards.index(partition, ROWS).await {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(_) => tokio::time::sleep(PAUSE).await,
                    }
                }
            };
            if stop.run_until_cancelled(building).await.is_some() {
                tracing::info!(partition, "the index by item is whole");
            }
        });
    }
}
