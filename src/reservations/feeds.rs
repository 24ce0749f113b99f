//! Who is to be told that something happened in a workshop, once it is committed.
//!
//! Told is only that: what happened is read from the workshop's log.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

/// The listeners of all workshops. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Feeds(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// So that a commit that nobody listens to looks at one number and no more.
    listeners: AtomicUsize,
    by_workshop: RwLock<HashMap<Arc<str>, watch::Sender<()>>>,
}

/// One listener of one workshop, until it is dropped.
#[derive(Debug)]
pub struct Listener {
    feeds: Feeds,
    workshop: Arc<str>,
    changes: watch::Receiver<()>,
}

impl Feeds {
    /// A listener, unless there are `most` already. It hears of everything that is committed from now on.
    #[must_use]
    pub fn listen(&self, workshop: Arc<str>, most: usize) -> Option<Listener> {
        let one_more = |listeners| (listeners < most).then_some(listeners + 1);
        self.0.listeners.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        let mut by_workshop = self.0.by_workshop.write().unwrap_or_else(PoisonError::into_inner);
        let sender = by_workshop.entry(Arc::clone(&workshop)).or_insert_with(|| watch::Sender::new(()));
        let changes = sender.subscribe();
        drop(by_workshop);
        Some(Listener { feeds: self.clone(), workshop, changes })
    }

    /// Whether anybody listens to anything.
    #[must_use]
    pub fn has_listeners(&self) -> bool {
        self.0.listeners.load(Ordering::Acquire) > 0
    }

    /// Tells a workshop's listeners.
    pub fn tell(&self, workshop: &str) {
        if let Some(sender) = self.0.by_workshop.read().unwrap_or_else(PoisonError::into_inner).get(workshop)
        {
            sender.send_replace(());
        }
    }
}

impl Listener {
    /// Waits until something has happened since the last call.
    pub async fn heard(&mut self) {
        // The sender goes only after the last listener.
        let _never_closed = self.changes.changed().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut by_workshop = self.feeds.0.by_workshop.write().unwrap_or_else(PoisonError::into_inner);
        if by_workshop.get(&self.workshop).is_some_and(|sender| sender.receiver_count() <= 1) {
            by_workshop.remove(&self.workshop);
        }
        drop(by_workshop);
        self.feeds.0.listeners.fetch_sub(1, Ordering::AcqRel);
    }
}
