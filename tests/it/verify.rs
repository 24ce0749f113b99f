//! `headcount verify`: green on what is right, red on each kind of damage, and never green without looking.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;

use crate::files;
use crate::service::Setup;

const SHARDS: u32 = 4;

/// A directory at rest with some of everything.
async fn good() -> Setup {
    let setup = Setup::new().with("likes.shards", SHARDS).with("rooms.history", "durable");
    let service = setup.start();
    let client = &service.client;
    for user in 0..40 {
        client.like("post", &format!("user-{user}")).await;
        client.like("other", &format!("user-{}", user / 2)).await;
        let add = format!(r#"{{"amount":{},"requestId":"view-{user}"}}"#, user % 7 - 2);
        assert_eq!(client.post("/counters/views", add).await.status, 200);
        assert_eq!(client.post("/counters/other", r#"{"amount":1}"#).await.status, 200);
    }
    for n in 0..12 {
        client.reserve(&format!("workshop-{}", n % 3), &format!("request-{n}"), 1 + n % 4).await;
    }
    for n in 0..6 {
        let path = format!("/workshops/workshop-{n}-held");
        let body = r#"{"capacity":3,"waitlist":{"policy":"strict","offerTtlMs":1000,"maxLength":9}}"#;
        client.send(hyper::Method::PUT, &path, body).await;
        for request in [
            r#"{"requestId":"taken","seats":1}"#,
            r#"{"requestId":"held","seats":2,"hold":true,"holder":"ada"}"#,
            r#"{"requestId":"waiting","seats":2,"waitlist":true}"#,
        ] {
            let answer = client.post(&format!("{path}/reservations"), request).await;
            assert!([201, 202].contains(&answer.status), "{answer:?}");
        }
    }
    for n in 0..24 {
        let room = format!("/rooms/room-{}/send", n % 6);
        let said = format!(r#"{{"user":"ada","data":{{"n":{n}}},"id":"message-{n}"}}"#);
        assert_eq!(client.post(&room, said).await.status, 200);
    }
    assert!(service.stop().success());
    setup
}

/// Exit code and everything printed.
fn verify(data_dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = std::process::Command::new(crate::service::HEADCOUNT)
        .args(["verify", "--data-dir"])
        .arg(data_dir)
        .args(arguments)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// What is done to which file, and what the audit must name.
struct Damage {
    kind: &'static str,
    file: &'static str,
    sql: &'static str,
    named: &'static [&'static str],
}

const fn damage(
    kind: &'static str,
    file: &'static str,
    sql: &'static str,
    named: &'static [&'static str],
) -> Damage {
    Damage { kind, file, sql, named }
}

const P0: &str = "partition-000.db";
const P1: &str = "partition-001.db";
const SUMMARY: &str = "summary.db";

const DAMAGES: &[Damage] = &[
    damage(
        "a counter changed",
        P0,
        "UPDATE shard_counters SET members = members + 1 WHERE item_id = (SELECT item_id FROM items WHERE name = 'post')",
        &["item post, shard 0", "item post, shard 2", "members is", "partition 0"],
    ),
    damage(
        "a membership deleted",
        P1,
        "DELETE FROM memberships WHERE (user, item_id) = (SELECT user, item_id FROM memberships LIMIT 1)",
        &["partition 1, item ", "members is"],
    ),
    damage(
        "every membership of an item deleted",
        P1,
        "DELETE FROM memberships WHERE item_id = (SELECT item_id FROM items WHERE name = 'other')",
        &["item other", "there are 0"],
    ),
    damage(
        "a membership invented",
        P0,
        "INSERT INTO memberships SELECT user || 'x', item_id, 0 FROM memberships LIMIT 20",
        &["user-"],
    ),
    damage(
        "a base without a ledger",
        P0,
        "UPDATE shard_counters SET base = 5 WHERE shard = 0",
        &["base is 5, its ledger adds up to 0"],
    ),
    damage(
        "a ledger without a base",
        P0,
        "INSERT INTO base_ledger SELECT shard, item_id, 'import-1', 7 FROM shard_counters LIMIT 1",
        &["base is 0, its ledger adds up to 7"],
    ),
    damage(
        "a counter's ledger changed",
        P1,
        "UPDATE base_ledger SET amount = amount + 1 WHERE source = 'adds'",
        &["counter views, shard ", "counter other, shard ", "base is ", "its ledger adds up to"],
    ),
    damage(
        "a counter's ledger of something else",
        P0,
        "UPDATE base_ledger SET source = 'import-1' WHERE source = 'adds'",
        &["counter views, shard ", "entries that are no adds"],
    ),
    damage(
        "a counter that somebody likes",
        P0,
        "INSERT INTO memberships SELECT 'ada', item_id, 0 FROM items WHERE name = char(1) || 'views';
         UPDATE shard_counters SET members = 1 WHERE item_id = (SELECT item_id FROM items WHERE name = char(1) || 'views')",
        &["counter views, shard ", "has 1 members, and nobody can like it"],
    ),
    damage(
        "a counter's total lost",
        SUMMARY,
        "DELETE FROM summary WHERE item = char(1) || 'views'",
        &["counter views, shard", "the summary has 0"],
    ),
    damage(
        "ids on the wrong partition",
        P0,
        "UPDATE counter_requests SET request_id = request_id || '-x'",
        &["counter views, id view-", "lives on another partition"],
    ),
    damage(
        "ids of what is no counter",
        P0,
        "UPDATE counter_requests SET item_id = (SELECT item_id FROM items WHERE name = 'post')",
        &["id view-", "which is no counter"],
    ),
    damage(
        "an id from the future",
        P0,
        "UPDATE counter_requests SET decided_at_ms = decided_at_ms + 1000000",
        &["counter views, id view-", "after the latest time stored"],
    ),
    damage(
        "versions that would be given again",
        P0,
        "UPDATE shard_counters SET version = 0",
        &["shard 0: its versions end at 0, and the summary has carried"],
    ),
    damage(
        "a total changed",
        SUMMARY,
        "UPDATE summary SET total = total + 1 WHERE item = 'post'",
        &["summary, item post", "total is 41, its parts add up to 40"],
    ),
    damage(
        "a part changed",
        SUMMARY,
        "UPDATE summary SET parts = json_set(parts, '$[1]', 999), total = total + 999 - json_extract(parts, '$[1]')
         WHERE item = 'post'",
        &["summary, item post, shard 1", "the summary has 999"],
    ),
    damage(
        "a total lost",
        SUMMARY,
        "DELETE FROM summary WHERE item = 'other'",
        &["summary, item other, shard", "the summary has 0"],
    ),
    damage(
        "a total of nothing",
        SUMMARY,
        "INSERT INTO summary VALUES ('ghost', 3, 1, '[0,3,0,0]')",
        &["item ghost, shard 1", "no such counter"],
    ),
    damage(
        "a gain changed",
        SUMMARY,
        "UPDATE trending SET gain = gain + 1 WHERE item = 'post' AND span = 3",
        &["summary, item post", "with a total of 41, and the total is 40"],
    ),
    damage(
        "the beginning of a gain changed",
        SUMMARY,
        "UPDATE trending SET base = base + 1, gain = gain - 1 WHERE item = 'post' AND span = 1",
        &["summary, item post", "counted from 1, its history has 0 there"],
    ),
    damage(
        "a history of nothing",
        SUMMARY,
        "INSERT INTO history VALUES ('ghost', 480000, 3, 5, NULL)",
        &["item ghost", "its history has 1 hours, and it has no total"],
    ),
    damage(
        "a history lost",
        SUMMARY,
        "DELETE FROM history WHERE item = 'other'",
        &["summary, item other", "counted from 0, its history has nothing there"],
    ),
    damage(
        "a history shifted",
        SUMMARY,
        "UPDATE history SET opening = opening + 1 WHERE item = 'post'",
        &["summary, item post", "counted from 0, its history has 1 there"],
    ),
    damage(
        "minutes that are none",
        SUMMARY,
        "UPDATE history SET minutes = x'3D00' WHERE item = 'post'",
        &["summary, item post", "of its history is not what it must be"],
    ),
    damage(
        "a day that begins in its middle",
        SUMMARY,
        "UPDATE history SET detail = 3, minutes = NULL, hour = hour / 24 * 24 + 5 WHERE item = 'post'",
        &["summary, item post", "of its history is not what it must be"],
    ),
    damage(
        "reserved changed",
        P0,
        "UPDATE workshops SET reserved = reserved - 1 WHERE reserved > 0",
        &["workshop workshop-", "reserved is"],
    ),
    damage(
        "an attempt deleted",
        P0,
        "DELETE FROM attempts WHERE (workshop_id, request_id) IN
           (SELECT workshop_id, request_id FROM attempts WHERE status = 'accepted' LIMIT 1)",
        &["workshop workshop-", "accepted requests is", "accepted seats is"],
    ),
    damage(
        "a rejection deleted",
        P0,
        "INSERT INTO attempts SELECT workshop_id, 'forged', 1, 'rejected', 0, 0, NULL FROM workshops LIMIT 1",
        &["workshop workshop-", "rejected requests is"],
    ),
    damage(
        "seats of an attempt changed",
        P0,
        "UPDATE attempts SET seats = seats + 1 WHERE status = 'accepted'",
        &["workshop workshop-", "its accepted reservations hold"],
    ),
    damage(
        "capacity below what is reserved, past the check",
        P0,
        "PRAGMA ignore_check_constraints = ON; UPDATE workshops SET capacity = 0",
        &["workshop workshop-", "capacity 0"],
    ),
    damage(
        "attempts of no workshop",
        P0,
        "DELETE FROM workshops",
        &["attempts", "belong to no workshop"],
    ),
    damage(
        "held seats changed",
        P0,
        "UPDATE workshops SET held = held - 1 WHERE held > 0",
        &["workshop workshop-", "held seats is"],
    ),
    damage(
        "a waiter lost",
        P0,
        "DELETE FROM bookings WHERE state = 'waiting'",
        &["workshop workshop-", "waiting requests is"],
    ),
    damage(
        "a hold expired without its seats",
        P0,
        "UPDATE bookings SET state = 'expired', taken = 0, expires_at_ms = NULL WHERE state = 'held'",
        &["workshop workshop-", "its accepted reservations hold", "held seats is"],
    ),
    damage(
        "an event deleted",
        P0,
        "DELETE FROM events WHERE seq = 1",
        &["workshop workshop-", "the last event is"],
    ),
    damage(
        "the end of a log cut off",
        P0,
        "DELETE FROM events WHERE (workshop_id, seq) IN (SELECT workshop_id, last_event FROM workshops)",
        &["workshop workshop-", "the last event is"],
    ),
    damage(
        "a life without a decision",
        P0,
        "INSERT INTO bookings (workshop_id, request_id, hold, waitlist, queued, of_set, state, seats, taken, since_ms)
           SELECT workshop_id, 'forged', 0, 0, 0, 0, 'cancelled', 1, 0, 0 FROM workshops LIMIT 1",
        &["bookings", "were never decided"],
    ),
    damage(
        "a tombstone of what is there",
        P0,
        "INSERT INTO workshop_tombstones SELECT name, 0 FROM workshops LIMIT 1",
        &["workshops", "have a tombstone"],
    ),
    damage("likes of no item", P0, "DELETE FROM items WHERE name = 'post'", &["which is no item", "without a name"]),
    damage(
        "a counter on the wrong partition",
        P0,
        "UPDATE shard_counters SET shard = shard + 1 WHERE shard = 0",
        &["shard 1", "does not belong on this partition"],
    ),
    damage(
        "a message lost",
        P0,
        "DELETE FROM room_messages WHERE offset = 2",
        &["room room-", "messages 1 to 4 are kept, and there are 3"],
    ),
    damage(
        "the last message lost",
        P1,
        "DELETE FROM room_messages WHERE offset = 4",
        &["room room-", "the last number given is 4, the last message's is 3"],
    ),
    damage(
        "numbers that would be given again",
        P0,
        "UPDATE rooms SET last_offset = 1",
        &["room room-", "the last number given is 1, the last message's is 4"],
    ),
    damage("messages of no room", P0, "DELETE FROM rooms", &["room_messages", "belong to no room"]),
    damage(
        "a message changed",
        P0,
        "UPDATE room_messages SET body = body || ' ' WHERE offset = 3",
        &["room_messages", "count for other than their bytes"],
    ),
    damage(
        "JSON that is none",
        P0,
        "UPDATE room_messages SET body = replace(body, '{', '[') WHERE offset = 3",
        &["room_messages", "are said to be JSON and are not"],
    ),
    damage(
        "an id said twice",
        P0,
        "UPDATE room_messages SET message_id = 'message-0'",
        &["room room-", "3 messages repeat an id"],
    ),
    damage(
        "a message out of its time",
        P0,
        "UPDATE room_messages SET at_ms = 5 WHERE offset = 3",
        &["room room-", "1 messages are older than the one before"],
    ),
    damage(
        "a message from the future",
        P0,
        "UPDATE room_messages SET at_ms = at_ms + 1000000 WHERE offset = 4",
        &["room_messages", "after the latest time stored"],
    ),
    damage("an epoch that is none", P0, "UPDATE rooms SET epoch = 'a b'", &["room room-", "is no epoch"]),
    damage(
        "a room under a name that lives elsewhere",
        P0,
        "UPDATE rooms SET name = name || '-' || name || '-x' WHERE room_id > 0;
         INSERT INTO rooms (name, epoch, last_offset) VALUES ('a', 'e', 0), ('b', 'e', 0), ('c', 'e', 0),
           ('d', 'e', 0), ('e', 'e', 0), ('f', 'e', 0), ('g', 'e', 0), ('h', 'e', 0)",
        &["room ", "it belongs on partition 1"],
    ),
    damage("another partition's file", P0, "UPDATE identity SET partition = 1", &["file", "partition 1"]),
    damage("another directory's file", P1, "UPDATE identity SET data_id = 'other'", &["file", "of other"]),
];

/// Each kind on a copy of its own, all at once: an audit that finds something looks again before it says so.
#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_damage_is_found_and_named() {
    let setup = good().await;
    setup.assert_verified();
    std::thread::scope(|scope| {
        let found: Vec<_> = DAMAGES
            .iter()
            .enumerate()
            .map(|(index, damage)| {
                let copy = setup.scratch().join(format!("damaged-{index}"));
                files::copy_directory(&setup.data_dir(), &copy);
                files::execute(&copy, damage.file, damage.sql);
                (damage, scope.spawn(move || verify(&copy, &[])))
            })
            .collect();
        for (damage, verified) in found {
            let (code, text) = verified.join().unwrap();
            assert_eq!(code, Some(1), "{}: {text}", damage.kind);
            assert!(text.contains("FAIL") && !text.contains("PASS"), "{}: {text}", damage.kind);
            for named in damage.named {
                assert!(text.contains(named), "{}: {named:?} is not in: {text}", damage.kind);
            }
        }
    });
    setup.assert_verified();
}

/// A user and a workshop moved whole, with their counts, to where nobody would look for them.
#[tokio::test(flavor = "multi_thread")]
async fn what_lies_on_the_wrong_partition_is_found() {
    let setup = good().await;
    let data_dir = setup.data_dir();
    let connection = files::open(&data_dir, P0);
    connection.execute("ATTACH ?1 AS other", [data_dir.join(P1).to_str().unwrap()]).unwrap();
    let moved: String =
        connection.query_row("SELECT user FROM memberships LIMIT 1", [], |row| row.get(0)).unwrap();
    connection
        .execute(
            "INSERT INTO other.memberships SELECT m.user, o.item_id, m.liked_at FROM main.memberships AS m
             JOIN main.items AS i USING (item_id) JOIN other.items AS o USING (name) WHERE m.user = ?1",
            [&moved],
        )
        .unwrap();
    connection.execute("DELETE FROM main.memberships WHERE user = ?1", [&moved]).unwrap();
    let workshop: String =
        connection.query_row("SELECT name FROM workshops LIMIT 1", [], |row| row.get(0)).unwrap();
    connection
        .execute_batch(
            "INSERT INTO other.workshops (workshop_id, name, capacity, reserved, overbooked, accepted_requests,
               rejected_requests, accepted_seats, version, created_at_ms, last_event)
               SELECT 1000, name, capacity, reserved, overbooked, accepted_requests,
               rejected_requests, accepted_seats, version, created_at_ms, last_event FROM main.workshops LIMIT 1;
             INSERT INTO other.attempts SELECT 1000, request_id, seats, status, reserved_after, decided_at_ms, reason
               FROM main.attempts WHERE workshop_id = (SELECT workshop_id FROM main.workshops LIMIT 1);
             INSERT INTO other.events SELECT 1000, seq, at_ms, kind, request_id, seats, reserved, reason, expires_at_ms,
               NULL FROM main.events WHERE workshop_id = (SELECT workshop_id FROM main.workshops LIMIT 1)",
        )
        .unwrap();
    drop(connection);
    let (code, text) = verify(&data_dir, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("partition 1, user {moved}: its shard")), "{text}");
    assert!(text.contains(&format!("partition 1, workshop {workshop}: it belongs on partition 0")), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_itself_keeps_capacity_above_what_is_reserved() {
    let setup = good().await;
    let connection = files::open(&setup.data_dir(), P0);
    for sql in [
        "UPDATE workshops SET capacity = reserved - 1 WHERE reserved > 0",
        "UPDATE workshops SET reserved = 5",
    ] {
        let error = connection.execute(sql, []).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::ConstraintViolation), "{sql}");
    }
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_passes_beside_the_running_service_under_load() {
    let setup = Setup::new()
        .with("likes.shards", SHARDS)
        .with("rollup.page_items", 3)
        .with("rollup.gathered_items", 3);
    let service = setup.start();
    let stop = AtomicBool::new(false);
    let load = async |writer: usize| {
        for n in 0.. {
            if stop.load(Ordering::Acquire) {
                break;
            }
            let item = format!("post-{}", n % 9);
            let user = format!("user-{writer}-{}", n % 50);
            let liked = if n % 3 == 0 {
                service.client.unlike(&item, &user).await
            } else {
                service.client.like(&item, &user).await
            };
            let request = format!("request-{writer}-{}", n / 2);
            let reserved = service.client.reserve(&format!("workshop-{}", n % 5), &request, 1).await;
            assert!(liked.status == 200 && [201, 409].contains(&reserved.status));
            if n % 40 == 39 {
                assert_eq!(service.client.delete(&format!("/likes/{item}")).await.status, 200);
            }
        }
    };
    let data_dir = setup.data_dir();
    let auditing = async {
        for _ in 0..10 {
            let data_dir = data_dir.clone();
            let (code, text) = tokio::task::spawn_blocking(move || verify(&data_dir, &[])).await.unwrap();
            assert_eq!(code, Some(0), "{text}");
        }
        stop.store(true, Ordering::Release);
    };
    tokio::join!(auditing, join_all((0..4).map(load)));
    assert!(service.stop().success());
    let (code, text) = verify(&data_dir, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("PASS") && text.contains(", 0 counters not carried yet"), "{text}");
}

/// Exit 2, and no word of passing.
fn assert_could_not_look(data_dir: &Path, arguments: &[&str], named: &str) {
    let (code, text) = verify(data_dir, arguments);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("could not look") && text.contains(named) && !text.contains("PASS"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_cannot_see_never_passes() {
    let setup = good().await;
    let scratch = setup.scratch();
    assert_could_not_look(&scratch.join("nowhere"), &[], "nowhere");
    fs::create_dir(scratch.join("empty")).unwrap();
    assert_could_not_look(&scratch.join("empty"), &[], "manifest.json");
    for deleted in [&[][..], &["--deleted", "likes"], &["--deleted", "workshops"], &["--deleted", "rooms"]] {
        for file in [P0, P1, SUMMARY] {
            if file == SUMMARY && (deleted.contains(&"workshops") || deleted.contains(&"rooms")) {
                continue;
            }
            let copy = scratch.join(format!("without-{file}-{}", deleted.concat()));
            files::copy_directory(&setup.data_dir(), &copy);
            fs::remove_file(copy.join(file)).unwrap();
            assert_could_not_look(&copy, deleted, file);
            assert!(!copy.join(file).exists(), "looking makes no file");
        }
    }
    let copy = scratch.join("newer");
    files::copy_directory(&setup.data_dir(), &copy);
    files::execute(&copy, P1, "PRAGMA user_version = 10");
    assert_could_not_look(&copy, &[], "schema 10");
    fs::write(copy.join(P1), "no database, and long enough to be looked at as one").unwrap();
    assert_could_not_look(&copy, &[], P1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_proven_by_absence_alone() {
    let setup = Setup::new();
    setup.start().stop();
    let data_dir = setup.data_dir();
    let code = |namespace: &str| verify(&data_dir, &["--deleted", namespace]).0;
    assert_eq!((code("likes"), code("workshops")), (Some(0), Some(0)), "nothing was there");
    assert_eq!(code("rooms"), Some(0));
    assert_eq!(code("everything"), Some(2), "no such namespace");

    let service = setup.start();
    service.client.like("post", "ada").await;
    assert_eq!((code("likes"), code("workshops")), (Some(1), Some(0)));
    service.client.reserve("workshop", "request-1", 1).await;
    assert_eq!(code("workshops"), Some(1));
    let (_, text) = verify(&data_dir, &["--deleted", "likes"]);
    assert!(text.contains("memberships: 1 rows are still there") && text.contains("FAIL"), "{text}");

    service.client.rolled_up("post").await;
    service.client.delete("/likes/post").await;
    crate::service::eventually("the sweep", || code("likes") == Some(0));
    // Any table that still has a row, in any file, is enough.
    assert!(service.stop().success());
    for (file, sql) in [
        (P0, "INSERT INTO items (name) VALUES ('x')"),
        (P1, "INSERT INTO memberships VALUES ('u', 1, 0)"),
        (P1, "INSERT INTO shard_counters VALUES (1, 1, 0, 0, 1)"),
        (P0, "INSERT INTO base_ledger VALUES (0, 1, 's', 1)"),
        (P1, "INSERT INTO unswept_items VALUES (1)"),
        (P0, "INSERT INTO counter_requests VALUES (1, 'abc', 1, 1, 0)"),
        (SUMMARY, "INSERT INTO summary VALUES ('x', 0, 1, '[]')"),
        (SUMMARY, "INSERT INTO deletions VALUES ('x', 1)"),
    ] {
        let copy = setup.scratch().join("copy");
        files::copy_directory(&data_dir, &copy);
        files::execute(&copy, file, sql);
        assert_eq!(verify(&copy, &["--deleted", "likes"]).0, Some(1), "{sql}");
        fs::remove_dir_all(&copy).unwrap();
    }
}

/// A room's messages end by their age; then nothing is left of it in any file.
#[tokio::test(flavor = "multi_thread")]
async fn the_absence_of_rooms_is_proven_too() {
    let setup = Setup::new().with("rooms.history", "durable");
    let service = setup.start();
    let data_dir = setup.data_dir();
    let code = || verify(&data_dir, &["--deleted", "rooms"]).0;
    assert_eq!(code(), Some(0), "nothing was there");
    // Presence is in no file.
    assert_eq!(service.client.post("/join", r#"{"user":"ada"}"#).await.status, 200);
    assert_eq!(code(), Some(0));
    assert_eq!(service.client.post("/send", r#"{"user":"ada","text":"hi"}"#).await.status, 200);
    let (found, text) = verify(&data_dir, &["--deleted", "rooms"]);
    assert_eq!(found, Some(1), "{text}");
    assert!(text.contains("room_messages: 1 rows are still there"), "{text}");
    assert!(service.stop().success());
    // The purge at the start ends what is too old.
    for file in [P0, P1] {
        files::execute(&data_dir, file, "UPDATE room_messages SET at_ms = 0");
    }
    let service = setup.start();
    crate::service::eventually("the purge", || code() == Some(0));
    assert!(service.stop().success());
    for (file, sql) in [
        (P0, "INSERT INTO rooms (name, epoch, last_offset) VALUES ('x', 'e', 0)"),
        (P1, "INSERT INTO room_messages VALUES (1, 1, 0, 0, NULL, NULL, 'text', '')"),
    ] {
        let copy = setup.scratch().join("copy");
        files::copy_directory(&data_dir, &copy);
        files::execute(&copy, file, sql);
        assert_eq!(verify(&copy, &["--deleted", "rooms"]).0, Some(1), "{sql}");
        fs::remove_dir_all(&copy).unwrap();
    }
}
