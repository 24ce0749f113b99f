//! What lines say and what is answered.

use std::io::Write;

use serde_json::{Value, json};

use super::{Stream, like, send, unlike};
use crate::raw;
use crate::service::Setup;

/// `ada` lives on shard 15 of 16, `user-1` on 9.
#[tokio::test(flavor = "multi_thread")]
async fn each_line_gets_its_outcome_in_order() {
    let setup = Setup::new();
    let service = setup.start();
    let lines = [
        like("post", "ada"),
        like("post", "user-1"),
        unlike("post", "ada"),
        unlike("post", "ada"),
        like("film", "ada"),
        like("post", "ada"),
    ];
    let outcome = |line: u64, item: &str, user: &str, liked: bool, changed: bool| {
        let shard = if user == "ada" { 15 } else { 9 };
        json!({"line": line, "status": 200, "item": item, "user": user, "liked": liked, "changed": changed,
            "shard": shard})
    };
    let expected = [
        outcome(1, "post", "ada", true, true),
        outcome(2, "post", "user-1", true, true),
        outcome(3, "post", "ada", false, true),
        outcome(4, "post", "ada", false, false),
        outcome(5, "film", "ada", true, true),
        outcome(6, "post", "ada", true, true),
    ];
    assert_eq!(send(&service.client, &lines).await, expected);
    assert_eq!((service.client.exact("post").await, service.client.exact("film").await), (2, 1));
    assert_eq!(service.client.rolled_up("post").await, 2);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_line_is_its_own_problem_and_ends_nothing() {
    let service = Setup::new().with("bulk.max_line_bytes", 100).with("likes.max_user_bytes", 8).start();
    let long = format!(r#"{{"item":"post","user":"ada","x":"{}"}}"#, "x".repeat(100));
    let lines = [
        ("not JSON", 400, "invalid_json", None),
        (r#"{"item":"post","user":"ada""#, 400, "invalid_json", None),
        (r#"["post","ada",true]"#, 400, "invalid_like", None),
        (r#"{"item":"post","item":"film","user":"ada"}"#, 400, "invalid_like", None),
        (r#"{"user":"ada"}"#, 400, "invalid_item", Some("item")),
        (r#"{"item":".","user":"ada"}"#, 400, "invalid_item", Some("item")),
        (r#"{"item":7,"user":"ada"}"#, 400, "invalid_item", Some("item")),
        (r#"{"item":"post"}"#, 400, "invalid_user", Some("user")),
        (r#"{"item":"post","user":"123456789"}"#, 400, "invalid_user", Some("user")),
        (r#"{"item":"post","userId":"123456789"}"#, 400, "invalid_user", Some("userId")),
        (r#"{"item":"post","user":"a","userId":"b"}"#, 400, "invalid_like", Some("userId")),
        (r#"{"item":"post","user":"ada","liked":"yes"}"#, 400, "invalid_like", Some("liked")),
        (long.as_str(), 413, "line_too_long", None),
    ];
    // A good one after each: nothing that is wrong spills over.
    let body: Vec<String> =
        lines.iter().flat_map(|(line, ..)| [(*line).to_owned(), like("post", "bob")]).collect();
    let outcomes = send(&service.client, &body).await;
    assert_eq!(outcomes.len(), body.len());
    for (n, (line, status, error, field)) in lines.into_iter().enumerate() {
        let problem = &outcomes[2 * n];
        assert_eq!(problem["line"], 2 * n + 1);
        assert_eq!(
            (&problem["status"], &problem["error"]),
            (&json!(status), &json!(error)),
            "{line}: {problem}"
        );
        assert_eq!(problem.get("field"), field.map(Value::from).as_ref(), "{line}: {problem}");
        assert_eq!(problem["type"], format!("urn:headcount:problem:{error}"));
        assert_eq!(
            (&outcomes[2 * n + 1]["status"], &outcomes[2 * n + 1]["changed"]),
            (&json!(200), &json!(n == 0))
        );
    }
    assert_eq!(service.client.exact("post").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_numbered_and_a_like_needs_no_more_than_two_names() {
    let service = Setup::new().start();
    let body = "\u{feff}{\"item\":\"post\",\"user\":\"ada\"}\r\n\n  \r\n{\"item\":\"post\",\"userId\":\"bob\",\"liked\":null}";
    let answer = service.client.post("/batch/likes", body).await;
    let outcomes: Vec<Value> = answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> =
        outcomes.iter().map(|o| (o["line"].as_u64().unwrap(), &o["user"], &o["liked"])).collect();
    assert_eq!(told, [(1, &json!("ada"), &json!(true)), (4, &json!("bob"), &json!(true))]);
    let nothing = service.client.post("/batch/likes", "").await;
    assert_eq!((nothing.status, nothing.text.as_str()), (200, ""));
    assert_eq!(service.client.exact("post").await, 2);
}

/// Far above `server.max_body_bytes`, which is a line's business here.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_may_be_longer_than_a_body() {
    let setup = Setup::new().with("server.max_body_bytes", 1_000);
    let service = setup.start();
    let lines: Vec<String> =
        (0..5_000).map(|n| like(&format!("post-{}", n % 7), &format!("user-{n}"))).collect();
    let outcomes = send(&service.client, &lines).await;
    let done = outcomes.iter().filter(|outcome| outcome["changed"] == true).count();
    assert_eq!((outcomes.len(), done), (5_000, 5_000));
    let numbers: Vec<u64> = outcomes.iter().map(|outcome| outcome["line"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(1..=5_000));
    let mut total = 0;
    for item in 0..7 {
        total += service.client.exact(&format!("post-{item}")).await;
    }
    assert_eq!(total, 5_000);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_come_while_lines_are_still_sent() {
    let service = Setup::new().start();
    let mut stream = Stream::open(&service).await;
    for n in 1..=20_u64 {
        let outcome = stream.ask(&like("post", &format!("user-{n}"))).await;
        assert_eq!((&outcome["line"], &outcome["changed"]), (&json!(n), &json!(true)));
        assert_eq!(service.client.exact("post").await, i64::try_from(n).unwrap(), "told and done");
    }
    // A line may come in pieces.
    let line = like("post", "user-1") + "\n";
    let (first, second) = line.split_at(11);
    stream.lines_in.send(first).await.unwrap();
    stream.lines_in.send(second).await.unwrap();
    assert_eq!(stream.outcomes.next().await.unwrap()["changed"], false);
    // The last one needs no end of its own.
    stream.lines_in.send(&like("post", "last")).await.unwrap();
    stream.lines_in.end().await.unwrap();
    let rest = stream.outcomes.rest().await;
    assert_eq!((rest.len(), &rest[0]["user"]), (1, &json!("last")));
}

#[tokio::test(flavor = "multi_thread")]
async fn l1_a_stream_of_likes_and_unlikes_settles_as_it_ends() {
    let service = Setup::new().start();
    let lines: Vec<String> =
        (0..200).map(|n| if n % 2 == 0 { like("post", "a") } else { unlike("post", "a") }).collect();
    let outcomes = send(&service.client, &lines).await;
    assert!(outcomes.iter().all(|outcome| outcome["changed"] == true), "in their order, each changes it");
    assert_eq!((service.client.exact("post").await, service.client.rolled_up("post").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn l2_two_unlikes_of_one_like_in_two_streams_count_once() {
    let service = Setup::new().start();
    for round in 0..20 {
        let (client, item) = (&service.client, format!("post-{round}"));
        send(client, &[like(&item, "a"), like(&item, "b")]).await;
        let unlikes = [unlike(&item, "a")];
        let (one, two) = tokio::join!(send(client, &unlikes), send(client, &unlikes));
        let changed = [&one[0], &two[0]].iter().filter(|outcome| outcome["changed"] == true).count();
        assert_eq!((changed, client.exact(&item).await), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l6_a_thousand_lines_with_different_fields_are_one_like() {
    let service = Setup::new().start();
    let line = |n: usize| {
        json!({format!("field-{n}"): {"n": n}, "item": "post", "user": "a", "z": null}).to_string()
    };
    let outcomes = send(&service.client, &(0..1_000).map(line).collect::<Vec<_>>()).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome["status"] == 200).count(), 1_000);
    assert_eq!(outcomes.iter().filter(|outcome| outcome["changed"] == true).count(), 1);
    assert_eq!((service.client.exact("post").await, service.client.rolled_up("post").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_like_unlike_like_in_one_stream_is_one() {
    let service = Setup::new().start();
    let outcomes = send(&service.client, &[like("post", "a"), unlike("post", "a"), like("post", "a")]).await;
    assert!(outcomes.iter().all(|outcome| outcome["status"] == 200 && outcome["changed"] == true));
    assert_eq!((service.client.exact("post").await, service.client.rolled_up("post").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_have_a_limit() {
    let service = Setup::new().with("bulk.max_streams", 1).with("server.retry_after_s", 7).start();
    let mut open = Stream::open(&service).await;
    assert_eq!(open.ask(&like("post", "ada")).await["changed"], true);
    let answer = service.client.post("/batch/likes", like("post", "bob")).await;
    assert_eq!((answer.status, answer.error(), answer.header("retry-after")), (503, "overloaded", "7"));
    open.lines_in.end().await.unwrap();
    assert!(open.outcomes.rest().await.is_empty());
    let outcome = loop {
        let answer = service.client.post("/batch/likes", like("post", "bob")).await;
        if answer.status == 200 {
            break answer.json;
        }
    };
    assert_eq!((&outcome["line"], &outcome["changed"]), (&json!(1), &json!(true)));
    assert_eq!(service.client.exact("post").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_ends_a_stream_and_half_a_line_is_none() {
    let service = Setup::new().with("bulk.idle_timeout_ms", 200).start();
    let mut stream = Stream::open(&service).await;
    stream.lines_in.send(r#"{"item":"post","user":"half"}"#).await.unwrap();
    let rest = stream.outcomes.rest().await;
    assert_eq!((rest.len(), &rest[0]["line"], &rest[0]["error"]), (1, &json!(1), &json!("request_timeout")));
    assert_eq!(service.client.exact("post").await, 0);
}

/// Framing that is broken is no end: what there was of a line is not done.
#[test]
fn a_body_that_breaks_off_says_so() {
    let service = Setup::new().start();
    let whole = like("post", "ada") + "\n";
    let half = like("post", "bob");
    let body = format!("{:x}\r\n{whole}{half}\r\nno length\r\n", whole.len() + half.len());
    let head =
        "POST /batch/likes HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut stream = raw::connect(&service.public);
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let answer = raw::read(&mut stream).unwrap();
    let outcomes: Vec<Value> = answer
        .text
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<_> = outcomes.iter().map(|o| (&o["line"], &o["status"])).collect();
    assert_eq!(told, [(&json!(1), &json!(200)), (&json!(2), &json!(400))], "{}", answer.text);
    assert_eq!(outcomes[1]["error"], "incomplete_body");
    let total = raw::send(&service.public, "GET", "/likes/post?exact=true", "").json;
    assert_eq!(total["total"], 1);
}
