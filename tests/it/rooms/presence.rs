//! Who is online, by whose word, and for how long.

use serde_json::json;

use super::reader::Reader;
use super::socket::Socket;
use super::{census, eventually, later, post, timed};
use crate::service::Setup;

/// The seed's exercise 2, also where the seed's own answer fails: in a room that nobody calls.
#[tokio::test(flavor = "multi_thread")]
async fn five_minutes_of_silence_are_offline_with_nobody_calling() {
    let service = timed().start();
    let mut reader = Reader::open(&service, "lobby/events", "").await;
    post(&service, "/join", json!({"user": "ada"})).await;
    assert_eq!(reader.event_of("join").await.json()["user"], "ada");
    later(&service, 200_000).await;
    post(&service, "/join", json!({"user": "bob"})).await;
    assert_eq!(reader.event_of("join").await.json()["user"], "bob");
    later(&service, 100_000).await;
    assert_eq!(reader.event().await.json()["user"], "ada", "told without being asked");
    assert_eq!(census(&service, "lobby").await, (1, 1));
    later(&service, 200_000).await;
    let left = reader.event().await;
    assert_eq!((&*left.name, &left.json()["user"]), ("leave", &json!("bob")));
    assert_eq!(census(&service, "lobby").await, (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn sending_keeps_a_member_online_and_makes_nobody_one() {
    let service = timed().start();
    post(&service, "/join", json!({"user": "ada"})).await;
    for _ in 0..3 {
        later(&service, 200_000).await;
        for user in ["ada", "stranger"] {
            assert_eq!(post(&service, "/send", json!({"user": user, "text": "hi"})).await["online"], 1);
        }
    }
    later(&service, 300_000).await;
    eventually(&service, "lobby", (0, 0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ping_is_activity_and_silence_is_not() {
    let service = timed().start();
    let mut active = Socket::open(&service, "lobby/socket?user=active").await;
    let mut silent = Socket::open(&service, "lobby/socket?user=silent").await;
    let mut nobody = Socket::open(&service, "lobby/socket").await;
    later(&service, 200_000).await;
    active.ping().await;
    later(&service, 100_000).await;
    assert_eq!(silent.goodbye().await, (4001, "idle".to_owned()));
    assert_eq!(nobody.goodbye().await, (4001, "idle".to_owned()));
    let left = active.frame_of("leave").await;
    assert_eq!((&left["user"], &left["online"]), (&json!("silent"), &json!(1)));
    eventually(&service, "lobby", (1, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_and_connections_are_counted_apart() {
    let service = Setup::new().start();
    let _reader = Reader::open(&service, "lobby/events", "").await;
    let _anonymous = Socket::open(&service, "lobby/socket").await;
    let one = Socket::open(&service, "lobby/socket?user=ada").await;
    let two = Socket::open(&service, "lobby/socket?user=ada").await;
    post(&service, "/join", json!({"user": "ada"})).await;
    assert_eq!(census(&service, "lobby").await, (1, 4));
    one.close().await;
    eventually(&service, "lobby", (1, 3)).await;
    two.close().await;
    eventually(&service, "lobby", (1, 2)).await;
    assert_eq!(post(&service, "/leave", json!({"user": "ada"})).await["online"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leave_keeps_sockets_unless_all() {
    let service = Setup::new().start();
    let mut socket = Socket::open(&service, "lobby/socket?user=ada").await;
    post(&service, "/join", json!({"user": "ada"})).await;
    assert_eq!(post(&service, "/leave", json!({"user": "ada"})).await["online"], 1);
    assert_eq!(census(&service, "lobby").await, (1, 1));
    assert_eq!(post(&service, "/leave?all=true", json!({"user": "ada"})).await["online"], 0);
    assert_eq!(socket.goodbye().await, (4000, "left".to_owned()));
    assert_eq!(census(&service, "lobby").await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_member_says_about_itself_is_told_and_not_kept() {
    let service = Setup::new().start();
    let mut ada = Socket::open(&service, "lobby/socket?user=ada").await;
    let mut bob = Socket::open(&service, "lobby/socket?user=bob").await;
    for x in 1..=3 {
        ada.send(&json!({"type": "update", "meta": {"x": x}}).to_string()).await;
    }
    for x in 1..=3 {
        let update = bob.frame_of("update").await;
        assert_eq!((&update["user"], &update["meta"]), (&json!("ada"), &json!({"x": x})));
        assert_eq!(update["offset"], 0, "no message");
    }
    let mut carol = Socket::open(&service, "lobby/socket?user=carol&since=x:0").await;
    let members = json!([{"user": "ada", "meta": {"x": 3}}, {"user": "bob"}, {"user": "carol"}]);
    assert_eq!(carol.frame().await["members"], members, "the last one won");

    let mut nobody = Socket::open(&service, "lobby/socket").await;
    nobody.send(r#"{"type":"update","meta":1}"#).await;
    assert_eq!(nobody.frame_of("error").await["error"], "no_user");
    let large = json!({"type": "update", "meta": "x".repeat(1_100)}).to_string();
    ada.send(&large).await;
    assert_eq!(ada.frame_of("error").await["error"], "invalid_meta");
}

/// Joins and leaves race; whoever is let in meanwhile adds snapshot and events up to the truth.
#[tokio::test(flavor = "multi_thread")]
async fn no_event_is_lost_or_doubled_between_snapshot_and_stream() {
    let service = std::sync::Arc::new(Setup::new().start());
    let churn = |name: usize| {
        let service = std::sync::Arc::clone(&service);
        tokio::spawn(async move {
            for _ in 0..25 {
                post(&service, "/join", json!({"user": format!("user-{name}")})).await;
                post(&service, "/leave", json!({"user": format!("user-{name}")})).await;
            }
            post(&service, "/join", json!({"user": format!("user-{name}")})).await;
        })
    };
    let churning: Vec<_> = (0..6).map(churn).collect();
    let mut watchers = Vec::new();
    for _ in 0..12 {
        let service = std::sync::Arc::clone(&service);
        watchers.push(tokio::spawn(async move {
            let mut socket = Socket::open(&service, "lobby/socket").await;
            let mut online = std::collections::BTreeSet::new();
            let first = socket.frame().await;
            for member in first["members"].as_array().unwrap() {
                assert!(online.insert(member["user"].as_str().unwrap().to_owned()));
            }
            assert_eq!(first["online"], online.len());
            loop {
                let frame = socket.frame().await;
                let user = frame["user"].as_str().unwrap_or_default().to_owned();
                match frame["type"].as_str().unwrap() {
                    "join" => assert!(online.insert(user), "doubled: {frame}"),
                    "leave" => assert!(online.remove(&user), "lost: {frame}"),
                    "message" => return online.len(),
                    other => panic!("{other}"),
                }
                assert_eq!(frame["online"], online.len(), "{frame}");
            }
        }));
        tokio::task::yield_now().await;
    }
    for churning in churning {
        churning.await.unwrap();
    }
    eventually(&service, "lobby", (6, 12)).await;
    post(&service, "/send", json!({"user": "user-0", "text": "the end"})).await;
    for watcher in watchers {
        assert_eq!(watcher.await.unwrap(), 6);
    }
}
