//! The open loop: requests become due at a fixed rate, whatever the answers do.
//!
//! A request is waited for from the moment it is due. When every connection is busy it waits for one, and that counts: a
//! server that stands still for a second is seen by all who would have come in that second, not only by those who were
//! there (what is called coordinated omission otherwise).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// What becomes due within this time is sent together: a wake-up for each would cost more than the requests.
const TICK: Duration = Duration::from_micros(100);
/// So many become due at a time before connections have their turn: after a pause of this very thread there may be many.
const AT_A_TIME: usize = 64;

/// One thread's share of the pace.
pub struct Pace {
    times: Times,
    /// Due and not yet taken by a connection, the oldest first.
    due: RefCell<VecDeque<Instant>>,
    more: Notify,
    is_over: Cell<bool>,
}

impl Pace {
    /// `rate` requests a second from `start` to `end`, of which thread `index` of `threads` has every `threads`-th.
    pub fn new(rate: f64, (index, threads): (u64, u64), start: Instant, end: Instant) -> Self {
        let apart = Duration::from_secs_f64(1.0 / rate);
        let (first, interval) = (start + apart.mul_f64(index as f64), apart.mul_f64(threads as f64));
        let times = Times { first, interval, end };
        Self { times, due: RefCell::default(), more: Notify::new(), is_over: Cell::new(false) }
    }

    /// When the next request became due, or `None` when the last one was taken.
    pub async fn next(&self) -> Option<Instant> {
        loop {
            if let Some(due) = self.due.borrow_mut().pop_front() {
                return Some(due);
            }
            if self.is_over.get() {
                return None;
            }
            self.more.notified().await;
        }
    }

    /// Lets requests become due, to the end.
    pub async fn keep(&self) -> io::Result<()> {
        let (times, alarm) = (self.times, Arc::new(Notify::new()));
        // A thread that sleeps, for the runtime's timers are ten times as coarse. It ends with the run's time.
        let rung = Arc::clone(&alarm);
        thread::Builder::new().name("pace".to_owned()).spawn(move || times.ring(&rung))?;
        let mut made = 0;
        while let Some(due) = times.number(made) {
            if due > Instant::now() {
                alarm.notified().await;
                continue;
            }
            self.due.borrow_mut().push_back(due);
            self.more.notify_one();
            made += 1;
            if made.is_multiple_of(AT_A_TIME) {
                tokio::task::yield_now().await;
            }
        }
        self.is_over.set(true);
        self.more.notify_waiters();
        Ok(())
    }
}

/// When requests become due.
#[derive(Clone, Copy)]
struct Times {
    first: Instant,
    interval: Duration,
    end: Instant,
}

impl Times {
    /// When request number `number` does, if that is before the end. Reckoned from the first one, or the roundings of the
    /// interval would add up.
    fn number(&self, number: usize) -> Option<Instant> {
        let due = self.first + self.interval.mul_f64(number as f64);
        (due < self.end).then_some(due)
    }

    /// Rings `alarm` whenever something is due, but not more often than every tick.
    fn ring(&self, alarm: &Notify) {
        let mut made = 0;
        while let Some(due) = self.number(made) {
            thread::sleep(due.saturating_duration_since(Instant::now()).max(TICK));
            alarm.notify_one();
            let gone = Instant::now().saturating_duration_since(self.first);
            made = (made + 1).max((gone.as_secs_f64() / self.interval.as_secs_f64()) as usize);
        }
        // For the last ones, which this thread may have slept through.
        alarm.notify_one();
    }
}
