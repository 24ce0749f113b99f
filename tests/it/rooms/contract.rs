//! What the routes answer, and what the streams carry.

use hyper::Method;
use serde_json::json;

use super::reader::Reader;
use super::socket::Socket;
use super::{census, post};
use crate::service::Setup;

/// The seed's paths, in its own order; the room is `lobby` without a name.
#[tokio::test(flavor = "multi_thread")]
async fn the_seed_s_paths_work() {
    let service = Setup::new().start();
    let mut listener = Reader::open(&service, "lobby/events", "").await;
    assert_eq!(post(&service, "/join", json!({"user": "ada"})).await["online"], 1);
    assert_eq!(post(&service, "/join?room=lobby", json!({"user": "bob"})).await["online"], 2);
    assert_eq!(post(&service, "/join?room=lobby", json!({"user": "bob"})).await["online"], 2, "a set");
    assert_eq!(post(&service, "/send", json!({"user": "ada", "text": "hello"})).await["online"], 2);
    assert_eq!(post(&service, "/leave", json!({"user": "ada"})).await["online"], 1);
    assert_eq!(post(&service, "/join?room=other", json!({"user": "ada"})).await["online"], 1, "its own room");

    let names = async {
        let mut names = Vec::new();
        for _ in 0..5 {
            names.push(listener.event().await.name);
        }
        names
    };
    assert_eq!(names.await, ["presence", "join", "join", "message", "leave"]);
    assert_eq!(service.client.get("/join").await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_is_looked_at_without_being_made() {
    let service = Setup::new().start();
    let empty = json!({"room": "new", "online": 0, "connections": 0, "members": []});
    assert_eq!(service.client.get("/rooms/new?members=true").await.json, empty);
    assert_eq!(post(&service, "/rooms/new/leave", json!({"user": "ada"})).await["online"], 0);
    assert_eq!(super::metric(&service, "headcount_rooms{state=\"asleep\"}").await, 0.0);
    assert_eq!(super::metric(&service, "headcount_rooms{state=\"awake\"}").await, 0.0);

    let meta = json!({"user": "bob", "meta": {"status": "typing"}});
    let joined = post(&service, "/rooms/caf%C3%A9/join", meta).await;
    assert_eq!(joined, json!({"room": "café", "user": "bob", "online": 1}));
    post(&service, "/rooms/caf%C3%A9/join", json!({"user": "ada"})).await;
    let members = json!([{"user": "ada"}, {"user": "bob", "meta": {"status": "typing"}}]);
    assert_eq!(service.client.get("/rooms/caf%C3%A9?members=true").await.json["members"], members);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_at_a_socket_s_address_is_426() {
    let service = Setup::new().start();
    let answer = service.client.get("/rooms/lobby/socket").await;
    assert_eq!((answer.status, &*answer.text), (426, "expected ws"));
    assert_eq!(answer.header("upgrade"), "websocket");
    assert_eq!(service.client.send(Method::POST, "/rooms/lobby/socket", "").await.status, 405);
    assert_eq!(census(&service, "lobby").await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn text_in_is_broadcast_to_everyone_the_sender_too() {
    let service = Setup::new().start();
    let mut ada = Socket::open(&service, "lobby/socket?user=ada").await;
    let mut bob = Socket::open(&service, "lobby/socket?user=bob&echo=false").await;
    let first = ada.frame().await;
    assert_eq!((&first["type"], &first["members"]), (&json!("presence"), &json!([{"user": "ada"}])));
    let first = bob.frame().await;
    assert_eq!(first["members"], json!([{"user": "ada"}, {"user": "bob"}]), "itself and everyone");
    assert_eq!((&first["online"], &first["connections"]), (&json!(2), &json!(2)));

    ada.send("hello").await;
    let join = ada.frame().await;
    assert_eq!((&join["type"], &join["user"], &join["online"]), (&json!("join"), &json!("bob"), &json!(2)));
    for heard in [ada.frame().await, bob.frame().await] {
        assert_eq!((&heard["type"], &heard["user"]), (&json!("message"), &json!("ada")));
        assert_eq!((&heard["text"], &heard["offset"]), (&json!("hello"), &json!(1)));
        assert_eq!(heard["epoch"], first["epoch"]);
    }
    bob.send("no echo").await;
    assert_eq!(ada.frame().await["text"], "no echo");
    ada.send("again").await;
    assert_eq!(bob.frame().await["text"], "again", "bob did not hear himself");

    // Structured, over the socket and over HTTP.
    ada.send(r#"{"type":"message","data":{"x":1},"id":"m-1"}"#).await;
    let heard = bob.frame().await;
    assert_eq!((&heard["data"], &heard["id"]), (&json!({"x": 1}), &json!("m-1")));
    let sent = post(&service, "/rooms/lobby/send", json!({"user": "eve", "data": [1, 2]})).await;
    assert_eq!((&sent["offset"], &sent["online"]), (&json!(5), &json!(2)), "sending joins nobody");
    assert_eq!(bob.frame().await["data"], json!([1, 2]));
    // A text that only looks like a frame is a text.
    ada.send(r#"{"type":"unknown"}"#).await;
    assert_eq!(bob.frame().await["text"], r#"{"type":"unknown"}"#);
}

/// As the seed does it: text in, text out, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_raw_socket_carries_just_the_text() {
    let service = Setup::new().start();
    let mut ada = Socket::open(&service, "lobby/socket?raw=true&user=ada").await;
    let mut bob = Socket::open(&service, "lobby/socket?raw=true").await;
    ada.send(r#"{"type":"update"}"#).await;
    assert_eq!(bob.text().await, r#"{"type":"update"}"#);
    bob.send("two").await;
    assert_eq!(bob.text().await, "two");
    assert_eq!(ada.text().await, r#"{"type":"update"}"#);
    assert_eq!(ada.text().await, "two");
    let mut reader = Reader::open(&service, "lobby/events?raw=true", "").await;
    post(&service, "/rooms/lobby/send", json!({"user": "eve", "text": "three\nlines\nlong"})).await;
    assert_eq!(ada.text().await, "three\nlines\nlong");
    assert_eq!(reader.event().await.data, "three\nlines\nlong");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_has_a_word_of_its_own() {
    let service = Setup::new().start();
    let long = "x".repeat(129);
    let bad = [
        ("/join", json!({}), "invalid_member"),
        ("/join", json!({"user": 7}), "invalid_member"),
        ("/join", json!({"user": long}), "invalid_user"),
        ("/join", json!({"user": "ada", "meta": "x".repeat(1_100)}), "invalid_member"),
        ("/send", json!({"user": "ada"}), "invalid_message"),
        ("/send", json!({"user": "ada", "text": 1}), "invalid_message"),
        ("/send", json!({"user": "ada", "text": "a", "data": "b"}), "invalid_message"),
        ("/send", json!({"user": "ada", "text": "a", "id": ""}), "invalid_message"),
        ("/rooms/%0A/join", json!({"user": "ada"}), "invalid_room"),
        ("/join?room=..", json!({"user": "ada"}), "invalid_room"),
        ("/leave?all=yes", json!({"user": "ada"}), "invalid_query"),
    ];
    for (path, body, word) in bad {
        let answer = service.client.post(path, body.to_string()).await;
        assert_eq!((answer.status, answer.error()), (400, word), "{path} {body}");
    }
    for (path, word) in [
        ("lobby/socket?user=", "invalid_user"),
        ("lobby/socket?since=7", "invalid_query"),
        ("lobby/socket?echo=1", "invalid_query"),
        ("%ff/socket", "invalid_room"),
    ] {
        let (status, body) = Socket::try_open(&service, path).await.err().expect(path);
        assert!(status == 400 && body.contains(word), "{path}: {status} {body}");
    }
    assert_eq!(service.client.get("/rooms/lobby/events?since=x").await.error(), "invalid_query");
    assert_eq!(service.client.get("/rooms/%FF").await.error(), "invalid_room");
}

/// Frames come as the network likes: cut anywhere, several at once, and messages in pieces with pings between.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_may_come_in_any_pieces() {
    use tokio::io::AsyncWriteExt;
    let service = Setup::new().with("rooms.socket_messages_per_s", 1_000_000).start();
    let mut listener = Socket::open(&service, "lobby/socket?raw=true").await;
    let mut speaker = Socket::open(&service, "lobby/socket?raw=true&echo=false").await;
    let frame = |start: u8, payload: &str| {
        let mut frame = vec![start, 0x80 | u8::try_from(payload.len()).unwrap(), 0, 0, 0, 0];
        frame.extend(payload.bytes());
        frame
    };
    for round in 0..60_usize {
        let whole = frame(0x81, &format!("whole {round}"));
        let pieces =
            [frame(0x01, "in "), frame(0x89, "hi"), frame(0x80, &format!("pieces {round}"))].concat();
        let bytes = [whole, pieces].concat();
        for part in bytes.chunks(1 + round) {
            speaker.stream().write_all(part).await.unwrap();
            // An answer to somebody else: most likely the part has been read by then.
            assert_eq!(service.client.get("/health").await.status, 200);
        }
        assert_eq!(listener.text().await, format!("whole {round}"));
        assert_eq!(listener.text().await, format!("in pieces {round}"));
    }
}
