//! The names and numbers of reservations.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::names::{free_name, is_name_byte, is_request_id};

/// A workshop's name: `^[a-z][a-z0-9-]{0,31}$`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkshopName(Arc<str>);

/// The caller's id of one attempt: `^[a-z0-9][a-z0-9-]{2,47}$`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(Arc<str>);

/// The person whom seats are for, as the application knows it. Stored in one row of each partition that
/// knows it; everything else holds a surrogate.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HolderName(Arc<str>);
free_name!(HolderName);

impl std::fmt::Debug for HolderName {
    /// Not the name: what is logged by mistake cannot be forgotten.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HolderName(…)")
    }
}

/// A number of seats: at least one, at most `reservations.max_seats_per_request`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seats(u32);

impl WorkshopName {
    /// `None` unless the text matches.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let matches = (1..=32).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(is_name_byte);
        matches.then(|| Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The hash that places the workshop on a partition and names its actor there.
    #[must_use]
    pub fn hash(&self) -> u64 {
        xxh3_64(self.0.as_bytes())
    }
}

/// The partition that runs a workshop. A stored fact, as the manifest's partition count is.
#[must_use]
pub fn partition_of_workshop(hash: u64, partitions: u32) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below a u32")]
    let partition = (hash % u64::from(partitions)) as u32;
    partition
}

impl RequestId {
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

    /// The text, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl From<Arc<str>> for RequestId {
    /// An id that was stored, and so was parsed before.
    fn from(stored: Arc<str>) -> Self {
        Self(stored)
    }
}

impl std::borrow::Borrow<str> for RequestId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Seats {
    /// A JSON number as it was written: any spelling of a whole number in range, as the seed's
    /// JavaScript reads it, so `1.0` and `1e0` are 1. `None` for everything else.
    #[must_use]
    pub fn parse(json: &str, max: u32) -> Option<Self> {
        whole_number(json, 1, i64::from(max)).and_then(|number| u32::try_from(number).ok()).map(Self)
    }

    /// A number that was stored, and so was parsed before; perhaps the sum of some.
    #[must_use]
    pub fn stored(seats: i64) -> Option<Self> {
        u32::try_from(seats).ok().filter(|seats| *seats > 0).map(Self)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

/// A JSON number as it was written: any spelling of a whole number within both bounds, which lie within 2^53,
/// where every whole number is exact. `None` for everything else.
#[must_use]
pub fn whole_number(json: &str, min: i64, max: i64) -> Option<i64> {
    // Only a JSON number starts so; f64 would also read words such as "inf".
    if !json.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return None;
    }
    let number: f64 = json.parse().ok()?;
    #[expect(clippy::cast_precision_loss, reason = "bounds are exact")]
    let in_range = number.fract() == 0.0 && number >= min as f64 && number <= max as f64;
    #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
    in_range.then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workshop_names_have_both_bounds() {
        for good in ["a", "launch-day", "a1-", &"a".repeat(32)] {
            assert!(WorkshopName::parse(good).is_some(), "{good}");
        }
        for bad in ["", "A", "1a", "-a", "a_b", "a b", "é", "a\n", &"a".repeat(33)] {
            assert!(WorkshopName::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn request_ids_have_both_bounds_and_uuids_pass() {
        for good in ["abc", "1ab", "request-1", "123e4567-e89b-12d3-a456-426614174000", &"a".repeat(48)] {
            assert!(RequestId::parse(good).is_some(), "{good}");
        }
        for bad in ["", "ab", "-ab", "ABC", "a_b", "abc\n", "日本語", &"a".repeat(49)] {
            assert!(RequestId::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn seats_are_a_whole_number_in_range_however_it_is_spelt() {
        for good in ["1", "1.0", "1e0", "1E0", "10e-1", "0.1e1", "1.000000000000000000000"] {
            assert_eq!(Seats::parse(good, 4), Some(Seats(1)), "{good}");
        }
        assert_eq!(Seats::parse("4", 4), Some(Seats(4)));
        for bad in [
            "0",
            "-0",
            "-1",
            "5",
            "1.5",
            "1e400",
            "-1e400",
            "1e-400",
            "4.0000001",
            "99999999999999999999",
            "\"1\"",
            "true",
            "null",
            "[1]",
            "{}",
            "",
        ] {
            assert_eq!(Seats::parse(bad, 4), None, "{bad}");
        }
    }

    /// A changed vector means that stored workshops would be looked for on the wrong partition.
    #[test]
    fn the_workshop_to_partition_hash_is_pinned() {
        let launch_day = WorkshopName::parse("launch-day").unwrap();
        assert_eq!(launch_day.hash(), 0x58ac_a7c2_1144_0537);
        assert_eq!(partition_of_workshop(launch_day.hash(), 2), 1);
    }
}
