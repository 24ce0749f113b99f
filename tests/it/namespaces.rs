//! A part of the data that is declared deleted in the settings: removed at the start, answered 410 for, proven absent.

use std::process::{Child, Command, Stdio};

use hyper::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::files;
use crate::service::{HEADCOUNT, Setup, eventually};
use crate::tokens;

const WORKSHOPS: [&str; 7] =
    ["workshops", "attempts", "bookings", "events", "holders", "unswept_workshops", "workshop_tombstones"];

fn rows(setup: &Setup, tables: &[&str]) -> i64 {
    let count = |table: &&str| files::sum(&setup.data_dir(), &format!("SELECT count(*) FROM {table}"));
    tables.iter().map(count).sum()
}

fn data_id(setup: &Setup) -> String {
    let manifest = std::fs::read_to_string(setup.data_dir().join("manifest.json")).unwrap();
    serde_json::from_str::<Value>(&manifest).unwrap()["data_id"].as_str().unwrap().to_owned()
}

fn deleted(setup: &Setup, namespace: &str) -> Setup {
    let id = format!("\"{}\"", data_id(setup));
    let setup = setup.clone().with(&format!("namespaces.{namespace}.state"), "deleted");
    setup.with(&format!("namespaces.{namespace}.confirm"), id)
}

fn is_proven_absent(setup: &Setup, namespace: &str) -> bool {
    let data = setup.data_dir();
    setup.run(&["verify", "--deleted", namespace, "--data-dir", data.to_str().unwrap()]).status.success()
}

/// Likes and workshops of every kind, a deleted one with its tombstone, too.
async fn fill(client: &Client) {
    for user in 0..40 {
        for item in 0..3 {
            assert_eq!(client.like(&format!("item-{item}"), &format!("user-{user}")).await.status, 200);
        }
    }
    assert_eq!(client.delete("/likes/item-2").await.status, 200);
    for n in 0..40 {
        let add = json!({"amount": n, "requestId": format!("request-{n}")});
        assert_eq!(client.post("/counters/views", add.to_string()).await.status, 200);
    }
    let rules =
        json!({"capacity": 30, "waitlist": {"policy": "strict", "offerTtlMs": 60_000, "maxLength": 99}});
    for workshop in ["a", "b", "c", "d"] {
        assert_eq!(client.configure(workshop, rules.clone()).await.status, 201);
        for n in 0..40 {
            let mut body =
                json!({"requestId": format!("request-{n}"), "seats": 1, "hold": true, "waitlist": true});
            if n % 2 == 0 {
                body["holder"] = json!(format!("holder-{n}"));
            }
            let answer = client.request(workshop, body).await;
            assert!([201, 202].contains(&answer.status), "{answer:?}");
        }
    }
    assert_eq!(client.delete("/workshops/d").await.status, 200);
}

async fn assert_gone(client: &Client, paths: &[(Method, &str)]) {
    for (method, path) in paths {
        let answer = client.send(method.clone(), path, "{}").await;
        assert_eq!((answer.status, answer.error()), (410, "gone"), "{method} {path}: {answer:?}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workshops_that_are_declared_deleted_are_gone_and_likes_stay() {
    let setup = Setup::new();
    let service = setup.start();
    fill(&service.client).await;
    assert!(service.stop().success());
    assert!(!is_proven_absent(&setup, "workshops"));

    let without = deleted(&setup, "workshops").with("namespaces.chunk_rows", 7);
    let service = without.start();
    let client = &service.client;
    assert_eq!(rows(&setup, &WORKSHOPS), 0);
    assert!(is_proven_absent(&setup, "workshops"));
    assert_gone(
        client,
        &[
            (Method::GET, "/workshops"),
            (Method::PUT, "/workshops/a"),
            (Method::GET, "/workshops/a"),
            (Method::DELETE, "/workshops/a"),
            (Method::GET, "/workshops/a/status"),
            (Method::GET, "/workshops/a/events"),
            (Method::POST, "/workshops/a/reservations"),
            (Method::GET, "/workshops/a/reservations/request-1"),
            (Method::POST, "/workshops/a/reservations/request-1/confirm"),
        ],
    )
    .await;
    let document = client.get("/openapi.json").await.json;
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert!(paths.iter().any(|path| path.starts_with("/likes")), "{paths:?}");
    assert!(!paths.iter().any(|path| path.starts_with("/workshops")), "{paths:?}");
    assert_eq!((client.exact("item-0").await, client.exact("item-1").await), (40, 40));
    assert!(service.stop().success());
    setup.assert_verified();

    // Live again, it begins with nothing.
    let service = setup.start();
    let status = service.client.status("a").await;
    assert_eq!((&status["capacity"], &status["acceptedRequests"]), (&json!(4), &json!(0)));
    assert_eq!(service.client.reserve("d", "request-1", 4).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn likes_that_are_declared_deleted_are_gone_with_their_totals_and_workshops_stay() {
    let setup = Setup::new();
    let service = setup.start();
    fill(&service.client).await;
    assert_eq!(service.client.rolled_up("item-0").await, 40);
    // Some wait in the journal, and so they do after a kill.
    service.kill();
    assert!(!is_proven_absent(&setup, "likes"));

    let without = deleted(&setup, "likes").with("namespaces.chunk_rows", 7);
    for _ in 0..2 {
        let service = without.start();
        assert!(is_proven_absent(&setup, "likes"));
        let gone = [
            (Method::GET, "/likes"),
            (Method::GET, "/likes/item-0"),
            (Method::POST, "/likes/item-0"),
            (Method::DELETE, "/likes/item-0"),
            (Method::GET, "/likes/item-0/events"),
            (Method::GET, "/likes/item-0/history?step=hour"),
            (Method::GET, "/trending"),
            (Method::PUT, "/likes/item-0/users/user-1"),
            (Method::POST, "/batch/likes"),
            (Method::POST, "/batch/likes/query"),
            (Method::GET, "/counters/views"),
            (Method::POST, "/counters/views"),
        ];
        assert_gone(&service.client, &gone).await;
        assert_eq!(service.client.status("a").await["reserved"], 30);
        assert!(service.stop().success());
        setup.assert_verified();
        assert!(is_proven_absent(&setup, "likes"));
    }

    let service = setup.start();
    assert_eq!(service.client.rolled_up("item-0").await, 0);
    assert_eq!(service.client.get("/counters/views").await.json["total"], 0);
    assert_eq!(
        service.client.post("/counters/views", r#"{"amount":1,"requestId":"request-1"}"#).await.json["replayed"],
        false
    );
    assert_eq!(service.client.like("item-0", "user-1").await.json["changed"], true);
    assert_eq!(service.client.rolled_up("item-0").await, 1);
    assert!(service.stop().success());
    setup.assert_verified();
}

/// Whatever it is narrowed to, and wherever it comes: there is nothing left that it could be too narrow for.
#[test]
fn a_token_hears_of_what_is_deleted_what_a_key_hears() {
    let setup = tokens::setup(&[("site", 1)]);
    assert!(setup.start().stop().success());
    let service = deleted(&deleted(&setup, "likes"), "workshops").start();
    let narrow = tokens::token_with("ada", json!({"scope": ["rooms"], "item": [], "workshop": []}));
    for (method, path) in [
        ("GET", "/likes"),
        ("GET", "/likes/a"),
        ("DELETE", "/likes/a"),
        ("GET", "/likes/a/users"),
        ("PUT", "/likes/a/users/eve"),
        ("GET", "/users/eve/likes"),
        ("GET", "/trending"),
        ("POST", "/counters/views"),
        ("POST", "/batch/likes"),
        ("GET", "/workshops"),
        ("PUT", "/workshops/w"),
        ("GET", "/workshops/w/events"),
        ("POST", "/reservations"),
    ] {
        let ask = |headers: &str, path: &str| tokens::send(&service.public, headers, method, path, "");
        let of_key = ask(&tokens::bearer(tokens::KEY), path);
        assert_eq!((of_key.status, of_key.error()), (410, "gone"), "{method} {path}");
        let of_token = ask(&tokens::bearer(&narrow), path);
        assert_eq!((of_token.status, &of_token.text), (410, &of_key.text), "{method} {path}");
        let nobody = ask(&tokens::bearer("hc_unknown"), path);
        assert_eq!((nobody.status, nobody.error()), (401, "unauthorized"), "{method} {path}");
    }
    let stream = format!("/likes/a/events?access_token={narrow}");
    assert_eq!(tokens::send(&service.public, "", "GET", &stream, "").status, 410, "an EventSource, too");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declaration_that_does_not_name_the_data_directory_deletes_nothing() {
    let setup = Setup::new();
    let service = setup.start();
    fill(&service.client).await;
    service.kill();
    let before = rows(&setup, &WORKSHOPS);
    for namespace in ["likes", "workshops"] {
        let state = setup.clone().with(&format!("namespaces.{namespace}.state"), "deleted");
        let wrong = state.clone().with(&format!("namespaces.{namespace}.confirm"), "\"0123456789abcdef\"");
        for (refused, found) in [(state, "it is missing"), (wrong, "it is \"0123456789abcdef\"")] {
            let why = refused.try_start().map(|_| "it started").unwrap_err();
            let says = [&format!("namespaces.{namespace}.confirm"), "data_id in its manifest.json", found];
            assert!(says.iter().all(|part| why.contains(part)), "{why}");
        }
    }
    assert_eq!(rows(&setup, &WORKSHOPS), before);
    // And the id alone says nothing.
    let confirmed = setup.clone().with("namespaces.workshops.confirm", format!("\"{}\"", data_id(&setup)));
    let service = confirmed.start();
    assert_eq!(service.client.status("a").await["reserved"], 30);
    assert_eq!(service.client.exact("item-0").await, 40);
}

/// Deleting a certain row never comes to its end, so that the service is somewhere in the middle for as long as it takes
/// to kill it.
const STUCK: &str = "
    CREATE VIEW for_ever AS
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;
    CREATE TRIGGER stuck BEFORE DELETE ON bookings WHEN (SELECT count(*) FROM bookings) <= 20
      BEGIN SELECT count(*) FROM for_ever; END;
    CREATE TRIGGER stuck_too BEFORE DELETE ON memberships WHEN (SELECT count(*) FROM memberships) <= 20
      BEGIN SELECT count(*) FROM for_ever; END;";
const FREE: &str = "DROP TRIGGER stuck; DROP TRIGGER stuck_too; DROP VIEW for_ever";

/// It would go on for ever.
struct Stuck(Child);

impl Drop for Stuck {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

fn spawn(setup: &Setup, namespace: &str) -> Stuck {
    let variable = |key: &str| format!("HEADCOUNT__NAMESPACES__{}", key.to_uppercase());
    let data = setup.data_dir();
    let child = Command::new(HEADCOUNT)
        .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .current_dir(setup.scratch())
        .env(variable(&format!("{namespace}__state")), "deleted")
        .env(variable(&format!("{namespace}__confirm")), format!("\"{}\"", data_id(setup)))
        .env(variable("chunk_rows"), "5")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Stuck(child)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_was_killed_goes_on_at_the_next_start() {
    for (namespace, table) in [("workshops", "bookings"), ("likes", "memberships")] {
        let setup = Setup::new().with("sqlite.pending_rows", 1);
        let service = setup.start();
        fill(&service.client).await;
        assert!(service.stop().success());
        let partitions = files::partitions(&setup.data_dir());
        partitions.iter().for_each(|file| files::execute(&setup.data_dir(), file, STUCK));
        let before = rows(&setup, &[table]);
        let child = spawn(&setup, namespace);
        eventually("a part of it is removed", || rows(&setup, &[table]) < before);
        drop(child);
        let left = rows(&setup, &[table]);
        assert!(0 < left && left < before, "{left} of {before}");
        partitions.iter().for_each(|file| files::execute(&setup.data_dir(), file, FREE));
        // What is left adds up: nothing is there by half.
        setup.assert_verified();
        assert!(!is_proven_absent(&setup, namespace));
        let service = deleted(&setup, namespace).start();
        assert!(is_proven_absent(&setup, namespace));
        assert!(service.stop().success());
        setup.assert_verified();
    }
}
