//! The roll-up's own manners: it writes nothing when nothing changed, and reads every change it claims.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::client::Client;
use crate::files;
use crate::service::{Setup, eventually};

/// Waits for so many whole runs.
pub async fn runs(client: &Client, count: usize) {
    let as_of = async || client.get("/likes/any").await.json["asOf"].as_i64().unwrap();
    let mut last = as_of().await;
    for _ in 0..count {
        while as_of().await == last {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        last = as_of().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_changes_writes_nothing() {
    writes_nothing(Setup::new()).await;
}

/// Changes that fill their last page to the brim are carried once, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_changes_after_a_full_page_writes_nothing() {
    writes_nothing(Setup::new().with("rollup.page_items", 1).with("rollup.gathered_items", 1)).await;
}

async fn writes_nothing(setup: Setup) {
    let service = setup.start();
    let client = &service.client;
    client.like("post", "ada").await;
    assert_eq!(client.rolled_up("post").await, 1);
    // The sweep at the start is over, too.
    runs(client, 2).await;

    let data_dir = setup.data_dir();
    let names: Vec<String> =
        files::partitions(&data_dir).into_iter().chain(["summary.db".to_owned()]).collect();
    let connections: Vec<_> = names.iter().map(|name| files::open(&data_dir, name)).collect();
    // A connection sees its data_version change when another one commits a change.
    let look = || -> Vec<(i64, u64, std::time::SystemTime)> {
        let seen = names.iter().zip(&connections).map(|(name, connection)| {
            let version = connection.query_row("PRAGMA data_version", [], |row| row.get(0)).unwrap();
            let wal = std::fs::metadata(data_dir.join(format!("{name}-wal"))).unwrap();
            (version, wal.len(), wal.modified().unwrap())
        });
        seen.collect()
    };
    let before = look();
    runs(client, 3).await;
    assert_eq!(look(), before);

    client.like("post", "bob").await;
    assert_eq!(client.rolled_up("post").await, 2);
    let after = look();
    assert_ne!(after.last(), before.last(), "a run with a change writes the summary");
}

/// One hot item on a page behind others: likes that come while a run reads its pages move the item on, and
/// what was acknowledged before the run must be counted all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_item_liked_while_a_run_reads_is_not_passed_over() {
    let setup = Setup::new()
        .with("likes.shards", 1)
        .with("storage.partitions", 1)
        .with("rollup.page_items", 1)
        .with("rollup.gathered_items", 1);
    let service = setup.start();
    let client = &service.client;
    const ITEMS: usize = 40;
    let stop = AtomicBool::new(false);
    // Every item changes all the time, so that each run has as many pages as there are items.
    let busy = async |item: usize| {
        let item = format!("post-{item}");
        while !stop.load(Ordering::Acquire) {
            assert_eq!(client.like(&item, "toggler").await.status, 200);
            assert_eq!(client.unlike(&item, "toggler").await.status, 200);
        }
    };
    let reading = async {
        for n in 1..=4 {
            for item in 0..ITEMS {
                client.like(&format!("post-{item}"), &format!("user-{n}")).await;
            }
            let now = client.get("/likes/any?exact=true").await.json["asOf"].as_i64().unwrap();
            while client.get("/likes/any").await.json["asOf"].as_i64().unwrap() <= now {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            for item in 0..ITEMS {
                let total = client.get(&format!("/likes/post-{item}")).await.json["total"].as_i64().unwrap();
                assert!((n..=n + 1).contains(&total), "post-{item}: {total}, {n} were acknowledged");
            }
        }
        stop.store(true, Ordering::Release);
    };
    tokio::join!(reading, futures_util::future::join_all((0..ITEMS).map(busy)));
}

/// Killed between two pages, which held-up commits keep apart, and started again with the run at the start
/// held up: what is answered then is what the killed run left.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_killed_claims_no_more_than_it_carried() {
    let setup = Setup::new().with("rollup.schedule", "0 0 0 1 1 *");
    let setup = setup
        .with("likes.shards", 1)
        .with("storage.partitions", 1)
        .with("rollup.page_items", 1)
        .with("rollup.gathered_items", 1);
    let service = setup.start();
    for item in 0..100 {
        service.client.like(&format!("post-{item}"), "ada").await;
    }
    let acknowledged = service.client.get("/likes/any?exact=true").await.json["asOf"].as_i64().unwrap();
    service.kill();

    let service = setup.clone().with("faults.commit_delay_ms", 100).start();
    let data_dir = setup.data_dir();
    let stored = |sql: &str| files::number(&data_dir, "summary.db", sql);
    eventually("the third page", || stored("SELECT count(*) FROM summary") >= 3);
    service.kill();
    assert!(stored("SELECT count(*) FROM summary") < 100, "killed before the last page");

    let service = setup.clone().with("faults.commit_delay_ms", 600_000).start();
    let items: Vec<String> = (0..100).map(|item| format!("item=post-{item}")).collect();
    let answer = service.client.get(&format!("/likes?{}", items.join("&"))).await;
    let items = answer.json["items"].as_array().unwrap();
    assert!(items.iter().any(|item| item["total"] == 0));
    assert!(items[0]["asOf"].as_i64().unwrap() <= acknowledged, "{:?} claims what is not counted", items[0]);
}
