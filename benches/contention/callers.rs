//! The callers: everyone asks, waits for the answer, and asks again.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount::likes::Shards;
use headcount::partition::Workers;
use headcount::reservations::Workshops;
use headcount::reservations::command::Reserved;
use tokio::runtime::{Builder, Runtime};

use crate::mutex::MutexStore;
use crate::workload::{Request, Workload};
use crate::{Failure, machine};

pub const CALLERS: usize = 2_048;
/// Of the mutex, for which callers queue in the runtime: more would only fight over the lock.
const BLOCKING_THREADS: usize = 4;

/// Where requests go.
#[derive(Clone)]
pub enum Target {
    Mutex(Arc<MutexStore>),
    Partitions { shards: Shards, workshops: Workshops },
}

/// A runtime, and the way to watch its threads.
pub fn runtime() -> std::io::Result<(Runtime, Arc<Workers>)> {
    let mut runtime = Builder::new_multi_thread();
    let workers = Workers::of(&mut runtime);
    Ok((runtime.max_blocking_threads(BLOCKING_THREADS).enable_all().build()?, workers))
}

/// What a round took.
#[derive(Clone, Copy)]
pub struct Round {
    /// Until the last answer.
    pub time: Duration,
    /// Of the whole process: callers, partitions, log and kernel.
    pub cpu_seconds: f64,
}

/// Has all callers together make the requests `numbers`, all made before the clock starts. An answer that
/// is no first decision ends the bench.
pub fn round(
    runtime: &Runtime,
    target: &Target,
    workload: Workload,
    numbers: Range<u64>,
) -> Result<Round, Failure> {
    let mut shares: Vec<Vec<Request>> = Vec::new();
    shares.resize_with(CALLERS, Vec::new);
    for (caller, number) in (0..CALLERS).cycle().zip(numbers) {
        shares[caller].push(workload.request(number));
    }
    let cpu_before = machine::cpu_seconds("self")?;
    let begun = Instant::now();
    let callers: Vec<_> =
        shares.into_iter().map(|share| runtime.spawn(call(target.clone(), share))).collect();
    for caller in callers {
        runtime.block_on(caller)?;
    }
    Ok(Round { time: begun.elapsed(), cpu_seconds: machine::cpu_seconds("self")? - cpu_before })
}

async fn call(target: Target, share: Vec<Request>) {
    for request in share {
        assert!(target.is_decided_first(request).await, "a request was decided before");
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
