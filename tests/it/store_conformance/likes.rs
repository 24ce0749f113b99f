//! Items, memberships, counters, versions, deletions.

use headcount::store::likes::{
    ChangePosition, Counter, CounterChange, CounterKey, ItemKey, LikesChanges, Membership,
};
use headcount::store::{Saved, Store};

const NOW_MS: i64 = 1_700_000_000_000;
const START: ChangePosition = ChangePosition { version: 0, item: ItemKey(i64::MAX) };

fn transact<S: Store, T>(store: &mut S, work: impl FnOnce(&mut S) -> T) -> T {
    store.begin().unwrap();
    let done = work(store);
    store.commit(NOW_MS).unwrap();
    done
}

fn create<S: Store>(store: &mut S, names: &[&str]) -> Vec<ItemKey> {
    transact(store, |store| store.create_items(names).unwrap())
}

/// Saves in a transaction, which is rolled back on a conflict, as actors do.
fn save<S: Store>(store: &mut S, changes: &LikesChanges<'_>) -> Saved {
    store.begin().unwrap();
    let saved = store.save_likes(changes).unwrap();
    match saved {
        Saved::Done => {
            store.commit(NOW_MS).unwrap();
        }
        Saved::Conflict => store.rollback().unwrap(),
    }
    saved
}

fn counter(members: i64, version: i64) -> Counter {
    Counter { members, base: 0, version }
}

fn count(shard: u32, item: ItemKey, before: Option<Counter>, after: Counter) -> LikesChanges<'static> {
    let change = CounterChange { key: CounterKey { shard, item }, before, after };
    LikesChanges { counters: vec![change], ..LikesChanges::default() }
}

fn add<'a>(rows: &[Membership<'a>]) -> LikesChanges<'a> {
    LikesChanges { added: rows.to_vec(), ..LikesChanges::default() }
}

fn remove<'a>(rows: &[Membership<'a>]) -> LikesChanges<'a> {
    LikesChanges { removed: rows.to_vec(), ..LikesChanges::default() }
}

pub fn an_item_has_one_key_from_its_creation<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    assert_eq!(store.load_items(&["a"]).unwrap(), [None]);
    let keys = create(&mut store, &["a", "日本"]);
    assert_ne!(keys[0], keys[1]);
    let loaded = store.load_items(&["日本", "missing", "a", "a"]).unwrap();
    assert_eq!(loaded, [Some(keys[1]), None, Some(keys[0]), Some(keys[0])], "in the order of the question");
    assert_eq!(store.load_items(&["A"]).unwrap(), [None], "names are bytes: case counts");
    store.begin().unwrap();
    assert!(store.create_items(&["a"]).is_err(), "a second item of a name");
    store.rollback().unwrap();
    assert_eq!(store.load_items(&["a"]).unwrap(), [Some(keys[0])]);
}

/// Also of rows that were changed, changed back, added and removed in turn, some of them twice.
pub fn what_is_rolled_back_leaves_every_row_as_it_was<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let item = create(&mut store, &["a"])[0];
    let [ada, bob, eve] = ["ada", "bob", "eve"].map(|user| Membership { user, item });
    let key = CounterKey { shard: 0, item };
    let first = LikesChanges { added: vec![ada], ..count(0, item, None, counter(1, 1)) };
    assert_eq!(save(&mut store, &first), Saved::Done);
    for _ in 0..3 {
        store.begin().unwrap();
        let more = LikesChanges {
            added: vec![bob, eve],
            removed: vec![ada],
            ..count(0, item, Some(counter(1, 1)), counter(2, 2))
        };
        assert_eq!(store.save_likes(&more).unwrap(), Saved::Done);
        let again = LikesChanges {
            added: vec![ada],
            removed: vec![bob],
            ..count(0, item, Some(counter(2, 2)), counter(3, 3))
        };
        assert_eq!(store.save_likes(&again).unwrap(), Saved::Done);
        assert_eq!(store.load_memberships(&[ada, bob, eve]).unwrap(), [true, false, true]);
        assert_eq!(store.load_counters(&[key]).unwrap(), [Some(counter(3, 3))]);
        store.rollback().unwrap();
        assert_eq!(store.load_memberships(&[ada, bob, eve]).unwrap(), [true, false, false]);
        assert_eq!(store.load_counters(&[key]).unwrap(), [Some(counter(1, 1))]);
    }
    assert_eq!(save(&mut store, &add(&[eve])), Saved::Done);
    store.reopen().unwrap();
    assert_eq!(store.load_memberships(&[ada, bob, eve]).unwrap(), [true, false, true]);
    assert_eq!(store.load_counters(&[key]).unwrap(), [Some(counter(1, 1))]);
}

pub fn memberships_come_and_go<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["a", "b"]);
    let (ada_a, bob_a) =
        (Membership { user: "ada", item: keys[0] }, Membership { user: "bob", item: keys[0] });
    let ada_b = Membership { user: "ada", item: keys[1] };
    assert_eq!(save(&mut store, &add(&[ada_a, ada_b])), Saved::Done);
    assert_eq!(store.load_memberships(&[bob_a, ada_b, ada_a]).unwrap(), [false, true, true]);
    assert_eq!(save(&mut store, &LikesChanges { added: vec![bob_a], ..remove(&[ada_a]) }), Saved::Done);
    store.reopen().unwrap();
    assert_eq!(store.load_memberships(&[bob_a, ada_b, ada_a]).unwrap(), [true, true, false]);
    assert_eq!(save(&mut store, &add(&[ada_a])), Saved::Done, "again");
}

pub fn claiming_adds_what_is_absent_and_says_what_was_there<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let item = create(&mut store, &["a"])[0];
    let [ada, bob] = ["ada", "bob"].map(|user| Membership { user, item });
    assert_eq!(save(&mut store, &add(&[ada])), Saved::Done);
    store.begin().unwrap();
    assert_eq!(store.claim_memberships(&[bob, ada, bob], 0).unwrap(), [false, true, true]);
    store.rollback().unwrap();
    assert_eq!(
        store.load_memberships(&[ada, bob]).unwrap(),
        [true, false],
        "a claim is part of its transaction"
    );
    store.begin().unwrap();
    assert_eq!(store.claim_memberships(&[bob], 0).unwrap(), [false]);
    assert_eq!(store.save_likes(&remove(&[bob, ada])).unwrap(), Saved::Done, "and can be given up in it");
    store.commit(0).unwrap();
    assert_eq!(store.load_memberships(&[ada, bob]).unwrap(), [false, false]);
}

pub fn counters_are_saved_whole<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let item = create(&mut store, &["a"])[0];
    let (here, there) = (CounterKey { shard: 3, item }, CounterKey { shard: 4, item });
    assert_eq!(store.load_counters(&[here]).unwrap(), [None]);
    let first = Counter { members: 2, base: -7, version: 5 };
    assert_eq!(save(&mut store, &count(3, item, None, first)), Saved::Done);
    assert_eq!(store.load_counters(&[there, here]).unwrap(), [None, Some(first)]);
    let second = Counter { members: 0, base: i64::MAX, version: 6 };
    assert_eq!(save(&mut store, &count(3, item, Some(first), second)), Saved::Done);
    store.reopen().unwrap();
    assert_eq!(store.load_counters(&[here, there]).unwrap(), [Some(second), None]);
}

pub fn a_row_that_changed_meanwhile_is_a_conflict<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let item = create(&mut store, &["a"])[0];
    let (ada, bob) = (Membership { user: "ada", item }, Membership { user: "bob", item });
    assert_eq!(save(&mut store, &add(&[ada])), Saved::Done);
    assert_eq!(save(&mut store, &add(&[bob, ada])), Saved::Conflict, "added, and there already");
    assert_eq!(save(&mut store, &remove(&[ada, bob])), Saved::Conflict, "removed, and gone already");
    assert_eq!(
        store.load_memberships(&[ada, bob]).unwrap(),
        [true, false],
        "a conflict leaves nothing behind"
    );
}

pub fn a_counter_that_changed_meanwhile_is_a_conflict<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let item = create(&mut store, &["a"])[0];
    let stored = Counter { members: 2, base: 1, version: 5 };
    let after = Counter { members: 3, base: 1, version: 6 };
    assert_eq!(save(&mut store, &count(0, item, Some(stored), after)), Saved::Conflict, "gone");
    assert_eq!(save(&mut store, &count(0, item, None, stored)), Saved::Done);
    let others = [
        None,
        Some(Counter { members: 1, ..stored }),
        Some(Counter { base: 0, ..stored }),
        Some(Counter { version: 4, ..stored }),
    ];
    for before in others {
        assert_eq!(save(&mut store, &count(0, item, before, after)), Saved::Conflict, "{before:?}");
    }
    assert_eq!(store.load_counters(&[CounterKey { shard: 0, item }]).unwrap(), [Some(stored)]);
}

pub fn versions_are_a_shards_own<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    assert_eq!(store.newest_version(0).unwrap(), 0);
    let keys = create(&mut store, &["a", "b"]);
    for (shard, item, version) in [(0, keys[0], 4), (0, keys[1], 2), (1, keys[0], 9)] {
        assert_eq!(save(&mut store, &count(shard, item, None, counter(1, version))), Saved::Done);
    }
    let newest = [0, 1, 2].map(|shard| store.newest_version(shard).unwrap());
    assert_eq!(newest, [4, 9, 0]);
}

pub fn changes_come_in_order_a_page_at_a_time<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let names = ["e", "d", "c", "b", "a"];
    let keys = create(&mut store, &names);
    // By version, then by key: c, then d and a, then e; b belongs to another shard.
    let stored = [(0, 0, 8), (0, 1, 5), (0, 2, 3), (1, 3, 5), (0, 4, 5)];
    for (shard, item, version) in stored {
        let after = Counter { members: item as i64, base: 100, version };
        assert_eq!(save(&mut store, &count(shard, keys[item], None, after)), Saved::Done);
    }
    let mut page = |after, up_to, limit| -> Vec<(String, i64, ChangePosition)> {
        let page = store.changed_counters(0, after, up_to, limit).unwrap();
        page.into_iter().map(|change| (change.item, change.total, change.position)).collect()
    };
    let named = |page: &[(String, i64, ChangePosition)]| -> String {
        page.iter().map(|(item, ..)| item.as_str()).collect()
    };
    let all = page(START, 100, 10);
    assert_eq!(named(&all), "cdae");
    assert_eq!(all[0], ("c".to_owned(), 102, ChangePosition { version: 3, item: keys[2] }));
    assert_eq!(named(&page(START, 100, 2)), "cd");
    for (index, (.., position)) in all.iter().enumerate() {
        assert_eq!(named(&page(*position, 100, 10)), "cdae"[index + 1..], "after place {index}");
    }
    assert_eq!(named(&page(START, 5, 10)), "cda", "up to a version, itself included");
    let carried = ChangePosition { version: 5, item: ItemKey(i64::MAX) };
    assert_eq!(named(&page(carried, 100, 10)), "e", "everything of a version carried");
}

pub fn a_deleted_item_is_gone_and_its_key_never_comes_back<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    assert!(!transact(&mut store, |store| store.delete_item("a", 1, &[0, 1]).unwrap()), "never was");
    assert_eq!(store.unswept_items().unwrap(), []);
    let keys = create(&mut store, &["b", "a"]);
    let (ada, kept) = (Membership { user: "ada", item: keys[1] }, CounterKey { shard: 0, item: keys[0] });
    assert_eq!(
        save(&mut store, &LikesChanges { added: vec![ada], ..count(1, keys[1], None, counter(1, 1)) }),
        Saved::Done
    );
    assert_eq!(save(&mut store, &count(0, keys[0], None, counter(1, 1))), Saved::Done);

    assert!(transact(&mut store, |store| store.delete_item("a", 2, &[0, 1]).unwrap()));
    assert_eq!(store.load_items(&["a", "b"]).unwrap(), [None, Some(keys[0])]);
    let gone = CounterKey { shard: 1, item: keys[1] };
    assert_eq!(store.load_counters(&[gone, kept]).unwrap(), [None, Some(counter(1, 1))]);
    assert_eq!(store.changed_counters(1, START, 100, 10).unwrap(), []);
    assert_eq!(store.unswept_items().unwrap(), [keys[1]]);
    assert!(!transact(&mut store, |store| store.delete_item("a", 3, &[0, 1]).unwrap()), "gone already");

    // The deleted key was the highest, which a careless sequence would give out again.
    transact(&mut store, |store| store.forget_swept(&[keys[1]]).unwrap());
    store.reopen().unwrap();
    let again = create(&mut store, &["a"])[0];
    assert!(!keys.contains(&again));
    assert_eq!(store.load_memberships(&[Membership { user: "ada", item: again }]).unwrap(), [false]);
    assert_eq!(store.load_counters(&[CounterKey { shard: 1, item: again }]).unwrap(), [None]);
    assert!(!transact(&mut store, |store| store.delete_item("a", 2, &[0, 1]).unwrap()), "done once");
    assert_eq!(store.load_items(&["a"]).unwrap(), [Some(again)], "what came after it is not its");
}

pub fn a_version_survives_its_counters<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    for (item, version) in [("a", 7), ("b", 12), ("c", 9)] {
        let key = create(&mut store, &[item])[0];
        assert_eq!(save(&mut store, &count(2, key, None, counter(0, version))), Saved::Done);
        assert!(transact(&mut store, |store| store.delete_item(item, version, &[1, 2]).unwrap()));
    }
    assert_eq!((store.newest_version(2).unwrap(), store.newest_version(1).unwrap()), (12, 0));
    store.reopen().unwrap();
    assert_eq!(store.newest_version(2).unwrap(), 12);
    let key = create(&mut store, &["d"])[0];
    assert_eq!(save(&mut store, &count(2, key, None, counter(1, 13))), Saved::Done);
    assert_eq!(store.newest_version(2).unwrap(), 13);
}

pub fn a_sweep_removes_the_rows_of_the_dead_alone<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let keys = create(&mut store, &["dead", "alive", "dead too"]);
    let users: Vec<String> = (0..5).map(|n| format!("user-{n}")).collect();
    let rows: Vec<Membership<'_>> =
        users.iter().flat_map(|user| keys.iter().map(|item| Membership { user, item: *item })).collect();
    assert_eq!(save(&mut store, &add(&rows)), Saved::Done);
    for (deletion, name) in (1..).zip(["dead", "dead too"]) {
        assert!(transact(&mut store, |store| store.delete_item(name, deletion, &[0]).unwrap()));
    }
    let mut dead = store.unswept_items().unwrap();
    dead.sort_unstable();
    assert_eq!(dead, [keys[0], keys[2]]);

    let (mut after, mut chunks) = (None, 0);
    loop {
        after = transact(&mut store, |store| store.sweep_memberships(&dead, after.take(), 4).unwrap());
        chunks += 1;
        if after.is_none() {
            break;
        }
    }
    assert!((4..=5).contains(&chunks), "{chunks} looks of 4 at 15 rows");
    let left: Vec<bool> = rows.iter().map(|row| row.item == keys[1]).collect();
    assert_eq!(store.load_memberships(&rows).unwrap(), left);
    transact(&mut store, |store| store.forget_swept(&dead).unwrap());
    assert_eq!(store.unswept_items().unwrap(), []);
}

pub fn negative_members_are_refused<S: Store>(open: &impl Fn() -> S) {
    let mut store = open();
    let item = create(&mut store, &["a"])[0];
    store.begin().unwrap();
    assert!(store.save_likes(&count(0, item, None, counter(-1, 1))).is_err());
    store.rollback().unwrap();
    assert_eq!(store.load_counters(&[CounterKey { shard: 0, item }]).unwrap(), [None]);
}
