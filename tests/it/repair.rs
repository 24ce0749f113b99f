//! `headcount verify --repair`: what is wrong about likes is put right, each part from its own source, once.

use std::path::Path;

use crate::files;
use crate::service::{HEADCOUNT, Setup};

const P0: &str = "partition-000.db";
const P1: &str = "partition-001.db";
const SUMMARY: &str = "summary.db";

/// Exit code and everything printed.
fn repair(data_dir: &Path) -> (Option<i32>, String) {
    let output = std::process::Command::new(HEADCOUNT)
        .args(["verify", "--repair", "--data-dir"])
        .arg(data_dir)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn verify(data_dir: &Path) -> Option<i32> {
    let mut verify = std::process::Command::new(HEADCOUNT);
    verify.args(["verify", "--data-dir"]).arg(data_dir).output().unwrap().status.code()
}

/// 40 like `post` (three of them forgotten, and counted), 20 like `other`; a workshop.
async fn good() -> Setup {
    let setup = Setup::new().with("likes.shards", 4);
    let service = setup.start();
    let client = &service.client;
    for user in 0..40 {
        client.like("post", &format!("user-{user}")).await;
        client.like("other", &format!("user-{}", user / 2)).await;
    }
    for user in [30, 31, 32] {
        client.delete(&format!("/users/user-{user}?policy=anonymise")).await;
    }
    client.reserve("workshop", "request-1", 1).await;
    assert_eq!(client.rolled_up("post").await, 40);
    assert!(service.stop().success());
    setup
}

async fn totals(setup: &Setup) -> [(i64, i64); 2] {
    let service = setup.start();
    let client = &service.client;
    let total = async |item: &str| {
        let cached = client.get(&format!("/likes/{item}")).await.json["total"].as_i64().unwrap();
        (cached, client.exact(item).await)
    };
    let totals = [total("post").await, total("other").await];
    assert!(service.stop().success());
    totals
}

#[tokio::test(flavor = "multi_thread")]
async fn l24_a_corrupt_summary_row_is_listed_repaired_and_then_nothing_is() {
    let setup = good().await;
    let data_dir = setup.data_dir();
    files::execute(
        &data_dir,
        SUMMARY,
        "UPDATE summary SET total = 999, parts = '[999,0,0,0]' WHERE item = 'post'",
    );
    let (passes, text) = setup.verify();
    assert!(!passes && text.contains("item post") && text.contains("the summary has 999"), "{text}");

    let (code, text) = repair(&data_dir);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("REPAIRED summary, item post: total was 999, is 40"), "{text}");
    assert!(text.contains("repaired: 1\n") && text.contains("PASS"), "{text}");
    let (code, text) = repair(&data_dir);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("REPAIRED") && text.contains("repaired: 0\n"), "{text}");
    assert_eq!(totals(&setup).await, [(40, 40), (20, 20)]);
    setup.assert_verified();
}

/// Where, what is done to it, and what the repair must name.
const DAMAGES: [(&str, &str, &[&str]); 12] = [
    (
        P0,
        "UPDATE shard_counters SET members = members + 3",
        &["item post, shard 0: was", "item other, shard 2: was"],
    ),
    (P1, "UPDATE shard_counters SET members = 0", &["item post, shard 1: was 0 members"]),
    (P0, "UPDATE shard_counters SET base = base + 7 WHERE shard = 0", &["item post, shard 0", "a base of 7"]),
    (P1, "DELETE FROM shard_counters WHERE shard = 1", &["item post, shard 1: was absent, is"]),
    (
        P0,
        "DELETE FROM shard_counters",
        &["item post, shard 0: was absent, is", "item other, shard 2: was absent, is"],
    ),
    (
        P0,
        "UPDATE shard_counters SET shard = shard + 1 WHERE shard = 0",
        &["shard 0: was absent", "shard 1: was"],
    ),
    (
        P1,
        "INSERT INTO shard_counters VALUES (1, 99, 5, 0, 1)",
        &["item id 99, shard 1: was 5 members and a base of 0, is absent"],
    ),
    (
        SUMMARY,
        "UPDATE summary SET total = total + 1",
        &["item post: total was 41, is 40", "item other: total was 21, is 20"],
    ),
    (SUMMARY, "DELETE FROM summary WHERE item = 'other'", &["item other: total was 0, is 20"]),
    (SUMMARY, "INSERT INTO summary VALUES ('ghost', 3, 1, '[0,3,0,0]')", &["item ghost: total was 3, is 0"]),
    (SUMMARY, "UPDATE summary SET parts = '[40]' WHERE item = 'post'", &["item post: total was 40, is 40"]),
    (
        SUMMARY,
        "UPDATE summary SET parts = 'no list' WHERE item = 'post'",
        &["item post: total was 40, is 40"],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_part_is_counted_again_from_its_own_source() {
    let setup = good().await;
    let sources = ["SELECT count(*) FROM memberships", "SELECT coalesce(sum(amount), 0) FROM base_ledger"];
    for (index, (file, sql, named)) in DAMAGES.iter().enumerate() {
        let copy = setup.scratch().join(format!("damaged-{index}"));
        files::copy_directory(&setup.data_dir(), &copy);
        files::execute(&copy, file, sql);
        let before = sources.map(|sql| files::sum(&copy, sql));
        let (code, text) = repair(&copy);
        assert_eq!(code, Some(0), "{sql}: {text}");
        assert!(named.iter().all(|named| text.contains(named)) && text.contains("PASS"), "{sql}: {text}");
        assert_eq!(sources.map(|sql| files::sum(&copy, sql)), before, "{sql}: a source was changed");
        let again = repair(&copy).1;
        assert!(again.contains("repaired: 0\n"), "{sql}: {again}");
        assert_eq!(verify(&copy), Some(0), "{sql}");
        assert_eq!(
            files::number(&copy, SUMMARY, "SELECT total FROM summary WHERE item = 'post'"),
            40,
            "{sql}"
        );
        assert_eq!(
            files::number(&copy, SUMMARY, "SELECT total FROM summary WHERE item = 'other'"),
            20,
            "{sql}"
        );
    }
}

/// A counter that lost what it counted counts on, and its version does not fall behind what was carried.
#[tokio::test(flavor = "multi_thread")]
async fn a_repaired_directory_serves_on() {
    let setup = good().await;
    let data_dir = setup.data_dir();
    files::execute(&data_dir, P0, "DELETE FROM shard_counters");
    files::execute(&data_dir, P1, "UPDATE shard_counters SET members = members + 5");
    let before = files::number(&data_dir, SUMMARY, "SELECT version FROM summary WHERE item = 'post'");
    assert_eq!(repair(&data_dir).0, Some(0));
    assert!(files::number(&data_dir, SUMMARY, "SELECT version FROM summary WHERE item = 'post'") >= before);
    let service = setup.start();
    let client = &service.client;
    for user in 40..60 {
        assert_eq!(client.like("post", &format!("user-{user}")).await.json["changed"], true);
    }
    assert_eq!(client.unlike("post", "user-1").await.json["changed"], true);
    assert_eq!((client.exact("post").await, client.rolled_up("post").await), (59, 59));
    assert!(service.stop().success());
    setup.assert_verified();
}

/// More items than are read at a time, on both sides.
#[tokio::test(flavor = "multi_thread")]
async fn totals_are_compared_page_by_page() {
    let setup = Setup::new();
    let file = setup.scratch().join("likes.csv");
    let rows: Vec<String> = (0..4_500).map(|n| format!("item-{n:05},user-{}", n % 7)).collect();
    std::fs::write(&file, rows.join("\n")).unwrap();
    let data_dir = setup.data_dir();
    let data = data_dir.to_str().unwrap();
    assert!(setup.run(&["import", file.to_str().unwrap(), "--data-dir", data]).status.success());
    let service = setup.start();
    assert_eq!(service.client.rolled_up("item-04499").await, 1);
    assert!(service.stop().success());
    setup.assert_verified();
    files::execute(
        &data_dir,
        SUMMARY,
        "DELETE FROM summary WHERE item BETWEEN 'item-00500' AND 'item-02500';
         UPDATE summary SET total = 7 WHERE item IN ('item-00000', 'item-03000', 'item-04499');
         INSERT INTO summary VALUES ('a-ghost', 1, 1, '[1]'), ('item-00999-ghost', 1, 1, '[1]'), ('z-ghost', 1, 1, '[1]')",
    );
    let (code, text) = repair(&data_dir);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(&format!("repaired: {}\n", 2001 + 3 + 3)), "{text}");
    assert!(repair(&data_dir).1.contains("repaired: 0\n"));
    setup.assert_verified();
}

/// What the roll-up has not come to is no damage; what is no like's is left alone, and said.
#[tokio::test(flavor = "multi_thread")]
async fn it_repairs_likes_and_nothing_else() {
    let setup = Setup::new().with("rollup.schedule", "0 0 0 1 1 *");
    let service = setup.start();
    service.client.like("post", "ada").await;
    service.client.reserve("workshop", "request-1", 1).await;
    service.kill();
    let (code, text) = repair(&setup.data_dir());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("repaired: 0\n") && text.contains("1 items, 0 counters not carried yet"), "{text}");

    let home =
        if files::number(&setup.data_dir(), P0, "SELECT count(*) FROM workshops") == 1 { P0 } else { P1 };
    files::execute(&setup.data_dir(), home, "UPDATE workshops SET reserved = 0");
    let (code, text) = repair(&setup.data_dir());
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("workshop workshop: reserved is 0") && text.contains("FAIL"), "{text}");
    assert_eq!(files::number(&setup.data_dir(), home, "SELECT reserved FROM workshops"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_wants_the_directory_for_itself() {
    let setup = Setup::new();
    let service = setup.start();
    let (code, text) = repair(&setup.data_dir());
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("in use by another headcount process"), "{text}");
    assert!(service.stop().success());
    assert_eq!(repair(&setup.data_dir()).0, Some(0));
    let nowhere = setup.scratch().join("nowhere");
    assert_eq!(repair(&nowhere).0, Some(2));
    assert!(!nowhere.exists(), "nothing is made");
}
