//! Moving data to another number of shards or partitions: everything is there afterwards, and nothing is lost whatever
//! happens on the way.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use hyper::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::files;
use crate::history::Rng;
use crate::service::{HEADCOUNT, Setup, eventually};

/// What the service says about everything that [`fill`] has put in.
type Said = Vec<(String, Value)>;

/// Without what differs from one moment to the next: ages, and on which shard a user is.
fn lasting(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|name, _| !["asOf", "ageMs", "shard"].contains(&name.as_str()));
            fields.values_mut().for_each(|field| *field = lasting(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = lasting(item.take())),
        _ => {}
    }
    value
}

async fn said(client: &Client) -> Said {
    let mut paths: Vec<String> = Vec::new();
    for item in 0..9 {
        paths.push(format!("/likes/item-{item}"));
        paths.extend((0..40).step_by(7).map(|user| format!("/likes/item-{item}/users/user-{user}")));
    }
    paths.push("/likes/deleted".to_owned());
    paths.push("/likes/unliked".to_owned());
    for workshop in 0..6 {
        paths.push(format!("/workshops/workshop-{workshop}/status"));
        paths.push(format!("/workshops/workshop-{workshop}"));
        paths.push(format!("/workshops/workshop-{workshop}/reservations?limit=200"));
        for request in ["taken", "held", "waiting", "cancelled"] {
            paths.push(format!("/workshops/workshop-{workshop}/reservations/{request}"));
        }
        paths.push(format!("/rooms/room-{workshop}"));
    }
    paths.push("/workshops/gone/status".to_owned());
    paths.extend((0..5).map(|set| format!("/reservations/set-{set}")));
    paths.push("/workshops?limit=200".to_owned());
    let mut said = Said::new();
    for path in paths {
        let answer = client.get(&path).await;
        said.push((format!("{} {path}", answer.status), lasting(answer.json)));
    }
    said
}

/// Some of everything that is stored.
async fn fill(client: &Client) {
    for user in 0..40 {
        for item in 0..9 {
            if (user + item) % 3 != 0 {
                client.like(&format!("item-{item}"), &format!("user-{user}")).await;
            }
        }
        client.like("deleted", &format!("user-{user}")).await;
    }
    client.like("unliked", "user-1").await;
    client.unlike("unliked", "user-1").await;
    client.delete("/likes/deleted").await;
    for workshop in 0..6 {
        let name = format!("workshop-{workshop}");
        let waitlist = json!({"policy": "strict", "offerTtlMs": 600_000, "maxLength": 9});
        client.configure(&name, json!({"capacity": 6, "waitlist": waitlist})).await;
        for body in [
            json!({"requestId": "taken", "seats": 1}),
            json!({"requestId": "held", "seats": 2, "hold": true, "holder": format!("holder-{}", workshop % 2)}),
            json!({"requestId": "cancelled", "seats": 2, "holder": "ada"}),
            json!({"requestId": "too-many", "seats": 4}),
        ] {
            client.request(&name, body).await;
        }
        client.change(&name, "cancelled", "cancel", Value::Null).await;
        client
            .request(&name, json!({"requestId": "waiting", "seats": 4, "waitlist": true, "holder": "bob"}))
            .await;
    }
    client.reserve("gone", "somebody", 1).await;
    client.reserve("reborn", "somebody", 2).await;
    for set in 0..4 {
        let other = if set == 1 { "gamma" } else { "reborn" };
        let lines = json!([{"workshop": "alpha", "seats": 1}, {"workshop": other, "seats": 1}]);
        let body =
            json!({"requestId": format!("set-{set}"), "lines": lines, "hold": set == 1, "holder": "ada"});
        client.post("/reservations", body.to_string()).await;
    }
    client.post("/reservations/set-2/cancel", "").await;
    client.delete("/workshops/gone").await;
    client.delete("/workshops/reborn").await;
    client.configure("reborn", json!({"capacity": 9})).await;
    let lines = json!([{"workshop": "beta", "seats": 1}, {"workshop": "reborn", "seats": 1}]);
    client.post("/reservations", json!({"requestId": "set-4", "lines": lines}).to_string()).await;
    for n in 0..24 {
        let said = json!({"user": "ada", "data": {"n": n}, "id": format!("message-{n}")});
        client.post(&format!("/rooms/room-{}/send", n % 6), said.to_string()).await;
    }
    client.rolled_up("item-1").await;
}

fn setup() -> Setup {
    Setup::new().with("rooms.history", "durable")
}

fn placed(setup: &Setup, shards: u32, partitions: u32) -> Setup {
    setup.clone().with("likes.shards", shards).with("storage.partitions", partitions)
}

fn moving(setup: &Setup, shards: u32, partitions: u32) -> Setup {
    placed(setup, shards, partitions).with("storage.move_on_start", true)
}

/// `headcount reshard` on the data directory: whether it succeeded, and what it said.
fn reshard(setup: &Setup, arguments: &[&str]) -> (bool, String) {
    let directory = setup.data_dir();
    let output = setup.run(&[&["reshard", "--data-dir", directory.to_str().unwrap()], arguments].concat());
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// The files of a data directory, all but what SQLite has beside its own.
fn names(setup: &Setup) -> Vec<String> {
    let entries = fs::read_dir(setup.data_dir()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with("-wal") && !name.ends_with("-shm"));
    names.sort_unstable();
    names
}

/// All that is told is the same, and it goes on from there.
async fn assert_same(setup: &Setup, before: &Said) {
    setup.assert_verified();
    let service = setup.start();
    let after = said(&service.client).await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_there_after_a_move() {
    let setup = setup();
    let service = placed(&setup, 4, 2).start();
    fill(&service.client).await;
    let before = said(&service.client).await;
    assert!(service.stop().success());
    setup.assert_verified();
    // More, fewer, many partitions without a shard, one, and back.
    for (shards, partitions) in [(32, 2), (5, 3), (2, 7), (1, 1), (4, 2)] {
        let (moved, text) =
            reshard(&setup, &["--shards", &shards.to_string(), "--partitions", &partitions.to_string()]);
        assert!(moved && text.contains("moved"), "{text}");
        assert_eq!(files::partitions(&setup.data_dir()).len(), partitions as usize);
        assert_same(&setup, &before).await;
    }
    assert_eq!(names(&setup), ["LOCK", "generation-5", "manifest.json"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_moved_goes_on() {
    let setup = setup();
    let service = placed(&setup, 4, 2).start();
    fill(&service.client).await;
    assert!(service.stop().success());
    let service = moving(&setup, 9, 3).start();
    let client = &service.client;
    // Replays, limits, memberships, waiters and rooms know their past.
    let replay = client.reserve("workshop-1", "taken", 1).await;
    assert_eq!((replay.status, &replay.json["replayed"]), (201, &json!(true)));
    assert_eq!(client.reserve("workshop-1", "taken", 2).await.error(), "request_id_reused");
    assert_eq!(client.like("item-1", "user-2").await.json["changed"], json!(true));
    assert_eq!(client.like("item-1", "user-0").await.json["changed"], json!(false));
    let total = client.exact("item-1").await;
    assert_eq!(client.rolled_up("item-1").await, total);
    assert_eq!(client.exact("deleted").await, 0);
    assert_eq!(client.like("deleted", "user-1").await.json["changed"], json!(true));
    assert_eq!(client.exact("deleted").await, 1);
    assert_eq!(client.get("/workshops/gone/status").await.error(), "gone");
    assert_eq!(client.change("workshop-2", "held", "confirm", Value::Null).await.status, 200);
    client.change("workshop-2", "held", "cancel", Value::Null).await;
    assert_eq!(client.show("workshop-2", "waiting").await["state"], json!("offered"));
    assert_eq!(client.post("/reservations/set-1/confirm", "").await.status, 200);
    let said = json!({"user": "ada", "text": "on", "id": "message-new"}).to_string();
    let sent = client.post("/rooms/room-3/send", said).await;
    assert_eq!(sent.json["offset"], json!(5));
    let again = json!({"user": "ada", "data": {"n": 21}, "id": "message-21"}).to_string();
    assert_eq!(client.post("/rooms/room-3/send", again).await.json["replayed"], json!(true));
    assert!(service.stop().success());
    setup.assert_verified();
}

/// L11: 16 shards, 10,000 likes; a restart with 32 while the users come again.
#[tokio::test(flavor = "multi_thread")]
async fn l11_every_like_counts_once_after_a_restart_with_more_shards_under_load() {
    const USERS: usize = 10_000;
    let setup = Setup::new();
    let service = placed(&setup, 16, 2).start();
    let all = |client: Client, method: Method| async move {
        let one = |user| {
            let (client, method) = (client.clone(), method.clone());
            async move {
                let path = format!("/likes/post/users/user-{user}");
                client.try_send(method, &path, "").await.is_ok_and(|answer| answer.status == 200)
            }
        };
        stream::iter(0..USERS)
            .map(one)
            .buffer_unordered(100)
            .filter(|done| std::future::ready(*done))
            .count()
            .await
    };
    assert_eq!(all(service.client.clone(), Method::PUT).await, USERS);
    // They come again while it stops; some are not answered.
    let again = tokio::spawn(all(service.client.clone(), Method::PUT));
    assert!(service.stop().success());
    again.await.unwrap();
    let service = moving(&setup, 32, 2).start();
    let client = &service.client;
    let rolled_up = client.get("/likes/post").await.json;
    assert_eq!(rolled_up["total"], json!(USERS), "the old total until the first roll-up: {rolled_up}");
    assert_eq!(all(client.clone(), Method::PUT).await, USERS);
    assert_eq!(client.exact("post").await, USERS as i64);
    assert_eq!(client.rolled_up("post").await, USERS as i64);
    let unlike = |user| {
        let client = client.clone();
        async move { assert_eq!(client.unlike("post", &format!("user-{user}")).await.status, 200) }
    };
    stream::iter((0..USERS).step_by(2)).map(unlike).buffer_unordered(100).collect::<Vec<()>>().await;
    assert_eq!((client.exact("post").await, client.rolled_up("post").await), (5_000, 5_000));
    let version = client.get("/likes/post").await.json["version"].as_i64();
    assert!(version >= rolled_up["version"].as_i64(), "a version never falls");
    assert!(service.stop().success());
    setup.assert_verified();
    let manifest = fs::read_to_string(setup.data_dir().join("manifest.json")).unwrap();
    assert!(manifest.contains("\"shards\": 32"), "{manifest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_numbers_are_refused_and_the_way_is_told() {
    let setup = setup();
    placed(&setup, 4, 2).start().client.like("post", "ada").await;
    for (shards, partitions, flag) in [(8, 2, "--shards 8"), (4, 3, "--partitions 3")] {
        let Err(said) = placed(&setup, shards, partitions).try_start() else { panic!("started") };
        for words in ["misplaced", "storage.move_on_start = true", "headcount reshard", flag] {
            assert!(said.contains(words), "{words} is not in: {said}");
        }
    }
    assert_eq!(setup.start().client.exact("post").await, 1);
}

/// Where a move can be killed, and whether the next start with the old numbers finds the old files.
const STEPS: [(&str, bool); 8] = [
    ("move_settled", true),
    ("move_begun", true),
    ("move_copied_memberships", true),
    ("move_copied_bookings", true),
    ("move_copied_set_lines", true),
    ("move_copied", true),
    ("move_checked", true),
    ("move_switched", false),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_killed_anywhere_loses_nothing() {
    let setup = setup();
    let service = placed(&setup, 4, 2).start();
    fill(&service.client).await;
    let before = said(&service.client).await;
    assert!(service.stop().success());
    for (n, (step, is_old)) in STEPS.into_iter().enumerate() {
        // A directory of its own for each.
        let own = self::setup();
        files::copy_directory(&setup.data_dir(), &own.data_dir());
        kill_at(&own, step, n % 2 == 0);
        // The audit looks at whatever holds.
        own.assert_verified();
        let shards = if is_old { 4 } else { 9 };
        let again = own.clone().with("likes.shards", shards);
        assert_same(&again, &before).await;
        let rests = names(&own).into_iter().filter(|name| name.starts_with("generation-")).count();
        assert_eq!(rests, usize::from(!is_old), "{step}: {:?}", names(&own));
        assert_same(&moving(&own, 9, 3), &before).await;
        assert_same(&own, &before).await;
    }
}

/// Starts a move, by a start or ahead of it, and kills it at a step.
fn kill_at(setup: &Setup, step: &str, at_start: bool) {
    let log = setup.scratch().join(format!("{step}.log"));
    let directory = setup.data_dir();
    let arguments: Vec<&str> = match at_start {
        true => vec!["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"],
        false => vec!["reshard", "--shards", "9", "--partitions", "3"],
    };
    let mut child = Command::new(HEADCOUNT)
        .args(arguments)
        .args(["--data-dir", directory.to_str().unwrap()])
        .current_dir(setup.scratch())
        .envs([("HEADCOUNT__ROOMS__HISTORY", "durable"), ("HEADCOUNT__FAULTS__STOP_WORK_AT", step)])
        .envs(at_start.then_some(("HEADCOUNT__LIKES__SHARDS", "9")))
        .envs(at_start.then_some(("HEADCOUNT__STORAGE__PARTITIONS", "3")))
        .envs(at_start.then_some(("HEADCOUNT__STORAGE__MOVE_ON_START", "true")))
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let said = format!("faults.stop_work_at = {step}");
    eventually(step, || {
        let ended = child.try_wait().unwrap();
        let text = fs::read_to_string(&log).unwrap();
        assert!(ended.is_none(), "{step}: {ended:?} {text}");
        text.contains(&said)
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Killed at any moment, again and again, between other numbers.
#[tokio::test(flavor = "multi_thread")]
async fn moves_that_are_killed_at_random_lose_nothing() {
    let seed = Rng::seed();
    let mut rng = Rng::new(seed);
    println!("{rng}");
    let setup = setup();
    let service = placed(&setup, 4, 2).start();
    fill(&service.client).await;
    let before = said(&service.client).await;
    assert!(service.stop().success());
    for round in 0..12 {
        let (shards, partitions) = ((1 + rng.below(20)).to_string(), (1 + rng.below(5)).to_string());
        let mut child = Command::new(HEADCOUNT)
            .args(["reshard", "--shards", &shards, "--partitions", &partitions, "--data-dir"])
            .arg(setup.data_dir())
            .current_dir(setup.scratch())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(rng.below(400)));
        child.kill().unwrap();
        child.wait().unwrap();
        setup.assert_verified();
        if round % 3 == 2 {
            assert_same(&setup, &before).await;
        }
    }
    assert_same(&moving(&setup, 6, 2), &before).await;
}

/// A set stops on its way, the data moves, and the set comes to its end all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_on_its_way_is_moved_with_its_lines() {
    let workshops = ["alpha", "beta", "gamma", "launch-day"];
    for (point, state, done) in [
        ("pending", "pending", "confirmed"),
        ("prepared_one", "pending", "confirmed"),
        ("prepared", "pending", "confirmed"),
        ("decided", "confirmed", "confirmed"),
        ("settled_one", "confirmed", "confirmed"),
        ("settled", "confirmed", "confirmed"),
    ] {
        let setup = Setup::new();
        let service = placed(&setup, 4, 2).with("faults.stop_set_at", point).start();
        let lines: Value = workshops.iter().map(|name| json!({"workshop": name, "seats": 3})).collect();
        let body = json!({"requestId": "set", "lines": lines, "holder": "ada"}).to_string();
        let client = service.client.clone();
        let asked = tokio::spawn(async move {
            let _killed_meanwhile = client.try_send(Method::POST, "/reservations", body).await;
        });
        let lines_of = "SELECT count(*) FROM bookings WHERE of_set";
        let expected = match point {
            "pending" => 0,
            "prepared_one" => 1,
            _ => 4,
        };
        let of_state = format!("SELECT count(*) FROM sets WHERE state = '{state}' AND NOT finished");
        eventually(point, || {
            let seen = (files::sum(&setup.data_dir(), &of_state), files::sum(&setup.data_dir(), lines_of));
            seen == (1, expected)
        });
        service.kill();
        asked.await.unwrap();
        let (moved, text) = reshard(&setup, &["--partitions", "5"]);
        assert!(moved, "{text}");
        setup.assert_verified();
        let service = setup.start();
        let finished = format!("SELECT count(*) FROM sets WHERE state = '{done}' AND finished");
        eventually(point, || files::sum(&setup.data_dir(), &finished) == 1);
        for workshop in workshops {
            assert_eq!(service.client.status(workshop).await["reserved"], json!(3), "{point}");
        }
        assert!(service.stop().success());
        setup.assert_verified();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_tells_what_it_would_take_and_changes_nothing() {
    let setup = setup();
    let service = placed(&setup, 4, 2).start();
    fill(&service.client).await;
    // Beside the running service.
    let (good, text) = reshard(&setup, &["--shards", "32", "--dry-run"]);
    assert!(good, "{text}");
    for words in
        ["from 4 shards on 2 partitions to 32 on 2", "rows:", "bytes:", "seconds:", "nothing was changed"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let (moved, text) = reshard(&setup, &["--shards", "32"]);
    assert!(!moved && text.contains("in use by another headcount process"), "{text}");
    let before = said(&service.client).await;
    assert!(service.stop().success());
    assert_eq!(
        names(&setup),
        ["LOCK", "manifest.json", "partition-000.db", "partition-001.db", "summary.db"]
    );
    assert_same(&placed(&setup, 4, 2), &before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_without_room_is_refused_with_both_numbers() {
    let setup = setup();
    placed(&setup, 4, 2).start().client.like("post", "ada").await;
    let short = setup.clone().with("faults.free_bytes", 4_321);
    for (refused, said) in [
        reshard(&short, &["--shards", "8"]),
        reshard(&short, &["--shards", "8", "--dry-run"]),
        match moving(&short, 8, 2).try_start() {
            Ok(_) => panic!("started"),
            Err(said) => (false, said),
        },
    ] {
        assert!(!refused && said.contains("4321") && said.contains("nothing was changed"), "{said}");
    }
    assert_eq!(
        names(&setup),
        ["LOCK", "manifest.json", "partition-000.db", "partition-001.db", "summary.db"]
    );
    assert_eq!(placed(&setup, 4, 2).start().client.exact("post").await, 1);
}

/// What does not add up is not carried on under new numbers.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_data_is_not_moved() {
    for damage in ["UPDATE summary SET total = total + 1, parts = '[7,0,0,0]'", "DELETE FROM summary"] {
        let setup = setup();
        let service = placed(&setup, 4, 2).start();
        service.client.like("post", "ada").await;
        service.client.rolled_up("post").await;
        assert!(service.stop().success());
        files::execute(&setup.data_dir(), "summary.db", damage);
        let (moved, text) = reshard(&setup, &["--shards", "8"]);
        assert!(!moved && text.contains("post") && text.contains("nothing was changed"), "{text}");
        assert_eq!(
            names(&setup),
            ["LOCK", "manifest.json", "partition-000.db", "partition-001.db", "summary.db"]
        );
    }
    // A table that this build has never heard of is somebody's data.
    let setup = setup();
    placed(&setup, 4, 2).start().client.like("post", "ada").await;
    files::execute(&setup.data_dir(), "partition-001.db", "CREATE TABLE novelties (n INTEGER)");
    let (moved, text) = reshard(&setup, &["--shards", "8"]);
    assert!(!moved && text.contains("novelties"), "{text}");
}

/// The service is killed before its totals were carried: the move carries them first.
#[tokio::test(flavor = "multi_thread")]
async fn likes_that_were_not_rolled_up_are_moved() {
    let setup = Setup::new();
    let never = placed(&setup, 4, 2).with("rollup.schedule", "0 0 0 1 1 *");
    let service = never.start();
    for user in 0..50 {
        service.client.like("post", &format!("user-{user}")).await;
    }
    service.kill();
    let service = moving(&setup, 7, 3).start();
    assert_eq!(service.client.get("/likes/post").await.json["total"], json!(50));
    assert!(service.stop().success());
    setup.assert_verified();
}

/// A base has a ledger and no members; moved to fewer shards, what one import gave an item is one row.
#[tokio::test(flavor = "multi_thread")]
async fn bases_are_moved_with_their_ledger() {
    let setup = Setup::new();
    let service = placed(&setup, 4, 2).start();
    service.client.like("post", "ada").await;
    service.client.rolled_up("post").await;
    assert!(service.stop().success());
    for file in files::partitions(&setup.data_dir()) {
        // As an import would have left it, on every shard, rolled up.
        let sql = "INSERT OR IGNORE INTO items (name) VALUES ('post');
            INSERT INTO base_ledger SELECT s.shard, i.item_id, 'import-1', 100 + s.shard
              FROM (SELECT DISTINCT value AS shard FROM json_each('[0,1,2,3]')) AS s, items AS i, identity AS p
              WHERE s.shard % 2 = p.partition;
            INSERT INTO shard_counters SELECT shard, item_id, 0, amount, 900 FROM base_ledger WHERE true
              ON CONFLICT DO UPDATE SET base = excluded.base, version = 900;";
        files::execute(&setup.data_dir(), &file, sql);
    }
    setup.assert_verified();
    for (shards, rows) in [("3", 1), ("16", 1)] {
        let (moved, text) = reshard(&setup, &["--shards", shards]);
        assert!(moved, "{text}");
        setup.assert_verified();
        assert_eq!(files::sum(&setup.data_dir(), "SELECT count(*) FROM base_ledger"), rows);
        let service = setup.start();
        assert_eq!(service.client.exact("post").await, 407);
        assert!(service.stop().success());
    }
}

/// Who was forgotten has no name any more and is still one person, whatever else is moved into the same file.
#[tokio::test(flavor = "multi_thread")]
async fn forgotten_holders_stay_nameless_and_apart() {
    let setup = setup();
    let service = placed(&setup, 4, 2).start();
    fill(&service.client).await;
    assert!(service.stop().success());
    for file in files::partitions(&setup.data_dir()) {
        files::execute(&setup.data_dir(), &file, "DELETE FROM holders WHERE name <> 'ada'");
    }
    let people = "SELECT count(DISTINCT holder_id) FROM bookings WHERE holder_id NOT IN (SELECT holder_id FROM holders)";
    let before = files::sum(&setup.data_dir(), people);
    let (moved, text) = reshard(&setup, &["--partitions", "1"]);
    assert!(moved, "{text}");
    setup.assert_verified();
    assert_eq!(files::sum(&setup.data_dir(), people), before);
    assert_eq!(files::sum(&setup.data_dir(), "SELECT count(*) FROM holders"), 1);
}

/// The service goes on while another directory is moved; nothing but its own is touched.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_stops_at_a_directory_that_is_served() {
    let setup = Setup::new();
    let service = placed(&setup, 4, 2).start();
    let stop = AtomicBool::new(false);
    let loading = async {
        let mut n = 0;
        while !stop.load(Ordering::Acquire) {
            assert_eq!(service.client.like("post", &format!("user-{n}")).await.status, 200);
            n += 1;
        }
        n
    };
    let trying = async {
        let setup = setup.clone();
        let tried = tokio::task::spawn_blocking(move || reshard(&setup, &["--shards", "8"]));
        let (moved, text) = tried.await.unwrap();
        stop.store(true, Ordering::Release);
        assert!(!moved && text.contains("in use"), "{text}");
    };
    let (likes, ()) = tokio::join!(loading, trying);
    assert_eq!(service.client.exact("post").await, likes);
}

/// One shard could not hold what several did and leave the others their whole share: it is spread over all of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_counter_that_is_nearly_full_is_nearly_full_after_a_move() {
    const FULL: i64 = i64::MAX / 2 * 2;
    let setup = Setup::new().with("storage.partitions", 2);
    let service = setup.clone().with("likes.shards", 2).start();
    let add = async |client: &Client, counter: &str, amount: i64| {
        client.post(&format!("/counters/{counter}"), json!({"amount": amount}).to_string()).await.status
    };
    let total = async |client: &Client, counter: &str| {
        client.get(&format!("/counters/{counter}?exact=true")).await.json["total"].as_i64().unwrap()
    };
    for (counter, sign) in [("up", 1), ("down", -1)] {
        // Adds without an id go to either shard.
        while total(&service.client, counter).await != FULL * sign {
            assert!([200, 409].contains(&add(&service.client, counter, FULL / 2 * sign).await));
        }
    }
    // Of many counters in one shard, each nearly full: their sum is nobody's business.
    for counter in 0..20 {
        add(&service.client, &format!("other-{counter}"), FULL / 2).await;
    }
    drop(service);
    for (shards, partitions) in [(5, 2), (1, 1), (4, 2)] {
        let (done, said) =
            reshard(&setup, &["--shards", &shards.to_string(), "--partitions", &partitions.to_string()]);
        assert!(done, "{said}");
        let service = placed(&setup, shards, partitions).start();
        for (counter, sign) in [("up", 1), ("down", -1)] {
            for _ in 0..20 {
                assert_eq!(add(&service.client, counter, FULL / 8 * sign).await, 409);
            }
            assert_eq!(total(&service.client, counter).await, FULL * sign);
        }
        assert_eq!(total(&service.client, "other-7").await, FULL / 2);
        drop(service);
        let output = setup.run(&["verify", "--data-dir", setup.data_dir().to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
