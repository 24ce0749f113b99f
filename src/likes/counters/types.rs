//! The names of counters and of adds.

use std::fmt;
use std::sync::Arc;

use crate::likes::types::{ItemId, shard_of};
use crate::names::{is_free_name, is_request_id};

/// A counter's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CounterName(ItemId);

/// The caller's id of one add to a counter: `^[a-z0-9][a-z0-9-]{2,47}$`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AddId(Arc<str>);

impl CounterName {
    /// `None` unless the text is 1 to `max_bytes` bytes without control characters, and not `.` or `..`.
    #[must_use]
    pub fn parse(text: &str, max_bytes: usize) -> Option<Self> {
        is_free_name(text, max_bytes).then(|| Self(ItemId::of_counter(text)))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Every counter's item says its name.
        ItemId::counter_in(self.0.as_str()).unwrap_or_default()
    }

    /// The item that it is kept as.
    #[must_use]
    pub fn item(&self) -> &ItemId {
        &self.0
    }
}

impl AddId {
    /// `None` unless the text matches.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        is_request_id(text).then(|| Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The shard that adds it: `xxh3_64(request id) % shards`, as of users. An id that is repeated meets what was
    /// decided on it.
    #[must_use]
    pub fn shard(&self, shards: u32) -> u32 {
        shard_of(&self.0, shards)
    }
}

impl fmt::Display for CounterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_no_item_whatever_it_is_called() {
        for name in ["views", "日本", "a/b", "\u{a0}"] {
            let counter = CounterName::parse(name, 128).unwrap();
            assert_eq!((counter.as_str(), counter.to_string()), (name, name.to_owned()));
            let item = ItemId::parse(name, 128).unwrap();
            assert_ne!(*counter.item(), item);
            assert_eq!(ItemId::counter_in(counter.item().as_str()), Some(name));
            assert_eq!(ItemId::counter_in(item.as_str()), None);
            assert_eq!(ItemId::parse(counter.item().as_str(), 128), None, "nobody can name it as an item");
        }
        for bad in ["", ".", "..", "\u{1}", "\u{1}views", "a\nb", &"a".repeat(129)] {
            assert_eq!(CounterName::parse(bad, 128), None, "{bad:?}");
        }
        assert!(CounterName::parse(&"a".repeat(128), 128).is_some(), "the mark counts for nothing");
    }
}
