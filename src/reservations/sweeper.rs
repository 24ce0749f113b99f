//! The clock's knock: what is due is written down also where nobody asks, and after a restart.
//!
//! A task a partition, asleep until its [`Alarm`] is due. It sends a chunk of work at a time into the
//! partition's mailbox, as anybody sends a command, so that nothing waits for more than a chunk. It decides
//! nothing, and nothing depends on it being in time: what is over is over by the clock.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::alarm::Alarm;
use super::workshops::Workshops;
use crate::partition::Clock;

/// Between two attempts, where a partition refused.
const PAUSE: Duration = Duration::from_millis(100);
/// Sleeps at most this long without a look at the clock.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Starts sweeping every partition when its alarm is due, until `stop`.
pub fn start(
    workshops: &Workshops,
    alarms: Vec<Alarm>,
    clock: &Clock,
    stop: &CancellationToken,
) -> TaskTracker {
    let tasks = TaskTracker::new();
    for (partition, alarm) in (0..).zip(alarms) {
        let (workshops, clock, stop) = (workshops.clone(), clock.clone(), stop.clone());
        tasks.spawn(async move {
            let _stopped = stop.run_until_cancelled(sweep(&workshops, partition, &alarm, &clock)).await;
        });
    }
    tasks.close();
    tasks
}

async fn sweep(workshops: &Workshops, partition: u32, alarm: &Alarm, clock: &Clock) {
    let mut set = alarm.watch();
    loop {
        let at_ms = *set.borrow_and_update();
        let left_ms = u64::try_from(at_ms.saturating_sub(clock.now_ms())).unwrap_or(0);
        if left_ms == 0 {
            if workshops.sweep(partition).await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(left_ms).min(LONGEST_SLEEP)) => {}
            _ = set.changed() => {}
        }
    }
}
