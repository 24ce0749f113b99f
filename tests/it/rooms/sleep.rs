//! A room without messages leaves memory; its sockets stay open and notice nothing.

use std::time::Duration;

use serde_json::json;

use super::socket::Socket;
use super::{census, eventually, later, metric, post, timed};
use crate::history::Rng;
use crate::service::{Service, Setup};

/// Waits until so many rooms sleep and none is awake.
pub async fn asleep(service: &Service, rooms: u32) {
    let wait = async {
        while metric(service, "headcount_rooms{state=\"awake\"}").await != 0.0
            || metric(service, "headcount_rooms{state=\"asleep\"}").await != f64::from(rooms)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(super::PATIENCE, wait).await.expect("they stay awake");
}

const WAKES: &str = "headcount_room_wakes_total";

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_keep_alives_wake_nobody() {
    let service = timed().with("rooms.sleep_after_ms", 0).start();
    let mut ada = Socket::open(&service, "lobby/socket?user=ada").await;
    let mut raw = Socket::open(&service, "lobby/socket?user=bob&raw=true").await;
    asleep(&service, 1).await;
    assert_eq!(ada.frame().await["type"], "presence");
    assert_eq!(ada.frame().await["type"], "join");
    let wakes = metric(&service, WAKES).await;
    for round in 0..250 {
        ada.send(r#"{"type":"ping"}"#).await;
        assert_eq!(ada.text().await, r#"{"type":"pong"}"#);
        raw.send(r#"{"type":"ping"}"#).await;
        assert_eq!(raw.text().await, r#"{"type":"pong"}"#);
        ada.ping().await;
        raw.ping().await;
        // They are activity: the alarm rings in between and finds nothing over.
        if round % 10 == 0 {
            later(&service, 100_000).await;
        }
    }
    assert_eq!(census(&service, "lobby").await, (2, 2));
    assert_eq!(metric(&service, WAKES).await, wakes, "0 wakes");
    assert_eq!(metric(&service, "headcount_rooms{state=\"asleep\"}").await, 1.0);

    // A text that is not exactly the keep-alive is a message, and wakes it with its members intact.
    ada.send(r#"{"type":"ping"} "#).await;
    assert_eq!(raw.text().await, r#"{"type":"ping"} "#);
    assert_eq!(metric(&service, WAKES).await, wakes + 1.0);
    let members = service.client.get("/rooms/lobby?members=true").await.json["members"].clone();
    assert_eq!(members, json!([{"user": "ada"}, {"user": "bob"}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_due_expiry_wakes_it() {
    let service = timed().with("rooms.sleep_after_ms", 0).start();
    let mut watcher = Socket::open(&service, "lobby/socket?user=bob").await;
    post(&service, "/join", json!({"user": "ada"})).await;
    asleep(&service, 1).await;
    later(&service, 299_000).await;
    watcher.ping().await;
    later(&service, 1_000).await;
    let left = watcher.frame_of("leave").await;
    assert_eq!((&left["user"], &left["online"]), (&json!("ada"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_nobody_is_in_is_forgotten() {
    let service = timed().with("rooms.sleep_after_ms", 0).start();
    for room in 0..5 {
        let path = format!("/rooms/room-{room}/join");
        post(&service, &path, json!({"user": "ada"})).await;
        post(&service, &path.replace("join", "leave"), json!({"user": "ada"})).await;
    }
    asleep(&service, 0).await;
    // What was said is kept for its time, and then the room goes, too.
    post(&service, "/send", json!({"user": "ada", "text": "hi"})).await;
    asleep(&service, 1).await;
    later(&service, 300_000).await;
    asleep(&service, 0).await;
}

/// In memory and on disk: whatever the moment at which the room falls asleep, no message is lost, doubled
/// or told out of turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_messages_while_the_room_falls_asleep_at_random_arrive_in_order_once() {
    for history in ["memory", "durable"] {
        let setup = Setup::new()
            .with("rooms.sleep_after_ms", 0)
            .with("rooms.history", history)
            .with("rooms.socket_messages_per_s", 1_000_000)
            .with("rooms.user_messages_per_s", 1_000_000)
            .with("rooms.queue_frames", 4_096);
        let service = setup.start();
        let mut listener = Socket::open(&service, "lobby/socket?presence=false").await;
        assert_eq!(listener.frame().await["offset"], 0);
        let mut sender = Socket::open(&service, "lobby/socket?user=ada&echo=false&presence=false").await;
        let mut rng = Rng::new(7);
        let wakes = metric(&service, WAKES).await;
        for number in 0..1_000_u64 {
            if number % 3 == 0 {
                let message = json!({"user": "bob", "text": number.to_string()});
                assert_eq!(post(&service, "/send", message).await["offset"], number + 1);
            } else {
                sender.send(&number.to_string()).await;
                // The next comes over HTTP, another way into the room. An answered ping says that what was sent
                // before it is in the room's queue.
                if (number + 1) % 3 == 0 {
                    sender.ping().await;
                }
            }
            for _ in 0..rng.below(3) {
                tokio::task::yield_now().await;
            }
        }
        for number in 0..1_000_u64 {
            let message = listener.frame().await;
            let told = (&message["text"], &message["offset"]);
            assert_eq!(told, (&json!(number.to_string()), &json!(number + 1)), "{history}");
        }
        assert!(metric(&service, WAKES).await > wakes + 100.0, "it slept now and then");
        eventually(&service, "lobby", (1, 2)).await;
    }
}
