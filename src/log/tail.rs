//! The last lines of the decision log, for whoever looks at the operator's page.
//!
//! In memory alone, and only while somebody looks: for the rest of the time a decision pays one look at a flag that
//! never changes. While somebody looks, it pays a line (an allocation and a moment's lock).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines that are kept; the oldest goes when another one comes.
pub const KEPT: usize = 200;

static WATCHED: AtomicBool = AtomicBool::new(false);
static TAIL: Mutex<Tail> = Mutex::new(Tail { told: 0, lines: VecDeque::new() });

/// What is kept.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    /// Lines since somebody began to look, those that are gone among them.
    pub told: u64,
    /// The newest, the oldest of them first; each is a JSON object.
    pub lines: VecDeque<String>,
}

/// Begins to keep lines, or stops and forgets them: after a while without them they would have a hole.
pub fn watch(watched: bool) {
    WATCHED.store(watched, Ordering::Relaxed);
    if !watched {
        *tail() = Tail::default();
    }
}

/// Whether lines are kept.
#[must_use]
pub fn is_watched() -> bool {
    WATCHED.load(Ordering::Relaxed)
}

/// What is kept now.
#[must_use]
pub fn read() -> Tail {
    tail().clone()
}

/// Keeps a line. Without its end.
pub(super) fn keep(line: &str) {
    let line = line.trim_end().to_owned();
    let mut tail = tail();
    if tail.lines.len() == KEPT {
        tail.lines.pop_front();
    }
    tail.lines.push_back(line);
    tail.told += 1;
}

fn tail() -> MutexGuard<'static, Tail> {
    TAIL.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_kept_and_all_are_counted() {
        watch(true);
        for number in 0..KEPT + 3 {
            keep(&format!("{{\"n\":{number}}}\n"));
        }
        let kept = read();
        assert_eq!((kept.lines.len(), kept.told), (KEPT, KEPT as u64 + 3));
        assert_eq!(kept.lines.front().map(String::as_str), Some(r#"{"n":3}"#));
        watch(false);
        assert_eq!((read().lines.len(), read().told), (0, 0), "nobody looks");
    }
}
