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

    proptest! {
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
