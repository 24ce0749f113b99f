//! Begin, commit, roll back, reopen.

use headcount::store::likes::{LikesChanges, Membership};
use headcount::store::{Durability, Saved, Store};

const NOW_MS: i64 = 1_700_000_000_000;

pub fn what_is_committed_is_there_after_reopening<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    let key = store.create_items(&["a"]).unwrap()[0];
    store.commit(NOW_MS).unwrap();
    store.reopen().unwrap();
    assert_eq!(store.load_items(&["a"]).unwrap(), [Some(key)]);
    drop(store);
    assert_eq!(open().load_items(&["a"]).unwrap(), [Some(key)]);
}

pub fn what_is_rolled_back_is_not<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    store.create_items(&["a"]).unwrap();
    assert!(store.load_items(&["a"]).unwrap()[0].is_some(), "a transaction sees its own changes");
    store.rollback().unwrap();
    assert_eq!(store.load_items(&["a"]).unwrap(), [None]);
    // And the next one begins afresh.
    store.begin().unwrap();
    store.create_items(&["a"]).unwrap();
    store.commit(NOW_MS).unwrap();
    assert!(store.load_items(&["a"]).unwrap()[0].is_some());
}

pub fn a_dropped_store_leaves_no_open_transaction<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    store.create_items(&["a"]).unwrap();
    store.reopen().unwrap();
    assert_eq!(store.load_items(&["a"]).unwrap(), [None], "reopening abandons what was not committed");
    store.begin().unwrap();
    store.create_items(&["b"]).unwrap();
    drop(store);
    let mut store = open();
    assert_eq!(store.load_items(&["a", "b"]).unwrap(), [None, None]);
    store.begin().unwrap();
    store.commit(NOW_MS).unwrap();
}

pub fn a_checkpoint_loses_nothing<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    for n in 0..50 {
        store.begin().unwrap();
        store.create_items(&[&format!("item-{n}")]).unwrap();
        store.commit(NOW_MS + n).unwrap();
    }
    let before = store.log_bytes();
    store.checkpoint().unwrap();
    assert!(store.log_bytes() <= before);
    let names: Vec<String> = (0..50).map(|n| format!("item-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(store.load_items(&names).unwrap().iter().all(Option::is_some));
    store.reopen().unwrap();
    assert!(store.load_items(&names).unwrap().iter().all(Option::is_some));
}

pub fn rolling_back_nothing_is_no_error<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    store.rollback().unwrap();
    store.begin().unwrap();
    store.rollback().unwrap();
    store.rollback().unwrap();
}

pub fn a_commit_says_whether_it_awaits_a_sync<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    store.create_items(&["a"]).unwrap();
    if store.commit(NOW_MS).unwrap() == Durability::AfterSync {
        store.syncer().unwrap().sync().unwrap();
    }
    store.begin().unwrap();
    store.load_items(&["a"]).unwrap();
    assert_eq!(store.commit(NOW_MS).unwrap(), Durability::Already, "nothing changed");
    store.reopen().unwrap();
    store.syncer().unwrap().sync().unwrap();
    assert!(store.load_items(&["a"]).unwrap()[0].is_some());
}

pub fn an_open_transaction_says_whether_it_has_changed_anything<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    store.begin().unwrap();
    assert!(!store.has_changed());
    let item = store.create_items(&["a"]).unwrap()[0];
    assert!(store.has_changed());
    store.rollback().unwrap();
    store.begin().unwrap();
    store.load_items(&["a"]).unwrap();
    store.load_memberships(&[Membership { user: "ada", item }]).unwrap();
    assert!(!store.has_changed(), "reading is no change, and what was rolled back is none");
    store.mark_time(NOW_MS).unwrap();
    assert!(store.has_changed());
    store.commit(NOW_MS).unwrap();
    store.begin().unwrap();
    store.mark_time(NOW_MS - 1).unwrap();
    assert!(!store.has_changed(), "it is later than that already");
    let added = LikesChanges { added: vec![Membership { user: "ada", item }], ..LikesChanges::default() };
    assert_eq!(store.save_likes(&added).unwrap(), Saved::Done);
    assert!(store.has_changed(), "wherever it goes");
    store.rollback().unwrap();
}
