//! Who sees to it that sets are finished: at the start those that a killed process has left, later those whose
//! driver died, and each whose hold ends, at that very moment.
//!
//! A task a partition, asleep until its alarm is due. It decides nothing: it asks which sets of the partition are to
//! be gone on with and starts their drivers.

use std::sync::Arc;
use std::time::Duration;

use super::driver::Sets;
use crate::reservations::alarm::Alarm;
use crate::reservations::types::RequestId;

/// Sets asked for at a time.
const PAGE: u32 = 256;

/// Starts keeping the sets of every partition, whose home sets its alarm, until they stop.
pub fn start(sets: &Sets, alarms: Vec<Alarm>) {
    let (tasks, stop, ..) = sets.inner();
    for (partition, alarm) in (0..).zip(alarms) {
        let (sets, stop) = (sets.clone(), stop.clone());
        let (sets_too, stop_too) = (sets.clone(), stop.clone());
        tasks.spawn(async move {
            let _stopped = stop.run_until_cancelled(keep(&sets, partition, &alarm)).await;
        });
        tasks.spawn(async move {
            let _stopped = stop_too.run_until_cancelled(sets_too.forget_what_is_gone(partition)).await;
        });
    }
}

async fn keep(sets: &Sets, partition: u32, alarm: &Alarm) {
    let (_, _, clock, retry) = sets.inner();
    let mut set = alarm.watch();
    loop {
        look_after(sets, partition).await;
        // What is due and not gone on with yet is asked for again soon, and everything now and then.
        let at_ms = *set.borrow_and_update();
        let left_ms = at_ms.saturating_sub(clock.now_ms()).max(1);
        let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(1));
        tokio::select! {
            () = tokio::time::sleep(left.min(retry)) => {}
            _ = set.changed() => {}
        }
    }
}

/// Starts the drivers that are missing.
async fn look_after(sets: &Sets, partition: u32) {
    let mut after: Arc<str> = Arc::from("");
    loop {
        // Asked again soon: a partition that refuses has worse to see to.
        let Ok(todo) = sets.todo(partition, Arc::clone(&after), PAGE).await else { return };
        for request in todo.due.iter().chain(&todo.unfinished) {
            if sets.has_room() {
                let _driven = sets.drive(&RequestId::from(Arc::clone(request)));
            }
        }
        match todo.unfinished.last().filter(|_| todo.unfinished.len() >= PAGE as usize) {
            Some(last) if sets.has_room() => after = Arc::clone(last),
            _ => return,
        }
    }
}
