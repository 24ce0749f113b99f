//! Live totals: whoever listens to an item is told its total, at once and then after each run that changed it.
//!
//! An item's listeners share one cell that holds the newest total as the bytes that go out, encoded once. A
//! listener that is slow finds the newest there when it comes back: totals are absolute, so nothing is missed by
//! skipping, nothing queues up, and nobody waits for anybody. No shard is asked: the roll-up brings what it has
//! carried anyway.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;

use super::RolledUp;
use crate::metrics::LiveMetrics;

/// Everybody who listens to anything. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Live(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    listeners: AtomicUsize,
    /// How many there have been.
    numbered: AtomicU64,
    by_item: RwLock<HashMap<Arc<str>, Arc<Channel>>>,
    /// What has changed since the last run that was told of: only items that somebody listens to.
    changed: Mutex<HashMap<Arc<str>, (i64, u64)>>,
    metrics: LiveMetrics,
}

/// What the listeners of one item share.
#[derive(Debug)]
struct Channel {
    told: watch::Sender<Option<Told>>,
    /// Held by the one newcomer that finds out what all of them begin with.
    beginning: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Told {
    total: i64,
    as_of_ms: i64,
    /// For those who listened when it changed.
    event: Bytes,
    /// For those who begin to listen.
    present: Bytes,
}

/// One who listens to an item, until it is dropped.
#[derive(Debug)]
pub struct Listener {
    live: Live,
    number: u64,
    item: Arc<str>,
    channel: Arc<Channel>,
    told: watch::Receiver<Option<Told>>,
    first: Option<Bytes>,
}

/// What an event carries.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    item: &'a str,
    total: i64,
    as_of: i64,
    version: u64,
}

impl Live {
    /// One more listener, unless there are `most` already. It hears of every change from now on, and of nothing
    /// before it has begun.
    pub(super) fn listen(&self, item: Arc<str>, most: usize) -> Option<Listener> {
        let one_more = |listeners| (listeners < most).then_some(listeners + 1);
        self.0.listeners.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        self.0.metrics.listeners.increment(1.0);
        let mut by_item = self.0.by_item.write().unwrap_or_else(PoisonError::into_inner);
        let new =
            || Arc::new(Channel { told: watch::Sender::new(None), beginning: tokio::sync::Mutex::default() });
        let channel = Arc::clone(by_item.entry(Arc::clone(&item)).or_insert_with(new));
        let told = channel.told.subscribe();
        drop(by_item);
        let number = self.0.numbered.fetch_add(1, Ordering::Relaxed);
        Some(Listener { live: self.clone(), number, item, channel, told, first: None })
    }

    /// A run has stored this total of an item. Whoever listens is told once the run is over.
    pub(super) fn changed(&self, item: &str, total: i64, version: u64) {
        if self.0.listeners.load(Ordering::Acquire) == 0 {
            return;
        }
        let by_item = self.0.by_item.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((item, _)) = by_item.get_key_value(item) {
            let mut changed = self.0.changed.lock().unwrap_or_else(PoisonError::into_inner);
            changed.insert(Arc::clone(item), (total, version));
        }
    }

    /// A run is over: tells each total that is not what its listeners heard last.
    pub(super) fn tell(&self, as_of_ms: i64) {
        let changed = std::mem::take(&mut *self.0.changed.lock().unwrap_or_else(PoisonError::into_inner));
        for (item, (total, version)) in changed {
            self.tell_of(&item, |told| {
                if told.as_ref().is_some_and(|told| told.total == total) {
                    return false;
                }
                let event = self.encode("total", &item, &RolledUp { total, version, as_of_ms });
                *told = Some(Told { total, as_of_ms, present: event.clone(), event });
                true
            });
        }
    }

    /// An item was deleted, and this is what it has now.
    pub(super) fn deleted(&self, item: &str, now: RolledUp) {
        self.0.changed.lock().unwrap_or_else(PoisonError::into_inner).remove(item);
        self.tell_of(item, |told| {
            let event = self.encode("deleted", item, &now);
            let present = self.encode("total", item, &now);
            *told = Some(Told { total: now.total, as_of_ms: now.as_of_ms, event, present });
            true
        });
    }

    fn tell_of(&self, item: &str, tell: impl FnOnce(&mut Option<Told>) -> bool) {
        let channel = self.0.by_item.read().unwrap_or_else(PoisonError::into_inner).get(item).cloned();
        if let Some(channel) = channel {
            channel.told.send_if_modified(tell);
        }
    }

    fn encode(&self, name: &str, item: &str, now: &RolledUp) -> Bytes {
        self.0.metrics.encoded.increment(1);
        let RolledUp { total, version, as_of_ms } = *now;
        let event = Event { item, total, as_of: as_of_ms, version };
        let data = serde_json::to_string(&event).unwrap_or_default();
        format!("id: {version}\nevent: {name}\ndata: {data}\n\n").into()
    }
}

impl Listener {
    /// Its number, which no other listener of this process has.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Begins with the present total. `read` finds it out, for the first of those who begin at the same time; `as_of_ms`
    /// is how fresh it must be.
    pub(super) async fn begin<E>(
        &mut self,
        as_of_ms: i64,
        read: impl Future<Output = Result<RolledUp, E>>,
    ) -> Result<(), E> {
        let channel = Arc::clone(&self.channel);
        let is_fresh = |told: &Option<Told>| told.as_ref().is_some_and(|told| told.as_of_ms >= as_of_ms);
        if !is_fresh(&channel.told.borrow()) {
            let _one = channel.beginning.lock().await;
            if !is_fresh(&channel.told.borrow()) {
                let now = read.await?;
                self.refresh(now);
            }
        }
        // Seen is what is taken here: what changes later is heard of.
        self.first = self.told.borrow_and_update().as_ref().map(|told| told.present.clone());
        Ok(())
    }

    /// The same total as of later is news only to newcomers. Another one is the roll-up's to tell, after its run.
    fn refresh(&self, now: RolledUp) {
        self.channel.told.send_if_modified(|told| {
            match told {
                Some(told) if told.total == now.total && told.as_of_ms < now.as_of_ms => {
                    told.present = self.live.encode("total", &self.item, &now);
                    told.as_of_ms = now.as_of_ms;
                }
                Some(_) => {}
                None => {
                    let event = self.live.encode("total", &self.item, &now);
                    let present = event.clone();
                    *told = Some(Told { total: now.total, as_of_ms: now.as_of_ms, event, present });
                }
            }
            false
        });
    }

    /// The next event, once there is one: first the present total, then each change, or the newest of several.
    pub async fn next(&mut self) -> Bytes {
        let event = match self.first.take() {
            Some(first) => first,
            None => self.changed().await,
        };
        self.live.0.metrics.events.increment(1);
        event
    }

    async fn changed(&mut self) -> Bytes {
        loop {
            // The sender goes only after the last listener.
            let _never_closed = self.told.changed().await;
            if let Some(told) = &*self.told.borrow_and_update() {
                return told.event.clone();
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut by_item = self.live.0.by_item.write().unwrap_or_else(PoisonError::into_inner);
        if self.channel.told.receiver_count() <= 1 {
            by_item.remove(&self.item);
        }
        drop(by_item);
        self.live.0.metrics.listeners.decrement(1.0);
        self.live.0.listeners.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt;

    use super::*;

    fn rolled_up(total: i64, version: u64, as_of_ms: i64) -> RolledUp {
        RolledUp { total, version, as_of_ms }
    }

    async fn begin(live: &Live, item: &str, now: RolledUp) -> Listener {
        let mut listener = live.listen(item.into(), usize::MAX).unwrap();
        listener.begin(now.as_of_ms, async { Ok::<_, Infallible>(now) }).await.unwrap();
        listener
    }

    fn told(listener: &mut Listener) -> Option<String> {
        // However often it is asked in one go.
        let next = tokio::task::unconstrained(listener.next()).now_or_never();
        next.map(|event| String::from_utf8(event.to_vec()).unwrap())
    }

    fn block(name: &str, total: i64, version: u64, as_of: i64) -> Option<String> {
        let data = format!(r#"{{"item":"a \"b\"","total":{total},"asOf":{as_of},"version":{version}}}"#);
        Some(format!("id: {version}\nevent: {name}\ndata: {data}\n\n"))
    }

    const ITEM: &str = "a \"b\"";

    #[tokio::test]
    async fn a_change_is_told_once_and_after_its_run() {
        let live = Live::default();
        let mut listener = begin(&live, ITEM, rolled_up(3, 7, 100)).await;
        assert_eq!(told(&mut listener), block("total", 3, 7, 100));
        assert_eq!(told(&mut listener), None);
        // Two pages of one run.
        live.changed(ITEM, 4, 8);
        live.changed(ITEM, 5, 9);
        assert_eq!(told(&mut listener), None, "the run is not over");
        live.tell(200);
        assert_eq!(told(&mut listener), block("total", 5, 9, 200));
        live.tell(300);
        live.changed(ITEM, 5, 10);
        live.changed("other", 6, 10);
        live.tell(400);
        assert_eq!(told(&mut listener), None, "the same total is no news");
    }

    #[tokio::test]
    async fn whoever_is_slow_finds_the_newest_and_holds_nobody_up() {
        let live = Live::default();
        let mut slow = begin(&live, ITEM, rolled_up(0, 0, 1)).await;
        let mut quick = begin(&live, ITEM, rolled_up(0, 0, 1)).await;
        assert_eq!(told(&mut quick), block("total", 0, 0, 1));
        for run in 1..=1_000 {
            live.changed(ITEM, run, run.unsigned_abs());
            live.tell(run);
            assert_eq!(told(&mut quick), block("total", run, run.unsigned_abs(), run));
        }
        assert_eq!(told(&mut slow), block("total", 0, 0, 1), "it had begun");
        assert_eq!(told(&mut slow), block("total", 1_000, 1_000, 1_000));
        assert_eq!(told(&mut slow), None);
    }

    #[tokio::test]
    async fn newcomers_share_what_they_begin_with_and_those_who_listen_hear_nothing_of_it() {
        let live = Live::default();
        let mut first = begin(&live, ITEM, rolled_up(3, 7, 100)).await;
        assert_eq!(told(&mut first), block("total", 3, 7, 100));
        let mut listeners = Vec::new();
        for _ in 0..3 {
            let mut listener = live.listen(ITEM.into(), usize::MAX).unwrap();
            let unasked = async { Err::<RolledUp, _>("it is known") };
            listener.begin(100, unasked).await.unwrap();
            listeners.push(listener);
        }
        let events: Vec<Bytes> = listeners.iter_mut().map(|l| l.next().now_or_never().unwrap()).collect();
        assert!(events.iter().all(|event| event.as_ptr() == events[0].as_ptr()), "the same bytes");
        // Nothing has changed since, but it is later.
        let mut later = begin(&live, ITEM, rolled_up(3, 7, 900)).await;
        assert_eq!(told(&mut later), block("total", 3, 7, 900));
        assert_eq!(told(&mut first), None);
        // A newcomer in the middle of a run begins with what was told; the run's end tells the rest.
        live.changed(ITEM, 4, 8);
        let mut between = begin(&live, ITEM, rolled_up(4, 8, 950)).await;
        assert_eq!(told(&mut between), block("total", 3, 7, 900));
        live.tell(1_000);
        for listener in [&mut first, &mut later, &mut between] {
            assert_eq!(told(listener), block("total", 4, 8, 1_000));
        }
    }

    #[tokio::test]
    async fn a_deletion_is_told_and_newcomers_begin_with_what_there_is() {
        let live = Live::default();
        let mut listener = begin(&live, ITEM, rolled_up(3, 7, 100)).await;
        assert_eq!(told(&mut listener), block("total", 3, 7, 100));
        live.changed(ITEM, 0, 8);
        live.deleted(ITEM, rolled_up(0, 8, 100));
        let mut newcomer = begin(&live, ITEM, rolled_up(0, 8, 100)).await;
        assert_eq!(told(&mut newcomer), block("total", 0, 8, 100));
        let mut later = begin(&live, ITEM, rolled_up(0, 8, 200)).await;
        assert_eq!(told(&mut later), block("total", 0, 8, 200));
        assert_eq!(told(&mut listener), block("deleted", 0, 8, 100));
        live.tell(300);
        assert_eq!(told(&mut listener), None, "there is nothing more to it");
    }

    #[tokio::test]
    async fn nothing_stays_of_those_who_left() {
        let live = Live::default();
        let one = live.listen("a".into(), 2).unwrap();
        let two = live.listen("a".into(), 2).unwrap();
        assert!(live.listen("b".into(), 2).is_none());
        drop(one);
        assert_eq!(live.0.by_item.read().unwrap().len(), 1);
        live.changed("a", 1, 1);
        drop(two);
        assert!(live.0.by_item.read().unwrap().is_empty());
        live.tell(1);
        assert!(live.0.changed.lock().unwrap().is_empty());
        live.changed("a", 1, 1);
        assert!(live.0.changed.lock().unwrap().is_empty(), "nobody listens");
        assert_eq!(live.0.listeners.load(Ordering::Acquire), 0);
    }
}
