//! Totals by item, and how far each shard has been carried.

use headcount::store::SummaryStore;
use headcount::store::history::ChangedTotals;
use headcount::store::summary::{Progress, SummaryRow};

fn row(version: u64, parts: &[i64]) -> SummaryRow {
    SummaryRow { total: parts.iter().sum(), version, parts: parts.to_vec() }
}

fn progress(run: u64, watermarks: &[i64]) -> Progress {
    Progress { run, as_of_ms: 1_700_000_000_000 + run as i64, watermarks: watermarks.to_vec() }
}

pub fn a_new_summary_has_nothing<S: SummaryStore>(open: &impl Fn() -> S) {
    let mut store = open();
    assert_eq!(store.progress(3).unwrap(), Progress { run: 0, as_of_ms: 0, watermarks: vec![0; 3] });
    assert_eq!(store.load(&["a"]).unwrap(), [None]);
    assert_eq!(store.unfinished_deletions().unwrap(), []);
}

pub fn rows_and_progress_are_stored_together<S: SummaryStore>(open: &impl Fn() -> S) {
    let mut store = open();
    let (a, b) = (row(1, &[3, 0, -2]), row(1, &[0, 0, 1]));
    store
        .save(&[("a", a.clone()), ("日本", b.clone())], &progress(1, &[5, 0, 7]), &ChangedTotals::default())
        .unwrap();
    for mut store in [store, open()] {
        assert_eq!(store.load(&["日本", "c", "a"]).unwrap(), [Some(b.clone()), None, Some(a.clone())]);
        assert_eq!(store.progress(3).unwrap(), progress(1, &[5, 0, 7]));
        drop(store);
    }
}

pub fn rows_are_absolute<S: SummaryStore>(open: &impl Fn() -> S) {
    let mut store = open();
    store
        .save(
            &[("a", row(1, &[3, 4])), ("b", row(1, &[1, 1]))],
            &progress(1, &[1, 1]),
            &ChangedTotals::default(),
        )
        .unwrap();
    let later = (row(2, &[0, 4, 9]), progress(2, &[2, 1]));
    for _ in 0..2 {
        store.save(&[("a", later.0.clone())], &later.1, &ChangedTotals::default()).unwrap();
        assert_eq!(store.load(&["a", "b"]).unwrap(), [Some(later.0.clone()), Some(row(1, &[1, 1]))]);
        assert_eq!(store.progress(2).unwrap(), later.1);
    }
}

pub fn a_shard_count_may_exceed_what_is_stored<S: SummaryStore>(open: &impl Fn() -> S) {
    let mut store = open();
    store.save(&[], &progress(1, &[8]), &ChangedTotals::default()).unwrap();
    assert_eq!(store.progress(3).unwrap().watermarks, [8, 0, 0]);
}

pub fn a_deletion_is_noted_until_it_is_finished<S: SummaryStore>(open: &impl Fn() -> S) {
    let mut store = open();
    store
        .save(&[("a", row(3, &[3])), ("b", row(3, &[1]))], &progress(3, &[1]), &ChangedTotals::default())
        .unwrap();
    for (deletion, item) in (1..).zip(["a", "never-was", "a"]) {
        store.note_deletion(item, deletion).unwrap();
    }
    assert_eq!(store.load(&["a"]).unwrap(), [Some(row(3, &[3]))], "noted is not done");
    drop(store);
    let mut store = open();
    let mut unfinished = store.unfinished_deletions().unwrap();
    unfinished.sort_unstable();
    let expected = [("a".to_owned(), 3), ("never-was".to_owned(), 2)];
    assert_eq!(unfinished, expected, "a note outlives its process, is one, and is the latest");

    store.finish_deletion("a", None, 4, &ChangedTotals::default()).unwrap();
    store.finish_deletion("never-was", Some(&row(5, &[2])), 5, &ChangedTotals::default()).unwrap();
    assert_eq!(
        store.load(&["a", "b", "never-was"]).unwrap(),
        [None, Some(row(3, &[1])), Some(row(5, &[2]))],
        "what came to it meanwhile takes the place of its row"
    );
    assert_eq!(store.unfinished_deletions().unwrap(), []);
    let after = store.progress(1).unwrap();
    assert_eq!(
        (after.run, after.watermarks),
        (5, vec![1]),
        "a deletion is a run of its own and carries nothing"
    );
}
