//! What each namespace costs, as an operator reads it: `GET /usage` on the admin listener.

use serde_json::{Value, json};

use crate::rooms::socket::Socket;
use crate::rooms::{later, sleep::asleep, timed};
use crate::service::{Service, Setup};

async fn usage(service: &Service) -> Value {
    let answer = service.admin.get("/usage").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json
}

fn number(usage: &Value, namespace: &str, what: &str) -> f64 {
    usage[namespace][what].as_f64().unwrap_or_else(|| panic!("{namespace}.{what} in {usage}"))
}

const HOUR_MS: u32 = 3_600_000;
/// Far more than a test takes, and far less than an hour.
const ABOUT: f64 = 600.0;

fn is_about(seconds: f64, hours: u32) -> bool {
    (seconds - f64::from(hours) * 3_600.0).abs() < ABOUT
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_messages_count_for_their_namespace() {
    let service = Setup::new().with("rooms.sleep_after_ms", 0).start();
    for namespace in ["likes", "workshops", "rooms"] {
        for what in ["requests", "inboundMessages"] {
            assert_eq!(number(&usage(&service).await, namespace, what), 0.0, "{namespace} {what}");
        }
    }
    service.client.like("post", "ada").await;
    service.client.get("/likes?item=post").await;
    service.client.get("/likes/%FF").await;
    service.client.reserve("workshop", "request-1", 1).await;
    service.client.get("/reservations/set-1").await;
    service.client.post("/join", r#"{"user":"ada"}"#).await;
    service.client.get("/rooms/lobby").await;
    service.client.get("/health").await;
    service.client.get("/nothing").await;
    let mut socket = Socket::open(&service, "lobby/socket?user=bob&raw=true").await;
    for _ in 0..10 {
        socket.send(r#"{"type":"ping"}"#).await;
        assert_eq!(socket.text().await, r#"{"type":"pong"}"#);
    }
    socket.send("hello").await;
    assert_eq!(socket.text().await, "hello");
    socket.ping().await;
    let after = usage(&service).await;
    let requests = ["likes", "workshops", "rooms"].map(|namespace| number(&after, namespace, "requests"));
    assert_eq!(requests, [3.0, 2.0, 3.0], "the refused one too, and a handshake is one");
    let messages = ["likes", "workshops", "rooms"].map(|of| number(&after, of, "inboundMessages"));
    assert_eq!(messages, [0.0, 0.0, 11.0]);
    assert_eq!(number(&after, "rooms", "keepAlives"), 10.0);
    assert_eq!(after["since"], usage(&service).await["since"]);
    assert_eq!(service.client.get("/usage").await.status, 404, "not on the public listener");
}

/// Two rooms alike, one of which may sleep: what it saves is what the other one costs.
#[tokio::test(flavor = "multi_thread")]
async fn a_sleeping_room_costs_no_active_time() {
    let sleepless =
        timed().with("rooms.sleep_after_ms", 86_400_000).with("rooms.idle_timeout_ms", 86_400_000);
    let sleepy = timed().with("rooms.sleep_after_ms", 0).with("rooms.idle_timeout_ms", 86_400_000);
    for (setup, sleeps) in [(sleepless, false), (sleepy, true)] {
        let service = setup.start();
        let mut socket = Socket::open(&service, "lobby/socket?user=ada&presence=false").await;
        if sleeps {
            asleep(&service, 1).await;
        }
        assert_eq!(socket.frame().await["type"], "presence");
        let mut before = usage(&service).await;
        for _ in 0..3 {
            later(&service, HOUR_MS).await;
            socket.send(r#"{"type":"ping"}"#).await;
            assert_eq!(socket.text().await, r#"{"type":"pong"}"#);
            let now = usage(&service).await;
            for what in ["activeSeconds", "asleepSeconds", "requests", "inboundMessages"] {
                assert!(number(&now, "rooms", what) >= number(&before, "rooms", what), "{what} falls");
            }
            before = now;
        }
        let (active, slept) =
            (number(&before, "rooms", "activeSeconds"), number(&before, "rooms", "asleepSeconds"));
        let expected = if sleeps { (0, 3) } else { (3, 0) };
        assert!(is_about(active, expected.0) && is_about(slept, expected.1), "{active}, {slept}");
        // A message wakes it, and that time counts.
        socket.send("hello").await;
        assert_eq!(socket.frame().await["text"], "hello");
        socket.close().await;
    }
}

/// A room that is gone costs nothing, awake or asleep.
#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_is_forgotten_costs_nothing_any_more() {
    let service = timed().with("rooms.sleep_after_ms", 0).start();
    for room in 0..5 {
        let path = format!("/rooms/room-{room}/join");
        service.client.post(&path, r#"{"user":"ada"}"#).await;
        service.client.post(&path.replace("join", "leave"), r#"{"user":"ada"}"#).await;
    }
    asleep(&service, 0).await;
    later(&service, HOUR_MS).await;
    let after = usage(&service).await;
    let of = |what| number(&after, "rooms", what);
    assert!(is_about(of("activeSeconds"), 0) && is_about(of("asleepSeconds"), 0), "{after}");
}

/// One workshop and one item's counter in memory for an hour.
#[tokio::test(flavor = "multi_thread")]
async fn what_stays_in_memory_is_active() {
    let service = timed().start();
    service.client.like("post", "ada").await;
    service.client.reserve("workshop", "request-1", 1).await;
    service.client.reserve("other", "request-1", 1).await;
    later(&service, HOUR_MS).await;
    let after = usage(&service).await;
    assert!(is_about(number(&after, "likes", "activeSeconds"), 1), "{after}");
    assert!(is_about(number(&after, "workshops", "activeSeconds"), 2), "{after}");
    assert!(is_about(number(&after, "rooms", "activeSeconds"), 0), "{after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_stored_are_as_old_as_they_say() {
    let setup = timed().with("rooms.history", "durable").with("rooms.room_messages_per_s", 1_000);
    let service = setup.start();
    let stored = |usage: &Value| {
        ["likes", "workshops", "rooms"].map(|namespace| number(usage, namespace, "storedBytes"))
    };
    let empty = usage(&service).await;
    assert!(stored(&empty).iter().all(|bytes| *bytes > 0.0), "an empty table has a page: {empty}");
    assert!(empty["stored"]["sharedBytes"].as_u64().unwrap() > 0);
    let text = "x".repeat(16_000);
    for number in 0..10 {
        let body = json!({"user": format!("user-{number}"), "text": text});
        assert_eq!(service.client.post("/send", body.to_string()).await.status, 200);
    }
    // Not measured again: these figures are old, and say so.
    later(&service, 299_000 - 60_000).await;
    let mut same = usage(&service).await;
    // A measurement that should not have begun has time to end.
    for _ in 0..50 {
        assert_eq!((stored(&same), &same["stored"]["asOf"]), (stored(&empty), &empty["stored"]["asOf"]));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        same = usage(&service).await;
    }
    assert!(same["stored"]["ageMs"].as_i64().unwrap() >= 239_000, "{same}");
    later(&service, 61_000).await;
    // This one begins a new measurement, and does not wait for it.
    let wait = async {
        loop {
            let now = usage(&service).await;
            if now["stored"]["asOf"] != empty["stored"]["asOf"] {
                return now;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let now = tokio::time::timeout(crate::rooms::PATIENCE, wait).await.expect("never measured again");
    let (before, after) = (stored(&empty), stored(&now));
    assert!(after[2] >= before[2] + 160_000.0, "{now}");
    assert_eq!(after[1], before[1], "nobody reserved: {now}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_tell_the_same() {
    let service = timed().start();
    service.client.like("post", "ada").await;
    later(&service, HOUR_MS).await;
    let usage = usage(&service).await;
    let text = service.admin.get("/metrics").await.text;
    let metric = |series: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{series} is not in {text}")).parse::<f64>().unwrap()
    };
    assert_eq!(metric("headcount_usage_requests_total{namespace=\"likes\"}"), 1.0);
    let active = metric("headcount_usage_active_seconds_total{namespace=\"likes\"}");
    assert!(is_about(active, 1) && active.fract() == 0.0, "{active}");
    let bytes = metric("headcount_usage_stored_bytes{namespace=\"likes\"}");
    assert_eq!(bytes, number(&usage, "likes", "storedBytes"));
}
