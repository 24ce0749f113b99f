//! Counters without members: ids of adds, for as long as they are kept.

use headcount::store::counters::{AddChanges, LedgerEntry, RequestChange, RequestKey, Seen};
use headcount::store::likes::{CounterKey, ItemKey};
use headcount::store::{Saved, Store};

fn create<S: Store>(store: &mut S, names: &[&str]) -> Vec<ItemKey> {
    store.begin().unwrap();
    let keys = store.create_items(names).unwrap();
    store.commit(0).unwrap();
    keys
}

fn seen(amount: i64, decided_at_ms: i64) -> Seen {
    Seen { amount, added: amount != 13, decided_at_ms }
}

fn save<S: Store>(store: &mut S, key: RequestKey<'_>, before: Option<Seen>, after: Seen) -> Saved {
    let requests = vec![RequestChange { key, before, after }];
    let ledger = vec![LedgerEntry { key: CounterKey { shard: 1, item: key.counter }, amount: after.amount }];
    store.begin().unwrap();
    let saved = store.save_adds(&AddChanges { requests, ledger, rests_on: Vec::new() }).unwrap();
    match saved {
        Saved::Done => {
            store.commit(0).unwrap();
        }
        Saved::Conflict => store.rollback().unwrap(),
    }
    saved
}

pub fn an_id_is_kept_as_decided<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let counters = create(&mut store, &["views", "plays"]);
    let key = |counter: usize, request| RequestKey { counter: counters[counter], request };
    assert_eq!(store.load_requests(&[key(0, "one")]).unwrap(), [None]);
    assert_eq!(save(&mut store, key(0, "one"), None, seen(i64::MIN, 5)), Saved::Done);
    assert_eq!(save(&mut store, key(0, "two"), None, seen(13, 6)), Saved::Done);
    assert_eq!(save(&mut store, key(1, "one"), None, seen(7, 7)), Saved::Done);
    store.reopen().unwrap();
    let loaded = store.load_requests(&[key(1, "one"), key(1, "two"), key(0, "two"), key(0, "one")]).unwrap();
    let expected = [Some(seen(7, 7)), None, Some(seen(13, 6)), Some(seen(i64::MIN, 5))];
    assert_eq!(loaded, expected, "in the order of the question; an id is its counter's own");
    assert_eq!(
        save(&mut store, key(0, "one"), Some(seen(i64::MIN, 5)), seen(3, 900)),
        Saved::Done,
        "used again"
    );
    assert_eq!(store.load_requests(&[key(0, "one")]).unwrap(), [Some(seen(3, 900))]);
}

pub fn an_id_that_changed_meanwhile_is_a_conflict<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let counter = create(&mut store, &["views"])[0];
    let key = RequestKey { counter, request: "one" };
    assert_eq!(save(&mut store, key, Some(seen(1, 1)), seen(2, 2)), Saved::Conflict, "gone");
    assert_eq!(save(&mut store, key, None, seen(1, 1)), Saved::Done);
    for before in [None, Some(seen(2, 1)), Some(seen(1, 2)), Some(Seen { added: false, ..seen(1, 1) })] {
        assert_eq!(save(&mut store, key, before, seen(9, 9)), Saved::Conflict, "{before:?}");
    }
    assert_eq!(store.load_requests(&[key]).unwrap(), [Some(seen(1, 1))], "a conflict leaves nothing behind");
}

pub fn ids_are_forgotten_oldest_first_a_chunk_at_a_time<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let counter = create(&mut store, &["views"])[0];
    let names: Vec<String> = (0..7).map(|n| format!("request-{n}")).collect();
    let key = |n: usize| RequestKey { counter, request: &names[n] };
    for n in 0..7 {
        assert_eq!(save(&mut store, key(n), None, seen(1, 10 * n as i64)), Saved::Done);
    }
    let mut forget = |decided_up_to_ms, limit| {
        store.begin().unwrap();
        let forgotten = store.forget_requests(decided_up_to_ms, limit).unwrap();
        store.commit(0).unwrap();
        let left = store.load_requests(&[0, 1, 2, 3, 4, 5, 6].map(key)).unwrap();
        (forgotten, left.iter().map(Option::is_some).collect::<Vec<_>>())
    };
    let from = |first: usize| (0..7).map(|n| n >= first).collect::<Vec<_>>();
    assert_eq!(forget(-1, 10), (0, from(0)));
    assert_eq!(forget(30, 3), (3, from(3)));
    assert_eq!(forget(30, 3), (1, from(4)), "a time, itself included");
    assert_eq!(forget(i64::MAX, 100), (3, from(7)));
}
