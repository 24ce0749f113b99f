//! The end of an item: it is gone, with its likes, whatever happens on the way.

use hyper::Method;
use serde_json::json;

use crate::files;
use crate::service::{Service, Setup, eventually};

const NEVER: &str = "0 0 0 1 1 *";

/// No row of a deleted item is left anywhere.
fn swept(setup: &Setup) -> bool {
    let data_dir = setup.data_dir();
    files::sum(&data_dir, "SELECT count(*) FROM unswept_items") == 0
        && files::number(&data_dir, "summary.db", "SELECT count(*) FROM deletions") == 0
}

fn memberships(setup: &Setup) -> i64 {
    files::sum(&setup.data_dir(), "SELECT count(*) FROM memberships_now")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_item_is_gone_and_its_rows_are_swept() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    for user in 0..40 {
        client.like("gone", &format!("user-{user}")).await;
        client.like("stays", &format!("user-{user}")).await;
    }
    assert_eq!(client.rolled_up("gone").await, 40);
    assert_eq!(memberships(&setup), 80);

    let answer = client.delete("/likes/gone").await;
    assert_eq!((answer.status, answer.json), (200, json!({"item": "gone", "deleted": true})));
    assert_eq!(client.get("/likes/gone").await.json["total"], 0);
    assert_eq!(client.exact("gone").await, 0);
    assert_eq!(client.get("/likes/gone/users/user-1").await.json["liked"], false);
    eventually("the sweep", || swept(&setup));
    assert_eq!(memberships(&setup), 40);
    assert_eq!((client.exact("stays").await, client.rolled_up("stays").await), (40, 40));

    let again = client.delete("/likes/gone").await;
    assert_eq!((again.status, again.json), (200, json!({"item": "gone", "deleted": false})));
    let never = client.delete("/likes/never-was").await;
    assert_eq!((never.status, &never.json["deleted"]), (200, &json!(false)));
    assert!(service.stop().success());
    setup.assert_verified();
}

/// The roll-up never knocks, so nothing is swept: the new item has only its new key to tell it from its past.
#[tokio::test(flavor = "multi_thread")]
async fn an_item_created_again_meets_no_past() {
    let setup = Setup::new().with("rollup.schedule", NEVER);
    let service = setup.start();
    let client = &service.client;
    for life in 0..3 {
        for user in 0..20 {
            let answer = client.like("post", &format!("user-{user}")).await;
            assert_eq!(answer.json["changed"], true, "life {life}: nobody likes a new item");
        }
        assert_eq!(client.exact("post").await, 20);
        client.delete("/likes/post").await;
        assert_eq!(client.unlike("post", "user-3").await.json["changed"], false);
    }
    assert_eq!(memberships(&setup), 60);
    client.like("post", "user-7").await;
    assert!(service.stop().success());
    setup.assert_verified();

    let service = setup.start();
    assert_eq!(service.client.exact("post").await, 1);
    assert_eq!(service.client.get("/likes/post").await.json["total"], 1);
    assert_eq!(service.client.get("/likes/post/users/user-3").await.json["liked"], false);
    eventually("the sweep after the start", || swept(&setup));
    assert_eq!(memberships(&setup), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_never_falls() {
    let setup = Setup::new();
    let mut service = setup.start();
    let mut last = 0;
    for life in 0..4 {
        let client = service.client.clone();
        let mut step = async |what: &str, changed: bool| {
            client.rolled_up("post").await;
            let version = client.get("/likes/post").await.json["version"].as_u64().unwrap();
            assert!(version >= last, "life {life}, {what}: {version} after {last}");
            assert!(!changed || version > last, "life {life}, {what}: changed, and still {version}");
            last = version;
        };
        step("at the start", false).await;
        client.like("post", "ada").await;
        step("after a like", true).await;
        client.like("post", "bob").await;
        client.unlike("post", "ada").await;
        step("after an unlike", true).await;
        client.delete("/likes/post").await;
        step("after the deletion", true).await;
        client.like("other", &format!("user-{life}")).await;
        step("after another item's like", false).await;
        if life % 2 == 0 {
            service.kill();
        } else {
            assert!(service.stop().success());
        }
        service = setup.start();
    }
}

/// Killed when the deletion is noted and no partition has committed it: commits are held up.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_interrupted_by_a_kill_is_finished_after_the_restart() {
    let setup = Setup::new();
    let service = setup.start();
    for user in 0..20 {
        service.client.like("gone", &format!("user-{user}")).await;
    }
    assert_eq!(service.client.rolled_up("gone").await, 20);
    assert!(service.stop().success());

    // Little patience, so that the run at the start, held up as well, does not keep the deletion waiting.
    let slow = setup.clone().with("faults.commit_delay_ms", 600_000);
    let slow = slow.with("server.request_timeout_ms", 300).with("mailbox.deadline_ms", 200);
    let service = slow.start();
    let client = service.client.clone();
    let deleting = tokio::spawn(async move { client.try_send(Method::DELETE, "/likes/gone", "").await });
    let data_dir = setup.data_dir();
    let noted = || files::number(&data_dir, "summary.db", "SELECT count(*) FROM deletions") == 1;
    eventually("the note", noted);
    service.kill();
    if let Ok(answer) = deleting.await.unwrap() {
        assert_eq!((answer.status, answer.error()), (503, "outcome_unknown"));
    }
    assert!(noted());
    assert_eq!(files::sum(&data_dir, "SELECT count(*) FROM items"), 2, "one a partition");

    let service = setup.start();
    eventually("the rest of the deletion", || swept(&setup));
    assert_eq!(memberships(&setup), 0);
    assert_eq!(service.client.get("/likes/gone").await.json["total"], 0);
    assert_eq!(service.client.exact("gone").await, 0);
    assert!(service.stop().success());
    setup.assert_verified();
    let deleted = setup.run(&["verify", "--deleted", "likes", "--data-dir", data_dir.to_str().unwrap()]);
    assert!(deleted.status.success(), "{deleted:?}");
}

/// Every fifth commit of a partition fails, sooner or later a deletion's. A roll-up's round is fewer commits than that, so
/// that it is not the same one of them which fails every time.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_failed_goes_on_by_itself() {
    let setup = Setup::new().with("faults.fail_commit_every", 5);
    let service = setup.start();
    let client = &service.client;
    for n in 0.. {
        let item = format!("gone-{n}");
        while client.like(&item, "ada").await.status != 200 {}
        let answer = client.delete(&format!("/likes/{item}")).await;
        if answer.status != 200 {
            assert_eq!((answer.status, answer.error()), (503, "outcome_unknown"));
            break;
        }
        // What this one left to sweep must not be what sweeps the failed one's rows.
        eventually("the sweep", || swept(&setup) && memberships(&setup) == 0);
        crate::rollup::runs(client, 2).await;
    }
    eventually("the rest of the deletion", || swept(&setup) && memberships(&setup) == 0);
    assert!(service.stop().success());
    setup.assert_verified();
}

/// Roll-up runs that did not finish.
async fn failures(service: &Service) -> u64 {
    let metrics = service.admin.get("/metrics").await.text;
    let line = metrics.lines().find(|line| line.starts_with("headcount_rollup_failures_total ")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// A deletion that one partition has done and another has not is sent again and again. Likes that come to the first
/// one meanwhile are no longer its, and neither is their part of the summary.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_done_in_part_takes_no_later_like() {
    let setup = Setup::new().with("sqlite.busy_timeout_ms", 50);
    let service = setup.start();
    let client = &service.client;
    let users: Vec<String> = (0..40).map(|user| format!("user-{user}")).collect();
    for user in &users {
        assert_eq!(client.like("post", user).await.status, 200);
    }
    let other = rusqlite::Connection::open(setup.data_dir().join("partition-001.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = client.delete("/likes/post").await;
    assert_eq!((answer.status, answer.error()), (503, "outcome_unknown"));
    let mut liked_again = Vec::new();
    for user in &users {
        let answer = client.like("post", user).await;
        if answer.status == 200 {
            assert_eq!(answer.json["changed"], true, "the first partition has forgotten the old likes");
            liked_again.push(user);
        }
    }
    assert!(!liked_again.is_empty());
    // Some runs, each of which sends the deletion again and fails.
    let before = failures(&service).await;
    while failures(&service).await < before + 2 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    let unfinished = || files::number(&setup.data_dir(), "summary.db", "SELECT count(*) FROM deletions");
    eventually("the deletion is finished", || unfinished() == 0);
    for user in &liked_again {
        assert_eq!(client.get(&format!("/likes/post/users/{user}")).await.json["liked"], true, "{user}");
    }
    assert_eq!(client.exact("post").await, liked_again.len() as i64);
    assert_eq!(client.rolled_up("post").await, liked_again.len() as i64);
    setup.assert_verified();
}
