//! The end of a set's hold: when it is, what is free from then on, and how its seats can be had again.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::files;
use crate::service::{Setup, eventually};
use crate::sets::{assert_word, change, hold, lines, reserve, taken};
use crate::time;

#[tokio::test(flavor = "multi_thread")]
async fn the_hold_of_a_set_ends_for_all_its_lines() {
    let setup = Setup::new();
    let service = setup.start();
    let both = [("alpha", 4), ("launch-day", 4)];
    assert_eq!(hold(&service.client, "held", &both, 60_000).await.status, 201);
    let service = time::passes(&setup, service, 60_000);
    // No traffic: it ends by the clock alone.
    let expired = "SELECT count(*) FROM events WHERE kind = 'expired' AND request_id = 'held'";
    eventually("the end of the hold", || files::sum(&setup.data_dir(), expired) == 2);
    let client = &service.client;
    let late = change(client, "held", "confirm", Value::Null).await;
    assert_word(&late, 409, "hold_expired");
    assert_word(&change(client, "held", "cancel", Value::Null).await, 409, "hold_expired");
    let shown = client.get("/reservations/held").await.json;
    assert_eq!((&shown["status"], &shown["state"]), (&json!("held"), &json!("expired")));
    assert_eq!(reserve(client, "next", &both).await.status, 201);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_moment_of_its_end_a_confirmation_of_a_set_is_late() {
    // Nobody looks after it in time but whoever asks.
    let setup = Setup::new().with("reservations.set_retry_ms", 600_000);
    let service = setup.start();
    let client = &service.client;
    let held = hold(client, "held", &[("alpha", 4), ("launch-day", 4)], 3_000).await;
    time::comes(client, held.json["expiresAt"].as_i64().unwrap()).await;
    assert_word(&change(client, "held", "confirm", Value::Null).await, 409, "hold_expired");
    assert_eq!(client.get("/reservations/held").await.json["state"], "expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_set_is_settled_at_once_though_nobody_asks() {
    // Nobody looks around in time but whoever the clock wakes.
    let setup = Setup::new().with("reservations.set_retry_ms", 600_000);
    let service = setup.start();
    let client = &service.client;
    assert_eq!(hold(client, "longer", &[("beta", 1), ("gamma", 1)], 3_600_000).await.status, 201);
    assert_eq!(hold(client, "held", &[("alpha", 4), ("launch-day", 4)], 200).await.status, 201);
    let expired = "SELECT count(*) FROM events WHERE kind = 'expired' AND request_id = 'held'";
    eventually("the end of the hold", || files::sum(&setup.data_dir(), expired) == 2);
    let finished = "SELECT count(*) FROM sets WHERE state = 'expired' AND finished";
    eventually("the end of the set", || files::sum(&setup.data_dir(), finished) == 1);
    assert!(service.stop().success());
    setup.assert_verified();
}

/// Nobody settles it in the background here: whoever asks for its seats has that done first, and whoever looks.
#[tokio::test(flavor = "multi_thread")]
async fn seats_of_a_set_that_has_ended_are_free_for_the_next_request() {
    let setup = Setup::new();
    let service = setup.start();
    let both = [("alpha", 4), ("launch-day", 4)];
    assert_eq!(hold(&service.client, "held", &both, 60_000).await.status, 201);
    assert_eq!(hold(&service.client, "longer", &[("beta", 4), ("gamma", 4)], 60_000).await.status, 201);
    assert_eq!(change(&service.client, "longer", "extend", json!({"ttlMs": 90_000})).await.status, 200);
    let third = [("delta", 4), ("epsilon", 1)];
    assert_eq!(hold(&service.client, "third", &third, 60_000).await.status, 201);
    let stuck = setup.clone().with("faults.stop_set_at", "decided");
    let service = time::passes(&stuck, service, 60_000);
    let client = &service.client;
    let looked_up = client.get("/reservations/held").await.json;
    assert_eq!(looked_up["state"], "expired");
    assert_eq!(client.show("alpha", "held").await["state"], "held", "nobody has told its workshops");
    assert_eq!(client.reserve("alpha", "next", 4).await.status, 201);
    assert_eq!(client.show("alpha", "held").await["state"], "expired");
    assert_eq!(taken(client, "launch-day").await, 0, "and a mere look finds them free, too");
    assert_eq!(client.show("launch-day", "held").await["state"], "expired");
    let fewer = client.configure("delta", json!({"capacity": 1})).await;
    assert_eq!((fewer.status, &fewer.json["reserved"]), (200, &json!(0)), "{fewer:?}");
    // What was put off goes on, and is not asked after again and again.
    assert_eq!(client.reserve("beta", "next", 1).await.status, 409);
    assert_eq!(taken(client, "gamma").await, 4);
    drop(service);
    setup.assert_verified();
}

/// The home of a set that is on its way says nothing final: its seats stay held, and nobody waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_whose_set_is_undecided_stays_held_whatever_the_clock_says() {
    let setup = Setup::new().with("faults.stop_set_at", "prepared");
    let service = setup.start();
    let client = service.client.clone();
    let asked = tokio::spawn(async move { hold(&client, "held", &[("alpha", 4), ("beta", 4)], 1).await });
    let client = &service.client;
    while taken(client, "alpha").await + taken(client, "beta").await < 8 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let now_ms = time::now_ms(client).await;
    time::comes(client, now_ms + 2).await;
    assert_eq!(client.reserve("alpha", "next", 1).await.status, 409);
    assert_eq!(taken(client, "beta").await, 4);
    service.kill();
    assert!(asked.await.is_err(), "its caller hears nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_a_set_that_has_ended_takes_all_its_seats_again_or_none() {
    let setup = Setup::new();
    let service = setup.start();
    let both = [("alpha", 3), ("launch-day", 4)];
    assert_eq!(hold(&service.client, "held", &both, 60_000).await.status, 201);
    let service = time::passes(&setup, service, 60_000);
    let client = &service.client;
    let again = json!({"reacquire": true});
    assert_eq!(client.reserve("launch-day", "somebody", 1).await.status, 201);
    assert_word(&change(client, "held", "confirm", Value::Null).await, 409, "hold_expired");
    assert_word(&change(client, "held", "confirm", json!({"reacquire": false})).await, 409, "hold_expired");
    for _ in 0..2 {
        assert_word(&change(client, "held", "confirm", again.clone()).await, 409, "hold_expired");
        assert_eq!((taken(client, "alpha").await, taken(client, "launch-day").await), (0, 1));
    }
    assert_eq!(client.get("/reservations/held").await.json["state"], "expired");
    assert_eq!(client.change("launch-day", "somebody", "cancel", Value::Null).await.status, 200);
    let answers = join_all((0..10).map(|_| change(client, "held", "confirm", again.clone()))).await;
    for answer in answers {
        assert_eq!((answer.status, &answer.json["state"]), (200, &json!("confirmed")), "{answer:?}");
    }
    assert_eq!((taken(client, "alpha").await, taken(client, "launch-day").await), (3, 4));
    assert_eq!(client.show("alpha", "held").await["state"], "confirmed");
    assert_eq!(change(client, "held", "confirm", Value::Null).await.status, 200);
    assert_eq!(change(client, "held", "cancel", Value::Null).await.status, 200);
    assert_word(&change(client, "held", "confirm", again).await, 409, "already_cancelled");
    assert_eq!((taken(client, "alpha").await, taken(client, "launch-day").await), (0, 0));
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_does_not_say_how_long_is_held_as_long_as_each_of_its_workshops_would() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    client.configure("alpha", json!({"capacity": 9, "holdTtlMs": 50_000})).await;
    client.configure("beta", json!({"capacity": 9, "holdTtlMs": 40_000})).await;
    client.configure("gamma", json!({"capacity": 9, "holdTtlMs": 900_000})).await;
    let ask = async |id: &str, of: &[(&str, u32)]| {
        let body = json!({"requestId": id, "lines": lines(of), "hold": true});
        let before_ms = time::now_ms(client).await;
        let held = client.post("/reservations", body.to_string()).await;
        assert_eq!(held.status, 201, "{held:?}");
        (held.json["expiresAt"].as_i64().unwrap() - before_ms) / 10_000
    };
    assert_eq!(ask("shortest", &[("alpha", 1), ("beta", 1), ("launch-day", 1)]).await, 4);
    assert_eq!(ask("one", &[("alpha", 1), ("gamma", 1)]).await, 5);
    assert_eq!(ask("default", &[("gamma", 1), ("launch-day", 1)]).await, 60);
    // It is a rule for new ones: what is asked again was asked with the rule of its time.
    client.configure("alpha", json!({"capacity": 9})).await;
    let body = json!({"requestId": "one", "lines": lines(&[("alpha", 1), ("gamma", 1)]), "hold": true});
    let replay = client.post("/reservations", body.to_string()).await;
    assert_eq!((replay.status, &replay.json["replayed"]), (201, &json!(true)));
    let told = hold(client, "said", &[("alpha", 1), ("beta", 1)], 90_000).await;
    let lives_ms = told.json["expiresAt"].as_i64().unwrap() - time::now_ms(client).await;
    assert!((70_000..=90_000).contains(&lives_ms), "what the request says counts: {lives_ms}");
}
