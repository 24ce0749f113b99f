//! What operators see of a booking's life: a line in the log and a count for everything that becomes of it, and nobody's
//! name.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::service::{Service, Setup};

const W: &str = "workshop";

async fn asks(client: &Client, status: u16, body: Value) {
    let answer = client.request(W, body).await;
    assert_eq!(answer.status, status, "{answer:?}");
}

async fn changes(client: &Client, status: u16, request: &str, change: &str, body: Value) {
    let answer = client.change(W, request, change, body).await;
    assert_eq!(answer.status, status, "{answer:?}");
}

async fn outcome(service: &Service, outcome: &str) -> i64 {
    let text = service.admin.get("/metrics").await.text;
    let series = format!("headcount_reservations_total{{outcome=\"{outcome}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
}

/// Until the clock has been looked at: nobody asks for it.
async fn until_counted(service: &Service, kind: &str) {
    for _ in 0..6000 {
        if outcome(service, kind).await > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{kind} was never counted");
}

/// One of everything that can become of a booking.
async fn a_life(service: &Service) {
    let client = &service.client;
    let mut rules =
        json!({"capacity": 2, "waitlist": {"policy": "strict", "offerTtlMs": 60_000, "maxLength": 9}});
    assert_eq!(client.configure(W, rules.clone()).await.status, 201);
    let held =
        json!({"requestId": "held-1", "seats": 2, "hold": true, "ttlMs": 60_000, "holder": "secret-ada"});
    asks(client, 201, held).await;
    asks(client, 202, json!({"requestId": "wait-1", "seats": 1, "waitlist": true, "holder": "secret-bob"}))
        .await;
    asks(client, 404, json!({"requestId": "swap-1", "seats": 1, "replaces": "nothing"})).await;
    changes(client, 200, "held-1", "extend", json!({"ttlMs": 120_000})).await;
    changes(client, 200, "held-1", "confirm", json!({"seats": 1})).await;
    changes(client, 200, "held-1", "cancel", Value::Null).await;
    changes(client, 409, "held-1", "confirm", Value::Null).await;
    changes(client, 200, "wait-1", "cancel", Value::Null).await;
    // This one ends, and nobody asks.
    asks(client, 201, json!({"requestId": "short-1", "seats": 1, "hold": true, "ttlMs": 20})).await;
    until_counted(service, "expired").await;
    asks(client, 201, json!({"requestId": "full-1", "seats": 2})).await;
    asks(client, 202, json!({"requestId": "wait-2", "seats": 1, "waitlist": true})).await;
    rules["closesAt"] = json!(1);
    assert_eq!(client.configure(W, rules).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_becomes_of_a_booking_is_counted() {
    let service = Setup::new().start();
    a_life(&service).await;
    for (word, times) in [
        ("accepted", 1),
        ("rejected", 0),
        ("held", 2),
        ("waiting", 2),
        ("replayed", 0),
        ("reused", 0),
        ("invalid", 1),
        ("extended", 1),
        ("confirmed", 1),
        ("cancelled", 2),
        ("refused", 1),
        ("offered", 1),
        ("expired", 1),
        ("skipped", 1),
    ] {
        assert_eq!(outcome(&service, word).await, times, "{word}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_becomes_of_a_booking_is_a_line_and_nobody_is_named() {
    let setup = Setup::new();
    let mut service = setup.start();
    a_life(&service).await;
    // Repeated, nothing becomes of it.
    changes(&service.client, 200, "held-1", "cancel", Value::Null).await;
    service.send_sigterm();
    assert!(service.wait().success());
    let log = service.log();
    let lines: Vec<Value> = log
        .iter()
        .filter(|line| line.contains("reservation_changed"))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told = |line: &Value| {
        let [request, change] = ["requestId", "change"].map(|field| line[field].as_str().unwrap().to_owned());
        (request, change, line["seats"].as_i64().unwrap(), line["reserved"].as_i64().unwrap())
    };
    let line = |request: &str, change: &str, seats, reserved| {
        (request.to_owned(), change.to_owned(), seats, reserved)
    };
    assert_eq!(
        lines.iter().map(told).collect::<Vec<_>>(),
        [
            line("held-1", "extended", 2, 2),
            line("held-1", "confirmed", 1, 1),
            line("wait-1", "offered", 1, 2),
            line("held-1", "cancelled", 1, 1),
            line("wait-1", "cancelled", 1, 0),
            line("short-1", "expired", 1, 0),
            line("wait-2", "skipped", 1, 2),
        ]
    );
    let holder = |line: &Value| line["holder"].as_i64();
    let holders: Vec<Option<i64>> = lines.iter().map(holder).collect();
    let (ada, bob) = (holders[0], holders[2]);
    assert!(ada.is_some() && bob.is_some() && ada != bob, "{holders:?}");
    assert_eq!(holders, [ada, ada, bob, ada, bob, None, None]);
    let ends = |line: &Value| line["expiresAt"].is_i64();
    assert_eq!(lines.iter().map(ends).collect::<Vec<_>>(), [true, false, true, false, false, false, false]);
    assert!(lines.iter().all(|line| line["workshop"] == W && line["target"] == "headcount::decisions"));
    assert!(!log.iter().any(|line| line.contains("secret")), "a line names somebody");
}
