//! When a partition's next hold ends: set by its actors as they commit, waited for by the sweeper.

use tokio::sync::watch;

/// One partition's alarm. Clones share it; its actors alone set it.
#[derive(Debug, Clone)]
pub struct Alarm(watch::Sender<i64>);

impl Alarm {
    /// An alarm set to a time, in ms since 1970; `None`: not set.
    #[must_use]
    pub fn new(at_ms: Option<i64>) -> Self {
        Self(watch::Sender::new(at_ms.unwrap_or(i64::MAX)))
    }

    /// Sets it, whatever it was set to.
    pub fn set(&self, at_ms: Option<i64>) {
        self.0.send_replace(at_ms.unwrap_or(i64::MAX));
    }

    /// Sets it if that is earlier.
    pub fn bring_forward(&self, at_ms: i64) {
        self.0.send_if_modified(|set| {
            let earlier = at_ms < *set;
            if earlier {
                *set = at_ms;
            }
            earlier
        });
    }

    /// To wait for it: the time that it is set to, and when that changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<i64> {
        self.0.subscribe()
    }
}
