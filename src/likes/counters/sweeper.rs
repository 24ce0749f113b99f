//! Ids that are remembered no more are forgotten, a chunk at a time, as ordinary commands between others.
//!
//! Nothing waits for it and nothing depends on it being in time: an id whose time is over is new, by the clock.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::likes::Shards;
use crate::partition::Clock;

/// How often every partition is looked at: a tenth of the time that an id is remembered, within these bounds.
const OFTEN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// How much, and what of.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// `counters.dedupe_ttl_ms`
    pub dedupe_ttl_ms: u64,
    /// `counters.sweep_chunk`: ids that one command forgets at most.
    pub chunk: u32,
}

/// Sweeps until `stop`.
pub async fn sweep(shards: Shards, bounds: Bounds, clock: Clock, stop: CancellationToken) {
    let every = Duration::from_millis(bounds.dedupe_ttl_ms / 10).clamp(OFTEN.0, OFTEN.1);
    let ttl_ms = i64::try_from(bounds.dedupe_ttl_ms).unwrap_or(i64::MAX);
    let sweeping = async {
        loop {
            tokio::time::sleep(every).await;
            for partition in 0..shards.partitions() {
                let decided_up_to_ms = clock.now_ms().saturating_sub(ttl_ms);
                // A partition that refuses is busy or down: the next round goes on.
                while shards.forget_requests(partition, decided_up_to_ms, bounds.chunk).await == Ok(true) {}
            }
        }
    };
    let _stopped = stop.run_until_cancelled(sweeping).await;
}
