//! Whether the runtime's worker threads still have something to do.
//!
//! A partition that took its batch at the first command would commit a handful while the workers were still
//! reading the next hundred requests, and fight them for the cores. So it gathers until they have nothing
//! left but to wait for it, or until a crowd has come or the time for gathering is up.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use tokio::runtime::Builder;

thread_local! {
    /// Whether this thread is counted as active.
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
}

/// Counts the active workers of one runtime and tells who waits for them when none is left.
#[derive(Default)]
pub struct Workers {
    active: AtomicUsize,
    waiting: RwLock<Vec<Weak<dyn WhenIdle>>>,
}

/// Who waits for the workers to run out of work.
pub trait WhenIdle: Send + Sync {
    /// None of them is active any more.
    fn workers_are_idle(&self);
}

impl Workers {
    /// Watches the workers of the runtime that `builder` will build.
    #[must_use]
    pub fn of(builder: &mut Builder) -> Arc<Self> {
        let workers = Arc::new(Self::default());
        let (parking, unparked) = (Arc::clone(&workers), Arc::clone(&workers));
        builder
            .on_thread_park(move || parking.one_parks())
            .on_thread_unpark(move || unparked.one_is_active());
        workers
    }

    /// Whether no worker is active.
    pub(super) fn are_idle(&self) -> bool {
        self.active.load(Ordering::SeqCst) == 0
    }

    pub(super) fn tell(&self, who: Weak<dyn WhenIdle>) {
        self.waiting.write().unwrap_or_else(PoisonError::into_inner).push(who);
    }

    pub(super) fn one_is_active(&self) {
        if !ACTIVE.replace(true) {
            self.active.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(super) fn one_parks(&self) {
        // A worker parks for the first time without ever having unparked.
        if ACTIVE.replace(false) && self.active.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        let waiting = self.waiting.read().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().filter_map(Weak::upgrade).for_each(|who| who.workers_are_idle());
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("active", &self.active).finish_non_exhaustive()
    }
}
