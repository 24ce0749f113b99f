//! The data directory: whose it is, what it means, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::files;
use crate::service::Setup;

fn manifest(setup: &Setup) -> Value {
    let text = fs::read_to_string(setup.data_dir().join("manifest.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn edit_manifest(setup: &Setup, field: &str, value: Value) {
    let mut manifest = manifest(setup);
    manifest[field] = value;
    fs::write(setup.data_dir().join("manifest.json"), manifest.to_string()).unwrap();
}

/// A directory that was used and is at rest.
async fn used() -> Setup {
    let setup = Setup::new();
    let service = setup.clone().with("likes.shards", 4).with("storage.partitions", 2).start();
    service.client.like("post", "ada").await;
    service.client.reserve("workshop", "request-1", 2).await;
    assert!(service.stop().success());
    setup
}

/// What it says when it does not start; it names every one of `words`.
fn assert_refused(setup: &Setup, words: &[&str]) {
    let Err(said) = setup.try_start() else { panic!("started, should name {words:?}") };
    assert!(said.starts_with("exit status: 1"), "{said}");
    let last = said.lines().rfind(|line| line.starts_with("headcount: ")).unwrap_or_default();
    for word in words {
        assert!(last.contains(word), "{word:?} is not in: {last}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_directory_gets_a_whole_manifest() {
    let setup = Setup::new();
    fs::create_dir_all(setup.data_dir()).unwrap();
    // Left behind by a process that was killed while it wrote: never read.
    fs::write(setup.data_dir().join("manifest.json.new"), "{\"format\":").unwrap();
    let service = setup.start();
    let written = manifest(&setup);
    let expected = json!({"format": 1, "data_id": written["data_id"], "shards": 16, "partitions": 2,
        "hash": "xxh3_64", "complete": true});
    assert_eq!(written, expected);
    assert_eq!(written["data_id"].as_str().unwrap().len(), 16);
    assert!(!setup.data_dir().join("manifest.json.new").exists());
    assert!(service.stop().success());
    setup.start();
    assert_eq!(manifest(&setup), written, "a start changes nothing");
    assert_ne!(manifest(&used().await)["data_id"], written["data_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absent_setting_means_the_manifests() {
    let setup = Setup::new();
    let service = setup.clone().with("likes.shards", 5).with("storage.partitions", 3).start();
    let placed = service.client.like("post", "ada").await.json["shard"].clone();
    assert!(service.stop().success());
    assert_eq!(files::partitions(&setup.data_dir()).len(), 3);

    let service = setup.start();
    let again = service.client.like("post", "ada").await.json;
    assert_eq!((&again["shard"], &again["changed"]), (&placed, &json!(false)));
    assert_eq!((&manifest(&setup)["shards"], &manifest(&setup)["partitions"]), (&json!(5), &json!(3)));
    assert!(service.stop().success());
    assert_eq!(files::partitions(&setup.data_dir()).len(), 3);
    // The same numbers, said aloud, are welcome.
    setup.with("likes.shards", 5).with("storage.partitions", 3).start();
}

#[tokio::test(flavor = "multi_thread")]
async fn other_counts_than_the_manifests_are_refused() {
    let setup = used().await;
    let before = manifest(&setup);
    assert_refused(&setup.clone().with("likes.shards", 8), &["likes.shards", "8", "4", "misplaced"]);
    assert_refused(
        &setup.clone().with("storage.partitions", 3),
        &["storage.partitions", "3", "2", "misplaced"],
    );
    assert_eq!(manifest(&setup), before);
    assert_eq!(files::partitions(&setup.data_dir()).len(), 2);
    setup.start();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_is_refused() {
    let setup = Setup::new();
    let service = setup.start();
    let directory = setup.data_dir();
    assert_refused(&setup, &["in use by another headcount process", directory.to_str().unwrap()]);
    assert_eq!(service.client.like("post", "ada").await.status, 200, "the first one goes on");
    // The lock is the process's, not a file's that a killed one would leave behind.
    service.kill();
    let service = setup.start();
    assert_eq!(service.client.exact("post").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_is_newer_or_makes_no_sense_is_refused() {
    let setup = used().await;
    let file = setup.data_dir().join("manifest.json");
    let good = fs::read_to_string(&file).unwrap();
    edit_manifest(&setup, "format", json!(2));
    assert_refused(&setup, &["format 2", "up to 1", "newer"]);
    // A newer one may have fields that this one does not know: its format is what is told.
    edit_manifest(&setup, "rooms", json!(7));
    assert_refused(&setup, &["format 2", "newer"]);
    edit_manifest(&setup, "format", json!(1));
    assert_refused(&setup, &["manifest.json", "rooms"]);
    for (text, word) in [("", "EOF"), (&good[..good.len() / 2], "EOF"), ("[]", "invalid")] {
        fs::write(&file, text).unwrap();
        assert_refused(&setup, &["manifest.json", word]);
    }
    fs::write(&file, &good).unwrap();
    edit_manifest(&setup, "hash", json!("sip"));
    assert_refused(&setup, &["manifest.json", "sip", "xxh3_64"]);
    fs::remove_file(&file).unwrap();
    assert_refused(&setup, &["manifest.json", "partition files"]);
    assert!(!file.exists(), "no new identity over old files");
    fs::write(&file, &good).unwrap();
    assert_eq!(setup.start().client.exact("post").await, 1, "and nothing was lost meanwhile");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_a_newer_schema_is_refused() {
    for file in ["partition-000.db", "partition-001.db", "summary.db"] {
        let setup = used().await;
        let known = files::number(&setup.data_dir(), file, "PRAGMA user_version");
        let newer = known + 1;
        files::execute(&setup.data_dir(), file, &format!("PRAGMA user_version = {newer}"));
        assert_refused(&setup, &[file, &format!("schema {newer}"), &format!("up to {known}"), "newer"]);
        assert_eq!(files::number(&setup.data_dir(), file, "PRAGMA user_version"), newer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_programs_file_is_refused_and_left_alone() {
    for file in ["partition-000.db", "summary.db"] {
        let setup = used().await;
        let path = setup.data_dir().join(file);
        fs::remove_file(&path).unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')").unwrap();
        drop(other);
        let before = fs::read(&path).unwrap();
        assert_refused(&setup, &[file, "does not belong here", "not a headcount file"]);
        assert_eq!(fs::read(&path).unwrap(), before);

        fs::write(&path, "no database at all, just a text that lies where a database should be").unwrap();
        assert_refused(&setup, &[file, "not a database"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_partition_file_is_refused_and_not_begun_anew() {
    let setup = used().await;
    let (file, aside) = (setup.data_dir().join("partition-001.db"), setup.scratch().join("aside"));
    fs::rename(&file, &aside).unwrap();
    assert_refused(&setup, &["partition-001.db is missing", "backup"]);
    assert!(!file.exists(), "no empty file in its place");
    fs::rename(&aside, &file).unwrap();
    assert_eq!(setup.start().client.exact("post").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_in_each_others_place_are_refused() {
    let setup = used().await;
    let place = |name: &str| setup.data_dir().join(name);
    let exchange = |one: &Path, other: &Path| {
        let aside = setup.scratch().join("aside");
        fs::rename(one, &aside).unwrap();
        fs::rename(other, one).unwrap();
        fs::rename(&aside, other).unwrap();
    };
    exchange(&place("partition-000.db"), &place("partition-001.db"));
    assert_refused(&setup, &["partition-000.db", "does not belong here", "partition 1", "partition 0"]);
    exchange(&place("partition-000.db"), &place("partition-001.db"));

    let other = used().await;
    for file in ["partition-001.db", "summary.db"] {
        exchange(&place(file), &other.data_dir().join(file));
        let ids = [manifest(&setup), manifest(&other)].map(|manifest| manifest["data_id"].clone());
        assert_refused(
            &setup,
            &[file, "does not belong here", ids[0].as_str().unwrap(), ids[1].as_str().unwrap()],
        );
        exchange(&place(file), &other.data_dir().join(file));
    }
    exchange(&place("partition-001.db"), &place("summary.db"));
    assert_refused(&setup, &["summary.db", "not a headcount file of this kind"]);
    exchange(&place("partition-001.db"), &place("summary.db"));
    assert_eq!(setup.start().client.exact("post").await, 1);
}

/// A directory as the first version of its format wrote it. Later versions must open it for good.
fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1")
}

/// `UPDATE_FIXTURE=1 cargo test --test it fixture` writes the fixture anew, with this build. Only to be done before
/// the format has shipped; after that, a new format gets a new fixture beside it.
#[tokio::test(flavor = "multi_thread")]
async fn the_fixture_of_format_1_opens_with_all_it_holds() {
    if std::env::var_os("UPDATE_FIXTURE").is_some() {
        write_fixture().await;
    }
    let setup = Setup::new();
    files::copy_directory(&fixture(), &setup.data_dir());
    setup.assert_verified();
    let service = setup.start();
    let client = &service.client;
    for (item, total) in [("post", 29), ("日本", 3), ("unliked", 0), ("deleted", 0)] {
        let path = format!("/likes?item={}&user=user-1", percent(item));
        for exact in ["", "&exact=true"] {
            let answer = client.get(&format!("{path}{exact}")).await.json["items"][0].clone();
            assert_eq!((&answer["item"], &answer["total"]), (&json!(item), &json!(total)));
            assert_eq!(answer["liked"], item != "deleted" && item != "unliked");
        }
    }
    assert_eq!(client.get("/likes/post/users/user-29").await.json["liked"], false);
    assert_eq!(client.like("post", "user-0").await.json["changed"], false);
    let status = json!({"workshop": "launch-day", "capacity": 4, "reserved": 3, "acceptedRequests": 2,
        "rejectedRequests": 1, "acceptedSeats": 3});
    assert_eq!(client.status("launch-day").await, status);
    for (request, seats, code, reserved) in
        [("request-1", 1, 201, 1), ("request-2", 2, 201, 3), ("request-3", 2, 409, 3)]
    {
        let replay = client.reserve("launch-day", request, seats).await;
        assert_eq!((replay.status, &replay.json["reserved"]), (code, &json!(reserved)));
        assert_eq!(replay.json["replayed"], true);
    }
    // And it goes on from there.
    assert_eq!(client.reserve("launch-day", "request-4", 1).await.status, 201);
    client.like("post", "user-29").await;
    assert_eq!((client.exact("post").await, client.rolled_up("post").await), (30, 30));
    assert!(service.stop().success());
    setup.assert_verified();
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn write_fixture() {
    let setup = Setup::new()
        .with("likes.shards", 4)
        .with("storage.partitions", 2)
        .with("sqlite.page_size_bytes", 1024);
    let service = setup.start();
    let client = &service.client;
    for user in 0..30 {
        client.like("post", &format!("user-{user}")).await;
        client.like("deleted", &format!("user-{user}")).await;
    }
    for user in 0..3 {
        client.like(&percent("日本"), &format!("user-{user}")).await;
    }
    client.like("unliked", "user-1").await;
    client.unlike("unliked", "user-1").await;
    client.unlike("post", "user-29").await;
    client.rolled_up("post").await;
    client.delete("/likes/deleted").await;
    for (request, seats) in [("request-1", 1), ("request-2", 2), ("request-3", 2)] {
        client.reserve("launch-day", request, seats).await;
    }
    assert!(service.stop().success());
    // A time that no machine is behind: a clock far behind the stored mark is refused.
    let past_ms = 1_700_000_000_000_i64;
    for file in files::partitions(&setup.data_dir()) {
        let sql = format!(
            "UPDATE identity SET clock_mark_ms = {past_ms}; UPDATE memberships SET liked_at = {past_ms} / 1000;
             UPDATE workshops SET created_at_ms = {past_ms}; UPDATE attempts SET decided_at_ms = {past_ms}"
        );
        files::execute(&setup.data_dir(), &file, &sql);
    }
    files::execute(&setup.data_dir(), "summary.db", &format!("UPDATE progress SET as_of_ms = {past_ms}"));
    for file in files::partitions(&setup.data_dir()).into_iter().chain(["summary.db".to_owned()]) {
        // Into the one file that is kept.
        files::execute(&setup.data_dir(), &file, "PRAGMA wal_checkpoint(TRUNCATE)");
    }
    let _was_there = fs::remove_dir_all(fixture());
    fs::create_dir_all(fixture()).unwrap();
    for entry in fs::read_dir(setup.data_dir()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name == "manifest.json" || name.ends_with(".db") {
            fs::copy(entry.path(), fixture().join(name)).unwrap();
        }
    }
}
