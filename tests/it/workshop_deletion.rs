//! A workshop that is deleted is gone with everything in it, says so, and can be created again.

use std::process::Command;

use hyper::Method;
use serde_json::{Value, json};

use crate::files;
use crate::service::{HEADCOUNT, Setup, eventually};

const TABLES: [&str; 6] = ["workshops", "attempts", "bookings", "events", "holders", "unswept_workshops"];

fn rows(setup: &Setup) -> i64 {
    let count = |table: &str| files::sum(&setup.data_dir(), &format!("SELECT count(*) FROM {table}"));
    TABLES.into_iter().map(count).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_workshop_is_gone_with_its_data_until_it_is_created_again() {
    let setup =
        Setup::new().with("reservations.default_capacity", 1_000).with("reservations.sweep_chunk", 10);
    let service = setup.start();
    let client = &service.client;
    for n in 0..60 {
        let body = json!({"requestId": format!("request-{n}"), "seats": 1, "hold": n % 2 == 0, "holder": format!("holder-{}", n % 4)});
        assert_eq!(client.request("gone", body).await.status, 201);
    }
    client.request("stays", json!({"requestId": "request-1", "seats": 2, "holder": "holder-1"})).await;
    let unknown = client.delete("/workshops/unknown").await;
    assert_eq!((unknown.status, unknown.error()), (404, "not_found"));
    let deleted = client.delete("/workshops/gone").await;
    assert_eq!((deleted.status, &deleted.json["workshop"]), (200, &json!("gone")));
    let when = &deleted.json["deletedAt"];
    let assert_gone = async |client: &crate::client::Client| {
        for (method, path, body) in [
            (Method::GET, "", ""),
            (Method::DELETE, "", ""),
            (Method::GET, "/status", ""),
            (Method::GET, "/events", ""),
            (Method::GET, "/reservations", ""),
            (Method::POST, "/reservations", r#"{"requestId":"request-1","seats":1}"#),
            (Method::GET, "/reservations/request-1", ""),
            (Method::POST, "/reservations/request-1/confirm", ""),
            (Method::POST, "/reservations/request-1/cancel", ""),
            (Method::POST, "/reservations/request-1/extend", r#"{"ttlMs":5}"#),
        ] {
            let answer = client.send(method, &format!("/workshops/gone{path}"), body).await;
            assert_eq!((answer.status, answer.error()), (410, "gone"), "{path}: {answer:?}");
            assert_eq!(answer.json["deletedAt"], *when);
        }
    };
    assert_gone(client).await;
    assert_eq!(client.get("/workshops").await.json["workshops"].as_array().unwrap().len(), 1);
    // Whatever is killed while its rows are swept is swept afterwards.
    service.kill();
    let service = setup.start();
    let client = &service.client;
    assert_gone(client).await;
    eventually("the sweep", || rows(&setup) == 5);
    assert_eq!(client.status("stays").await["reserved"], 2);
    assert_eq!(
        client.show("stays", "request-1").await["holder"],
        "holder-1",
        "who has other bookings keeps the name"
    );

    let created = client.configure("gone", json!({"capacity": 3})).await;
    assert_eq!((created.status, &created.json["reserved"]), (201, &json!(0)));
    let again = client.reserve("gone", "request-1", 3).await;
    assert_eq!((again.status, &again.json["replayed"]), (201, &json!(false)), "its ids are free again");
    assert_eq!(client.reserve("gone", "request-2", 1).await.status, 409);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_absence_of_all_workshops_can_be_proven() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    for name in ["a", "b", "c"] {
        client.request(name, json!({"requestId": "request-1", "seats": 1, "holder": "ada"})).await;
    }
    let proven = || {
        let data = setup.data_dir();
        let arguments = ["verify", "--deleted", "workshops", "--data-dir", data.to_str().unwrap()];
        Command::new(HEADCOUNT).args(arguments).output().unwrap().status.success()
    };
    assert!(!proven());
    for name in ["a", "b", "c"] {
        assert_eq!(client.delete(&format!("/workshops/{name}")).await.status, 200);
    }
    eventually("the sweep", proven);
    assert_eq!(client.change("a", "request-1", "cancel", Value::Null).await.status, 410);
}
