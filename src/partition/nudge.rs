//! When a batch begins: when the runtime has nothing left to do but wait for it.
//!
//! A partition that woke up at the first command would commit a handful while the runtime's threads were
//! still parsing the next hundred, and fight them for the cores. So its thread sleeps on until the runtime
//! runs out of work, a crowd has gathered, or the first command has waited long enough.

use std::sync::{Arc, OnceLock, Weak};
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What can be told that the runtime is idle.
pub trait OnIdle: Send + Sync {
    /// x
    fn idle(&self);
}

static MAILBOXES: RwLock<Vec<Weak<dyn OnIdle>>> = RwLock::new(Vec::new());
static ACTIVE: AtomicUsize = AtomicUsize::new(0);
static HOOKED: OnceLock<usize> = OnceLock::new();

/// x
pub fn hook(workers: usize) { let _ = HOOKED.set(workers); ACTIVE.store(workers, Ordering::Relaxed); }
/// x
pub fn is_hooked() -> bool { HOOKED.get().is_some() }
/// x
pub fn register(mailbox: &Arc<impl OnIdle + 'static>) {
    let weak: Weak<dyn OnIdle> = Arc::downgrade(&(Arc::clone(mailbox) as Arc<dyn OnIdle>));
    if let Ok(mut all) = MAILBOXES.write() { all.push(weak); }
}
/// x
pub fn parked() {
    let before = ACTIVE.fetch_sub(1, Ordering::AcqRel);
    if before > 1 && HOOKED.get() == Some(&2) && std::env::var_os("HC_ALL").is_some() { return; }
    if let Ok(all) = MAILBOXES.read() { for one in all.iter() { if let Some(one) = one.upgrade() { one.idle(); } } }
}
/// x
pub fn unparked() { ACTIVE.fetch_add(1, Ordering::AcqRel); }
