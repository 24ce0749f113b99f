//! The callers: everyone asks, waits for the answer, and asks again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use headcount::likes::Shards;
use headcount::reservations::Workshops;
use headcount::reservations::command::Reserved;
use tokio::runtime::{Builder, Runtime};

use crate::mutex::MutexStore;
use crate::workload::{Request, Workload};

pub const CALLERS: u64 = 2_048;
/// Of the mutex, for which callers queue in the runtime: more would only fight over the lock.
const BLOCKING_THREADS: usize = 4;

/// Where requests go.
#[derive(Clone)]
pub enum Target {
    Mutex(Arc<MutexStore>),
    Partitions { shards: Shards, workshops: Workshops },
}

pub fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().max_blocking_threads(BLOCKING_THREADS).enable_all().build()
}

/// Has all callers together make the requests `first..end`, and gives the time until the last answer. An
/// answer that is no first decision ends the bench.
pub fn round(runtime: &Runtime, target: &Target, workload: Workload, first: u64, end: u64) -> Duration {
    let next = Arc::new(AtomicU64::new(first));
    let begun = Instant::now();
    let callers: Vec<_> = (0..CALLERS.min(end - first))
        .map(|_| runtime.spawn(call(target.clone(), workload, Arc::clone(&next), end)))
        .collect();
    for caller in callers {
        runtime.block_on(caller).expect("a caller that ends well");
    }
    begun.elapsed()
}

async fn call(target: Target, workload: Workload, next: Arc<AtomicU64>, end: u64) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            return;
        }
        let request = workload.request(number);
        assert!(target.is_decided_first(request).await, "request {number} was decided before");
    }
}

impl Target {
    async fn is_decided_first(&self, request: Request) -> bool {
        match (self, request) {
            (Self::Mutex(store), request) => {
                let store = Arc::clone(store);
                let decided = tokio::task::spawn_blocking(move || store.decide(&request)).await;
                decided.expect("no panic").expect("a decision")
            }
            (Self::Partitions { shards, .. }, Request::Like { user, item }) => {
                shards.set(user, item, true).await.expect("a decision").changed
            }
            (Self::Partitions { workshops, .. }, Request::Reserve { workshop, request, seats }) => {
                let decided = workshops.reserve(workshop, request, seats).await.expect("a decision");
                matches!(decided, Reserved::Decided { replayed: false, .. })
            }
        }
    }
}
