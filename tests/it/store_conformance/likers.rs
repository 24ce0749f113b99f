//! Lists of likes and counting them again: right whatever has settled into a table and what has not.

use headcount::store::Store;
use headcount::store::likers::{LikedItem, Likers};
use headcount::store::likes::{CounterKey, ItemKey, LedgerChange, LikesChanges, Membership};

const NOW_MS: i64 = 1_700_000_000_000;
const NOW_S: i64 = NOW_MS / 1000;

fn transact<S: Store, T>(store: &mut S, work: impl FnOnce(&mut S) -> T) -> T {
    store.begin().unwrap();
    let done = work(store);
    store.commit(NOW_MS).unwrap();
    done
}

/// Six items; ada likes all but the third, which she has unliked; bob likes the first.
fn filled<S: Store>(store: &mut S) -> Vec<ItemKey> {
    let names = ["f", "e", "d", "c", "b", "a"];
    let keys = transact(store, |store| store.create_items(&names).unwrap());
    for (user, item) in keys.iter().map(|key| ("ada", *key)).chain([("bob", keys[0])]) {
        let added = vec![Membership { user, item }];
        let changes = LikesChanges { added, now_s: NOW_S, ..LikesChanges::default() };
        let _done = transact(store, |store| store.save_likes(&changes).unwrap());
    }
    let removed = vec![Membership { user: "ada", item: keys[2] }];
    let changes = LikesChanges { removed, ..LikesChanges::default() };
    let _done = transact(store, |store| store.save_likes(&changes).unwrap());
    keys
}

pub fn a_user_s_likes_come_in_the_order_of_their_keys<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = filled(&mut store);
    let mut likes =
        |user: &str, after, limit| -> Vec<LikedItem> { store.likes_of(user, after, limit).unwrap() };
    let all = likes("ada", ItemKey(0), 10);
    let expected = [(keys[0], "f"), (keys[1], "e"), (keys[3], "c"), (keys[4], "b"), (keys[5], "a")];
    let expected =
        expected.map(|(item, name)| LikedItem { item, name: Some(name.to_owned()), liked_at_s: NOW_S });
    assert_eq!(all, expected);
    assert_eq!(likes("ada", ItemKey(0), 2), expected[..2]);
    assert_eq!(likes("ada", keys[1], 2), expected[2..4]);
    assert_eq!(likes("ada", keys[2], 9), expected[2..], "after what is not there");
    assert_eq!(likes("ada", keys[5], 9), []);
    assert_eq!((likes("bob", ItemKey(0), 9).len(), likes("eve", ItemKey(0), 9).len()), (1, 0));
    assert!(transact(&mut store, |store| store.delete_item("e", 1, &[0]).unwrap()));
    let of_a_deleted_item = &store.likes_of("ada", ItemKey(0), 9).unwrap()[1];
    assert_eq!((of_a_deleted_item.item, &of_a_deleted_item.name), (keys[1], &None));
}

pub fn without_an_index_nobody_knows_who_likes_an_item<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = filled(&mut store);
    assert_eq!(store.likers(keys[0], "", 9).unwrap(), Likers::Off);
    assert!(!transact(&mut store, |store| store.build_index(9).unwrap()), "there is nothing to build");
}

pub fn a_walk_sees_every_membership_once<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = filled(&mut store);
    for limit in [1, 2, 3, 100] {
        let (mut at, mut rows) = (None, Vec::new());
        loop {
            let walked = store.walk_memberships(at.as_ref(), &[keys[0], keys[2], keys[5]], limit).unwrap();
            rows.extend(walked.rows);
            match walked.at {
                Some(place) => at = Some(place),
                None => break,
            }
        }
        let expected = [("ada", keys[0]), ("ada", keys[5]), ("bob", keys[0])];
        assert_eq!(rows, expected.map(|(user, item)| (user.to_owned(), item)), "{limit}");
    }
}

pub fn a_sample_lies_anywhere<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    assert_eq!(store.sample_items(5, 3).unwrap(), []);
    let keys = filled(&mut store);
    let mut seen: Vec<ItemKey> = (0..100).flat_map(|seed| store.sample_items(seed, 2).unwrap()).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, keys);
    assert_eq!(store.sample_items(0, 100).unwrap(), keys);
}

pub fn a_ledger_adds_up_by_counter<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = filled(&mut store);
    let [here, there] = [0, 1].map(|shard| CounterKey { shard, item: keys[0] });
    for (key, source, amount) in [(here, "one", 5), (here, "two", -2), (here, "one", 4), (there, "one", 1)] {
        let ledger = vec![LedgerChange { key, source, amount }];
        let changes = LikesChanges { ledger, ..LikesChanges::default() };
        let _done = transact(&mut store, |store| store.save_likes(&changes).unwrap());
    }
    store.reopen().unwrap();
    let nothing = CounterKey { shard: 0, item: keys[1] };
    assert_eq!(store.ledger_sums(&[there, nothing, here]).unwrap(), [1, 0, 7]);
}
