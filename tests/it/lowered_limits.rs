//! Limits that an operator has lowered: what was allowed before is still answered as it was, what is new is refused.

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::files;
use crate::service::Setup;

const W: &str = "workshop";

fn assert_refused(answer: &Answer, field: &str) {
    assert_eq!((answer.status, answer.error()), (400, "invalid_reservation"), "{answer:?}");
    assert_eq!(answer.json["field"], field);
}

fn lines(seats: u32, workshops: &[&str]) -> Value {
    workshops.iter().map(|workshop| json!({"workshop": workshop, "seats": seats})).collect()
}

/// Each asks for one thing too many, as it is later.
fn requests() -> [(Value, &'static str); 4] {
    [
        (json!({"requestId": "plain", "seats": 4}), "seats"),
        (json!({"requestId": "held", "seats": 4, "hold": true}), "seats"),
        (json!({"requestId": "long", "seats": 1, "hold": true, "ttlMs": 3_600_000}), "ttlMs"),
        (json!({"requestId": "named", "seats": 1, "holder": "a-rather-long-name"}), "holder"),
    ]
}

fn sets() -> [(Value, &'static str); 4] {
    let (both, one) = (["alpha", "beta"], ["alpha"]);
    [
        (json!({"requestId": "set-lines", "lines": lines(1, &both)}), "lines"),
        (json!({"requestId": "set-seats", "lines": lines(4, &one)}), "lines"),
        (
            json!({"requestId": "set-long", "lines": lines(1, &one), "hold": true, "ttlMs": 3_600_000}),
            "ttlMs",
        ),
        (
            json!({"requestId": "set-named", "lines": lines(1, &one), "holder": "a-rather-long-name"}),
            "holder",
        ),
    ]
}

fn renamed(mut body: Value) -> Value {
    body["requestId"] = format!("new-{}", body["requestId"].as_str().unwrap()).into();
    body
}

async fn ask(client: &Client, body: &Value) -> Answer {
    match body.get("lines") {
        Some(_) => client.post("/reservations", body.to_string()).await,
        None => client.request(W, body.clone()).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_allowed_before_gets_its_first_answer_and_what_is_new_is_refused() {
    let setup = Setup::new().with("reservations.default_capacity", 20);
    let service = setup.start();
    let all: Vec<_> = requests().into_iter().chain(sets()).collect();
    let mut first = Vec::new();
    for (body, _) in &all {
        let answer = ask(&service.client, body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        first.push(answer);
    }
    assert!(service.stop().success());
    let lowered = setup
        .clone()
        .with("reservations.max_seats_per_request", 2)
        .with("reservations.hold_ttl_ms", 1_000)
        .with("reservations.max_hold_ms", 1_000)
        .with("reservations.max_holder_bytes", 3)
        .with("reservations.max_lines_per_set", 1);
    let service = lowered.start();
    let client = &service.client;
    let attempts = "SELECT count(*) FROM attempts_now";
    let before = files::sum(&setup.data_dir(), attempts);
    for ((body, field), first) in all.iter().zip(&first) {
        let replay = ask(client, body).await;
        let mut expected = first.json.clone();
        expected["replayed"] = true.into();
        assert_eq!((replay.status, &replay.json), (201, &expected));
        assert_refused(&ask(client, &renamed(body.clone())).await, field);
        // What differs is named, also where both are too much.
        if body.get("seats") == Some(&json!(4)) {
            let mut other = body.clone();
            other["seats"] = 3.into();
            let reused = ask(client, &other).await;
            assert_eq!((reused.status, &reused.json["field"]), (422, &json!("seats")), "{reused:?}");
        }
    }
    // What no setting ever allowed is not looked up.
    let absurd = json!({"requestId": "plain", "seats": 1_000_001});
    assert_refused(&ask(client, &absurd).await, "seats");
    assert_eq!(files::sum(&setup.data_dir(), attempts), before, "nothing is stored of what was refused");
    assert!(service.stop().success());
    setup.assert_verified();
}
