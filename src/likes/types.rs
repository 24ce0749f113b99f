//! The names and places of likes.

use std::fmt;
use std::sync::Arc;

use compact_str::CompactString;
use serde::{Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use crate::names::free_name;

/// A user's id, as the application knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserId(CompactString);
free_name!(UserId);

/// What can be liked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ItemId(Arc<str>);
free_name!(ItemId);

impl UserId {
    /// The shard that owns this user's memberships: `xxh3_64(user id) % shards`. A stored fact: a data
    /// directory's manifest names the hash and the number of shards.
    #[must_use]
    pub fn shard(&self, shards: u32) -> u32 {
        shard_of(&self.0, shards)
    }
}

/// See [`UserId::shard`].
#[must_use]
pub fn shard_of(user: &str, shards: u32) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below a u32")]
    let shard = (xxh3_64(user.as_bytes()) % u64::from(shards)) as u32;
    shard
}

/// The partition that runs a shard.
#[must_use]
pub fn partition_of_shard(shard: u32, partitions: u32) -> u32 {
    shard % partitions
}

/// The shards that a partition runs, in order.
#[must_use]
pub fn shards_of_partition(partition: u32, shards: u32, partitions: u32) -> Vec<u32> {
    (0..shards).filter(|shard| partition_of_shard(*shard, partitions) == partition).collect()
}

/// Begins the stored name of an item that stands for a counter without members. No name of an item has a control
/// character, so the two never meet.
const COUNTER_MARK: char = '\u{1}';

impl ItemId {
    /// The item that stands for a counter. Its name was checked.
    #[must_use]
    pub(super) fn of_counter(name: &str) -> Self {
        Self(format!("{COUNTER_MARK}{name}").into())
    }

    /// The name of the counter that an item of this stored name stands for, if it stands for one.
    #[must_use]
    pub fn counter_in(stored: &str) -> Option<&str> {
        stored.strip_prefix(COUNTER_MARK)
    }

    /// The text, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl Serialize for UserId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Serialize for ItemId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A changed vector means that stored users would be looked for in the wrong shard. The hashes are those
    /// of the reference implementation in C.
    #[test]
    fn the_user_to_shard_hash_is_pinned() {
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2);
        let pinned: [(&str, u64, u32); 6] = [
            ("a", 0xe6c6_32b6_1e96_4e1f, 15),
            ("ada", 0x691d_4463_952c_802f, 15),
            ("user-1", 0x7c76_15c1_1438_e5c9, 9),
            ("user-2", 0x2033_3bb6_4816_64d4, 4),
            ("123e4567-e89b-12d3-a456-426614174000", 0x827b_d1a3_caa9_f20c, 12),
            ("日本", 0x2c17_fb83_7f1a_1bc0, 0),
        ];
        for (user, hash, shard_of_16) in pinned {
            assert_eq!(xxh3_64(user.as_bytes()), hash, "{user}");
            assert_eq!(shard_of(user, 16), shard_of_16, "{user}");
        }
    }

    #[test]
    fn every_shard_gets_its_share_of_users() {
        let mut users = [0_u32; 16];
        for user in 0..16_000 {
            users[shard_of(&format!("user-{user}"), 16) as usize] += 1;
        }
        assert!(users.iter().all(|count| (850..1150).contains(count)), "{users:?}");
    }
}
