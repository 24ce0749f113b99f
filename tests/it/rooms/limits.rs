//! Every limit has its close code or its 4xx; peers notice nothing.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::reader::Reader;
use super::socket::Socket;
use super::{census, eventually, later, metric, post, timed};
use crate::service::{Service, Setup};

async fn word(service: &Service, path: &str, body: Value) -> (u16, String) {
    let answer = service.client.post(path, body.to_string()).await;
    (answer.status, answer.error().to_owned())
}

fn refused(outcome: Result<Socket, (u16, String)>) -> (u16, String) {
    let (status, body) = outcome.err().expect("let in");
    let problem: Value = serde_json::from_str(&body).unwrap();
    (status, problem["error"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_has_a_largest_size_on_every_way_in() {
    let service = Setup::new().with("rooms.max_message_bytes", 100).start();
    let fits = "x".repeat(100);
    let large = "x".repeat(101);
    assert_eq!(word(&service, "/send", json!({"user": "ada", "text": fits})).await.0, 200);
    let refused = word(&service, "/send", json!({"user": "ada", "text": large})).await;
    assert_eq!(refused, (413, "message_too_large".to_owned()));
    let refused = word(&service, "/send", json!({"user": "ada", "data": large})).await;
    assert_eq!(refused, (413, "message_too_large".to_owned()));

    let mut peer = Socket::open(&service, "lobby/socket?raw=true").await;
    let mut socket = Socket::open(&service, "lobby/socket?raw=true").await;
    socket.send(&fits).await;
    assert_eq!(socket.text().await, fits);
    socket.send(&large).await;
    assert_eq!(socket.goodbye().await, (1009, "message_too_big".to_owned()));
    // In pieces, each of which would fit.
    let mut socket = Socket::open(&service, "lobby/socket?raw=true").await;
    let piece = |opcode| Message::Frame(Frame::message(vec![b'x'; 60], OpCode::Data(opcode), false));
    socket.send_any(piece(Data::Text)).await;
    socket.send_any(piece(Data::Continue)).await;
    assert_eq!(socket.goodbye().await, (1009, "message_too_big".to_owned()));
    assert_eq!(peer.text().await, fits);
    eventually(&service, "lobby", (0, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_text_is_closed_with_its_code() {
    let service = Setup::new().start();
    let bad: [(Message, u16, &str); 4] = [
        (Message::binary(vec![1, 2, 3]), 1003, "not_text"),
        (Message::Frame(Frame::message(vec![0xff, 0xfe], OpCode::Data(Data::Text), true)), 1007, "not_utf8"),
        (
            Message::Frame(Frame::message(vec![b'x'], OpCode::Data(Data::Continue), true)),
            1002,
            "protocol_error",
        ),
        (
            Message::Frame(Frame::message(vec![b'x'], OpCode::Data(Data::Reserved(5)), true)),
            1002,
            "protocol_error",
        ),
    ];
    for (message, code, reason) in bad {
        let mut socket = Socket::open(&service, "lobby/socket?user=ada").await;
        socket.send_any(message).await;
        assert_eq!(socket.goodbye().await, (code, reason.to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_have_a_rate_by_socket_and_by_room() {
    let setup = timed().with("rooms.socket_messages_per_s", 5).with("rooms.room_messages_per_s", 10);
    let service = setup.start();
    let mut socket = Socket::open(&service, "lobby/socket?raw=true&user=ada").await;
    let mut peer = Socket::open(&service, "lobby/socket?raw=true&user=bob").await;
    for number in 0..50 {
        socket.send_any(Message::text(number.to_string())).await;
    }
    assert_eq!(socket.goodbye().await, (4003, "rate_limited".to_owned()));
    assert_eq!(peer.text().await, "0");

    let mut refusals = 0;
    for number in 0..30 {
        let (status, word) = word(&service, "/send", json!({"user": "ada", "text": number})).await;
        // `text` has to be a text: that is no message, and takes none.
        assert_eq!((status, &*word), (400, "invalid_message"));
        let answer = service.client.post("/send", json!({"user": "ada", "data": number}).to_string()).await;
        if answer.status == 429 {
            assert_eq!((answer.error(), answer.header("retry-after")), ("rate_limited", "1"));
            refusals += 1;
        }
    }
    assert!(refusals > 0);
    later(&service, 1_000).await;
    assert_eq!(word(&service, "/send", json!({"user": "ada", "data": 1})).await.0, 200);
}

/// A socket is told of each message that is too many, and stays open.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_socket_says_is_of_its_rooms_rate_and_of_its_users() {
    let service = timed().with("rooms.room_messages_per_s", 3).start();
    let mut listener = Socket::open(&service, "lobby/socket?presence=false").await;
    for user in ["ada", "bob"] {
        let mut socket = Socket::open(&service, &format!("lobby/socket?presence=false&user={user}")).await;
        for number in 1..=2 {
            socket
                .send(&json!({"type": "message", "text": "hi", "id": format!("{user}-{number}")}).to_string())
                .await;
        }
        let answered = if user == "ada" { "message" } else { "error" };
        let last = socket.frame_of(answered).await;
        if user == "bob" {
            assert_eq!((&last["error"], &last["id"]), (&json!("rate_limited"), &json!("bob-2")));
        }
        socket.close().await;
    }
    for id in ["ada-1", "ada-2", "bob-1"] {
        assert_eq!(listener.frame_of("message").await["id"], id);
    }
    later(&service, 1_000).await;
    listener.send("again").await;
    assert_eq!(listener.frame_of("message").await["text"], "again", "what was too many is told to nobody");

    let service = timed().with("rooms.user_messages_per_s", 2).start();
    let mut here = Socket::open(&service, "here/socket?presence=false&user=ada").await;
    let mut there = Socket::open(&service, "there/socket?presence=false&user=ada").await;
    for socket in [&mut here, &mut there] {
        socket.send("hi").await;
        assert_eq!(socket.frame_of("message").await["text"], "hi");
    }
    here.send(r#"{"type":"update","meta":{"at":1}}"#).await;
    assert_eq!(here.frame_of("error").await["error"], "rate_limited", "whatever the room, and an update too");
    assert_eq!(
        word(&service, "/send", json!({"user": "ada", "text": "hi"})).await,
        (429, "rate_limited".to_owned())
    );
    later(&service, 1_000).await;
    there.send("again").await;
    assert_eq!(there.frame_of("message").await["text"], "again");
}

/// Whatever the room; what is refused wakes none.
#[tokio::test(flavor = "multi_thread")]
async fn messages_have_a_rate_by_user_and_by_key() {
    let setup = timed();
    let output = setup.run(&["new-key", "--name", "web"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let (first, entry) = text.split_once("\n\n").unwrap();
    let key = first.strip_prefix("key (shown once): ").unwrap();
    let output = setup.run(&["new-key", "--name", "other"]);
    let other_text = String::from_utf8(output.stdout).unwrap();
    let (other_first, other_entry) = other_text.split_once("\n\n").unwrap();
    let other = other_first.strip_prefix("key (shown once): ").unwrap();
    let settings = "[rooms]\nuser_messages_per_s = 2\nkey_messages_per_s = 5\nsleep_after_ms = 0\n";
    std::fs::create_dir_all(setup.scratch().join("config")).unwrap();
    let admin = entry.replace(r#"["read", "write"]"#, r#"["read", "write", "admin"]"#);
    let settings = format!("{settings}{admin}{other_entry}");
    std::fs::write(setup.scratch().join("config/headcount.toml"), settings).unwrap();
    let service = setup.start();
    let (web, other, admin) =
        (service.client.with_key(key), service.client.with_key(other), service.admin.with_key(key));
    let say = async |client: &crate::client::Client, user: &str, room: &str| {
        let answer =
            client.post(&format!("/send?room={room}"), json!({"user": user, "text": "hi"}).to_string()).await;
        (answer.status, answer.json["detail"].as_str().unwrap_or_default().to_owned())
    };
    let of_user = (429, "too many messages a second: see rooms.user_messages_per_s".to_owned());
    let of_key = (429, "too many messages a second: see rooms.key_messages_per_s".to_owned());
    // Until one is refused: how many come before it is the machine's.
    let refused = async |said: &mut dyn FnMut() -> (String, String)| {
        for _ in 0..10_000 {
            let (user, room) = said();
            match say(&web, &user, &room).await {
                (200, _) => {}
                refused => return refused,
            }
        }
        panic!("never refused");
    };
    let mut rooms = ["a", "b", "c"].iter().cycle();
    let ada = refused(&mut || ("ada".to_owned(), (*rooms.next().unwrap()).to_owned())).await;
    assert_eq!(ada, of_user, "whatever the room");
    assert_eq!(say(&other, "bob", "a").await.0, 200, "another user's rate is its own");
    // However many users: the key has a rate, too.
    let mut users = 0;
    let mut next = || {
        users += 1;
        (format!("user-{users}"), "a".to_owned())
    };
    assert_eq!(refused(&mut next).await, of_key);
    assert_eq!(say(&other, "carol", "a").await.0, 200, "another key's rate is its own");
    assert_eq!(admin.post("/faults/clock?ms=1000", "").await.status, 200);
    assert_eq!(say(&web, "ada", "a").await.0, 200);
    assert!(admin.get("/metrics").await.text.contains("headcount_room_messages_refused_total "));
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_connections_are_bounded_by_room_and_by_user() {
    let service = Setup::new()
        .with("rooms.max_members", 2)
        .with("rooms.max_connections_per_room", 4)
        .with("rooms.max_connections_per_user", 2)
        .with("rooms.max_rooms", 2)
        .start();
    post(&service, "/join", json!({"user": "ada"})).await;
    let _one = Socket::open(&service, "lobby/socket?user=bob").await;
    assert_eq!(word(&service, "/join", json!({"user": "carol"})).await, (429, "room_full".to_owned()));
    assert_eq!(post(&service, "/join", json!({"user": "ada"})).await["online"], 2, "who is in stays in");
    let carol = Socket::try_open(&service, "lobby/socket?user=carol").await;
    assert_eq!(refused(carol), (429, "room_full".to_owned()));
    let _two = Socket::open(&service, "lobby/socket?user=bob").await;
    let third = Socket::try_open(&service, "lobby/socket?user=bob").await;
    assert_eq!(refused(third), (429, "too_many_connections".to_owned()));
    let _three = Socket::open(&service, "lobby/socket").await;
    let _four = Reader::open(&service, "lobby/events", "").await;
    let fifth = Socket::try_open(&service, "lobby/socket").await;
    assert_eq!(refused(fifth), (429, "too_many_connections".to_owned()));
    assert_eq!(census(&service, "lobby").await, (2, 4));

    post(&service, "/join?room=second", json!({"user": "ada"})).await;
    assert_eq!(
        word(&service, "/join?room=third", json!({"user": "ada"})).await,
        (503, "overloaded".to_owned())
    );
    assert_eq!(census(&service, "third").await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_bounded_by_key_and_need_its_scope() {
    let setup = Setup::new();
    let mut settings = "[rooms]\nmax_connections_per_key = 2\nmax_rooms = 1\n".to_owned();
    let mut keys = Vec::new();
    for (name, scopes) in
        [("web", r#"["read", "write"]"#), ("other", r#"["read", "write"]"#), ("look", r#"["read"]"#)]
    {
        let output = setup.run(&["new-key", "--name", name]);
        let text = String::from_utf8(output.stdout).unwrap();
        let (first, entry) = text.split_once("\n\n").unwrap();
        keys.push(first.strip_prefix("key (shown once): ").unwrap().to_owned());
        settings += &entry.replace(r#"["read", "write"]"#, scopes);
    }
    std::fs::create_dir_all(setup.scratch().join("config")).unwrap();
    std::fs::write(setup.scratch().join("config/headcount.toml"), settings).unwrap();
    let service = setup.start();
    let open = async |key: &str| Socket::try_open_with(&service, "lobby/socket", key).await;
    assert_eq!(refused(open("").await), (401, "unauthorized".to_owned()));
    assert_eq!(refused(open(&keys[2]).await), (403, "forbidden".to_owned()));
    let one = open(&keys[0]).await.unwrap();
    let _two = open(&keys[0]).await.unwrap();
    assert_eq!(refused(open(&keys[0]).await), (429, "too_many_connections".to_owned()));
    let _other = open(&keys[1]).await.unwrap();
    one.close().await;
    // Its place is free once the service has seen the end of it.
    let again = async {
        while open(&keys[0]).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::PATIENCE, again).await.unwrap();
    // What is refused takes no place with it.
    for room in ["one", "two", "three"] {
        let full = Socket::try_open_with(&service, &format!("{room}/socket"), &keys[1]).await;
        assert_eq!(refused(full), (503, "overloaded".to_owned()));
    }
    open(&keys[1]).await.unwrap();
}

/// A full queue closes the connection that it belongs to.
#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_is_closed_as_slow() {
    let service = Setup::new()
        .with("rooms.queue_frames", 8)
        .with("rooms.close_timeout_ms", 50)
        .with("rooms.user_messages_per_s", 1_000_000)
        .start();
    let _stuck = Socket::open(&service, "lobby/socket?presence=false").await;
    let mut peer = Socket::open(&service, "lobby/socket?raw=true").await;
    let text = "x".repeat(16_000);
    let slow = "headcount_room_connections_ended_total{cause=\"slow\"}";
    let mut said = 0;
    // What the system's own buffers take in between is its business.
    while metric(&service, slow).await < 1.0 {
        post(&service, "/send", json!({"user": "ada", "text": text})).await;
        assert_eq!(peer.text().await.len(), 16_000);
        said += 1;
        assert!(said < 5_000, "it is never slow");
    }
    eventually(&service, "lobby", (0, 1)).await;
}

/// A room's queue that is full holds up whoever fills it; nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_room_holds_up_the_sockets_that_fill_it() {
    let service = Setup::new()
        .with("rooms.mailbox", 1)
        .with("rooms.socket_messages_per_s", 1_000_000)
        .with("rooms.queue_frames", 10_000)
        .start();
    let mut listener = Socket::open(&service, "lobby/socket?raw=true").await;
    let mut sockets = Vec::new();
    for _ in 0..4 {
        sockets.push(Socket::open(&service, "lobby/socket?raw=true&echo=false").await);
    }
    let mut senders = Vec::new();
    for (name, mut sender) in sockets.into_iter().enumerate() {
        senders.push(tokio::spawn(async move {
            for number in 0..500 {
                sender.send(&format!("{name}:{number}")).await;
            }
            sender.ping().await;
            sender
        }));
    }
    let mut heard = [0; 4];
    for _ in 0..2_000 {
        let text = listener.text().await;
        let (name, number) = text.split_once(':').unwrap();
        let next = &mut heard[name.parse::<usize>().unwrap()];
        assert_eq!(number, next.to_string(), "each in its order");
        *next += 1;
    }
    assert_eq!(heard, [500; 4]);
    for sender in senders {
        sender.await.unwrap();
    }
}
