//! What is done for all rooms, with nobody calling: alarms that ring, pings, the purge of what is too old;
//! and at the end, sending everyone away.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::close::Close;
use super::command::Command;
use super::link::Link;
use super::registry::Rooms;
use super::room::Room;

/// How often old messages of silent rooms leave the disk.
const PURGE_INTERVAL: Duration = Duration::from_secs(60);
/// Alarms that lie further away are looked at again then.
const LONGEST_WAIT_MS: i64 = 60_000;

impl Rooms {
    /// Starts it all; it ends with `stop`.
    pub(super) fn keep_up(&self, stop: &CancellationToken) {
        let until_stopped = |task: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
            let stop = stop.clone();
            tokio::spawn(async move { stop.run_until_cancelled(task).await });
        };
        until_stopped(Box::pin(self.clone().watch_alarms()));
        if let Some(every) = self.settings().ping_interval {
            until_stopped(Box::pin(self.clone().ping_all(every)));
        }
        if let Some(recorder) = self.recorder().cloned() {
            until_stopped(Box::pin(async move {
                let mut every = tokio::time::interval(PURGE_INTERVAL);
                loop {
                    every.tick().await;
                    recorder.purge().await;
                }
            }));
        }
    }

    /// Sends every connection away, each with a time of its own to come back. Nobody is let in any more.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::SeqCst);
        for room in self.all() {
            let asleep = room.peek(|state| state.links().iter().for_each(|link| self.send_away(link)));
            if asleep.is_none() {
                self.deliver(&room, Command::Drain);
            }
        }
    }

    pub(super) fn send_away(&self, link: &Link) {
        link.close(Close::Restart(Duration::from_millis(self.retry_ms(link.id.0))));
    }

    async fn watch_alarms(self) {
        loop {
            let now_ms = self.now_ms();
            for room in self.0.alarms.ring(now_ms) {
                self.ring(&room, now_ms);
            }
            let wait_ms = self.0.alarms.next_ms().map_or(LONGEST_WAIT_MS, |next_ms| next_ms - now_ms);
            let wait_ms = wait_ms.clamp(1, LONGEST_WAIT_MS).unsigned_abs();
            let _either = tokio::time::timeout(Duration::from_millis(wait_ms), self.0.alarms.changed()).await;
        }
    }

    /// A sleeping room is woken only if something is over.
    fn ring(&self, room: &Arc<Room>, now_ms: i64) {
        match room.peek(|state| state.next_due_ms(&self.settings().limits)) {
            Some(None) => {}
            Some(Some(due_ms)) if due_ms > now_ms => {
                self.set_alarm(room, due_ms.max(now_ms + self.settings().alarm_spacing_ms));
            }
            Some(Some(_)) | None => self.deliver(room, Command::Tick),
        }
    }

    async fn ping_all(self, every: Duration) {
        let mut every = tokio::time::interval_at(Instant::now() + every, every);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            for room in self.all() {
                let queue = self.settings().limits.queue;
                let asleep = room.peek(|state| state.links().iter().for_each(|link| link.ping(queue)));
                if asleep.is_none() {
                    self.deliver(&room, Command::Ping);
                }
            }
        }
    }
}
