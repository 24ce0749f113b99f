//! What an add does: plain functions of state and command. No clock, no I/O, no SQL.
//!
//! A total is the sum of what the shards count, and fits an `i64` because each shard keeps to its share of the range:
//! an add that would take it beyond is refused, whatever the others count. So nobody has to ask them.

use crate::store::counters::Seen;
use crate::store::likes::Counter;

/// What a shard knows when it decides on an add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Its count of the counter.
    pub counter: Option<Counter>,
    /// What is stored of the add's id, if it has one.
    pub seen: Option<Seen>,
}

/// The rules that the settings make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// What a shard counts lies between this and its negative.
    pub share: i64,
    /// How long an id is remembered, in ms.
    pub dedupe_ttl_ms: i64,
}

impl Terms {
    /// The terms of one of `shards` shards.
    #[must_use]
    pub fn new(shards: u32, dedupe_ttl_ms: i64) -> Self {
        Self { share: share(shards), dedupe_ttl_ms }
    }
}

/// How far from 0 what one of `shards` shards counts may lie, so that their sum fits an `i64`.
#[must_use]
pub fn share(shards: u32) -> i64 {
    i64::MAX / i64::from(shards.max(1))
}

/// What came of an add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It was decided, now or before.
    Decided {
        /// Whether it counts; otherwise it was refused, for the shard's share.
        added: bool,
        /// Whether this repeats an earlier decision.
        replayed: bool,
    },
    /// The id was decided for another amount.
    Reused {
        /// Which.
        first_amount: i64,
    },
}

/// What an add changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// The shard's counter from now on.
    pub counter: Option<Counter>,
    /// What is known of the id from now on.
    pub seen: Option<Seen>,
}

/// Adds, once an id: a remembered one gets its first answer again. A changed counter is stamped with the shard's
/// `version`.
#[must_use]
pub fn add(
    view: View,
    amount: i64,
    has_id: bool,
    terms: Terms,
    version: i64,
    now_ms: i64,
) -> (Added, Change) {
    if let Some(seen) = view.seen.filter(|seen| is_remembered(*seen, terms, now_ms)) {
        let told = match seen.amount == amount {
            true => Added::Decided { added: seen.added, replayed: true },
            false => Added::Reused { first_amount: seen.amount },
        };
        return (told, Change::default());
    }
    let before = view.counter.unwrap_or_default();
    let base = within_share(before.base, amount, terms.share);
    let added = base.is_some();
    let change = Change {
        // Nothing added is nothing changed.
        counter: base.filter(|_| amount != 0).map(|base| Counter { base, version, ..before }),
        seen: has_id.then_some(Seen { amount, added, decided_at_ms: now_ms }),
    };
    (Added::Decided { added, replayed: false }, change)
}

/// From the very millisecond on that its time is over, an id is new.
fn is_remembered(seen: Seen, terms: Terms, now_ms: i64) -> bool {
    now_ms.saturating_sub(seen.decided_at_ms) < terms.dedupe_ttl_ms
}

/// The sum, unless it lies beyond the share. A count that is beyond it already (there are more shards now than when
/// it was counted) may still come back.
fn within_share(base: i64, amount: i64, share: i64) -> Option<i64> {
    let sum = base.checked_add(amount)?;
    let within = sum.unsigned_abs() <= share.unsigned_abs();
    let comes_back = sum.unsigned_abs() < base.unsigned_abs() && sum.signum() == base.signum();
    (within || comes_back).then_some(sum)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    struct Step {
        shard: usize,
        /// `None`: an add without an id.
        id: Option<u8>,
        amount: i64,
        later_ms: i64,
    }

    const SHARDS: usize = 3;
    const TTL_MS: i64 = 100;

    fn amounts() -> impl Strategy<Value = i64> {
        prop_oneof![
            -3..4_i64,
            any::<i64>(),
            Just(i64::MAX),
            Just(i64::MIN),
            Just(i64::MAX / SHARDS as i64),
            Just(-(i64::MAX / SHARDS as i64))
        ]
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = (0..SHARDS, prop::option::of(0..5_u8), amounts(), 0..60_i64)
            .prop_map(|(shard, id, amount, later_ms)| Step { shard, id, amount, later_ms });
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// Against the naive model: a list of what was added, summed in 128 bits, and who has asked when.
        #[test]
        fn totals_are_the_sum_of_what_was_added_once(steps in steps()) {
            let terms = Terms::new(u32::try_from(SHARDS).unwrap(), TTL_MS);
            let mut counters = [None::<Counter>; SHARDS];
            let mut stored: HashMap<(usize, u8), Seen> = HashMap::new();
            let mut sums = [0_i128; SHARDS];
            let mut asked: HashMap<(usize, u8), (i64, i64, bool)> = HashMap::new();
            let mut now_ms = 1_000;
            for (version, Step { shard, id, amount, later_ms }) in (1..).zip(steps) {
                now_ms += later_ms;
                let key = id.map(|id| (shard, id));
                let seen = key.and_then(|key| stored.get(&key).copied());
                let view = View { counter: counters[shard], seen };
                let (told, change) = add(view, amount, id.is_some(), terms, version, now_ms);

                let first = key.and_then(|key| asked.get(&key).copied()).filter(|(_, at, _)| now_ms - at < TTL_MS);
                match (first, told) {
                    (Some((first_amount, ..)), Added::Reused { first_amount: told }) => {
                        prop_assert!(first_amount == told && told != amount);
                    }
                    (Some((first_amount, _, first_added)), Added::Decided { added, replayed }) => {
                        prop_assert!(replayed && first_amount == amount && added == first_added);
                    }
                    (None, Added::Decided { added, replayed }) => {
                        let sum = sums[shard] + i128::from(amount);
                        prop_assert!(!replayed && added == (sum.abs() <= i128::from(terms.share)));
                        if added {
                            sums[shard] = sum;
                        }
                        key.map(|key| asked.insert(key, (amount, now_ms, added)));
                    }
                    (None, Added::Reused { .. }) => prop_assert!(false, "nothing was remembered"),
                }
                prop_assert!(first.is_none() || change == Change::default(), "told again, and changed");
                prop_assert!(change.counter.is_none_or(|counter| counter.version == version));
                counters[shard] = change.counter.or(counters[shard]);
                key.zip(change.seen).map(|(key, seen)| stored.insert(key, seen));

                let counted = counters.map(|counter| counter.map_or(0, |counter| counter.base));
                prop_assert_eq!(counted.map(i128::from), sums);
                prop_assert!(i64::try_from(sums.iter().sum::<i128>()).is_ok(), "no sum leaves the range");
                prop_assert!(counters.iter().flatten().all(|counter| counter.members == 0));
            }
        }
    }

    fn added(base: i64, amount: i64, share: i64) -> Option<i64> {
        let counter = Some(Counter { base, ..Counter::default() });
        let view = View { counter, seen: None };
        let terms = Terms { share, dedupe_ttl_ms: 1 };
        add(view, amount, false, terms, 1, 0).1.counter.map(|counter| counter.base)
    }

    #[test]
    fn a_shard_keeps_to_its_share() {
        assert_eq!(Terms::new(1, 1).share, i64::MAX);
        for shards in [1, 2, 3, 16, 4_096] {
            assert!(i128::from(Terms::new(shards, 1).share) * i128::from(shards) <= i128::from(i64::MAX));
        }
        assert_eq!(added(0, i64::MAX, i64::MAX), Some(i64::MAX));
        assert_eq!(added(i64::MAX, 1, i64::MAX), None);
        assert_eq!(added(0, i64::MIN, i64::MAX), None, "the range is the same on both sides");
        assert_eq!((added(9, 1, 10), added(9, 2, 10)), (Some(10), None));
        assert_eq!((added(-9, -1, 10), added(-9, -2, 10)), (Some(-10), None));
        assert_eq!((added(20, -5, 10), added(20, 1, 10)), (Some(15), None), "beyond it, it may come back");
        assert_eq!(
            (added(20, -35, 10), added(20, -30, 10)),
            (None, Some(-10)),
            "and not pass to the other end"
        );
    }

    #[test]
    fn an_id_is_remembered_to_the_millisecond() {
        let terms = Terms { share: 10, dedupe_ttl_ms: 100 };
        let seen = Some(Seen { amount: 1, added: true, decided_at_ms: 1_000 });
        let at = |now_ms, amount| add(View { counter: None, seen }, amount, true, terms, 1, now_ms).0;
        assert_eq!(at(1_099, 1), Added::Decided { added: true, replayed: true });
        assert_eq!(at(1_099, 2), Added::Reused { first_amount: 1 });
        assert_eq!(at(1_100, 2), Added::Decided { added: true, replayed: false });
    }

    #[test]
    fn a_refusal_uses_its_id_up() {
        let terms = Terms { share: 10, dedupe_ttl_ms: 100 };
        let (told, change) = add(View { counter: None, seen: None }, 11, true, terms, 1, 0);
        assert_eq!((told, change.counter), (Added::Decided { added: false, replayed: false }, None));
        let again = add(View { counter: None, seen: change.seen }, 11, true, terms, 1, 50);
        assert_eq!(again, (Added::Decided { added: false, replayed: true }, Change::default()));
    }
}
