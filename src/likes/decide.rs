//! What a like does: plain functions of state and command. No clock, no I/O, no SQL.

use crate::store::likes::Counter;

/// What an actor knows when it decides on one user and one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Whether the user likes the item.
    pub member: bool,
    /// The shard's count of the item.
    pub counter: Counter,
}

/// Brings the membership to `liked`. `Some` is the new state, stamped with the shard's `version`; `None`
/// means that it was so already.
///
/// The count follows the membership and nothing else, so repeats, in whatever order, count once.
#[must_use]
pub fn set_like(view: View, liked: bool, version: i64) -> Option<View> {
    if view.member == liked {
        return None;
    }
    let change = if liked { 1 } else { -1 };
    let members = view.counter.members + change;
    Some(View { member: liked, counter: Counter { members, version, ..view.counter } })
}

/// Forgets a member: its like goes; or, with `keep_count`, only the member does, and the like stays in the base. The new
/// counter, stamped with the shard's `version`.
#[must_use]
pub fn forget_member(counter: Counter, keep_count: bool, version: i64) -> Counter {
    let base = counter.base.saturating_add(i64::from(keep_count));
    Counter { members: counter.members - 1, base, version }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    struct Step {
        user: u8,
        item: u8,
        liked: bool,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step =
            (0..6_u8, 0..3_u8, any::<bool>()).prop_map(|(user, item, liked)| Step { user, item, liked });
        prop::collection::vec(step, 0..200)
    }

    #[test]
    fn forgetting_lowers_the_count_or_moves_it_into_the_base() {
        let counter = Counter { members: 3, base: 5, version: 1 };
        let removed = forget_member(counter, false, 2);
        assert_eq!((removed, removed.total()), (Counter { members: 2, base: 5, version: 2 }, 7));
        let anonymised = forget_member(counter, true, 2);
        assert_eq!((anonymised, anonymised.total()), (Counter { members: 2, base: 6, version: 2 }, 8));
    }

    proptest! {
        /// Against the naive model: pairs of a user and an item, counted by looking, and likes that nobody's name is on.
        #[test]
        fn forgetting_people_agrees_with_the_model(steps in steps(), forgotten in prop::collection::vec((0..6_u8, any::<bool>()), 0..20)) {
            let mut model: HashSet<(u8, u8)> = HashSet::new();
            let mut nameless: HashMap<u8, i64> = HashMap::new();
            let mut counters: HashMap<u8, Counter> = HashMap::new();
            for (number, Step { user, item, liked }) in steps.into_iter().enumerate() {
                let version = number as i64 + 1;
                let view = View {
                    member: model.contains(&(user, item)),
                    counter: counters.get(&item).copied().unwrap_or_default(),
                };
                if let Some(after) = set_like(view, liked, version) {
                    counters.insert(item, after.counter);
                    if liked { model.insert((user, item)); } else { model.remove(&(user, item)); }
                }
                let Some((person, keep)) = forgotten.get(number / 10).filter(|_| number % 10 == 9) else { continue };
                for item in 0..3 {
                    if model.remove(&(*person, item)) {
                        let counter = counters[&item];
                        counters.insert(item, forget_member(counter, *keep, version));
                        *nameless.entry(item).or_default() += i64::from(*keep);
                    }
                }
            }
            for (item, counter) in counters {
                let members = model.iter().filter(|(_, liked)| *liked == item).count() as i64;
                let base = nameless.get(&item).copied().unwrap_or(0);
                prop_assert_eq!((counter.members, counter.base), (members, base));
            }
        }

        /// Against the naive model: a set of (user, item) pairs, counted by looking.
        #[test]
        fn counts_are_the_size_of_the_set(steps in steps(), base in -3..10_i64) {
            let mut model = HashSet::new();
            let mut members: HashMap<(u8, u8), bool> = HashMap::new();
            let mut counters: HashMap<u8, Counter> = HashMap::new();
            for (version, Step { user, item, liked }) in (1..).zip(steps) {
                let expected_change =
                    if liked { model.insert((user, item)) } else { model.remove(&(user, item)) };
                let view = View {
                    member: members.get(&(user, item)).copied().unwrap_or(false),
                    counter: counters.get(&item).copied().unwrap_or(Counter { base, ..Counter::default() }),
                };
                let changed = set_like(view, liked, version);
                prop_assert_eq!(changed.is_some(), expected_change);
                if let Some(after) = changed {
                    prop_assert_eq!(after.counter.version, version);
                    prop_assert_eq!(after.counter.base, base);
                    members.insert((user, item), after.member);
                    counters.insert(item, after.counter);
                }
                let count = counters.get(&item).map_or(0, |counter| counter.members);
                prop_assert_eq!(count, model.iter().filter(|(_, liked)| *liked == item).count() as i64);
                prop_assert!(count >= 0);
            }
        }
    }
}
