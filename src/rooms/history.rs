//! What can be caught up on: the last messages of a room, bounded in number, bytes and age. Pure; the
//! memory of a room and its durable record keep their books with it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::types::{Message, Position, UserId};

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// `rooms.history_messages`
    pub messages: usize,
    /// `rooms.history_bytes`
    pub bytes: usize,
    /// `rooms.history_age_ms`
    pub age_ms: i64,
}

/// One message that is kept.
#[derive(Debug, Clone)]
pub struct Kept<T> {
    /// Its number.
    pub offset: u64,
    /// When it was said, ms since 1970.
    pub at_ms: i64,
    /// What it counts for.
    pub bytes: usize,
    /// The sender and its id of it.
    pub id: Option<(Option<UserId>, Arc<str>)>,
    /// The message, in whatever form its keeper needs.
    pub entry: T,
}

/// The kept messages of one room, oldest first.
#[derive(Debug)]
pub struct History<T> {
    kept: VecDeque<Kept<T>>,
    bytes: usize,
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self { kept: VecDeque::new(), bytes: 0 }
    }
}

impl<T> History<T> {
    /// Keeps what was kept, in order of its numbers.
    pub fn from_kept(kept: impl Iterator<Item = Kept<T>>) -> Self {
        let kept: VecDeque<_> = kept.collect();
        let bytes = kept.iter().map(|kept| kept.bytes).sum();
        Self { kept, bytes }
    }

    /// The number under which a message with this id was said, if it is still kept.
    #[must_use]
    pub fn find(&self, message: &Message) -> Option<u64> {
        let id = message.id.as_ref()?;
        let same = |kept: &&Kept<T>| {
            kept.id.as_ref().is_some_and(|(user, known)| known == id && *user == message.user)
        };
        self.kept.iter().find(same).map(|kept| kept.offset)
    }

    /// Adds a message and lets go of what is too much.
    pub fn push(&mut self, kept: Kept<T>, bounds: Bounds) {
        let now_ms = kept.at_ms;
        self.bytes += kept.bytes;
        self.kept.push_back(kept);
        while self.kept.len() > bounds.messages || self.bytes > bounds.bytes {
            if !self.drop_oldest() {
                break;
            }
        }
        self.expire(now_ms, bounds);
    }

    /// Lets go of what is too old.
    pub fn expire(&mut self, now_ms: i64, bounds: Bounds) {
        while self.kept.front().is_some_and(|oldest| now_ms.saturating_sub(oldest.at_ms) >= bounds.age_ms) {
            self.drop_oldest();
        }
        if self.kept.is_empty() {
            self.kept = VecDeque::new();
        }
    }

    /// What is kept, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Kept<T>> {
        self.kept.iter()
    }

    /// Keeps others in the place of some; of how many.
    pub fn replace(&mut self, mut other: impl FnMut(&Kept<T>) -> Option<Kept<T>>) -> usize {
        let mut replaced = 0;
        for kept in &mut self.kept {
            if let Some(other) = other(kept) {
                self.bytes = self.bytes - kept.bytes + other.bytes;
                *kept = other;
                replaced += 1;
            }
        }
        replaced
    }

    fn drop_oldest(&mut self) -> bool {
        let dropped = self.kept.pop_front();
        self.bytes -= dropped.as_ref().map_or(0, |dropped| dropped.bytes);
        dropped.is_some()
    }

    /// Everything after a position, exactly; `None` if that can no longer be said.
    #[must_use]
    pub fn since(&self, since: &Position, epoch: &str, last: u64) -> Option<Vec<&Kept<T>>> {
        if *since.epoch != *epoch || since.offset > last {
            return None;
        }
        let after: Vec<_> = self.kept.iter().filter(|kept| kept.offset > since.offset).collect();
        (after.len() as u64 == last - since.offset).then_some(after)
    }

    /// When the oldest message becomes too old.
    #[must_use]
    pub fn next_due_ms(&self, bounds: Bounds) -> Option<i64> {
        self.kept.front().map(|oldest| oldest.at_ms.saturating_add(bounds.age_ms))
    }

    /// The oldest number kept.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.kept.front().map(|kept| kept.offset)
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { messages: 3, bytes: 100, age_ms: 1_000 };

    fn history(offsets: std::ops::RangeInclusive<u64>) -> History<()> {
        let mut history = History::default();
        offsets.for_each(|offset| history.push(kept(offset, 10, 0), BOUNDS));
        history
    }

    fn kept(offset: u64, bytes: usize, at_ms: i64) -> Kept<()> {
        Kept { offset, at_ms, bytes, id: None, entry: () }
    }

    fn since(history: &History<()>, epoch: &str, offset: u64, last: u64) -> Option<Vec<u64>> {
        let since = Position { epoch: epoch.into(), offset };
        history.since(&since, "e", last).map(|after| after.iter().map(|kept| kept.offset).collect())
    }

    #[test]
    fn what_was_missed_is_exact_or_not_given() {
        let history = history(1..=5);
        assert_eq!(since(&history, "e", 5, 5), Some(vec![]));
        assert_eq!(since(&history, "e", 3, 5), Some(vec![4, 5]));
        assert_eq!(since(&history, "e", 2, 5), Some(vec![3, 4, 5]));
        assert_eq!(since(&history, "e", 1, 5), None, "2 is no longer kept");
        assert_eq!(since(&history, "e", 6, 5), None, "not said yet");
        assert_eq!(since(&history, "other", 5, 5), None);
    }

    #[test]
    fn an_empty_history_has_nothing_missed_at_its_end() {
        let empty = History::default();
        assert_eq!(since(&empty, "e", 0, 0), Some(vec![]));
        assert_eq!(since(&empty, "e", 7, 7), Some(vec![]));
        assert_eq!(since(&empty, "e", 6, 7), None);
    }

    #[test]
    fn number_bytes_and_age_are_bounded() {
        assert_eq!(history(1..=5).first(), Some(3));
        let mut history = history(1..=3);
        history.push(kept(4, 90, 0), BOUNDS);
        assert_eq!((history.first(), history.bytes), (Some(3), 100));
        history.push(kept(5, 101, 0), BOUNDS);
        assert!(history.is_empty(), "larger than all that may be kept");
        history.push(kept(6, 1, 10), BOUNDS);
        assert_eq!(history.next_due_ms(BOUNDS), Some(1_010));
        history.expire(1_009, BOUNDS);
        assert!(!history.is_empty());
        history.expire(1_010, BOUNDS);
        assert!(history.is_empty());
    }

    #[test]
    fn what_takes_another_s_place_counts_for_its_own_bytes() {
        let mut history = history(1..=3);
        let smaller = |at: &Kept<()>| (at.offset == 2).then_some(kept(2, 4, 0));
        assert_eq!(history.replace(smaller), 1);
        assert_eq!((history.bytes, history.iter().count()), (24, 3));
        assert_eq!(history.replace(|_| None), 0);
    }

    #[test]
    fn an_id_is_its_senders_own() {
        let message = |user: &str, id: Option<&str>| Message {
            user: UserId::parse(user, 128),
            body: super::super::types::Body::Text("hi".into()),
            id: id.map(Into::into),
        };
        let mut history = History::default();
        let id = Some((UserId::parse("ada", 128), "one".into()));
        history.push(Kept { id, ..kept(1, 1, 0) }, BOUNDS);
        assert_eq!(history.find(&message("ada", Some("one"))), Some(1));
        assert_eq!(history.find(&message("bob", Some("one"))), None);
        assert_eq!(history.find(&message("ada", Some("two"))), None);
        assert_eq!(history.find(&message("ada", None)), None);
    }
}
