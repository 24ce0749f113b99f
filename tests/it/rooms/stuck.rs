//! Connections that do not take their bytes, and those that only seem so.

use serde_json::json;

use super::reader::Reader;
use super::socket::Socket;
use super::{census, eventually, metric, post};
use crate::service::{Service, Setup};

/// A burst within all limits closes nobody who reads, however late the connections' tasks have their turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_makes_nobody_slow_who_reads() {
    let service = Setup::new()
        .with("server.worker_threads", 1)
        .with("rooms.socket_messages_per_s", 1_000_000)
        .with("rooms.queue_frames", 64)
        .start();
    let mut listener = Socket::open(&service, "lobby/socket?presence=false").await;
    let mut reader = Reader::open(&service, "lobby/events?presence=false", "").await;
    let mut speakers = Vec::new();
    for _ in 0..20 {
        speakers.push(Socket::open(&service, "lobby/socket?raw=true&echo=false&presence=false").await);
    }
    let mut speaking = Vec::new();
    for mut speaker in speakers {
        speaking.push(tokio::spawn(async move {
            for _ in 0..10 {
                speaker.send("hi").await;
            }
            for _ in 0..190 {
                assert_eq!(speaker.text().await, "hi");
            }
        }));
    }
    for offset in 1..=200 {
        assert_eq!(listener.frame_of("message").await["offset"], offset);
        assert_eq!(reader.event_of("message").await.json()["offset"], offset);
    }
    for speaker in speaking {
        speaker.await.unwrap();
    }
}

/// Says large messages until the service has noticed something.
async fn flood(service: &Service, mut noticed: impl AsyncFnMut() -> bool) {
    let text = "x".repeat(16_000);
    for _ in 0..5_000 {
        if noticed().await {
            return;
        }
        post(service, "/send", json!({"user": "ada", "text": text})).await;
    }
    panic!("nothing was noticed");
}

/// A reader of events that does not read is given up, and neither counts nor holds the stop up.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_events_that_does_not_read_is_given_up() {
    let mut service = Setup::new()
        .with("rooms.queue_frames", 8)
        .with("rooms.user_messages_per_s", 1_000_000)
        .with("server.write_timeout_ms", 100)
        .with("server.drain_timeout_ms", 3_600_000)
        .start();
    let _stuck = Reader::open(&service, "lobby/events", "").await;
    let _stuck_too = Reader::open(&service, "other/events", "").await;
    let dropped = "headcount_room_frames_dropped_total";
    // Closed for being slow, or for taking nothing for so long: whichever comes first on this machine.
    let noticed = async || metric(&service, dropped).await > 0.0 || census(&service, "lobby").await.1 == 0;
    flood(&service, noticed).await;
    eventually(&service, "lobby", (0, 0)).await;
    service.send_sigterm();
    assert!(service.wait().success());
}

/// A socket that does not read is let go of for any reason, not only as slow.
#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_socket_that_is_to_go_goes() {
    let service = Setup::new()
        .with("rooms.close_timeout_ms", 50)
        .with("rooms.user_messages_per_s", 1_000_000)
        .with("rooms.queue_frames", 1_000_000)
        .with("rooms.queue_bytes", 1_000_000_000)
        .start();
    let _stuck = Socket::open(&service, "lobby/socket?user=bob").await;
    let text = "x".repeat(16_000);
    // Far more than a connection takes of a client that does not read.
    for _ in 0..1_000 {
        post(&service, "/send", json!({"user": "ada", "text": text})).await;
    }
    post(&service, "/leave?all=true", json!({"user": "bob"})).await;
    let ended = "headcount_room_connections_ended_total{cause=\"left\"}";
    let gone = async {
        while metric(&service, ended).await < 1.0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::PATIENCE, gone).await.expect("it is let go of");
}

/// What a member list may take is bounded, and so is the first frame of everyone who comes.
#[tokio::test(flavor = "multi_thread")]
async fn the_members_of_a_room_take_no_more_than_their_bound() {
    let service = Setup::new().with("rooms.max_presence_bytes", 1_024).start();
    let meta = json!("m".repeat(400));
    post(&service, "/join", json!({"user": "ada", "meta": meta})).await;
    let mut bob = Socket::open(&service, "lobby/socket?user=bob&presence=false").await;
    assert_eq!(bob.frame().await["type"], "presence");
    let refused =
        service.client.post("/join", json!({"user": "eve", "meta": "m".repeat(600)}).to_string()).await;
    assert_eq!((refused.status, &refused.json["error"]), (429, &json!("room_full")));
    bob.send(&json!({"type": "update", "meta": "m".repeat(600)}).to_string()).await;
    assert_eq!(bob.frame_of("error").await["error"], "room_full");
    // Whoever goes makes room.
    post(&service, "/leave", json!({"user": "ada"})).await;
    post(&service, "/join", json!({"user": "eve", "meta": "m".repeat(600)})).await;
}
