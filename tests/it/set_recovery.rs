//! What a kill leaves of sets: all or none, wherever it strikes.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::Client;
use crate::files;
use crate::history::Rng;
use crate::service::{Service, Setup, eventually};
use crate::time;

/// Two on each partition.
const WORKSHOPS: [&str; 4] = ["alpha", "beta", "gamma", "launch-day"];

/// Where a set can stop, and how that shows in the files: sets by state and whether they are finished, lines by
/// state.
const STOPS: [(&str, &str); 6] = [
    ("pending", "pending-0 | "),
    ("prepared_one", "pending-0 | held-1"),
    ("prepared", "pending-0 | held-4"),
    ("decided", "confirmed-0 | held-4"),
    ("settled_one", "confirmed-0 | confirmed-1 held-3"),
    ("settled", "confirmed-0 | confirmed-4"),
];

fn body(id: &str, seats: u32, hold: bool) -> String {
    let lines: Value = WORKSHOPS.iter().map(|name| json!({"workshop": name, "seats": seats})).collect();
    json!({"requestId": id, "lines": lines, "hold": hold}).to_string()
}

/// What the files say, as in [`STOPS`].
fn seen(setup: &Setup) -> String {
    let (mut sets, mut lines) = (Vec::new(), std::collections::BTreeMap::<String, i64>::new());
    for file in files::partitions(&setup.data_dir()) {
        let connection = files::open(&setup.data_dir(), &file);
        let mut select = connection.prepare("SELECT state || '-' || finished FROM sets").unwrap();
        sets.extend(select.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap));
        let mut select =
            connection.prepare("SELECT state, count(*) FROM bookings WHERE of_set GROUP BY state").unwrap();
        let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))).unwrap();
        for (state, number) in rows.map(Result::unwrap) {
            *lines.entry(state).or_default() += number;
        }
    }
    let lines: Vec<String> = lines.into_iter().map(|(state, number)| format!("{state}-{number}")).collect();
    format!("{} | {}", sets.join(" "), lines.join(" "))
}

async fn taken(client: &Client) -> Vec<i64> {
    let taken = WORKSHOPS.map(async |name| client.status(name).await["reserved"].as_i64().unwrap());
    join_all(taken).await
}

/// Asks for something and does not wait for the answer.
fn ask(service: &Service, path: &str, body: String) -> tokio::task::JoinHandle<()> {
    let (client, path) = (service.client.clone(), path.to_owned());
    tokio::spawn(async move {
        let _killed_meanwhile = client.try_send(hyper::Method::POST, &path, body).await;
    })
}

/// Stops a set at a point, kills the service there, and starts it again without stops.
async fn killed_at(setup: &Setup, point: &str, expected: &str, path: &str, body: String) -> Service {
    let service = setup.clone().with("faults.stop_set_at", point).start();
    let asked = ask(&service, path, body);
    eventually(&format!("{point}: {expected}"), || seen(setup) == expected);
    // A line that waits is counted, and its set is a set on its way.
    setup.assert_verified();
    service.kill();
    asked.await.unwrap();
    setup.start()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_is_killed_anywhere_is_taken_whole_after_the_restart() {
    for (point, expected) in STOPS {
        let setup = Setup::new();
        let service = killed_at(&setup, point, expected, "/reservations", body("set", 3, false)).await;
        eventually(point, || seen(&setup) == "confirmed-1 | confirmed-4");
        assert_eq!(taken(&service.client).await, [3; 4], "{point}");
        let replay = service.client.post("/reservations", body("set", 3, false)).await;
        assert_eq!((replay.status, &replay.json["replayed"]), (201, &json!(true)), "{point}");
        assert!(service.stop().success());
        setup.assert_verified();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_is_killed_anywhere_is_refused_whole_after_the_restart() {
    let stops = [
        ("pending", "pending-0 | "),
        ("prepared_one", "pending-0 | held-1"),
        ("prepared", "pending-0 | held-3 rejected-1"),
        ("decided", "refused-0 | held-3 rejected-1"),
        ("settled_one", "refused-0 | cancelled-1 held-2 rejected-1"),
        ("settled", "refused-0 | cancelled-3 rejected-1"),
    ];
    for (point, expected) in stops {
        let setup = Setup::new();
        let service = setup.start();
        assert_eq!(service.client.reserve("launch-day", "somebody", 2).await.status, 201);
        assert!(service.stop().success());
        let service = killed_at(&setup, point, expected, "/reservations", body("set", 3, false)).await;
        eventually(point, || seen(&setup) == "refused-1 | cancelled-3 rejected-1");
        assert_eq!(taken(&service.client).await, [0, 0, 0, 2], "{point}");
        let replay = service.client.post("/reservations", body("set", 3, false)).await;
        assert_eq!((replay.status, &replay.json["rejectedBy"]), (409, &json!("launch-day")), "{point}");
        assert!(service.stop().success());
        setup.assert_verified();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_for_a_held_set_is_done_after_a_kill() {
    for (change, state, left) in [("confirm", "confirmed", 3), ("cancel", "cancelled", 0)] {
        for (point, done) in [("decided", 0), ("settled_one", 1), ("settled", 4)] {
            let setup = Setup::new();
            let service = setup.start();
            assert_eq!(service.client.post("/reservations", body("set", 3, true)).await.status, 201);
            assert!(service.stop().success());
            let mut lines = vec![format!("{state}-{done}"), format!("held-{}", 4 - done)];
            lines.retain(|line| !line.ends_with("-0"));
            let expected = format!("{state}-0 | {}", lines.join(" "));
            let path = format!("/reservations/set/{change}");
            let service = killed_at(&setup, point, &expected, &path, String::new()).await;
            eventually(point, || seen(&setup) == format!("{state}-1 | {state}-4"));
            assert_eq!(taken(&service.client).await, [left; 4], "{change} {point}");
            assert_eq!(service.client.get("/reservations/set").await.json["state"], *state);
            assert!(service.stop().success());
            setup.assert_verified();
        }
    }
}

/// A set whose hold has ended is asked again, and dies on its way to its seats.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_takes_its_seats_again_is_whole_wherever_it_is_killed() {
    // The last workshop has room for it or not.
    let stops: [(i64, &[(&str, &str)]); 2] = [
        (
            0,
            &[
                ("pending", "retaking-0 | expired-4"),
                ("prepared_one", "retaking-0 | expired-3 held-1"),
                ("prepared", "retaking-0 | held-4"),
                ("decided", "confirmed-0 | held-4"),
                ("settled_one", "confirmed-0 | confirmed-1 held-3"),
                ("settled", "confirmed-0 | confirmed-4"),
            ],
        ),
        (
            2,
            &[
                ("prepared_one", "retaking-0 | expired-3 held-1"),
                ("prepared", "retaking-0 | expired-1 held-3"),
                ("decided", "expired-0 | expired-1 held-3"),
                ("settled_one", "expired-0 | expired-2 held-2"),
                ("settled", "expired-0 | expired-4"),
            ],
        ),
    ];
    for (somebodys, stops) in stops {
        for (point, expected) in stops {
            let setup = Setup::new().with("clock.allow_step_back", true);
            let service = setup.start();
            let body = body("set", 3, true).replace("\"hold\"", "\"ttlMs\":60000,\"hold\"");
            assert_eq!(service.client.post("/reservations", body).await.status, 201);
            let service = time::passes(&setup, service, 60_000);
            eventually("its end", || seen(&setup) == "expired-1 | expired-4");
            if somebodys > 0 {
                assert_eq!(service.client.reserve("launch-day", "somebody", 2).await.status, 201);
            }
            assert!(service.stop().success());
            let again = r#"{"reacquire":true}"#.to_owned();
            let service = killed_at(&setup, point, expected, "/reservations/set/confirm", again).await;
            let (whole, left) = match somebodys {
                0 => ("confirmed-1 | confirmed-4", [3; 4]),
                _ => ("expired-1 | expired-4", [0, 0, 0, somebodys]),
            };
            eventually(point, || seen(&setup) == whole);
            assert_eq!(taken(&service.client).await, left, "{point}");
            assert!(service.stop().success());
            setup.assert_verified();
        }
    }
}

/// The caller is told that the outcome is not known, and learns it by repeating.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_is_on_its_way_too_long_is_unknown_and_told_when_repeated() {
    let setup = Setup::new();
    let stuck = setup
        .clone()
        .with("faults.stop_set_at", "prepared")
        .with("mailbox.deadline_ms", 200)
        .with("server.request_timeout_ms", 400);
    let service = stuck.start();
    let unknown = service.client.post("/reservations", body("set", 1, false)).await;
    assert_eq!((unknown.status, unknown.error()), (503, "outcome_unknown"), "{unknown:?}");
    let pending = service.client.get("/reservations/set").await;
    assert_eq!((&pending.json["status"], &pending.json["state"]), (&json!("pending"), &json!("pending")));
    let early = service.client.post("/reservations/set/cancel", "").await;
    assert_eq!((early.status, early.error()), (503, "unavailable"), "{early:?}");
    service.kill();
    let service = setup.start();
    let told = service.client.post("/reservations", body("set", 1, false)).await;
    assert_eq!((told.status, &told.json["replayed"]), (201, &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_sets_on_their_way_than_there_is_room_for_are_told_to_come_back() {
    let setup = Setup::new();
    let stuck = setup.clone().with("faults.stop_set_at", "pending").with("reservations.max_open_sets", 1);
    let service = stuck.start();
    let asked = ask(&service, "/reservations", body("first", 1, false));
    eventually("the first", || seen(&setup) == "pending-0 | ");
    let second = service.client.post("/reservations", body("second", 1, false)).await;
    assert_eq!((second.status, second.error()), (503, "overloaded"), "{second:?}");
    assert_eq!(second.header("retry-after"), "1");
    assert_eq!(service.client.get("/reservations/second").await.status, 404, "surely not done");
    service.kill();
    asked.await.unwrap();
    let service = setup.start();
    assert_eq!(service.client.post("/reservations", body("second", 1, false)).await.status, 201);
}

/// A batch that fails is repeated by whoever drives the set, until all is done.
#[tokio::test(flavor = "multi_thread")]
async fn sets_are_whole_where_commits_fail() {
    let setup = Setup::new().with("reservations.default_capacity", 40).with("faults.fail_commit_every", 5);
    let service = setup.start();
    let client = &service.client;
    let ids: Vec<String> = (0..12).map(|n| format!("set-{n}")).collect();
    for id in &ids {
        loop {
            let answer = client.post("/reservations", body(id, 4, false)).await;
            match answer.status {
                201 | 409 => break,
                503 => tokio::time::sleep(Duration::from_millis(10)).await,
                _ => panic!("{answer:?}"),
            }
        }
    }
    eventually("all are finished", || {
        files::sum(&setup.data_dir(), "SELECT count(*) FROM sets WHERE finished = 0") == 0
    });
    setup.assert_verified();
    assert_eq!(files::sum(&setup.data_dir(), "SELECT count(*) FROM sets WHERE state = 'confirmed'"), 10);
}

/// Sets, holds, confirmations and cancellations of many, killed at random moments.
#[tokio::test(flavor = "multi_thread")]
async fn sets_are_whole_after_kills_at_random() {
    let seed = Rng::seed();
    let mut rng = Rng::new(seed);
    println!("{rng}");
    let setup = Setup::new().with("reservations.default_capacity", 30);
    for round in 0..8 {
        let service = setup.start();
        let callers: Vec<_> = (0..12)
            .map(|caller| {
                let client = service.client.clone();
                tokio::spawn(async move { carry_on(&client, round, caller).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(20 + rng.below(250))).await;
        service.kill();
        for caller in callers {
            caller.await.unwrap();
        }
        setup.assert_verified();
    }
    let service = setup.start();
    let unfinished = "SELECT count(*) FROM sets WHERE finished = 0";
    eventually("all are finished", || files::sum(&setup.data_dir(), unfinished) == 0);
    setup.assert_verified();
    assert!(files::sum(&setup.data_dir(), "SELECT count(*) FROM sets") > 0, "nothing was tried");
    assert!(service.stop().success());
    setup.assert_verified();
}

/// Takes, holds, confirms and cancels until the service is gone.
async fn carry_on(client: &Client, round: usize, caller: usize) {
    for n in 0.. {
        let id = format!("set-{round}-{caller}-{n}");
        let (one, other) = (WORKSHOPS[(caller + n) % 4], WORKSHOPS[(caller + n / 3 + 1) % 4]);
        let lines = json!([{"workshop": one, "seats": 1}, {"workshop": other, "seats": 2}]);
        let body = json!({"requestId": id, "lines": lines, "hold": n % 3 != 0}).to_string();
        let Ok(_) = client.try_send(hyper::Method::POST, "/reservations", body).await else { return };
        let what = if n % 2 == 0 { "cancel" } else { "confirm" };
        let path = format!("/reservations/{id}/{what}");
        let Ok(_) = client.try_send(hyper::Method::POST, &path, "").await else { return };
    }
}

/// The audit sees what recovery would have left wrong.
#[tokio::test(flavor = "multi_thread")]
async fn verify_sees_a_set_that_is_half() {
    let damages = [
        ("UPDATE sets SET state = 'cancelled'", "it is cancelled, its line in alpha is confirmed"),
        (
            "UPDATE sets SET state = 'refused', reason = 'not_enough_seats', refused_by = 'beta'",
            "it is refused",
        ),
        ("DELETE FROM sets; DELETE FROM set_lines", "no such set asked for one"),
        ("UPDATE set_lines SET seats = 4", "has 3 seats, not 4"),
        (
            "DELETE FROM bookings WHERE workshop_id IN (SELECT workshop_id FROM workshops WHERE name = 'beta')",
            "it has no line in beta",
        ),
    ];
    for (damage, finding) in damages {
        let setup = Setup::new();
        let service = setup.start();
        assert_eq!(service.client.post("/reservations", body("set", 3, false)).await.status, 201);
        assert!(service.stop().success());
        setup.assert_verified();
        for file in files::partitions(&setup.data_dir()) {
            files::execute(&setup.data_dir(), &file, damage);
        }
        let (passes, text) = setup.verify();
        assert!(!passes && text.contains(finding), "{damage}: {text}");
    }
}
