//! Likes that went wrong elsewhere, each case under its own name.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::client::Client;
use crate::files;
use crate::service::Setup;

#[tokio::test(flavor = "multi_thread")]
async fn l1_interleaved_likes_settle() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let settled = AtomicBool::new(false);
    let balance = AtomicI64::new(0);
    let toggle = async |liked: bool| {
        let answer = match liked {
            true => client.like("post", "ada").await,
            false => client.unlike("post", "ada").await,
        };
        assert_eq!((answer.status, &answer.json["liked"]), (200, &json!(liked)));
        if answer.json["changed"] == true {
            balance.fetch_add(if liked { 1 } else { -1 }, Ordering::Relaxed);
        }
    };
    let writing = async {
        join_all((0..200).map(|n| toggle(n % 2 == 0))).await;
        toggle(false).await;
        settled.store(true, Ordering::Release);
    };
    let watching = async {
        while !settled.load(Ordering::Acquire) {
            let exact = client.exact("post").await;
            assert!((0..=1).contains(&exact), "{exact}");
            let cached = client.get("/likes/post").await.json["total"].as_i64().unwrap();
            assert!((0..=1).contains(&cached), "{cached}");
        }
    };
    tokio::join!(writing, watching);
    assert_eq!(balance.load(Ordering::Relaxed), 0, "every like that changed something was undone once");
    assert_eq!(client.exact("post").await, 0);
    assert_eq!(client.rolled_up("post").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn l2_two_unlikes_of_one_like_count_once() {
    let setup = Setup::new();
    let service = setup.start();
    for round in 0..30 {
        let (client, item) = (&service.client, format!("post-{round}"));
        client.like(&item, "a").await;
        client.like(&item, "b").await;
        let (one, two) = tokio::join!(client.unlike(&item, "a"), client.unlike(&item, "a"));
        let changed = [one, two].iter().filter(|answer| answer.json["changed"] == true).count();
        assert_eq!((changed, client.exact(&item).await), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l3_an_unlike_repeated_after_a_restart_changes_nothing() {
    let setup = Setup::new();
    let service = setup.start();
    service.client.like("post", "a").await;
    service.client.unlike("post", "a").await;
    assert!(service.stop().success());

    let service = setup.start();
    let again = service.client.unlike("post", "a").await;
    assert_eq!((again.status, &again.json["changed"]), (200, &json!(false)));
    assert_eq!(service.client.exact("post").await, 0);
    assert_eq!(service.client.rolled_up("post").await, 0);
    assert_eq!(service.client.get("/likes/post/users/a").await.json["liked"], false);
    let listed = service.client.get("/likes?item=post&user=a").await;
    assert_eq!(listed.json["items"][0]["liked"], false);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn l6_a_thousand_posts_with_different_fields_are_one_like() {
    let setup = Setup::new();
    let service = setup.start();
    let post = async |n: usize| {
        let extra = json!({"n": n, "deep": [{"n": n}], "item": "other", "liked": n.is_multiple_of(2)});
        let body = json!({format!("field-{n}"): extra, "userId": "a", "z": null});
        service.client.post("/likes/post", body.to_string()).await
    };
    // As many at a time as a process may have connections.
    let answers: Vec<_> = stream::iter(0..1000).map(post).buffer_unordered(200).collect().await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(answers.iter().filter(|answer| answer.json["changed"] == true).count(), 1);
    assert_eq!(service.client.exact("post").await, 1);
    assert_eq!(service.client.rolled_up("post").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_like_unlike_like_is_one() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    for answer in
        [client.like("post", "a").await, client.unlike("post", "a").await, client.like("post", "a").await]
    {
        assert_eq!((answer.status, &answer.json["changed"]), (200, &json!(true)));
    }
    assert_eq!((client.exact("post").await, client.rolled_up("post").await), (1, 1));
}

const ITEMS: usize = 12;

/// Likes items without end, by users of its own; counts those that were acknowledged.
async fn like_until(
    stop: &AtomicBool,
    client: &Client,
    items: &str,
    writer: usize,
    acknowledged: &[AtomicI64],
) {
    for n in 0.. {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let item = (n * 7 + writer) % acknowledged.len();
        let path = format!("/likes/{items}-{item}/users/{writer}-{n}");
        let Ok(answer) = client.try_send(hyper::Method::PUT, &path, "").await else { return };
        assert_eq!((answer.status, &answer.json["changed"]), (200, &json!(true)), "{answer:?}");
        acknowledged[item].fetch_add(1, Ordering::Release);
    }
}

/// One cached read of all items, and what was known just before it.
struct Read {
    /// The service's time before the read was sent.
    sent_at: i64,
    as_of: i64,
    age: i64,
    totals: Vec<i64>,
}

/// Pages of one item make a run long, so that likes come in while it reads.
#[tokio::test(flavor = "multi_thread")]
async fn l13_cached_totals_are_at_most_two_intervals_old() {
    let setup =
        Setup::new().with("rollup.page_items", 1).with("rollup.gathered_items", 1).with("likes.shards", 3);
    let service = setup.start();
    let client = &service.client;
    let acknowledged: [AtomicI64; ITEMS] = Default::default();
    let stop = AtomicBool::new(false);
    let paths: Vec<String> = (0..ITEMS).map(|item| format!("item=post-{item}")).collect();
    let query = format!("/likes?{}", paths.join("&"));
    // (what was acknowledged, the service's time after that)
    let mut marks: Vec<(Vec<i64>, i64)> = Vec::new();
    let mut reads: Vec<Read> = Vec::new();
    let reading = async {
        let mut runs = 0;
        while runs < 5 {
            let counts = acknowledged.iter().map(|count| count.load(Ordering::Acquire)).collect();
            let sent_at = client.get("/likes/post-0?exact=true").await.json["asOf"].as_i64().unwrap();
            marks.push((counts, sent_at));
            let answer = client.get(&query).await;
            let items = answer.json["items"].as_array().unwrap();
            let totals = items.iter().map(|item| item["total"].as_i64().unwrap()).collect();
            let (as_of, age) = (items[0]["asOf"].as_i64().unwrap(), items[0]["ageMs"].as_i64().unwrap());
            runs += usize::from(reads.last().is_some_and(|last| last.as_of < as_of));
            reads.push(Read { sent_at, as_of, age, totals });
        }
        stop.store(true, Ordering::Release);
    };
    let writing = join_all((0..8).map(|writer| like_until(&stop, client, "post", writer, &acknowledged)));
    tokio::join!(reading, writing);

    for Read { sent_at, as_of, age, totals } in &reads {
        assert!(as_of + age >= *sent_at, "{as_of} + {age} ms is before the read was sent, {sent_at}");
        let counted = marks.iter().rev().find(|(_, at)| at < as_of).map(|(counts, _)| counts);
        for (total, counted) in totals.iter().zip(counted.into_iter().flatten()) {
            assert!(total >= counted, "as of {as_of} counts {total}, {counted} were acknowledged before");
        }
    }
    // A run ends before the next one begins. So once a run has begun, answers are as of the one before it
    // at least: two intervals, whatever they last on this machine.
    let mut runs: Vec<i64> = reads.iter().map(|read| read.as_of).collect();
    runs.dedup();
    assert!(runs.is_sorted(), "as of never falls: {runs:?}");
    for read in &reads {
        let run = runs.binary_search(&read.as_of).unwrap();
        if let Some(after_next) = runs.get(run + 2) {
            assert!(
                read.sent_at <= *after_next,
                "as of {}, {} and {after_next} were over",
                read.as_of,
                runs[run + 1]
            );
        }
    }
    age_is_a_metric(&service.admin, client).await;
}

/// The metric lies between the ages of the answers before and after it.
async fn age_is_a_metric(admin: &Client, client: &Client) {
    let read = async || {
        let answer = client.get("/likes/post-0").await.json;
        let as_of = answer["asOf"].as_i64().unwrap();
        (as_of, as_of + answer["ageMs"].as_i64().unwrap())
    };
    let (before, after, metrics);
    before = read().await;
    metrics = admin.get("/metrics").await.text;
    after = read().await;
    let value = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name))?;
        line.rsplit_once(' ').unwrap().1.parse::<f64>().ok()
    };
    let age_ms = (value("headcount_summary_age_seconds").unwrap() * 1000.0).round() as i64;
    assert!((before.1 - after.0..=after.1 - before.0).contains(&age_ms), "{before:?} {age_ms} {after:?}");
    assert_eq!(value("headcount_rollup_failures_total").unwrap_or(0.0), 0.0);
}

const LANES: usize = 4;
const KILLS_PER_LANE: usize = 25;
const ITEMS_OF_A_LIFE: usize = 60;

/// The run at each start finds what the last life left behind and carries it one item a page, so that a
/// kill in its first moments falls between reading a shard and writing the summary.
#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn l15_exact_is_cached_after_a_hundred_kills_in_the_roll_up() {
    let lanes: Vec<_> = (0..LANES).map(|lane| tokio::spawn(kill_in_the_rollup(lane))).collect();
    let mut interrupted = 0;
    for lane in lanes {
        interrupted += lane.await.unwrap();
    }
    println!("{interrupted} of {} kills fell into a run that had begun to write", LANES * KILLS_PER_LANE);
    assert!(interrupted > 0);
}

/// How many of the kills found a run half stored. Each life likes items of its own: what one kill loses, no
/// later like of the same item repairs.
async fn kill_in_the_rollup(lane: usize) -> usize {
    let setup = Setup::new()
        .with("rollup.page_items", 1)
        .with("rollup.gathered_items", 1)
        .with("likes.shards", 4)
        .with("log.level", "error");
    setup.start().kill();
    let mut acknowledged = Vec::new();
    let mut interrupted = 0;
    for life in 0..KILLS_PER_LANE {
        let left_behind = newest_versions(&setup);
        let runs_before = runs(&setup);
        let service = setup.start();
        let (client, stop) = (service.client.clone(), AtomicBool::new(false));
        let counts: [AtomicI64; ITEMS_OF_A_LIFE] = [const { AtomicI64::new(0) }; _];
        let items = format!("post-{life}");
        let writers = (0..8).map(|writer| like_until(&stop, &client, &items, writer, &counts));
        let killing = async {
            // Spread over the first moments of a run, by place in the sequence and not by chance.
            let after = Duration::from_micros(((life * LANES + lane) as u64 * 7919) % 60_000);
            tokio::time::sleep(after).await;
            service.kill();
            stop.store(true, Ordering::Release);
        };
        tokio::join!(join_all(writers), killing);
        acknowledged.push(counts.map(AtomicI64::into_inner));
        let half_stored =
            carried_versions(&setup).iter().zip(&left_behind).any(|(carried, left)| carried < left);
        interrupted += usize::from(half_stored && runs(&setup) > runs_before);
    }
    let service = setup.start();
    service.client.rolled_up("any").await;
    for (life, counts) in acknowledged.iter().enumerate() {
        let items: Vec<String> =
            (0..ITEMS_OF_A_LIFE).map(|item| format!("item=post-{life}-{item}")).collect();
        let exact = totals(&service.client, &format!("/likes?exact=true&{}", items.join("&"))).await;
        let cached = totals(&service.client, &format!("/likes?{}", items.join("&"))).await;
        assert_eq!(cached, exact, "items of life {life}");
        let lost = counts.iter().zip(&exact).any(|(acknowledged, exact)| exact < acknowledged);
        assert!(!lost, "life {life}: {counts:?} were acknowledged, {exact:?} are there");
    }
    assert!(service.stop().success());
    setup.assert_verified();
    interrupted
}

async fn totals(client: &Client, query: &str) -> Vec<i64> {
    let answer = client.get(query).await;
    let items = answer.json["items"].as_array().unwrap_or_else(|| panic!("{answer:?}"));
    items.iter().map(|item| item["total"].as_i64().unwrap()).collect()
}

fn runs(setup: &Setup) -> i64 {
    files::number(&setup.data_dir(), "summary.db", "SELECT run FROM progress")
}

fn newest_versions(setup: &Setup) -> Vec<i64> {
    let newest = |shard| {
        let sql = format!("SELECT coalesce(max(version), 0) FROM shard_counters_now WHERE shard = {shard}");
        files::sum(&setup.data_dir(), &sql)
    };
    (0..4).map(newest).collect()
}

fn carried_versions(setup: &Setup) -> Vec<i64> {
    let carried = |shard| {
        let sql = format!("SELECT coalesce(max(version), 0) FROM watermarks WHERE shard = {shard}");
        files::number(&setup.data_dir(), "summary.db", &sql)
    };
    (0..4).map(carried).collect()
}
