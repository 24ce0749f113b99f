//! Who sees to it that sets are finished: at the start those that a killed process has left, later those whose
//! driver died or whose hold has ended.
//!
//! A task a partition. It decides nothing: it asks which sets of the partition are to be gone on with and starts
//! their drivers.

use std::sync::Arc;
use std::time::Duration;

use super::driver::Sets;
use crate::reservations::types::RequestId;

/// Sets asked for at a time.
const PAGE: u32 = 256;

/// Starts keeping the sets of every partition, until they stop.
pub fn start(sets: &Sets) {
    let (tasks, stop, ..) = sets.inner();
    for partition in 0..sets.partitions() {
        let (sets, stop) = (sets.clone(), stop.clone());
        tasks.spawn(async move {
            let _stopped = stop.run_until_cancelled(keep(&sets, partition)).await;
        });
    }
}

async fn keep(sets: &Sets, partition: u32) {
    let (_, _, clock, retry) = sets.inner();
    loop {
        let next_at_ms = look_after(sets, partition).await;
        let left_ms = next_at_ms.map_or(i64::MAX, |at_ms| at_ms.saturating_sub(clock.now_ms()).max(1));
        let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(1));
        // A new hold may end before the one that is known of, so it never sleeps longer than this.
        tokio::time::sleep(left.min(retry)).await;
    }
}

/// Starts the drivers that are missing; when the next hold ends.
async fn look_after(sets: &Sets, partition: u32) -> Option<i64> {
    let mut after: Arc<str> = Arc::from("");
    loop {
        // Asked again soon: a partition that refuses has worse to see to.
        let todo = sets.todo(partition, Arc::clone(&after), PAGE).await.ok()?;
        for request in todo.due.iter().chain(&todo.unfinished) {
            if sets.has_room() {
                let _driven = sets.drive(&RequestId::from(Arc::clone(request)));
            }
        }
        match todo.unfinished.last().filter(|_| todo.unfinished.len() >= PAGE as usize) {
            Some(last) if sets.has_room() => after = Arc::clone(last),
            _ => return todo.next_at_ms,
        }
    }
}
