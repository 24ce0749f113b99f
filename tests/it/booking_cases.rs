//! Bookings that went wrong elsewhere, each case under its own name. See also [`reservation_cases`](super).

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::service::{Setup, eventually};
use crate::{files, time};

const W: &str = "workshop";

async fn capacity(client: &Client, capacity: i64) {
    let answer = client.configure(W, json!({ "capacity": capacity })).await;
    assert!([200, 201].contains(&answer.status), "{answer:?}");
}

fn waitlist(policy: &str) -> Value {
    json!({"policy": policy, "offerTtlMs": 600_000, "maxLength": 100})
}

async fn hold(client: &Client, id: &str, seats: u32, ttl_ms: i64) -> Answer {
    client.request(W, json!({"requestId": id, "seats": seats, "hold": true, "ttlMs": ttl_ms})).await
}

async fn wait_for(client: &Client, id: &str, seats: u32) -> Answer {
    client.request(W, json!({"requestId": id, "seats": seats, "waitlist": true})).await
}

async fn state(client: &Client, id: &str) -> String {
    client.show(W, id).await["state"].as_str().unwrap().to_owned()
}

async fn confirm(client: &Client, id: &str) -> Answer {
    client.change(W, id, "confirm", Value::Null).await
}

async fn cancel(client: &Client, id: &str) -> Answer {
    client.change(W, id, "cancel", Value::Null).await
}

async fn reserved(client: &Client) -> i64 {
    client.status(W).await["reserved"].as_i64().unwrap()
}

fn assert_word(answer: &Answer, status: u16, word: &str) {
    assert_eq!((answer.status, answer.error()), (status, word), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r4_a_void_is_retried_and_its_seats_come_back_once() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    assert_eq!(hold(client, "held", 3, 60_000).await.status, 201);
    let answers = join_all((0..20).map(|_| cancel(client, "held"))).await;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.text == answers[0].text));
    assert_eq!(answers[0].json["state"], "cancelled");
    assert_eq!(reserved(client).await, 0);
    assert_eq!(client.reserve(W, "all-of-it", 4).await.status, 201);
    assert_eq!(cancel(client, "held").await.text, answers[0].text);
    assert_eq!(reserved(client).await, 4);
    // Confirmed seats, too.
    let answers = join_all((0..20).map(|_| cancel(client, "all-of-it"))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(reserved(client).await, 0);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_cancelled_seats_can_be_had_again() {
    let setup = Setup::new().with("reservations.default_capacity", 5);
    let service = setup.start();
    let client = &service.client;
    assert_eq!(client.reserve(W, "four", 4).await.status, 201);
    assert_eq!(hold(client, "one", 1, 60_000).await.status, 201);
    assert_eq!(client.reserve(W, "too-late", 1).await.status, 409);
    assert_eq!((cancel(client, "four").await.status, cancel(client, "one").await.status), (200, 200));
    assert_eq!(client.reserve(W, "four-again", 4).await.status, 201);
    assert_eq!(client.reserve(W, "one-again", 1).await.status, 201);
    assert_eq!(reserved(client).await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_who_exchanges_seats_does_not_compete_with_itself() {
    let setup =
        Setup::new().with("reservations.default_capacity", 5).with("reservations.max_seats_per_request", 9);
    let service = setup.start();
    let client = &service.client;
    assert_eq!(hold(client, "five", 5, 60_000).await.status, 201);
    let exchange = |id: &'static str, seats: u32, old: &'static str| {
        client.request(W, json!({"requestId": id, "seats": seats, "hold": true, "replaces": old}))
    };
    assert_eq!(exchange("three", 3, "five").await.status, 201);
    assert_eq!((reserved(client).await, state(client, "five").await.as_str()), (3, "cancelled"));
    assert_eq!(client.reserve(W, "two", 2).await.status, 201);
    // Refused, the old one stays.
    let refused = exchange("too-many", 4, "three").await;
    assert_eq!((refused.status, &refused.json["reason"]), (409, &json!("not_enough_seats")));
    assert_eq!((reserved(client).await, state(client, "three").await.as_str()), (5, "held"));
    // Repeated, it takes nothing and gives nothing up.
    assert_eq!(exchange("three", 3, "five").await.json["replayed"], true);
    assert_eq!(reserved(client).await, 5);
    let unknown = exchange("of-nothing", 1, "no-such-request").await;
    assert_word(&unknown, 404, "not_found");
    assert_eq!(unknown.json["field"], "replaces");
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_a_hold_ends_while_the_service_is_down_and_nobody_asks() {
    let setup = Setup::new();
    let service = setup.start();
    assert_eq!(hold(&service.client, "held", 4, 2_000).await.status, 201);
    let service = time::passes(&setup, service, 2_000);
    // No traffic: written down by the clock alone.
    let expired = "SELECT count(*) FROM events WHERE kind = 'expired' AND request_id = 'held'";
    eventually("the sweep", || files::sum(&setup.data_dir(), expired) == 1);
    let client = &service.client;
    assert_eq!(reserved(client).await, 0);
    let listed = client.get(&format!("/workshops/{W}/reservations")).await.json;
    assert_eq!(
        (&listed["reservations"][0]["requestId"], &listed["reservations"][0]["state"]),
        (&json!("held"), &json!("expired"))
    );
    assert_eq!(client.reserve(W, "everything", 4).await.status, 201);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_at_the_moment_of_expiry_the_seats_are_free_and_a_confirmation_is_late() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let held = hold(client, "held", 4, 50).await;
    time::comes(client, held.json["expiresAt"].as_i64().unwrap()).await;
    assert_eq!(reserved(client).await, 0);
    let late = confirm(client, "held").await;
    assert_word(&late, 409, "hold_expired");
    assert_eq!(confirm(client, "held").await.text, late.text);
    let shown = client.show(W, "held").await;
    assert_eq!(shown["state"], "expired");
    let history: Vec<&str> =
        shown["history"].as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert!(history == ["held"] || history == ["held", "expired"], "{history:?}");
    for change in ["cancel", "extend"] {
        assert_word(&client.change(W, "held", change, json!({"ttlMs": 60_000})).await, 409, "hold_expired");
    }
    assert_eq!(client.reserve(W, "everything", 4).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_seats_that_somebody_else_confirmed_meanwhile_stay_theirs() {
    let setup = Setup::new().with("reservations.default_capacity", 1);
    let service = setup.start();
    let client = &service.client;
    let held = hold(client, "held-by-a", 1, 1).await;
    time::comes(client, held.json["expiresAt"].as_i64().unwrap()).await;
    assert_eq!(hold(client, "held-by-b", 1, 60_000).await.status, 201);
    assert_eq!(confirm(client, "held-by-b").await.status, 200);
    assert_word(&confirm(client, "held-by-a").await, 409, "hold_expired");
    let again = client.change(W, "held-by-a", "confirm", json!({"reacquire": true})).await;
    assert_word(&again, 409, "hold_expired");
    assert_eq!((state(client, "held-by-b").await.as_str(), reserved(client).await), ("confirmed", 1));
    // Once they are free again, they can be had again, in one step.
    assert_eq!(cancel(client, "held-by-b").await.status, 200);
    let again = client.change(W, "held-by-a", "confirm", json!({"reacquire": true})).await;
    assert_eq!((again.status, &again.json["state"]), (200, &json!("confirmed")), "{again:?}");
    assert_eq!(reserved(client).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r12_who_cancels_an_accepted_offer_hands_it_on_and_does_not_wait_again() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    client.configure(W, json!({"capacity": 1, "waitlist": waitlist("strict")})).await;
    assert_eq!(client.reserve(W, "first", 1).await.status, 201);
    for (position, waiter) in ["waiter-1", "waiter-2"].into_iter().enumerate() {
        let answer = wait_for(client, waiter, 1).await;
        assert_eq!((answer.status, &answer.json["position"]), (202, &json!(position + 1)), "{answer:?}");
        assert_eq!((&answer.json["status"], &answer.json["state"]), (&json!("waiting"), &json!("waiting")));
    }
    cancel(client, "first").await;
    assert_eq!(
        (state(client, "waiter-1").await, state(client, "waiter-2").await),
        ("offered".into(), "waiting".into())
    );
    assert_eq!(confirm(client, "waiter-1").await.status, 200);
    assert_eq!(cancel(client, "waiter-1").await.status, 200);
    // At once, in the transaction that freed them.
    assert_eq!(state(client, "waiter-2").await, "offered");
    assert_word(&confirm(client, "waiter-1").await, 409, "already_cancelled");
    assert_eq!(state(client, "waiter-1").await, "cancelled");
    let status = client.status(W).await;
    assert_eq!(
        (&status["reserved"], &status["waiting"], &status["held"]),
        (&json!(1), &Value::Null, &json!(1))
    );
    assert_eq!(confirm(client, "waiter-2").await.status, 200);
    // A replay of the first answer: the first word, and what is current.
    let replay = wait_for(client, "waiter-2", 1).await;
    assert_eq!((replay.status, &replay.json["status"]), (202, &json!("waiting")));
    assert_eq!((&replay.json["state"], &replay.json["position"]), (&json!("confirmed"), &Value::Null));
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_freed_seat_is_kept_for_the_first_in_strict_order() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    client.configure(W, json!({"capacity": 2, "waitlist": waitlist("strict")})).await;
    for id in ["first", "second"] {
        assert_eq!(client.reserve(W, id, 1).await.status, 201);
    }
    assert_eq!(
        (wait_for(client, "a-wants-2", 2).await.status, wait_for(client, "b-wants-1", 1).await.status),
        (202, 202)
    );
    cancel(client, "first").await;
    assert_eq!(
        (state(client, "a-wants-2").await, state(client, "b-wants-1").await),
        ("waiting".into(), "waiting".into())
    );
    let newcomer = client.reserve(W, "newcomer", 1).await;
    assert_eq!((newcomer.status, &newcomer.json["reason"]), (409, &json!("waiters_first")));
    cancel(client, "second").await;
    assert_eq!(
        (state(client, "a-wants-2").await, state(client, "b-wants-1").await),
        ("offered".into(), "waiting".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_freed_seat_goes_to_the_first_whom_it_is_enough_for_in_fit_first_order() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    client.configure(W, json!({"capacity": 2, "waitlist": waitlist("fit_first")})).await;
    for id in ["first", "second"] {
        assert_eq!(client.reserve(W, id, 1).await.status, 201);
    }
    assert_eq!(
        (wait_for(client, "a-wants-2", 2).await.status, wait_for(client, "b-wants-1", 1).await.status),
        (202, 202)
    );
    cancel(client, "first").await;
    assert_eq!(
        (state(client, "a-wants-2").await, state(client, "b-wants-1").await),
        ("waiting".into(), "offered".into())
    );
    let policy = client.get(&format!("/workshops/{W}")).await.json["waitlist"]["policy"].clone();
    assert_eq!(policy, "fit_first", "a visible setting");
}

#[tokio::test(flavor = "multi_thread")]
async fn r16_new_seats_go_to_those_who_wait_and_the_rest_is_free_at_once() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let with = |capacity: u32| json!({"capacity": capacity, "waitlist": waitlist("strict")});
    client.configure(W, with(5)).await;
    assert_eq!(
        (client.reserve(W, "four", 4).await.status, client.reserve(W, "one", 1).await.status),
        (201, 201)
    );
    assert_eq!(
        (wait_for(client, "wants-1", 1).await.status, wait_for(client, "wants-1-too", 1).await.status),
        (202, 202)
    );
    let raised = client.configure(W, with(8)).await;
    assert_eq!(
        (raised.status, &raised.json["remaining"], &raised.json["waiting"]),
        (200, &json!(1), &json!(0))
    );
    assert_eq!(
        (state(client, "wants-1").await, state(client, "wants-1-too").await),
        ("offered".into(), "offered".into())
    );
    assert_eq!(client.reserve(W, "the-rest", 1).await.status, 201);
    assert_eq!(client.reserve(W, "too-late", 1).await.status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn r17_lowered_below_what_is_taken_by_force_alone_and_nobody_is_thrown_out() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    capacity(client, 2).await;
    assert_eq!(
        (client.reserve(W, "one", 1).await.status, hold(client, "two", 1, 60_000).await.status),
        (201, 201)
    );
    let refused = client.configure(W, json!({"capacity": 1})).await;
    assert_word(&refused, 409, "capacity_in_use");
    assert_eq!(
        (&refused.json["minimum"], refused.header("content-type")),
        (&json!(2), "application/problem+json")
    );
    assert_eq!(client.status(W).await["capacity"], 2);
    let forced = client.configure(W, json!({"capacity": 1, "force": true})).await;
    assert_eq!(forced.status, 200);
    for answer in [forced.json, client.get(&format!("/workshops/{W}")).await.json] {
        assert_eq!((&answer["remaining"], &answer["overbookedBy"]), (&json!(0), &json!(1)));
    }
    assert_eq!((state(client, "one").await, state(client, "two").await), ("accepted".into(), "held".into()));
    assert_eq!(confirm(client, "two").await.status, 200);
    assert_eq!(client.reserve(W, "newcomer", 1).await.status, 409);
    assert_eq!(cancel(client, "two").await.status, 200);
    assert_eq!(client.reserve(W, "newcomer-2", 1).await.status, 409, "still full");
    assert_eq!(client.status(W).await["overbookedBy"], Value::Null);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_one_id_with_other_terms() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    client.configure(W, json!({"capacity": 4, "waitlist": waitlist("strict")})).await;
    assert_eq!(client.reserve(W, "old", 1).await.status, 201);
    let first = json!({"requestId": "request-1", "seats": 1, "hold": true, "ttlMs": 60_000, "holder": "ada",
        "waitlist": true, "replaces": "old"});
    assert_eq!(client.request(W, first.clone()).await.status, 201);
    assert_eq!(client.request(W, first.clone()).await.json["replayed"], true);
    for (field, other) in [
        ("seats", json!(2)),
        ("hold", json!(false)),
        ("ttlMs", json!(60_001)),
        ("ttlMs", Value::Null),
        ("holder", json!("bob")),
        ("holder", Value::Null),
        ("waitlist", json!(false)),
        ("replaces", Value::Null),
    ] {
        let mut request = first.clone();
        request[field] = other;
        let answers = join_all((0..4).map(|_| client.request(W, request.clone()))).await;
        for answer in answers {
            assert_word(&answer, 422, "request_id_reused");
            assert_eq!(answer.json["field"], field);
        }
    }
    // And the other way round: a plain one with terms.
    assert_eq!(client.reserve(W, "plain", 1).await.status, 201);
    let answer = hold(client, "plain", 1, 5).await;
    assert_eq!((answer.status, &answer.json["field"]), (422, &json!("hold")));
    assert_eq!(reserved(client).await, 2);
    let names = "SELECT count(*) FROM holders";
    assert_eq!(files::sum(&setup.data_dir(), names), 1, "a name that was refused is not stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_one_seat_a_holder() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    client.configure(W, json!({"capacity": 10, "maxSeatsPerHolder": 1})).await;
    let by = |id: &'static str, holder: &'static str| {
        client.request(W, json!({"requestId": id, "seats": 1, "holder": holder}))
    };
    let without = client.reserve(W, "nobodys", 1).await;
    assert_word(&without, 400, "holder_required");
    assert_eq!(by("first", "ada").await.status, 201);
    let second = by("second", "ada").await;
    assert_eq!((second.status, &second.json["reason"]), (409, &json!("limit_exceeded")));
    assert_eq!(by("of-another", "bob").await.status, 201);
    assert_eq!(cancel(client, "first").await.status, 200);
    assert_eq!(by("second", "ada").await.status, 409, "a rejection stays one");
    assert_eq!(by("third", "ada").await.status, 201);
    // Invalid input uses no id up.
    assert_eq!(by("nobodys", "eve").await.status, 201);
    assert_eq!(by("in-parallel-0", "zoe").await.status, 201);
    let answers = join_all((1..20).map(|n| {
        client.request(W, json!({"requestId": format!("in-parallel-{n}"), "seats": 1, "holder": "kim"}))
    }))
    .await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r23_a_hold_lives_from_its_request_on() {
    let setup = Setup::new();
    let service = time::passes(&setup, setup.start(), 10_000);
    let client = &service.client;
    let before = time::now_ms(client).await;
    let held = hold(client, "held", 1, 3_000).await.json["expiresAt"].as_i64().unwrap();
    let after = time::now_ms(client).await;
    assert!((before + 3_000..=after + 3_000).contains(&held), "{held} is not 3 s after {before} to {after}");
    // Nor does it matter how long its workshop was asleep.
    let service = time::passes(&setup, service, 10_000);
    let before = time::now_ms(&service.client).await;
    let held = hold(&service.client, "held-2", 1, 3_000).await.json["expiresAt"].as_i64().unwrap();
    assert!(held >= before + 3_000);
}
