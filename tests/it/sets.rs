//! Sets: seats of several workshops at once, all or none. Their rules, one by one; when they end is in
//! [`set_ends`](super::set_ends), what a kill leaves in [`set_recovery`](super::set_recovery).

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::files;
use crate::service::Setup;

/// Workshops on both partitions.
const WORKSHOPS: [&str; 4] = ["alpha", "beta", "gamma", "launch-day"];

pub fn lines(lines: &[(&str, u32)]) -> Value {
    lines.iter().map(|(workshop, seats)| json!({"workshop": workshop, "seats": seats})).collect()
}

pub async fn reserve(client: &Client, id: &str, of: &[(&str, u32)]) -> Answer {
    client.post("/reservations", json!({"requestId": id, "lines": lines(of)}).to_string()).await
}

pub async fn hold(client: &Client, id: &str, of: &[(&str, u32)], ttl_ms: i64) -> Answer {
    let body = json!({"requestId": id, "lines": lines(of), "hold": true, "ttlMs": ttl_ms});
    client.post("/reservations", body.to_string()).await
}

pub async fn change(client: &Client, id: &str, change: &str, body: Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client.post(&format!("/reservations/{id}/{change}"), body).await
}

pub async fn taken(client: &Client, workshop: &str) -> i64 {
    client.status(workshop).await["reserved"].as_i64().unwrap()
}

pub fn assert_word(answer: &Answer, status: u16, word: &str) {
    assert_eq!((answer.status, answer.error()), (status, word), "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/problem+json");
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_two_lines_on_one_workshop_are_one_demand() {
    let setup = Setup::new().with("reservations.default_capacity", 3);
    let service = setup.start();
    let client = &service.client;
    let refused = reserve(client, "two-lines", &[("alpha", 2), ("alpha", 2)]).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    let told = json!({"requestId": "two-lines", "lines": [{"workshop": "alpha", "seats": 4}], "status": "rejected",
        "state": "rejected", "reason": "not_enough_seats", "rejectedBy": "alpha", "replayed": false});
    assert_eq!(refused.json, told);
    assert_eq!(taken(client, "alpha").await, 0);
    // However the same demand is written, it is the same.
    let replay = reserve(client, "two-lines", &[("alpha", 3), ("alpha", 1)]).await;
    assert_eq!((replay.status, &replay.json["replayed"]), (409, &json!(true)));
    assert_eq!(reserve(client, "three", &[("alpha", 2), ("alpha", 1)]).await.status, 201);
    assert_eq!(taken(client, "alpha").await, 3);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_lines_are_taken_or_none() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let all: Vec<_> = WORKSHOPS.map(|workshop| (workshop, 2)).to_vec();
    let accepted = reserve(client, "set-1", &all).await;
    assert_eq!((accepted.status, &accepted.json["state"]), (201, &json!("accepted")), "{accepted:?}");
    assert_eq!(client.reserve("gamma", "somebody", 1).await.status, 201);
    let refused = reserve(client, "set-2", &all).await;
    assert_eq!((refused.status, &refused.json["rejectedBy"]), (409, &json!("gamma")), "{refused:?}");
    for workshop in WORKSHOPS {
        let expected = if workshop == "gamma" { 3 } else { 2 };
        assert_eq!(taken(client, workshop).await, expected, "{workshop}");
    }
    let line = client.show("alpha", "set-1").await;
    assert_eq!((&line["state"], &line["partOfSet"]), (&json!("confirmed"), &json!(true)));
    let line = client.show("alpha", "set-2").await;
    assert_eq!(line["state"], "cancelled", "what was held for a refused set is given back");
    // Repeated, they take and give nothing.
    assert_eq!(reserve(client, "set-1", &all).await.json["replayed"], true);
    assert_eq!(reserve(client, "set-2", &all).await.status, 409);
    assert_eq!(taken(client, "alpha").await, 2);
    let shown = client.get("/reservations/set-1").await;
    assert_eq!((shown.status, &shown.json["state"]), (200, &json!("accepted")));
    assert_word(&client.get("/reservations/no-such-set").await, 404, "not_found");
    assert!(service.stop().success());
    setup.assert_verified();
}

/// Sets that want the same workshops in different orders, all at once: none waits for another, none gets half.
#[tokio::test(flavor = "multi_thread")]
async fn sets_that_compete_neither_wait_for_each_other_nor_get_half() {
    let setup = Setup::new().with("reservations.default_capacity", 5);
    let service = setup.start();
    let client = &service.client;
    let ids: Vec<String> = (0..60).map(|n| format!("set-{n}")).collect();
    let ask = async |(n, id): (usize, &String)| {
        let (one, other) = (WORKSHOPS[n % 4], WORKSHOPS[(n / 4 + 1 + n) % 4]);
        (one, other, reserve(client, id, &[(one, 1), (other, 1)]).await)
    };
    let answers = join_all(ids.iter().enumerate().map(ask)).await;
    for workshop in WORKSHOPS {
        let got: i64 = answers
            .iter()
            .filter(|(_, _, answer)| answer.status == 201)
            .map(|(one, other, _)| i64::from(*one == workshop) + i64::from(*other == workshop))
            .sum();
        assert_eq!(taken(client, workshop).await, got, "{workshop}");
        assert!(got <= 5);
    }
    assert!(answers.iter().all(|(_, _, answer)| [201, 409].contains(&answer.status)), "{answers:?}");
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_set_is_confirmed_extended_and_cancelled_as_a_whole() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let both = [("alpha", 2), ("launch-day", 1)];
    let held = hold(client, "held", &both, 60_000).await;
    assert_eq!((held.status, &held.json["state"]), (201, &json!("held")), "{held:?}");
    let expires_at = held.json["expiresAt"].as_i64().unwrap();
    let extended = change(client, "held", "extend", json!({"ttlMs": 120_000})).await;
    assert_eq!(extended.json["expiresAt"].as_i64().unwrap(), expires_at + 60_000);
    assert_eq!(change(client, "held", "extend", json!({"ttlMs": 120_000})).await.text, extended.text);
    let shorter = change(client, "held", "extend", json!({"ttlMs": 1})).await;
    assert_eq!(shorter.text, extended.text, "never shorter");
    let confirmed = change(client, "held", "confirm", Value::Null).await;
    assert_eq!((confirmed.status, &confirmed.json["state"]), (200, &json!("confirmed")), "{confirmed:?}");
    assert_eq!(change(client, "held", "confirm", Value::Null).await.text, confirmed.text);
    assert_eq!(client.show("launch-day", "held").await["state"], "confirmed");
    assert_word(&change(client, "held", "extend", json!({"ttlMs": 1})).await, 409, "already_confirmed");
    // The first decision stays what it was.
    let replay = hold(client, "held", &both, 60_000).await;
    assert_eq!((replay.status, &replay.json["status"]), (201, &json!("held")));
    assert_eq!((&replay.json["state"], &replay.json["replayed"]), (&json!("confirmed"), &json!(true)));
    let answers = join_all((0..10).map(|_| change(client, "held", "cancel", Value::Null))).await;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.json["state"] == "cancelled"));
    assert_eq!((taken(client, "alpha").await, taken(client, "launch-day").await), (0, 0));
    assert_word(&change(client, "held", "confirm", Value::Null).await, 409, "already_cancelled");
    assert_word(&change(client, "nothing", "confirm", Value::Null).await, 404, "not_found");
    // What was accepted once and for all is not confirmed, and what was refused is nothing.
    assert_eq!(reserve(client, "for-good", &both).await.status, 201);
    assert_word(&change(client, "for-good", "confirm", Value::Null).await, 409, "already_confirmed");
    assert_eq!(reserve(client, "refused", &[("alpha", 3)]).await.status, 409);
    for what in ["confirm", "cancel"] {
        assert_word(&change(client, "refused", what, Value::Null).await, 409, "already_rejected");
    }
    assert_word(&change(client, "for-good", "extend", json!({})).await, 400, "invalid_extension");
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_of_a_set_is_of_the_whole_set() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    assert_eq!(hold(client, "held", &[("alpha", 2), ("launch-day", 2)], 60_000).await.status, 201);
    for (body, field) in [
        (json!({"seats": 1}), "seats"),
        (json!({"seats": 2, "reacquire": true}), "seats"),
        (json!({"reacquire": 1}), "reacquire"),
    ] {
        let answer = change(client, "held", "confirm", body).await;
        assert_word(&answer, 400, "invalid_confirmation");
        assert_eq!(answer.json["field"], field);
    }
    assert_word(&change(client, "held", "confirm", json!([])).await, 400, "invalid_confirmation");
    assert_eq!(client.get("/reservations/held").await.json["state"], "held");
    assert_eq!(change(client, "held", "confirm", json!({})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_sets_is_counted() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let of = [("alpha", 1), ("launch-day", 1)];
    for id in ["first", "second"] {
        assert_eq!(hold(client, id, &of, 60_000).await.status, 201);
        assert_eq!(change(client, id, "confirm", Value::Null).await.status, 200);
    }
    assert_eq!(change(client, "first", "cancel", Value::Null).await.status, 200);
    assert_eq!(reserve(client, "third", &of).await.status, 201);
    assert_eq!(reserve(client, "fourth", &[("alpha", 4), ("beta", 1)]).await.status, 409);
    let text = service.admin.get("/metrics").await.text;
    let count = |series: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0, |value| value.parse().unwrap())
    };
    let of = |outcome: &str| count(&format!("headcount_sets_total{{outcome=\"{outcome}\"}}"));
    let outcomes = ["begun", "held", "confirmed", "cancelled", "accepted", "rejected", "expired"];
    assert_eq!(outcomes.map(of), [4, 2, 2, 1, 1, 1, 0]);
    assert_eq!(count("headcount_sets_open"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_one_id_with_other_lines_is_refused_naming_the_field_also_in_parallel() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    for round in 0..10 {
        let id = format!("set-{round}");
        let workshops = [format!("alpha-{round}"), format!("beta-{round}")];
        let ask = |n: usize| {
            let lines = [(&*workshops[0], 1), (&*workshops[1], 1 + u32::from(n.is_multiple_of(2)))];
            let id = &id;
            async move { reserve(client, id, &lines).await }
        };
        let answers = join_all((0..20).map(ask)).await;
        let count = |status| answers.iter().filter(|answer| answer.status == status).count();
        assert_eq!((count(201), count(422)), (10, 10), "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| answer.json["replayed"] == false).count(), 1);
        for answer in answers.iter().filter(|answer| answer.status == 422) {
            assert_word(answer, 422, "request_id_reused");
            assert_eq!(answer.json["field"], "lines");
        }
        assert_eq!(taken(client, &workshops[0]).await, 1);
    }
    let other = hold(client, "set-0", &[("alpha-0", 1), ("beta-0", 1)], 1_000).await;
    assert_eq!(other.status, 422);
    let no_line = reserve(client, "set-0", &[("alpha-0", 1)]).await;
    assert_eq!((no_line.status, &no_line.json["field"]), (422, &json!("lines")));
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_not_touched_alone() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    assert_eq!(hold(client, "held", &[("alpha", 2), ("launch-day", 2)], 60_000).await.status, 201);
    for what in ["confirm", "cancel", "extend"] {
        assert_word(&client.change("alpha", "held", what, json!({"ttlMs": 1})).await, 409, "part_of_set");
    }
    let exchange = json!({"requestId": "instead", "seats": 1, "replaces": "held"});
    let exchange = client.request("alpha", exchange).await;
    assert_word(&exchange, 409, "part_of_set");
    assert_eq!(exchange.json["field"], "replaces");
    // The id is the set's in each of its workshops.
    let same_id = client.reserve("alpha", "held", 2).await;
    assert_word(&same_id, 422, "request_id_reused");
    assert_eq!(same_id.json["field"], "requestId");
    assert_eq!((taken(client, "alpha").await, taken(client, "launch-day").await), (2, 2));
    // And the other way round.
    assert_eq!(client.reserve("beta", "mine", 1).await.status, 201);
    let refused = reserve(client, "mine", &[("alpha", 1), ("beta", 1)]).await;
    assert_eq!((refused.status, &refused.json["reason"]), (409, &json!("request_id_taken")));
    assert_eq!((taken(client, "alpha").await, taken(client, "beta").await), (2, 1));
    assert_eq!(client.show("beta", "mine").await["state"], "accepted");
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_set_frees_is_offered_to_who_waits_and_sets_never_overtake() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let waitlist = json!({"policy": "strict", "offerTtlMs": 600_000, "maxLength": 10});
    client.configure("alpha", json!({"capacity": 4, "waitlist": waitlist})).await;
    assert_eq!(reserve(client, "set", &[("alpha", 3), ("launch-day", 1)]).await.status, 201);
    let waiting = json!({"requestId": "waiter", "seats": 2, "waitlist": true});
    assert_eq!(client.request("alpha", waiting).await.status, 202);
    let newcomer = reserve(client, "newcomer", &[("alpha", 1), ("launch-day", 1)]).await;
    assert_eq!((newcomer.status, &newcomer.json["reason"]), (409, &json!("waiters_first")));
    assert_eq!(taken(client, "launch-day").await, 1);
    assert_eq!(change(client, "set", "cancel", Value::Null).await.status, 200);
    assert_eq!(client.show("alpha", "waiter").await["state"], "offered");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_a_workshop_hold_for_sets() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    client.configure("alpha", json!({"capacity": 9, "maxSeatsPerHolder": 2, "maxSeatsPerRequest": 2})).await;
    let of = [("alpha", 1), ("launch-day", 1)];
    assert_word(&reserve(client, "nobody", &of).await, 400, "holder_required");
    assert_word(&reserve(client, "many", &[("alpha", 3)]).await, 400, "holder_required");
    let ask = async |id: &str, holder: &str, seats: u32| {
        let body = json!({"requestId": id, "lines": lines(&[("alpha", seats), ("launch-day", 1)]), "holder": holder});
        client.post("/reservations", body.to_string()).await
    };
    let many = ask("many", "ada", 3).await;
    assert_word(&many, 400, "invalid_reservation");
    assert_eq!(many.json["field"], "lines");
    // None of these has used up its id.
    assert_eq!(ask("nobody", "ada", 2).await.status, 201);
    let refused = ask("second", "ada", 1).await;
    assert_eq!((refused.status, &refused.json["reason"]), (409, &json!("limit_exceeded")));
    assert_eq!(refused.json["holder"], "ada");
    let other = ask("nobody", "bob", 2).await;
    assert_eq!((other.status, &other.json["field"]), (422, &json!("holder")));
    assert_eq!(taken(client, "launch-day").await, 1);

    assert_eq!(client.delete("/workshops/alpha").await.status, 200);
    assert_word(&ask("third", "bob", 1).await, 410, "gone");
    // Its other lines are still the set's, and given up with it.
    assert_eq!(change(client, "nobody", "cancel", Value::Null).await.status, 200);
    assert_eq!(taken(client, "launch-day").await, 0);
    assert_eq!(client.get("/reservations/third").await.status, 404);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_set_is_refused_and_uses_up_no_id() {
    let setup = Setup::new().with("reservations.max_lines_per_set", 3);
    let service = setup.start();
    let client = &service.client;
    let bad = [
        (json!({"lines": lines(&[("alpha", 1)])}), "requestId"),
        (json!({"requestId": "set"}), "lines"),
        (json!({"requestId": "set", "lines": null}), "lines"),
        (json!({"requestId": "set", "lines": []}), "lines"),
        (json!({"requestId": "set", "lines": {}}), "lines"),
        (json!({"requestId": "set", "lines": [["alpha", 1]]}), "lines"),
        (json!({"requestId": "set", "lines": [{"workshop": "Alpha", "seats": 1}]}), "lines"),
        (json!({"requestId": "set", "lines": [{"workshop": "alpha"}]}), "lines"),
        (json!({"requestId": "set", "lines": lines(&[("alpha", 0)])}), "lines"),
        (json!({"requestId": "set", "lines": lines(&[("alpha", 3), ("alpha", 2)])}), "lines"),
        (json!({"requestId": "set", "lines": lines(&[("a", 1), ("b", 1), ("c", 1), ("d", 1)])}), "lines"),
        (json!({"requestId": "set", "lines": lines(&[("alpha", 1)]), "hold": 1}), "hold"),
        (json!({"requestId": "set", "lines": lines(&[("alpha", 1)]), "ttlMs": 0}), "ttlMs"),
        (json!({"requestId": "set", "lines": lines(&[("alpha", 1)]), "holder": ""}), "holder"),
        (json!({"requestId": "set", "lines": lines(&[("alpha", 1)]), "waitlist": true}), "waitlist"),
        (json!({"requestId": "set", "lines": lines(&[("alpha", 1)]), "replaces": "other"}), "replaces"),
    ];
    for (body, field) in bad {
        let answer = client.post("/reservations", body.to_string()).await;
        assert_word(&answer, 400, "invalid_reservation");
        assert_eq!(answer.json["field"], field, "{body}");
    }
    assert_word(&client.post("/reservations", "[]").await, 400, "invalid_reservation");
    assert_word(&client.post("/reservations", "{").await, 400, "invalid_json");
    assert_word(&client.get("/reservations/Set").await, 400, "invalid_request_id");
    assert_eq!(files::sum(&setup.data_dir(), "SELECT count(*) FROM sets"), 0);
    assert_eq!(reserve(client, "set", &[("a", 1), ("b", 1), ("c", 1)]).await.status, 201);
}
