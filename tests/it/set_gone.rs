//! Sets whose workshops are deleted: a line goes with its workshop, and a set with the last of its lines.

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::files;
use crate::service::{Setup, eventually};
use crate::time;

const TABLES: [&str; 4] = ["sets", "set_lines", "holders", "bookings"];

fn rows(setup: &Setup) -> i64 {
    let count = |table: &str| files::sum(&setup.data_dir(), &format!("SELECT count(*) FROM {table}"));
    TABLES.into_iter().map(count).sum()
}

async fn hold(client: &Client, id: &str, workshops: &[&str]) -> Answer {
    let lines: Value = workshops.iter().map(|workshop| json!({"workshop": workshop, "seats": 2})).collect();
    let body = json!({"requestId": id, "lines": lines, "hold": true, "ttlMs": 60_000, "holder": "ada"});
    client.post("/reservations", body.to_string()).await
}

async fn change(client: &Client, id: &str, change: &str, body: Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client.post(&format!("/reservations/{id}/{change}"), body).await
}

async fn delete(client: &Client, workshop: &str) {
    assert_eq!(client.delete(&format!("/workshops/{workshop}")).await.status, 200);
}

async fn taken(client: &Client, workshop: &str) -> i64 {
    client.status(workshop).await["reserved"].as_i64().unwrap()
}

fn assert_word(answer: &Answer, status: u16, word: &str) {
    assert_eq!((answer.status, answer.error()), (status, word), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workshop_that_is_created_again_has_no_line_of_its_predecessor() {
    for what in ["confirm", "cancel", "expire"] {
        let setup = Setup::new();
        let mut service = setup.start();
        assert_eq!(hold(&service.client, "held", &["alpha", "launch-day"]).await.status, 201);
        delete(&service.client, "alpha").await;
        assert_eq!(service.client.configure("alpha", json!({"capacity": 4})).await.status, 201);
        if what == "expire" {
            service = time::passes(&setup, service, 60_000);
        } else {
            change(&service.client, "held", what, Value::Null).await;
        }
        let finished = "SELECT count(*) FROM sets WHERE state IN ('cancelled', 'expired') AND finished";
        eventually("the end of the set", || files::sum(&setup.data_dir(), finished) == 1);
        assert_eq!(
            (taken(&service.client, "alpha").await, taken(&service.client, "launch-day").await),
            (0, 0)
        );
        setup.assert_verified();
        assert!(service.stop().success());
        setup.assert_verified();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_lost_a_workshop_is_not_confirmed_by_half() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    for workshop in ["alpha", "launch-day"] {
        client.configure(workshop, json!({"capacity": 9})).await;
    }
    for id in ["held", "extended", "early"] {
        assert_eq!(hold(client, id, &["alpha", "launch-day"]).await.status, 201);
    }
    assert_eq!(change(client, "early", "confirm", Value::Null).await.status, 200);
    assert_eq!(taken(client, "launch-day").await, 6);
    delete(client, "alpha").await;
    for _ in 0..2 {
        assert_word(&change(client, "held", "confirm", Value::Null).await, 409, "workshop_gone");
        assert_eq!(taken(client, "launch-day").await, 4, "what was left of it is given up");
    }
    assert_word(&change(client, "extended", "extend", json!({"ttlMs": 90_000})).await, 409, "workshop_gone");
    assert_eq!(client.get("/reservations/held").await.json["state"], "cancelled");
    // What was confirmed while the workshop was there stays so, and is given up like any other.
    assert_eq!(change(client, "early", "confirm", Value::Null).await.json["state"], "confirmed");
    assert_eq!(change(client, "early", "cancel", Value::Null).await.json["state"], "cancelled");
    assert_eq!(taken(client, "launch-day").await, 0);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_goes_with_the_last_of_its_workshops_and_so_does_its_holders_name() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let both = ["alpha", "launch-day"];
    assert_eq!(hold(client, "both", &both).await.status, 201);
    assert_eq!(hold(client, "refused", &["alpha", "beta"]).await.status, 201);
    assert_eq!(hold(client, "too-late", &both).await.status, 409);
    assert_eq!(change(client, "both", "confirm", Value::Null).await.status, 200);
    delete(client, "alpha").await;
    assert_eq!(client.get("/reservations/both").await.status, 200, "a workshop of it is left");
    delete(client, "launch-day").await;
    delete(client, "beta").await;
    // At once, for whoever asks, and then in the files.
    for id in ["both", "refused", "too-late"] {
        assert_word(&client.get(&format!("/reservations/{id}")).await, 404, "not_found");
    }
    assert_word(&hold(client, "both", &both).await, 410, "gone");
    assert_word(&change(client, "both", "cancel", Value::Null).await, 404, "not_found");
    eventually("the end of every row", || rows(&setup) == 0);
    for workshop in both {
        assert_eq!(client.configure(workshop, json!({"capacity": 4})).await.status, 201);
    }
    let again = hold(client, "both", &both).await;
    assert_eq!((again.status, &again.json["replayed"]), (201, &json!(false)), "{again:?}");
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_that_a_killed_process_has_left_go_after_the_next_start() {
    let setup = Setup::new();
    let stuck = setup.clone().with("faults.stop_set_at", "decided");
    let service = setup.start();
    assert_eq!(hold(&service.client, "both", &["alpha", "launch-day"]).await.status, 201);
    assert!(service.stop().success());
    // Nobody finishes what this one begins.
    let service = stuck.start();
    let client = service.client.clone();
    let asked = tokio::spawn(async move { hold(&client, "on-its-way", &["alpha", "launch-day"]).await });
    while taken(&service.client, "alpha").await + taken(&service.client, "launch-day").await < 8 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    delete(&service.client, "alpha").await;
    delete(&service.client, "launch-day").await;
    service.kill();
    assert!(asked.await.is_err(), "its caller hears nothing");
    let service = setup.start();
    eventually("the end of every row", || rows(&setup) == 0);
    let data = setup.data_dir();
    let proof = setup.run(&["verify", "--deleted", "workshops", "--data-dir", data.to_str().unwrap()]);
    assert!(proof.status.success(), "{proof:?}");
    assert!(service.stop().success());
    setup.assert_verified();
}
