//! The routes of likes: what they take and what they answer.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::service::Setup;

/// `ada` lives on shard 15 of 16.
#[tokio::test(flavor = "multi_thread")]
async fn put_delete_and_post_answer_what_is_and_what_changed() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let answer = |liked: bool, changed: bool| json!({"item": "post", "user": "ada", "liked": liked, "changed": changed, "shard": 15});
    assert_eq!(client.like("post", "ada").await.json, answer(true, true));
    assert_eq!(client.like("post", "ada").await.json, answer(true, false));
    assert_eq!(client.unlike("post", "ada").await.json, answer(false, true));
    assert_eq!(client.unlike("post", "ada").await.json, answer(false, false));
    let posted = client.post("/likes/post", r#"{"userId":"ada","other":1}"#).await;
    assert_eq!((posted.status, posted.json), (200, answer(true, true)));
    assert_eq!(client.post("/likes/post", r#"{"userId":"ada"}"#).await.json, answer(true, false));
    assert_eq!(client.unlike("post", "ada").await.json, answer(false, true), "POST and PUT are one like");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_decoded_once_and_answered_as_they_are() {
    let setup = Setup::new();
    let service = setup.start();
    let answer = service.client.put("/likes/caf%C3%A9%2Fbar%2541/users/%E6%97%A5%E6%9C%AC%20x").await;
    assert_eq!(
        (answer.status, &answer.json["item"], &answer.json["user"]),
        (200, &json!("café/bar%41"), &json!("日本 x"))
    );
    let listed =
        service.client.get("/likes?item=caf%C3%A9%2Fbar%2541&user=%E6%97%A5%E6%9C%AC+x&exact=true").await;
    assert_eq!(
        (&listed.json["items"][0]["total"], &listed.json["items"][0]["liked"]),
        (&json!(1), &json!(true))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exact_answer_counts_the_write_it_answers() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    for n in 1..=20 {
        let answer = client.put(&format!("/likes/post/users/user-{n}?exact=true")).await;
        assert_eq!(answer.json["total"], n);
    }
    let answer = client.delete("/likes/post/users/user-1?exact=true").await;
    assert_eq!(answer.json["total"], 19);
    let answer = client.post("/likes/post?exact=true", r#"{"userId":"user-1"}"#).await;
    assert_eq!(answer.json["total"], 20);

    // In parallel: each counts itself and whatever was answered before it was asked.
    let paths: Vec<_> = (0..50).map(|n| format!("/likes/other/users/user-{n}?exact=true")).collect();
    let answers = join_all(paths.iter().map(|path| client.put(path))).await;
    let totals: Vec<_> = answers.iter().map(|answer| answer.json["total"].as_i64().unwrap()).collect();
    assert!(totals.iter().all(|total| (1..=50).contains(total)), "{totals:?}");
    assert!(totals.contains(&50), "the last one sees all: {totals:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_total_is_rolled_up_with_its_age_or_exact() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    client.like("post", "ada").await;
    let exact = client.get("/likes/post?exact=true").await.json;
    assert_eq!(keys(&exact), ["ageMs", "asOf", "exact", "item", "total"]);
    assert_eq!((&exact["item"], &exact["total"], &exact["exact"]), (&json!("post"), &json!(1), &json!(true)));
    assert_eq!(client.rolled_up("post").await, 1);
    let cached = client.get("/likes/post").await.json;
    assert_eq!(keys(&cached), ["ageMs", "asOf", "exact", "item", "total", "version"]);
    assert_eq!((&cached["total"], &cached["exact"]), (&json!(1), &json!(false)));
    assert!(cached["asOf"].as_i64() > exact["asOf"].as_i64());
    assert!(cached["version"].as_u64() > Some(0));
    assert_eq!(client.get("/likes/post?exact=false").await.json["exact"], false);

    let nobody = client.get("/likes/never-liked").await;
    assert_eq!((nobody.status, &nobody.json["total"]), (200, &json!(0)));
    assert_eq!(client.exact("never-liked").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_always_answered_by_its_owner() {
    let setup = Setup::new().with("rollup.schedule", "0 0 0 1 1 *");
    let service = setup.start();
    let client = &service.client;
    for (user, liked) in [("ada", true), ("bob", false)] {
        if liked {
            client.like("post", user).await;
        }
        let answer = client.get(&format!("/likes/post/users/{user}")).await;
        assert_eq!(
            (answer.status, answer.json),
            (200, json!({"item": "post", "user": user, "liked": liked}))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_totals_and_one_users_likes_in_one_call() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    for (item, user) in [("a", "ada"), ("a", "bob"), ("b", "bob")] {
        client.like(item, user).await;
    }
    client.rolled_up("a").await;
    let of = |answer: Value, field: &str| -> Vec<Value> {
        answer["items"].as_array().unwrap().iter().map(|item| item[field].clone()).collect()
    };
    for exact in ["", "&exact=true"] {
        let answer = client.get(&format!("/likes?item=b&item=c&item=a&item=b&user=ada{exact}")).await.json;
        assert_eq!(of(answer.clone(), "item"), ["b", "c", "a", "b"], "in the order of the question");
        assert_eq!(of(answer.clone(), "total"), [json!(1), json!(0), json!(2), json!(1)]);
        assert_eq!(of(answer.clone(), "liked"), [json!(false), json!(false), json!(true), json!(false)]);
        assert_eq!(of(answer, "exact"), vec![json!(!exact.is_empty()); 4]);
    }
    let without_user = client.get("/likes?item=a").await.json;
    assert_eq!(keys(&without_user["items"][0]), ["ageMs", "asOf", "exact", "item", "total", "version"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_question_about_likes_is_refused() {
    let setup = Setup::new().with("likes.max_items_per_read", 3);
    let service = setup.start();
    let client = &service.client;
    let refused = [
        ("/likes", "invalid_query"),
        ("/likes?user=ada", "invalid_query"),
        ("/likes?item=a&item=b&item=c&item=d", "invalid_query"),
        ("/likes?item=a&user=b&user=c", "invalid_query"),
        ("/likes?item=", "invalid_item"),
        ("/likes?item=a&user=", "invalid_user"),
        ("/likes/a?exact=1", "invalid_query"),
        ("/likes/a?exact=true&exact=true", "invalid_query"),
        ("/likes/%ff", "invalid_item"),
        ("/likes/a/users/%00", "invalid_user"),
    ];
    for (path, word) in refused {
        let answer = client.get(path).await;
        assert_eq!((answer.status, answer.error()), (400, word), "{path}");
        assert_eq!(answer.header("content-type"), "application/problem+json", "{path}");
    }
    for (body, word, field) in [
        (r#"{"userId":"ada""#, "invalid_json", Value::Null),
        (r#"["ada"]"#, "invalid_like", json!("userId")),
        (r#"{}"#, "invalid_user", json!("userId")),
        (r#"{"userId":7}"#, "invalid_user", json!("userId")),
        (r#"{"userId":""}"#, "invalid_user", json!("userId")),
    ] {
        let answer = client.post("/likes/a", body).await;
        assert_eq!((answer.status, answer.error(), &answer.json["field"]), (400, word, &field), "{body}");
    }
    assert_eq!(client.exact("a").await, 0);
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}
