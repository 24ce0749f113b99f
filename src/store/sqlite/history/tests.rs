//! Histories and rankings against one who remembers every change, and how they are looked up.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::config::{Sqlite, Synchronous};
use crate::store::SummaryStore;
use crate::store::history::{Bucket, ChangedTotals, Ranked, fill};
use crate::store::sqlite::ranking::*;
use crate::store::sqlite::summary::{SUMMARY_SCHEMA, SqliteSummary};
use crate::store::summary::{Progress, SummaryRow};

/// No look-up that answers, ranks or tidies walks a table, or sorts what it has found.
#[test]
fn every_look_up_has_its_index() {
    let connection = Connection::open_in_memory().unwrap();
    SUMMARY_SCHEMA.steps.iter().for_each(|step| connection.execute_batch(step).unwrap());
    for sql in [
        HOUR,
        BEGIN_MINUTE,
        OPENINGS,
        HOURS,
        FORGET_MINUTES,
        TOO_OLD_HOURS,
        STAND_FOR_DAY,
        FORGET_HOUR,
        FORGET_DAYS,
        NEWEST,
        GAIN,
        LEAVE,
        LAST_PLACES,
        LEFT_BEHIND,
        MOVE_ON,
        FORGIVE,
        TOP_GAINS,
        FIRST,
        MISSED,
        TOP_TOTALS,
    ] {
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let nothing = vec![rusqlite::types::Null; explain.parameter_count()];
        let plan = explain.query_map(rusqlite::params_from_iter(nothing), |row| row.get(3)).unwrap();
        let plan: Vec<String> = plan.collect::<Result<_, _>>().unwrap();
        let walks = |step: &String| step.starts_with("SCAN") || step.contains("TEMP B-TREE");
        assert!(!plan.iter().any(walks) && !plan.is_empty(), "{sql}: {plan:?}");
    }
}

const MINUTE_MS: i64 = 60_000;
/// Kept so short that a model's lifetime outlives it. The settings allow no less than a window needs.
const KEPT: Kept = Kept { minutes: 120, hours: 192, days: 12, ranked: 1_000 };

/// Everything that ever happened.
#[derive(Debug, Default)]
struct Model {
    /// By item: when, and the total from then on.
    changes: BTreeMap<String, Vec<(i64, i64)>>,
}

impl Model {
    fn total(&self, item: &str) -> i64 {
        self.changes.get(item).and_then(|of| of.last()).map_or(0, |(_, total)| *total)
    }

    /// The total just before a time.
    fn before(&self, item: &str, at_ms: i64) -> i64 {
        let of = self.changes.get(item).into_iter().flatten();
        of.take_while(|(at, _)| *at < at_ms).last().map_or(0, |(_, total)| *total)
    }

    fn top(&self, window: Window, now_ms: i64) -> Vec<Ranked> {
        let begins_ms = Step::Minute.begins_ms(window.first(now_ms));
        let of = |item: &String| {
            let total = self.total(item);
            Ranked { item: item.clone(), gained: total - self.before(item, begins_ms), total }
        };
        let mut all: Vec<Ranked> = self.changes.keys().map(of).filter(|item| item.gained > 0).collect();
        all.sort_by(|a, b| b.gained.cmp(&a.gained).then_with(|| a.item.cmp(&b.item)));
        all
    }

    fn buckets(&self, item: &str, step: Step, range: Range<i64>) -> Vec<Bucket> {
        let bucket = |bucket| {
            let (begins, ends) = (step.begins_ms(bucket), step.begins_ms(bucket + 1));
            let total = self.before(item, ends);
            Bucket { at_ms: begins, gained: total - self.before(item, begins), total }
        };
        range.map(bucket).collect()
    }
}

#[derive(Debug, Clone)]
enum Act {
    /// So many minutes pass.
    Wait(i64),
    /// Totals change: item, by how much.
    Change(Vec<(usize, i64)>),
    /// The last save comes again, as after a crash that nobody heard of.
    Again,
    Delete(usize),
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    let change = prop::collection::vec((0_usize..9, -4_i64..7), 1..5).prop_map(Act::Change);
    prop_oneof![
        2 => (0_i64..3).prop_map(Act::Wait),
        2 => (30_i64..3_000).prop_map(Act::Wait),
        6 => change,
        1 => Just(Act::Again),
        1 => (0_usize..9).prop_map(Act::Delete),
        1 => Just(Act::Reopen),
    ]
}

fn open(directory: &TempDir) -> SqliteSummary {
    let sqlite = Sqlite { synchronous: Synchronous::Off, ..Sqlite::default() };
    SqliteSummary::open(&directory.path().join("summary.db"), "model", &sqlite).unwrap()
}

fn row(total: i64, version: u64) -> SummaryRow {
    SummaryRow { total, version, parts: vec![total] }
}

/// Stores changes, of which each is what the item has now.
fn save(store: &mut SqliteSummary, items: &[Change<'_>], at_ms: i64, ranked: u32) {
    let rows: Vec<(&str, SummaryRow)> =
        items.iter().map(|change| (change.item, row(change.total, 1))).collect();
    let progress = Progress { run: 1, as_of_ms: at_ms, watermarks: vec![1] };
    store.save(&rows, &progress, &ChangedTotals { at_ms, items, ranked }).unwrap();
}

/// Lives through it, and tidies up after every act.
fn live(acts: Vec<Act>, directory: &TempDir, ranked: u32, limit: u32) -> (SqliteSummary, Model, i64) {
    let mut store = open(directory);
    let mut model = Model::default();
    let mut now_ms = 1_796_049_139_007;
    for act in acts {
        match act {
            Act::Wait(minutes) => now_ms += minutes * MINUTE_MS,
            Act::Change(changed) => {
                let mut totals = BTreeMap::new();
                for (item, by) in changed {
                    let item = format!("item-{item}");
                    *totals.entry(item.clone()).or_insert_with(|| model.total(&item)) += by;
                }
                let of = |(item, total)| Change { item, before: model.total(item), total };
                let changes = totals.iter().map(|(item, total)| of((item.as_str(), *total)));
                let changes: Vec<Change<'_>> =
                    changes.filter(|change| change.before != change.total).collect();
                save(&mut store, &changes, now_ms, ranked);
                for Change { item, total, .. } in changes {
                    model.changes.entry(item.to_owned()).or_default().push((now_ms, total));
                }
            }
            Act::Again => {
                let items: BTreeSet<String> = model.changes.keys().cloned().collect();
                let of = |item| Change { item, before: model.total(item), total: model.total(item) };
                let changes: Vec<Change<'_>> = items.iter().map(|item| of(item.as_str())).collect();
                save(&mut store, &changes, now_ms, ranked);
            }
            Act::Delete(item) => {
                let item = format!("item-{item}");
                let now = ChangedTotals { at_ms: now_ms, items: &[], ranked };
                store.finish_deletion(&item, None, 1, &now).unwrap();
                model.changes.remove(&item);
            }
            Act::Reopen => {
                drop(store);
                store = open(directory);
            }
        }
        while store.tidy(now_ms, &Kept { ranked, ..KEPT }, limit).unwrap() {}
    }
    (store, model, now_ms)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_stored_says_what_one_who_remembers_everything_says(
        acts in prop::collection::vec(act(), 1..40),
        limit in 1_u32..4,
    ) {
        let directory = TempDir::new().unwrap();
        let (store, model, now_ms) = live(acts, &directory, KEPT.ranked, limit);
        let reader = store.reader().unwrap();
        for window in Window::ALL {
            let gains = reader.top_gains(window, now_ms, 100).unwrap();
            prop_assert_eq!(gains.top, model.top(window, now_ms), "{:?}", window);
            prop_assert_eq!(gains.missed, 0, "there are places for all");
            prop_assert!(gains.first.is_none_or(|first| first >= window.first(now_ms)), "nothing is left behind");
        }
        let mut totals: Vec<(i64, &String)> =
            model.changes.keys().map(|item| (-model.total(item), item)).filter(|(total, _)| *total < 0).collect();
        totals.sort();
        let top = reader.top_totals(4).unwrap();
        let top: Vec<(i64, &String)> = top.iter().map(|ranked| (-ranked.total, &ranked.item)).collect();
        prop_assert_eq!(&top[..], &totals[..totals.len().min(4)]);
        for step in Step::ALL {
            let buckets = KEPT.first(step, now_ms)..step.bucket(now_ms) + 1;
            for item in ["item-0", "item-1", "item-5", "never-was"] {
                let stored = reader.past(item, buckets.start * step.minutes()..buckets.end * step.minutes()).unwrap();
                let shown = fill(step, buckets.clone(), &stored);
                prop_assert_eq!(shown, model.buckets(item, step, buckets.clone()), "{} {:?}", item, step);
            }
        }
        // What is older than its day, or its hour, in which something is kept, is not there.
        let connection = Connection::open(directory.path().join("summary.db")).unwrap();
        for (detail, step, whole) in [(1, Step::Minute, 60), (2, Step::Hour, 1_440), (3, Step::Day, 1)] {
            let first = KEPT.first(step, now_ms) * step.minutes() / whole * whole / 60;
            let sql = "SELECT count(*) FROM history WHERE detail = ?1 AND hour < ?2";
            let old: i64 = connection.query_row(sql, (detail, first), |row| row.get(0)).unwrap();
            prop_assert_eq!(old, 0, "{:?} are kept too long", step);
        }
    }

    /// With few places: what is ranked is right, and what is not has gained no more than is said.
    #[test]
    fn a_ranking_without_places_for_all_says_what_it_may_miss(
        acts in prop::collection::vec(act(), 1..60),
        ranked in 1_u32..4,
    ) {
        let directory = TempDir::new().unwrap();
        let (store, model, now_ms) = live(acts, &directory, ranked, 100);
        for window in Window::ALL {
            let gains = store.reader().unwrap().top_gains(window, now_ms, 100).unwrap();
            let all = model.top(window, now_ms);
            prop_assert!(gains.top.iter().all(|ranked| all.contains(ranked)), "{:?} {:?}", gains, all);
            prop_assert!(gains.top.is_sorted_by_key(|item| (-item.gained, item.item.clone())));
            let missing = all.iter().find(|item| !gains.top.contains(item) && item.gained > gains.missed);
            prop_assert_eq!(missing, None, "{:?} of {:?}", gains, all);
        }
    }
}

/// Many more items than places: the largest are found, and there are never many more rows than places.
#[test]
fn the_largest_of_many_are_found_with_few_places() {
    let directory = TempDir::new().unwrap();
    let mut store = open(&directory);
    let names: Vec<String> = (0..2_000).map(|n| format!("item-{n:04}")).collect();
    let gain = |n: usize| i64::try_from(n * 7_919 % 2_000).unwrap();
    for (chunk, of_chunk) in names.chunks(50).enumerate() {
        let items: Vec<Change<'_>> = of_chunk
            .iter()
            .enumerate()
            .map(|(n, item)| Change { item, before: 0, total: gain(chunk * 50 + n) })
            .collect();
        save(&mut store, &items, MINUTE_MS, 100);
        let connection = Connection::open(directory.path().join("summary.db")).unwrap();
        let rows: i64 = connection.query_row("SELECT count(*) FROM trending", [], |row| row.get(0)).unwrap();
        assert!(rows <= 3 * (100 + 25 + 50), "{rows}");
    }
    let gains = store.reader().unwrap().top_gains(Window::Day, MINUTE_MS, 50).unwrap();
    assert_eq!(
        gains.top.iter().map(|item| item.gained).collect::<Vec<_>>(),
        (1_950..2_000).rev().collect::<Vec<_>>()
    );
    assert!((1..1_950).contains(&gains.missed), "{}", gains.missed);
    // Once they are out of the window, so is what was missed, and there is room again for less.
    let later = 3 * 24 * 60 * MINUTE_MS;
    while store.tidy(later, &Kept { ranked: 100, ..KEPT }, 1_000).unwrap() {}
    save(&mut store, &[Change { item: "new", before: 0, total: 1 }], later, 100);
    let gains = store.reader().unwrap().top_gains(Window::Day, later, 50).unwrap();
    assert_eq!((gains.missed, gains.top.len()), (0, 1));
}

/// A run at a time before the newest minute there is (the clock was set back between two starts, by less than what
/// refuses one) counts in that minute, so that no minute begins before one that it comes after.
#[test]
fn time_never_goes_back() {
    let directory = TempDir::new().unwrap();
    let mut store = open(&directory);
    let one_more = |store: &mut SqliteSummary, total: i64, at_ms| {
        save(store, &[Change { item: "a", before: total - 1, total }], at_ms, 100);
    };
    one_more(&mut store, 1, 70 * MINUTE_MS + 5);
    one_more(&mut store, 2, 69 * MINUTE_MS + 50_000);
    drop(store);
    let mut store = open(&directory);
    one_more(&mut store, 3, 59 * MINUTE_MS + 55_000);
    one_more(&mut store, 4, 70 * MINUTE_MS + 7);
    one_more(&mut store, 5, 71 * MINUTE_MS);
    let stored = store.reader().unwrap().past("a", 0..200).unwrap();
    assert_eq!(stored, Openings { openings: vec![(70, 0), (71, 4)], total: 5 });
}

/// A gain beyond 64 bits is the largest there is, and stops nobody.
#[test]
fn a_gain_beyond_all_bounds_stays_at_them() {
    let directory = TempDir::new().unwrap();
    let mut store = open(&directory);
    for (n, (before, total)) in (1..).zip([(0, i64::MIN), (i64::MIN, i64::MAX), (i64::MAX, i64::MAX - 1)]) {
        let at_ms = 400_000_000 * n;
        save(&mut store, &[Change { item: "a", before, total }], at_ms, 100);
        while store.tidy(at_ms, &KEPT, 10).unwrap() {}
    }
    let gains = store.reader().unwrap().top_gains(Window::Week, 1_200_000_000, 1).unwrap();
    assert_eq!(gains.top[0].gained, i64::MAX);
}

/// What a run writes follows what changed, not what is there.
#[test]
fn a_change_costs_the_same_among_many_as_among_few() {
    let cost = |others: i64| {
        let directory = TempDir::new().unwrap();
        let mut store = open(&directory);
        let names: Vec<String> = (0..others).map(|n| format!("other-{n:06}")).collect();
        let changes: Vec<Change<'_>> =
            names.iter().map(|item| Change { item, before: 0, total: 7 }).collect();
        save(&mut store, &changes, MINUTE_MS, 100_000);
        let before = store.rows_changed();
        save(&mut store, &[Change { item: "one", before: 0, total: 1 }], MINUTE_MS, 100_000);
        assert!(!store.tidy(MINUTE_MS, &KEPT, 10).unwrap());
        store.rows_changed() - before
    };
    assert_eq!(cost(0), cost(5_000));
}

/// Ten likes of each item, one a minute: what they leave in the history is far less than the likes themselves, about
/// 38 bytes each, and rankings cost what their places cost, however many items there are.
#[test]
fn a_history_costs_a_few_bytes_a_like() {
    const ITEMS: u32 = 4_000;
    let directory = TempDir::new().unwrap();
    let mut store = open(&directory);
    let names: Vec<String> = (0..ITEMS).map(|n| format!("item-{n:011}")).collect();
    for like in 0..10 {
        for some in names.chunks(1_000) {
            let change = |item| Change { item, before: like, total: like + 1 };
            let items: Vec<Change<'_>> = some.iter().map(|item| change(item.as_str())).collect();
            save(&mut store, &items, like * MINUTE_MS, 100);
        }
    }
    let connection = Connection::open(directory.path().join("summary.db")).unwrap();
    let bytes = |tables: &str| {
        let sql = format!("SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND name IN ({tables})");
        connection.query_row(&sql, [], |row| row.get::<_, u32>(0)).unwrap()
    };
    let likes = 10 * ITEMS;
    let history = bytes("'history', 'history_by_time', 'summary_by_total'");
    let rankings = bytes("'trending', 'trending_by_gain', 'trending_by_first', 'trending_missed'");
    println!("{} bytes a like for history, {rankings} for rankings", f64::from(history) / f64::from(likes));
    assert!(history < 14 * likes, "{history} bytes of {likes} likes");
    assert!(rankings < 500_000, "{rankings} bytes");
}

/// Totals from before there was a history: they are there, and nothing is said of their past.
#[test]
fn totals_without_a_past_are_kept_and_begin_one() {
    let directory = TempDir::new().unwrap();
    let older = Connection::open(directory.path().join("summary.db")).unwrap();
    older.execute_batch(SUMMARY_SCHEMA.steps[0]).unwrap();
    older.pragma_update(None, "application_id", SUMMARY_SCHEMA.application_id).unwrap();
    older.pragma_update(None, "user_version", 1).unwrap();
    older
        .execute_batch(
            "INSERT INTO identity VALUES (1, 'model'); INSERT INTO summary VALUES ('a', 7, 1, '[7]');
             UPDATE progress SET run = 1",
        )
        .unwrap();
    drop(older);
    let mut store = open(&directory);
    let since_ms = store.reader().unwrap().history_since_ms().unwrap();
    assert!(since_ms > 1_700_000_000_000, "{since_ms}");
    assert_eq!(store.reader().unwrap().top_totals(9).unwrap()[0].total, 7);
    save(&mut store, &[Change { item: "a", before: 7, total: 9 }], since_ms, 100);
    let gains = store.reader().unwrap().top_gains(Window::Day, since_ms, 9).unwrap();
    assert_eq!(gains.top, [Ranked { item: "a".to_owned(), gained: 2, total: 9 }]);

    let directory = TempDir::new().unwrap();
    assert_eq!(
        open(&directory).reader().unwrap().history_since_ms().unwrap(),
        0,
        "a new one is whole from the start"
    );
}
