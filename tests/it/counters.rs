//! Counters without members: what they take, what they answer, and where they end.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::files;
use crate::rooms::later;
use crate::service::{Setup, eventually};

pub async fn add(client: &Client, counter: &str, amount: i64, request: Option<&str>) -> Answer {
    let body = json!({"amount": amount, "requestId": request});
    client.post(&format!("/counters/{counter}"), body.to_string()).await
}

pub async fn exact(client: &Client, counter: &str) -> i64 {
    let answer = client.get(&format!("/counters/{counter}?exact=true")).await;
    assert_eq!((answer.status, &answer.json["exact"]), (200, &json!(true)), "{answer:?}");
    answer.json["total"].as_i64().unwrap()
}

/// The rolled-up total, once everything acknowledged before this call is in it.
pub async fn rolled_up(client: &Client, counter: &str) -> i64 {
    client.rolled_up("any").await;
    client.get(&format!("/counters/{counter}")).await.json["total"].as_i64().unwrap()
}

fn ids(setup: &Setup) -> i64 {
    files::sum(&setup.data_dir(), "SELECT count(*) FROM counter_requests")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_counter_adds_up_and_is_no_item() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let nothing = client.get("/counters/post").await;
    assert_eq!(
        (nothing.status, &nothing.json["total"], &nothing.json["exact"]),
        (200, &json!(0), &json!(false))
    );
    client.like("post", "ada").await;
    let answer = add(client, "post", 5, Some("request-1")).await;
    let shard = answer.json["shard"].clone();
    let expected =
        json!({"counter": "post", "amount": 5, "requestId": "request-1", "replayed": false, "shard": shard});
    assert_eq!((answer.status, answer.json), (200, expected));
    let plain = add(client, "post", -7, None).await;
    assert_eq!(
        (plain.status, plain.json.get("requestId"), &plain.json["replayed"]),
        (200, None, &json!(false))
    );
    let told = client.post("/counters/post?exact=true", r#"{"amount":1e1,"x":[]}"#).await;
    assert_eq!((&told.json["amount"], &told.json["total"]), (&json!(10), &json!(8)));
    assert_eq!((exact(client, "post").await, rolled_up(client, "post").await), (8, 8));
    let cached = client.get("/counters/post").await.json;
    assert!(cached["version"].as_u64().unwrap() > 0 && cached["ageMs"].as_i64().unwrap() >= 0, "{cached}");
    assert_eq!(cached["counter"], "post");
    // The item of the same name knows nothing of it, and the other way round.
    assert_eq!((client.exact("post").await, client.rolled_up("post").await), (1, 1));
    for window in ["1h", "all"] {
        let ranked = client.get(&format!("/trending?window={window}")).await.json["items"].clone();
        let names: Vec<_> =
            ranked.as_array().unwrap().iter().map(|item| item["item"].as_str().unwrap()).collect();
        assert_eq!(
            (names, &ranked[0]["total"]),
            (vec!["post"], &json!(1)),
            "{window}: counters are ranked nowhere"
        );
    }
    assert_eq!(client.delete("/likes/post").await.json["deleted"], true);
    assert_eq!((client.exact("post").await, exact(client, "post").await), (0, 8));
    assert_eq!(client.get("/likes/%01post").await.error(), "invalid_item", "nobody reaches it as an item");
    assert!(service.stop().success());
    setup.assert_verified();

    let service = setup.start();
    assert_eq!(exact(&service.client, "post").await, 8);
    assert_eq!(service.client.get("/counters/post").await.json["total"], 8, "from the first moment on");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_add_is_refused_by_field_and_uses_no_id_up() {
    let service = Setup::new().start();
    let client = &service.client;
    for (body, error, field) in [
        ("", "invalid_json", None),
        ("5", "invalid_add", Some("amount")),
        (r#"{"requestId":"request-1"}"#, "invalid_add", Some("amount")),
        (r#"{"amount":null,"requestId":"request-1"}"#, "invalid_add", Some("amount")),
        (r#"{"amount":"1","requestId":"request-1"}"#, "invalid_add", Some("amount")),
        (r#"{"amount":0.5,"requestId":"request-1"}"#, "invalid_add", Some("amount")),
        (r#"{"amount":9223372036854775808,"requestId":"request-1"}"#, "invalid_add", Some("amount")),
        (r#"{"amount":-9223372036854775809,"requestId":"request-1"}"#, "invalid_add", Some("amount")),
        (r#"{"amount":1,"requestId":"no"}"#, "invalid_add", Some("requestId")),
        (r#"{"amount":1,"requestId":7}"#, "invalid_add", Some("requestId")),
    ] {
        let answer = client.post("/counters/views", body).await;
        assert_eq!((answer.status, answer.error()), (400, error), "{body}: {answer:?}");
        assert_eq!(answer.json.get("field"), field.map(Value::from).as_ref(), "{body}");
    }
    for path in
        ["/counters/..%2f", "/counters/%0a", "/counters/%FF", &format!("/counters/{}", "a".repeat(129))]
    {
        let answer = client.post(path, r#"{"amount":1}"#).await;
        let expected = if path == "/counters/..%2f" { (200, "") } else { (400, "invalid_counter") };
        assert_eq!((answer.status, answer.error()), expected, "{path}");
        assert_eq!(client.get(path).await.error(), expected.1, "{path}");
    }
    assert_eq!(add(client, "views", 1, Some("request-1")).await.json["replayed"], false);
    assert_eq!(exact(client, "views").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_one_add_also_in_parallel_and_after_a_kill() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    // One of the amounts wins, and only that one is ever told again.
    let answers = join_all((0..60).map(|n| add(client, "views", 1 + n % 2, Some("request-1")))).await;
    let first = answers.iter().find(|answer| answer.json["replayed"] == false).unwrap().json["amount"]
        .as_i64()
        .unwrap();
    for (n, answer) in (0..).zip(&answers) {
        match 1 + n % 2 == first {
            true => assert_eq!((answer.status, &answer.json["amount"]), (200, &json!(first))),
            false => {
                assert_eq!(
                    (answer.status, answer.error(), &answer.json["field"]),
                    (422, "request_id_reused", &json!("amount"))
                );
            }
        }
    }
    assert_eq!(answers.iter().filter(|answer| answer.json["replayed"] == false).count(), 1);
    assert_eq!(exact(client, "views").await, first);
    // An id is its counter's own.
    assert_eq!(add(client, "plays", 9, Some("request-1")).await.json["replayed"], false);
    service.kill();

    let service = setup.start();
    let again = add(&service.client, "views", first, Some("request-1")).await;
    assert_eq!((again.status, &again.json["replayed"]), (200, &json!(true)));
    assert_eq!(add(&service.client, "views", 77, Some("request-1")).await.error(), "request_id_reused");
    assert_eq!((exact(&service.client, "views").await, exact(&service.client, "plays").await), (first, 9));
    assert!(service.stop().success());
    setup.assert_verified();
}

/// By the clock and to the millisecond, whether or not its row is swept yet.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_remembered_for_its_time_and_then_forgotten() {
    const TTL_MS: u32 = 3_600_000;
    let setup = Setup::new().with("counters.dedupe_ttl_ms", TTL_MS).with("faults.clock_control", true);
    let service = setup.start();
    let client = &service.client;
    for n in 0..20 {
        add(client, "views", 1, Some(&format!("request-{n}"))).await;
    }
    // Far less than its time away, whatever the test itself takes.
    later(&service, TTL_MS / 2).await;
    assert_eq!(add(client, "views", 1, Some("request-7")).await.json["replayed"], true);
    later(&service, TTL_MS / 2).await;
    let answer = add(client, "views", 5, Some("request-7")).await;
    assert_eq!((answer.status, &answer.json["replayed"]), (200, &json!(false)));
    assert_eq!(add(client, "views", 5, Some("request-7")).await.json["replayed"], true);
    assert_eq!(exact(client, "views").await, 25);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_whose_time_is_over_are_swept_in_chunks() {
    let setup = Setup::new().with("counters.dedupe_ttl_ms", 200).with("counters.sweep_chunk", 3);
    let service = setup.start();
    let client = &service.client;
    join_all((0..100).map(async |n| add(client, "views", 1, Some(&format!("request-{n}"))).await)).await;
    eventually("the sweep", || ids(&setup) == 0);
    assert_eq!(
        (exact(client, "views").await, rolled_up(client, "views").await),
        (100, 100),
        "the count stays"
    );
    assert!(service.stop().success());
    setup.assert_verified();
}

/// With one shard the range is an `i64`'s.
#[tokio::test(flavor = "multi_thread")]
async fn a_count_is_refused_at_the_end_of_its_range_and_never_wraps() {
    let setup = Setup::new().with("likes.shards", 1);
    let service = setup.start();
    let client = &service.client;
    assert_eq!(add(client, "up", i64::MAX, Some("all-of-it")).await.status, 200);
    assert_eq!(add(client, "down", -i64::MAX, None).await.status, 200);
    for request in [None, Some("one-more")] {
        for (counter, amount) in [("up", 1), ("up", i64::MAX), ("down", -1), ("down", i64::MIN)] {
            let request = request.map(|request| format!("{request}-{}", amount.unsigned_abs()));
            let answer = add(client, counter, amount, request.as_deref()).await;
            let told = (answer.status, answer.error(), &answer.json["field"]);
            assert_eq!(told, (409, "counter_overflow", &json!("amount")), "{counter} {amount}");
        }
    }
    assert_eq!((exact(client, "up").await, exact(client, "down").await), (i64::MAX, -i64::MAX));
    assert_eq!((rolled_up(client, "up").await, rolled_up(client, "down").await), (i64::MAX, -i64::MAX));
    // There and back in as few batches as it takes, so that the ledger has to hold more than an amount can say.
    let back = join_all(
        [(-i64::MAX, "back-1"), (-i64::MAX, "back-2")]
            .map(|(amount, id)| add(client, "up", amount, Some(id))),
    );
    assert!(back.await.iter().all(|answer| answer.status == 200));
    assert_eq!(exact(client, "up").await, -i64::MAX);
    // A refusal was a decision: its id says the same again, though there would be room now.
    let again = add(client, "up", 1, Some("one-more-1")).await;
    assert_eq!((again.status, again.error()), (409, "counter_overflow"));
    assert_eq!(add(client, "up", 2, Some("one-more-1")).await.error(), "request_id_reused");
    assert!(service.stop().success());
    setup.assert_verified();
}

/// With many shards each keeps to its share, so that all of them together stay within the range.
#[tokio::test(flavor = "multi_thread")]
async fn no_sum_of_shards_leaves_the_range() {
    let setup = Setup::new().with("likes.shards", 4);
    let service = setup.start();
    let client = &service.client;
    let share = i64::MAX / 4;
    let answers = join_all((0..64).map(|_| add(client, "views", share / 2, None))).await;
    let added = answers.iter().filter(|answer| answer.status == 200).count() as i128;
    assert!(answers.iter().all(|answer| [200, 409].contains(&answer.status)));
    assert_eq!(added, 8, "two a shard");
    let expected = i64::try_from(added * i128::from(share / 2)).unwrap();
    assert_eq!((exact(client, "views").await, rolled_up(client, "views").await), (expected, expected));
    assert_eq!(
        add(client, "views", share + 1, None).await.error(),
        "counter_overflow",
        "more than any shard counts"
    );
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn adds_without_an_id_are_spread_and_all_of_them_count() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let answers = join_all((0..160).map(|n| add(client, "views", n, None))).await;
    let mut shards: Vec<u64> = answers.iter().map(|answer| answer.json["shard"].as_u64().unwrap()).collect();
    shards.sort_unstable();
    shards.dedup();
    assert!(shards.len() > 8, "{shards:?}");
    let expected = (0..160).sum::<i64>();
    assert_eq!((exact(client, "views").await, rolled_up(client, "views").await), (expected, expected));
    let metrics = service.admin.get("/metrics").await.text;
    assert!(metrics.contains("headcount_counter_adds_total{outcome=\"added\"} 160\n"), "{metrics}");
    let usage = service.admin.get("/usage").await.json;
    assert!(usage["likes"]["requests"].as_u64().unwrap() >= 161, "{usage}");
    assert!(service.stop().success());
    setup.assert_verified();
}
