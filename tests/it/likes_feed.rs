//! Feeds: the totals of a page's items and whether its reader likes each, in one call.

use std::fmt::Write;

use hyper::Method;
use serde_json::{Value, json};

use crate::service::{Service, Setup};

/// What is answered of each item, but for times.
fn told(answer: &Value) -> Vec<(&str, i64, Option<bool>, bool)> {
    let items = answer["items"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let of =
        |item: &Value| (item["total"].as_i64().unwrap(), item["liked"].as_bool(), item["exact"].as_bool());
    items
        .iter()
        .map(|item| {
            let (total, liked, exact) = of(item);
            (item["item"].as_str().unwrap(), total, liked, exact.unwrap())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_by_its_address_and_by_its_body_is_one() {
    let service = Setup::new().start();
    let client = &service.client;
    for item in 0..30 {
        for user in 0..item % 4 {
            client.like(&format!("post-{item}"), &format!("user-{user}")).await;
        }
    }
    client.rolled_up("post-1").await;
    // Out of order, one of them twice, and some that nobody ever liked.
    let items: Vec<String> = [7, 3, 29, 3, 99, 0].iter().map(|item| format!("post-{item}")).collect();
    let expected = |liked: &[Option<bool>], exact: bool| {
        let totals = [3, 3, 1, 3, 0, 0];
        let all = items.iter().zip(totals).zip(liked);
        all.map(|((item, total), liked)| (item.clone(), total, *liked, exact)).collect::<Vec<_>>()
    };
    let address = items.iter().fold(String::from("/likes?"), |mut address, item| {
        write!(address, "item={item}&").unwrap();
        address
    });
    let nobody = [None; 6];
    let somebody = [Some(true), Some(true), Some(false), Some(true), Some(false), Some(false)];
    for (user, liked) in [(None, nobody), (Some("user-1"), somebody)] {
        for exact in [false, true] {
            let by_address = format!(
                "{address}exact={exact}{}",
                user.map_or(String::new(), |user| format!("&user={user}"))
            );
            let by_address = client.get(&by_address).await.json;
            let by_body = client.post(
                "/batch/likes/query",
                json!({"items": items, "user": user, "exact": exact}).to_string(),
            );
            let by_body = by_body.await.json;
            let expected = expected(&liked, exact);
            let expected: Vec<_> = expected
                .iter()
                .map(|(item, total, liked, exact)| (item.as_str(), *total, *liked, *exact))
                .collect();
            assert_eq!(told(&by_address), expected);
            assert_eq!(told(&by_body), expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_a_largest_size_which_is_greater_in_a_body() {
    let service =
        Setup::new().with("likes.max_items_per_read", 200).with("likes.max_items_per_query", 501).start();
    let client = &service.client;
    let items = |count: usize| (0..count).map(|n| format!("post-{n}")).collect::<Vec<_>>();
    let address = |count| {
        format!(
            "/likes?{}",
            items(count).iter().map(|item| format!("item={item}")).collect::<Vec<_>>().join("&")
        )
    };
    client.like("post-0", "ada").await;
    client.like("post-500", "ada").await;
    client.rolled_up("post-500").await;
    assert_eq!(told(&client.get(&address(200)).await.json).len(), 200);
    let refused = client.get(&address(201)).await;
    assert_eq!(
        (refused.status, refused.error(), &refused.json["field"]),
        (400, "invalid_query", &json!("item"))
    );
    for exact in [false, true] {
        let query = |count| json!({"items": items(count), "user": "ada", "exact": exact}).to_string();
        let answer = client.post("/batch/likes/query", query(501)).await;
        let told = told(&answer.json);
        let liked: Vec<usize> =
            (0..501).filter(|n| told[*n] == (items(501)[*n].as_str(), 1, Some(true), exact)).collect();
        assert_eq!((told.len(), liked), (501, vec![0, 500]), "in order over its parts");
        let refused = client.post("/batch/likes/query", query(502)).await;
        assert_eq!(
            (refused.status, refused.error(), &refused.json["field"]),
            (400, "invalid_query", &json!("items"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_none_is_refused_by_field() {
    let service = Setup::new().start();
    for (body, error, field) in [
        ("", "invalid_json", None),
        (r#"["a"]"#, "invalid_query", Some("items")),
        ("{}", "invalid_query", Some("items")),
        (r#"{"items":[]}"#, "invalid_query", Some("items")),
        (r#"{"items":"a"}"#, "invalid_query", Some("items")),
        (r#"{"items":["a",1]}"#, "invalid_query", Some("items")),
        (r#"{"items":["a",".."]}"#, "invalid_item", Some("items")),
        (r#"{"items":["a"],"user":""}"#, "invalid_user", Some("user")),
        (r#"{"items":["a"],"user":7}"#, "invalid_user", Some("user")),
        (r#"{"items":["a"],"exact":1}"#, "invalid_query", Some("exact")),
    ] {
        let answer = service.client.post("/batch/likes/query", body).await;
        assert_eq!((answer.status, answer.error()), (400, error), "{body}: {answer:?}");
        assert_eq!(answer.json.get("field"), field.map(Value::from).as_ref(), "{body}");
    }
}

/// Items may be called as any collection is.
#[tokio::test(flavor = "multi_thread")]
async fn no_item_name_is_reserved() {
    let service = Setup::new().start();
    for item in ["query", "batch", "likes", "counters", "batch%2Flikes"] {
        let posted = service.client.post(&format!("/likes/{item}"), r#"{"userId":"ada"}"#).await;
        assert_eq!((posted.status, &posted.json["changed"]), (200, &json!(true)), "{item}");
        assert_eq!(service.client.exact(item).await, 1);
    }
    let asked = service.client.send(Method::GET, "/batch/likes/query", "").await;
    assert_eq!((asked.status, asked.header("allow")), (405, "POST"));
}

/// Commands that partitions have decided so far.
async fn commands(service: &Service) -> f64 {
    let text = service.admin.get("/metrics").await.text;
    let sums = text.lines().filter(|line| line.starts_with("headcount_batch_commands_sum"));
    sums.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

/// Totals come from the roll-up; whether its reader likes them is one question to one shard, however many they are.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_asks_its_reader_s_shard_once_and_no_other() {
    let service = Setup::new().with("rollup.schedule", "0 0 0 1 1 *").start();
    let client = &service.client;
    for item in 0..200 {
        client.like(&format!("post-{item}"), "ada").await;
    }
    let items: Vec<String> = (0..200).map(|item| format!("item=post-{item}")).collect();
    let before = commands(&service).await;
    let answer = client.get(&format!("/likes?{}&user=ada", items.join("&"))).await;
    assert!(told(&answer.json).iter().all(|(.., liked, _)| *liked == Some(true)));
    // Somebody may look around meanwhile; not two hundred times.
    let asked = commands(&service).await - before;
    assert!((1.0..5.0).contains(&asked), "{asked} commands");
}
