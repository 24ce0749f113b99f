//! The named cases from the field, by their names.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::reader::Reader;
use super::socket::Socket;
use super::{PATIENCE, census, eventually, later, metric, post, timed};
use crate::service::Setup;

/// Two tabs, one reloaded ten times, the room asleep in between.
#[tokio::test(flavor = "multi_thread")]
async fn m1_ten_reloads_of_a_tab_while_the_room_sleeps_leave_two_connections() {
    let service = timed().with("rooms.sleep_after_ms", 0).start();
    let mut stays = Socket::open(&service, "lobby/socket?user=ada").await;
    let mut reloaded = Socket::open(&service, "lobby/socket?user=ada").await;
    for round in 0..10_u32 {
        crate::rooms::sleep::asleep(&service, 1).await;
        if round % 2 == 0 {
            reloaded.close().await
        } else {
            reloaded.cut()
        }
        reloaded = Socket::open(&service, "lobby/socket?user=ada").await;
        eventually(&service, "lobby", (1, 2)).await;
    }
    let ends = |cause: &str| format!("headcount_room_connections_ended_total{{cause=\"{cause}\"}}");
    assert_eq!(metric(&service, &ends("client")).await, 5.0, "one close for each");
    assert_eq!(metric(&service, &ends("lost")).await, 5.0);
    post(&service, "/send", json!({"user": "bob", "text": "hi"})).await;
    assert_eq!(stays.frame_of("presence").await["online"], 1);
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "message") {
        kinds.push(stays.frame().await["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds, ["message"], "nobody joined or left");
}

/// Broadcast while one socket is closing.
#[tokio::test(flavor = "multi_thread")]
async fn m3_a_broadcast_skips_a_closing_socket_and_reaches_the_others() {
    let service = Setup::new().start();
    let mut listener = Socket::open(&service, "lobby/socket?presence=false").await;
    for round in 0..50_u64 {
        let mut closing = Socket::open(&service, "lobby/socket?presence=false").await;
        let cut = closing.stream();
        // Half a goodbye, a whole one, or none.
        match round % 3 {
            0 => cut.write_all(&[0x88, 0x80, 0, 0]).await.unwrap(),
            1 => cut.write_all(&[0x88, 0x80, 0, 0, 0, 0]).await.unwrap(),
            _ => drop(closing),
        }
        let sent = post(&service, "/send", json!({"user": "bob", "text": round.to_string()})).await;
        assert_eq!(sent["offset"], round + 1);
    }
    for round in 0..50_u64 {
        assert_eq!(listener.frame_of("message").await["text"], round.to_string());
    }
}

/// A room's first load fails once.
#[tokio::test(flavor = "multi_thread")]
async fn m6_a_first_load_that_fails_costs_that_call_and_no_other() {
    let service = Setup::new().with("rooms.history", "durable").with("faults.fail_first_room", true).start();
    let answer = service.client.post("/join", r#"{"user":"ada"}"#).await;
    assert_eq!((answer.status, answer.error()), (503, "unavailable"));
    super::super::service::eventually("the partition is up again", || {
        service.log().iter().any(|line| line.contains("the partition is up again"))
    });
    assert_eq!(post(&service, "/join", json!({"user": "ada"})).await["online"], 1);
    assert_eq!(post(&service, "/send", json!({"user": "ada", "text": "hi"})).await["offset"], 1);
}

/// The TCP connection dies without a leave.
#[tokio::test(flavor = "multi_thread")]
async fn m14_a_connection_that_dies_is_one_leave_after_the_grace_time() {
    let service = timed().start();
    let mut reader = Reader::open(&service, "lobby/events", "").await;
    let ada = Socket::open(&service, "lobby/socket?user=ada").await;
    assert_eq!(reader.event_of("join").await.json()["user"], "ada");
    ada.cut();
    eventually(&service, "lobby", (1, 1)).await;
    // A message marks the place: no leave has been told before it.
    post(&service, "/send", json!({"user": "bob", "text": "still"})).await;
    assert_eq!(reader.event().await.name, "message");
    later(&service, 15_000).await;
    let left = reader.event().await;
    assert_eq!((&*left.name, &left.json()["user"]), ("leave", &json!("ada")));
    post(&service, "/send", json!({"user": "bob", "text": "gone"})).await;
    assert_eq!(reader.event().await.name, "message", "one leave");
    assert_eq!(census(&service, "lobby").await, (0, 1));
}

/// A connection half-opens, the user comes back on a new one and leaves cleanly.
#[tokio::test(flavor = "multi_thread")]
async fn m15_a_half_open_connection_counts_until_it_has_expired() {
    let service = timed().start();
    // Never read, never closed: the other side is gone without a word.
    let _half_open = Socket::open(&service, "lobby/socket?user=ada").await;
    later(&service, 100_000).await;
    let back = Socket::open(&service, "lobby/socket?user=ada").await;
    assert_eq!(census(&service, "lobby").await, (1, 2));
    back.close().await;
    eventually(&service, "lobby", (1, 1)).await;
    later(&service, 200_000).await;
    eventually(&service, "lobby", (0, 0)).await;
}

/// One user, two tabs, closes one.
#[tokio::test(flavor = "multi_thread")]
async fn m16_a_closed_tab_of_two_is_no_leave() {
    let service = Setup::new().start();
    let mut bob = Socket::open(&service, "lobby/socket?user=bob").await;
    let one = Socket::open(&service, "lobby/socket?user=ada").await;
    let _two = Socket::open(&service, "lobby/socket?user=ada").await;
    one.close().await;
    eventually(&service, "lobby", (2, 2)).await;
    post(&service, "/send", json!({"user": "eve", "text": "mark"})).await;
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "message") {
        kinds.push(bob.frame().await["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds, ["presence", "join", "message"]);
}

/// A slow join finishes after its socket is gone.
#[tokio::test(flavor = "multi_thread")]
async fn m19_a_join_whose_socket_is_gone_makes_no_member() {
    let setup = Setup::new().with("rooms.history", "durable").with("faults.commit_delay_ms", 300);
    let service = setup.start();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(&service.public).await.unwrap();
        let request = "GET /rooms/slow/socket?user=ada HTTP/1.1\r\nhost: headcount\r\nconnection: upgrade\r\n\
                       upgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        // The room's record is being read: the join is not decided yet.
        drop(stream);
    }
    // Behind the joins in the same queue.
    assert_eq!(post(&service, "/rooms/slow/join", json!({"user": "bob"})).await["room"], "slow");
    eventually(&service, "slow", (1, 0)).await;
    let left = metric(&service, "headcount_room_leaves_total").await;
    assert_eq!(metric(&service, "headcount_room_joins_total").await, left + 1.0);
}

/// One client stops reading during a 100 MB broadcast.
#[tokio::test(flavor = "multi_thread")]
async fn m23_a_client_that_stops_reading_is_closed_and_its_peers_notice_nothing() {
    const MESSAGES: u64 = 6_400;
    let setup =
        Setup::new().with("rooms.socket_messages_per_s", 1_000_000).with("rooms.idle_timeout_ms", 600_000);
    let service = setup.start();
    let _stuck = Socket::open(&service, "lobby/socket?raw=true").await;
    let mut peers = Vec::new();
    for _ in 0..3 {
        let mut peer = Socket::open(&service, "lobby/socket?raw=true").await;
        peers.push(tokio::spawn(async move {
            for number in 0..MESSAGES {
                let text = peer.text().await;
                assert_eq!(text.len(), 16_384);
                assert!(text.starts_with(&format!("{number:06}")), "{}", &text[..6]);
            }
        }));
    }
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", service.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    let before = resident();
    let mut sender = Socket::open(&service, "lobby/socket?raw=true").await;
    let padding = "x".repeat(16_384 - 6);
    let mut most = 0;
    for number in 0..MESSAGES {
        sender.send(&format!("{number:06}{padding}")).await;
        // Its own echo keeps it from running ahead of the readers.
        assert_eq!(sender.text().await.len(), 16_384);
        if number % 100 == 0 {
            most = most.max(resident() - before.min(resident()));
        }
    }
    for peer in peers {
        tokio::time::timeout(PATIENCE, peer).await.unwrap().unwrap();
    }
    assert!(most < 64, "{most} MiB more for 100 MiB said");
    let slow = "headcount_room_connections_ended_total{cause=\"slow\"}";
    while metric(&service, slow).await < 1.0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(metric(&service, slow).await, 1.0);
    assert!(metric(&service, "headcount_room_frames_dropped_total").await > 0.0);
}

/// Graceful shutdown.
#[tokio::test(flavor = "multi_thread")]
async fn m24_every_socket_is_told_to_come_back() {
    let service = Setup::new().with("rooms.sleep_after_ms", 0).start();
    let mut sockets = Vec::new();
    for number in 0..20 {
        let raw = number % 2 == 0;
        sockets.push(Socket::open(&service, &format!("room-{}/socket?raw={raw}&user=u", number % 5)).await);
    }
    service.send_sigterm();
    for socket in &mut sockets {
        let (code, reason) = socket.goodbye().await;
        assert_eq!(code, 1012, "{reason}");
        assert!(reason.starts_with("restart; retry_after_ms="), "{reason}");
    }
    let mut service = service;
    assert!(service.wait().success());
}

/// The head of an answer; the connection is cut after it.
async fn head_of(service: &crate::service::Service, path: &str) -> String {
    use tokio::io::AsyncReadExt;
    let mut stream = TcpStream::connect(&service.public).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: headcount\r\n\r\n").as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = tokio::time::timeout(PATIENCE, stream.read_u8()).await.expect("no answer").unwrap();
        head.push(byte);
    }
    String::from_utf8(head).unwrap()
}

/// Everyone is dropped at once.
#[tokio::test(flavor = "multi_thread")]
async fn m25_everyone_is_told_a_time_of_their_own_and_not_all_are_let_in_at_once() {
    let setup = timed().with("rooms.admissions_per_s", 10).with("rooms.retry_min_ms", 2_000);
    let service = setup.start();
    let mut sockets = Vec::new();
    let mut waits = std::collections::BTreeSet::new();
    let mut refused = 0;
    while sockets.len() < 10 || refused < 20 {
        let path = "/rooms/lobby/socket?user=ada";
        match Socket::try_open(&service, &path["/rooms/".len()..]).await {
            Ok(socket) => sockets.push(socket),
            Err((status, body)) => {
                assert_eq!(status, 503, "{body}");
                assert!(body.contains("overloaded"), "{body}");
                refused += 1;
                // The head alone: one that is let in would be a stream without an end.
                let head = head_of(&service, "/rooms/lobby/events").await;
                if head.starts_with("HTTP/1.1 503") {
                    let wait = head.lines().find_map(|line| line.strip_prefix("retry-after: ")).unwrap();
                    waits.insert(wait.parse::<u32>().unwrap());
                }
            }
        }
        assert!(sockets.len() <= 20, "bounded");
    }
    assert!(waits.len() > 1 && waits.iter().all(|wait| (2..=10).contains(wait)), "{waits:?}");

    service.send_sigterm();
    let mut hints = std::collections::BTreeSet::new();
    for socket in &mut sockets {
        let (code, reason) = socket.goodbye().await;
        let hint = reason.strip_prefix("restart; retry_after_ms=").unwrap().parse::<u32>().unwrap();
        assert!(code == 1012 && (2_000..=10_000).contains(&hint), "{code} {reason}");
        hints.insert(hint);
    }
    assert!(hints.len() > sockets.len() / 2, "jittered: {hints:?}");
}
