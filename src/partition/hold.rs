//! Holding a partition still between two batches, for whoever needs to see all of them at one moment.
//!
//! Nothing is refused meanwhile, commands wait in the mailbox. A hold ends by itself after a while, and whoever held
//! learns that it did: what was looked at then was not one moment.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Handle;

/// Where a partition's thread looks between two batches.
#[derive(Debug, Clone, Default)]
pub(super) struct Slot(Arc<Mutex<Option<Ask>>>);

#[derive(Debug)]
struct Ask {
    reached: SyncSender<()>,
    released: Receiver<()>,
    at_most: Duration,
}

impl Slot {
    /// The thread's part: stands still if somebody asks for it.
    pub(super) fn stand_still(&self) {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Ask { reached, released, at_most }) = asked
            && reached.send(()).is_ok()
        {
            // Released, dropped or too late: all the same here. Once `released` is gone the holder is told.
            let _ends = released.recv_timeout(at_most);
        }
    }
}

/// A hold that is asked for.
#[derive(Debug)]
pub struct Asked {
    reached: Receiver<()>,
    release: SyncSender<()>,
}

/// A partition that stands still, until this is dropped or its time is over.
#[derive(Debug)]
pub struct Held(SyncSender<()>);

/// What can be held: a partition, whatever runs on it.
pub trait Hold: Send + Sync {
    /// Asks a partition to stand still after its batch, for `at_most` so long.
    fn hold(&self, at_most: Duration) -> Asked;
}

impl<C: Send> Hold for Handle<C> {
    fn hold(&self, at_most: Duration) -> Asked {
        let (reached, is_reached) = sync_channel(1);
        let (release, released) = sync_channel(1);
        let ask = Ask { reached, released, at_most };
        *self.holds.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(ask);
        self.mailbox.interrupt();
        Asked { reached: is_reached, release }
    }
}

impl Asked {
    /// Waits until it stands still; `None` if it does not in time.
    fn wait(self, until: Instant) -> Option<Held> {
        let left = until.saturating_duration_since(Instant::now());
        self.reached.recv_timeout(left).ok().map(|()| Held(self.release))
    }
}

impl Held {
    /// Lets it go on; whether it stood still until now.
    #[must_use]
    fn release(self) -> bool {
        self.0.send(()).is_ok()
    }
}

/// Does something while all partitions stand still at once; `None` if they did not, all of them and for all of it. They
/// stand still for `at_most` so long, and as long is waited for the last of them.
pub fn while_all_stand_still<T>(
    partitions: &[Box<dyn Hold>],
    at_most: Duration,
    look: impl FnOnce() -> T,
) -> Option<T> {
    let until = Instant::now() + at_most;
    let asked: Vec<Asked> = partitions.iter().map(|partition| partition.hold(at_most * 2)).collect();
    let held = asked.into_iter().map(|asked| asked.wait(until)).collect::<Option<Vec<Held>>>()?;
    let seen = look();
    // Each of them, whatever another says.
    let released: Vec<bool> = held.into_iter().map(Held::release).collect();
    released.into_iter().all(|stood_still| stood_still).then_some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thread(Slot);

    impl Hold for Thread {
        fn hold(&self, at_most: Duration) -> Asked {
            let (reached, is_reached) = sync_channel(1);
            let (release, released) = sync_channel(1);
            *self.0.0.lock().unwrap() = Some(Ask { reached, released, at_most });
            Asked { reached: is_reached, release }
        }
    }

    fn threads(n: usize) -> (Vec<Box<dyn Hold>>, Vec<Slot>) {
        let slots: Vec<Slot> = (0..n).map(|_| Slot::default()).collect();
        let holds = slots.iter().map(|slot| Box::new(Thread(slot.clone())) as Box<dyn Hold>).collect();
        (holds, slots)
    }

    const LONG: Duration = Duration::from_secs(3_600);

    #[test]
    fn all_stand_still_until_the_look_is_over() {
        let (holds, slots) = threads(3);
        let looked = Arc::new(Mutex::new(false));
        let workers: Vec<_> = slots
            .into_iter()
            .map(|slot| {
                let looked = Arc::clone(&looked);
                std::thread::spawn(move || {
                    while slot.0.lock().unwrap().is_none() {
                        std::thread::yield_now();
                    }
                    slot.stand_still();
                    assert!(*looked.lock().unwrap(), "it went on too early");
                })
            })
            .collect();
        let seen = while_all_stand_still(&holds, LONG, || {
            *looked.lock().unwrap() = true;
            7
        });
        assert_eq!(seen, Some(7));
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    }

    #[test]
    fn one_that_does_not_stand_still_is_not_waited_for_and_lets_the_others_go() {
        let (holds, slots) = threads(2);
        let slot = slots[0].clone();
        let worker = std::thread::spawn(move || {
            while slot.0.lock().unwrap().is_none() {
                std::thread::yield_now();
            }
            slot.stand_still();
        });
        let seen = while_all_stand_still(&holds, Duration::from_millis(20), || panic!("not all stand still"));
        assert_eq!(seen.map(|(): ()| ()), None);
        worker.join().unwrap();
    }

    #[test]
    fn a_look_that_takes_too_long_is_not_believed() {
        let (holds, slots) = threads(1);
        let slot = slots[0].clone();
        let worker = std::thread::spawn(move || {
            while slot.0.lock().unwrap().is_none() {
                std::thread::yield_now();
            }
            slot.stand_still();
        });
        let mut worker = Some(worker);
        let seen = while_all_stand_still(&holds, Duration::from_millis(20), || {
            worker.take().unwrap().join().unwrap();
        });
        assert_eq!(seen, None);
    }
}
