//! A person is forgotten: everywhere, once, whatever happens on the way; and what is left adds up.

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use hyper::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::files;
use crate::rooms::reader::Reader;
use crate::service::{Service, Setup, eventually};

const ADA: &str = "ada-who-was";
const ITEMS: usize = 5;
/// Nothing ends by its age while a test runs.
const YEAR_MS: i64 = 31_536_000_000;

async fn forget(client: &Client, person: &str, policy: &str) -> Value {
    let answer = client.delete(&format!("/users/{person}?policy={policy}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json
}

/// Ada and three others like five items.
async fn fill_likes(client: &Client) {
    for user in [ADA, "bob", "carla", "dirk"] {
        for item in 0..ITEMS {
            assert_eq!(client.like(&format!("post-{item}"), user).await.status, 200);
        }
    }
}

/// A person likes so many items.
async fn like_many(client: &Client, person: &str, items: usize) {
    let like = async |item: usize| client.like(&format!("post-{item}"), person).await.status;
    let liked: Vec<u16> = stream::iter(0..items).map(like).buffer_unordered(100).collect().await;
    assert!(liked.iter().all(|status| *status == 200));
}

/// Ada holds seats on both partitions, alone and as a set.
async fn fill_workshops(client: &Client) {
    for workshop in ["pottery", "weaving", "glass", "paper"] {
        assert_eq!(client.configure(workshop, json!({"capacity": 9})).await.status, 201);
        let body = json!({"requestId": "ada-1", "seats": 2, "holder": ADA, "hold": true});
        assert_eq!(client.request(workshop, body).await.status, 201);
    }
    let lines = json!([{"workshop": "pottery", "seats": 1}, {"workshop": "glass", "seats": 1}]);
    let set = json!({"requestId": "ada-set", "lines": lines, "holder": ADA});
    assert_eq!(client.post("/reservations", set.to_string()).await.status, 201);
}

/// Ada speaks in three rooms and is online in one of them.
async fn fill_rooms(client: &Client) {
    for room in ["lobby", "attic", "cellar"] {
        for user in [ADA, "bob"] {
            let body = json!({"user": user, "text": format!("said in the {room}"), "id": "message-1"});
            let answer = client.post(&format!("/rooms/{room}/send"), body.to_string()).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
    let body = json!({"user": ADA, "meta": {"status": "at my desk"}});
    assert_eq!(client.post("/rooms/lobby/join", body.to_string()).await.status, 200);
}

/// Columns of any table, in any file, that hold the name.
fn places_of(setup: &Setup, name: &str) -> Vec<String> {
    let data_dir = setup.data_dir();
    let mut places = Vec::new();
    for file in files::partitions(&data_dir).into_iter().chain(["summary.db".to_owned()]) {
        let connection = files::open(&data_dir, &file);
        let columns = "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
                       WHERE t.type = 'table'";
        let columns: Vec<(String, String)> = connection
            .prepare(columns)
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for (table, column) in columns {
            let sql = format!("SELECT count(*) FROM \"{table}\" WHERE instr(\"{column}\", ?1) > 0");
            let found: i64 = connection.query_row(&sql, [name], |row| row.get(0)).unwrap();
            if found > 0 {
                places.push(format!("{file} {table}.{column}"));
            }
        }
    }
    places
}

/// What is rolled up and what is exact.
async fn totals(client: &Client) -> Vec<(i64, i64)> {
    let mut totals = Vec::new();
    for item in 0..ITEMS {
        let item = format!("post-{item}");
        totals.push((client.rolled_up(&item).await, client.exact(&item).await));
    }
    totals
}

async fn l20(policy: &str, left: i64) {
    for history in ["memory", "durable"] {
        let setup = Setup::new().with("rooms.history", history).with("rooms.history_age_ms", YEAR_MS);
        let service = setup.start();
        let client = &service.client;
        fill_likes(client).await;
        fill_workshops(client).await;
        fill_rooms(client).await;
        assert_eq!(totals(client).await, [(4, 4); ITEMS]);

        let told = forget(client, ADA, policy).await;
        let rooms = if history == "memory" { 3 } else { 1 };
        let expected =
            json!({"user": ADA, "policy": policy, "likes": 5, "holders": 2, "messages": 3, "rooms": rooms});
        assert_eq!(told, expected, "{history}");
        assert_eq!(places_of(&setup, ADA), [""; 0], "{history}");
        assert_eq!(totals(client).await, [(left, left); ITEMS]);
        let liked = client.get(&format!("/likes/post-1/users/{ADA}")).await;
        assert_eq!(liked.json["liked"], false);
        assert_eq!(client.get(&format!("/users/{ADA}/likes")).await.json["likes"], json!([]));
        // Seats stay taken, for nobody who is known.
        let shown = client.show("pottery", "ada-1").await;
        assert_eq!((&shown["state"], &shown["holder"]), (&json!("held"), &Value::Null));
        let listed = client.get(&format!("/workshops/pottery/reservations?holder={ADA}")).await;
        assert_eq!(listed.json["reservations"], json!([]));
        assert_eq!(client.get("/reservations/ada-set").await.json["holder"], Value::Null);
        assert_eq!(client.status("pottery").await["reserved"], 3);
        // What was said stays said, by nobody.
        assert_eq!(client.get("/rooms/lobby?members=true").await.json["members"], json!([]));
        for room in ["lobby", "attic", "cellar"] {
            let said = said_in(&service, room).await;
            assert_eq!(
                said,
                [(Value::Null, Value::Null), (json!("bob"), json!("message-1"))],
                "{history}, {room}"
            );
        }

        let nothing =
            json!({"user": ADA, "policy": policy, "likes": 0, "holders": 0, "messages": 0, "rooms": 0});
        for _ in 0..2 {
            assert_eq!(forget(client, ADA, policy).await, nothing);
            assert_eq!(totals(client).await, [(left, left); ITEMS]);
        }
        assert_audited(&setup, &service, policy);
        assert!(service.stop().success());
        setup.assert_verified();

        let service = setup.start();
        assert_eq!(forget(&service.client, ADA, policy).await, nothing);
        assert_eq!(totals(&service.client).await, [(left, left); ITEMS]);
        // Whoever comes under the name is somebody new.
        assert_eq!(service.client.like("post-1", ADA).await.json["changed"], true);
        assert_eq!(service.client.exact("post-1").await, left + 1);
        assert_eq!(service.client.unlike("post-1", ADA).await.json["changed"], true);
        assert_eq!(service.client.exact("post-1").await, left);
        assert!(service.stop().success());
        setup.assert_verified();
    }
}

/// User and id of each message, as one hears who comes back.
async fn said_in(service: &Service, room: &str) -> Vec<(Value, Value)> {
    let last = service.client.post(&format!("/rooms/{room}/send"), r#"{"user":"mark","text":"mark"}"#).await;
    let since = format!("{}:0", last.json["epoch"].as_str().unwrap());
    let mut reader = Reader::open(service, &format!("{room}/events?since={since}"), "").await;
    let first = reader.event_of("presence").await;
    assert_eq!(first.json()["recovered"], true, "{first:?}");
    let mut said = Vec::new();
    loop {
        let message = reader.event_of("message").await.json();
        if message["user"] == "mark" {
            return said;
        }
        assert_eq!(message["text"], format!("said in the {room}"));
        said.push((message["user"].clone(), message["id"].clone()));
    }
}

/// Three forgettings, the first of which found something, and nobody's name in the log.
fn assert_audited(setup: &Setup, service: &Service, policy: &str) {
    let data_dir = setup.data_dir();
    let number = |sql: &str| files::sum(&data_dir, sql);
    assert_eq!(number("SELECT count(*) FROM forgetting"), 0);
    assert_eq!(number("SELECT coalesce(sum(likes), 0) FROM forgotten"), 5);
    assert_eq!(number("SELECT coalesce(sum(holders), 0) FROM forgotten"), 2);
    let of_policy = format!("SELECT count(*) FROM forgotten WHERE policy <> '{policy}'");
    assert_eq!(number(&of_policy), 0);
    let log = service.log();
    assert!(!log.iter().any(|line| line.contains(ADA)), "{log:?}");
    let told: Vec<Value> = log
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["event"] == "person_forgotten")
        .collect();
    assert_eq!(told.len(), 3);
    assert_eq!((&told[0]["likes"], &told[0]["policy"]), (&json!(5), &json!(policy)));
    let manifest = std::fs::read_to_string(data_dir.join("manifest.json")).unwrap();
    let data_id = serde_json::from_str::<Value>(&manifest).unwrap()["data_id"].as_str().unwrap().to_owned();
    // Whoever has the name and the directory can tell.
    let hash = headcount::people::hash::person_hash(&data_id, ADA);
    assert!(told.iter().all(|line| line["person"] == hash.as_str()));
    assert!(number(&format!("SELECT count(*) FROM forgotten WHERE person = '{hash}'")) >= 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn l20_a_person_is_forgotten_and_its_likes_with_it() {
    l20("remove", 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l20_a_person_is_forgotten_and_the_counts_stay() {
    l20("anonymise", 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_says_what_it_wants_to_know() {
    let setup = Setup::new();
    let service = setup.start();
    for query in ["", "?policy=", "?policy=forget", "?policy=remove&policy=remove", "?policy=Remove"] {
        let answer = service.client.delete(&format!("/users/ada{query}")).await;
        assert_eq!((answer.status, answer.error()), (400, "invalid_query"), "{query}");
        assert_eq!(answer.json["field"], "policy");
    }
    let answer = service.client.delete(&format!("/users/{}?policy=remove", "x".repeat(129))).await;
    assert_eq!((answer.status, answer.error()), (400, "invalid_user"));
    let answer = service.client.get("/users/ada?policy=remove").await;
    assert_eq!((answer.status, answer.header("allow")), (405, "DELETE"));
}

/// An item's base holds who was anonymised, and a user who comes, likes and is anonymised again and again is counted each time.
#[tokio::test(flavor = "multi_thread")]
async fn who_was_anonymised_is_counted_and_deleted_with_its_item() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    for life in 1..=3 {
        client.like("post", ADA).await;
        assert_eq!(forget(client, ADA, "anonymise").await["likes"], 1);
        assert_eq!((client.exact("post").await, client.rolled_up("post").await), (life, life));
    }
    let ledger = "SELECT coalesce(sum(amount), 0) FROM base_ledger WHERE source = 'anonymised'";
    assert_eq!(files::sum(&setup.data_dir(), ledger), 3);
    setup.assert_verified();
    assert_eq!(client.delete("/likes/post").await.json["deleted"], true);
    assert_eq!((client.exact("post").await, files::sum(&setup.data_dir(), ledger)), (0, 0));
    assert!(service.stop().success());
    setup.assert_verified();
}

/// Likes of an item that is gone count nowhere; their rows hold the name all the same until they are swept.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_deleted_items_are_forgotten_too() {
    let setup = Setup::new().with("rollup.schedule", "0 0 0 1 1 *");
    let service = setup.start();
    for item in ["gone", "stays"] {
        service.client.like(item, ADA).await;
    }
    service.client.delete("/likes/gone").await;
    assert_eq!(forget(&service.client, ADA, "remove").await["likes"], 1);
    assert_eq!(places_of(&setup, ADA), [""; 0]);
    assert!(service.stop().success());
    setup.assert_verified();
}

/// Something in a partition never comes to its end, so that the service is there for as long as it takes to kill it.
fn stuck(on: &str, when: &str) -> String {
    format!(
        "CREATE VIEW for_ever AS
           WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;
         CREATE TRIGGER stuck BEFORE {on} WHEN {when} BEGIN SELECT count(*) FROM for_ever; END;"
    )
}

const FREE: &str = "DROP TRIGGER stuck; DROP VIEW for_ever";

#[tokio::test(flavor = "multi_thread")]
async fn a_forgetting_that_was_killed_is_finished_at_the_next_start() {
    // In the second few of its likes; when those are done, at its name; at its messages.
    let places = [
        ("INSERT ON base_ledger", "(SELECT count(*) FROM base_ledger) >= 550"),
        ("DELETE ON holders", "true"),
        ("UPDATE ON room_messages", "true"),
    ];
    for (on, when) in places {
        let setup = Setup::new().with("rooms.history", "durable").with("rooms.history_age_ms", YEAR_MS);
        let service = setup.start();
        let client = &service.client;
        like_many(client, ADA, 600).await;
        client.like("post-0", "bob").await;
        fill_workshops(client).await;
        fill_rooms(client).await;
        assert!(service.stop().success());
        let partitions = files::partitions(&setup.data_dir());
        partitions.iter().for_each(|file| files::execute(&setup.data_dir(), file, &stuck(on, when)));

        let service = setup.start();
        let client = service.client.clone();
        let path = format!("/users/{ADA}?policy=anonymise");
        let forgetting = tokio::spawn(async move { client.try_send(Method::DELETE, &path, "").await });
        let data_dir = setup.data_dir();
        let is_stuck = || {
            let noted = files::sum(&data_dir, "SELECT count(*) FROM forgetting") == 1;
            let done = files::sum(&data_dir, "SELECT coalesce(sum(likes), 0) FROM forgotten");
            let held = partitions.iter().any(|file| files::is_being_written(&data_dir, file));
            noted && done == (if on.contains("ledger") { 500 } else { 600 }) && held
        };
        // Held for good, and not only for this look.
        eventually("the note and what comes before the place", || (0..20).all(|_| is_stuck()));
        service.kill();
        let _whatever_it_was_told = forgetting.await.unwrap();
        setup.assert_verified();
        partitions.iter().for_each(|file| files::execute(&data_dir, file, FREE));

        let service = setup.start();
        eventually("the rest", || files::sum(&data_dir, "SELECT count(*) FROM forgetting") == 0);
        assert_eq!(places_of(&setup, ADA), [""; 0], "{on}");
        assert_eq!(files::sum(&data_dir, "SELECT sum(likes) FROM forgotten"), 600, "{on}");
        assert_eq!(files::sum(&data_dir, "SELECT sum(holders) FROM forgotten"), 2, "{on}");
        assert_eq!(files::sum(&data_dir, "SELECT sum(messages) FROM forgotten"), 3, "{on}");
        assert_eq!(service.client.exact("post-0").await, 2);
        assert_eq!(service.client.exact("post-599").await, 1);
        assert_eq!(forget(&service.client, ADA, "anonymise").await["likes"], 0);
        assert!(service.stop().success());
        setup.assert_verified();
    }
}

/// One person after another while everybody likes and unlikes, and the service is killed again and again.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_moment_it_is_killed_at_the_counts_add_up() {
    let setup = Setup::new();
    let mut expected = 0;
    for round in 0..8_u64 {
        let service = setup.start();
        let client = &service.client;
        let person = format!("person-{round}");
        like_many(client, &person, 40).await;
        let path = format!("/users/{person}?policy={}", if round % 2 == 0 { "anonymise" } else { "remove" });
        expected += i64::from(round % 2 == 0);
        let asked = client.clone();
        let forgetting = tokio::spawn(async move { asked.try_send(Method::DELETE, &path, "").await });
        // Before, during or after it: any moment is as good.
        tokio::time::sleep(std::time::Duration::from_micros(round * 900)).await;
        service.kill();
        let _whatever_it_was_told = forgetting.await.unwrap();
        setup.assert_verified();
        // Noted, it goes on by itself; not noted, it is asked for again.
        let service = setup.start();
        forget(&service.client, &person, if round % 2 == 0 { "anonymise" } else { "remove" }).await;
        for item in [0, 17, 39] {
            assert_eq!(service.client.exact(&format!("post-{item}")).await, expected, "round {round}");
        }
        assert!(service.stop().success());
        setup.assert_verified();
    }
}

/// A partition that is down does its part when it is up again; meanwhile the other policy must wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_forgetting_that_failed_goes_on_by_itself() {
    let setup = Setup::new().with("sqlite.busy_timeout_ms", 50);
    let service = setup.start();
    let client = &service.client;
    // One whose likes are on the first partition, so that the note can be made.
    let mut people = (0..).map(|n| format!("person-{n}"));
    let person =
        people.find(|person| headcount::likes::types::shard_of(person, 16).is_multiple_of(2)).unwrap();
    assert_eq!(client.like("post", &person).await.status, 200);
    let other = rusqlite::Connection::open(setup.data_dir().join("partition-001.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = client.delete(&format!("/users/{person}?policy=remove")).await;
    assert_eq!((answer.status, answer.error()), (503, "outcome_unknown"), "{answer:?}");
    let answer = client.delete(&format!("/users/{person}?policy=anonymise")).await;
    assert_eq!((answer.status, answer.error()), (409, "forgetting_under_way"), "{answer:?}");
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    let unfinished = || files::sum(&setup.data_dir(), "SELECT count(*) FROM forgetting");
    eventually("it is finished", || unfinished() == 0);
    assert_eq!(client.exact("post").await, 0);
    assert_eq!(forget(client, &person, "anonymise").await["likes"], 0);
    setup.assert_verified();
}

/// Others like, unlike and are counted meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_notices() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    like_many(client, ADA, 600).await;
    let others = join_all((0..20).map(|user| async move {
        for n in 0..30 {
            assert_eq!(client.like("post-7", &format!("user-{user}-{n}")).await.status, 200);
        }
    }));
    let (told, _) = tokio::join!(forget(client, ADA, "remove"), others);
    assert_eq!(told["likes"], 600);
    assert_eq!((client.exact("post-7").await, client.rolled_up("post-7").await), (600, 600));
    assert_eq!((client.exact("post-8").await, client.rolled_up("post-8").await), (0, 0));
    assert!(service.stop().success());
    setup.assert_verified();
}
