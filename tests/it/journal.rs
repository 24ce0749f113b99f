//! The journal of a partition's file: what stands in it counts, whoever looks, and it ends in the tables.

use serde_json::{Value, json};

use crate::client::Client;
use crate::files;
use crate::service::Setup;

const JOURNAL: &str = "SELECT count(*) FROM journal";

fn rows(setup: &Setup, table: &str) -> i64 {
    files::sum(&setup.data_dir(), &format!("SELECT count(*) FROM {table}"))
}

async fn liked(client: &Client, user: &str) -> bool {
    client.get(&format!("/likes/post/users/{user}")).await.json["liked"].as_bool().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_journaled_alone_survives_a_kill_and_counts_for_an_audit() {
    let setup = Setup::new();
    let service = setup.start();
    for user in 0..40 {
        service.client.like("post", &format!("user-{user}")).await;
    }
    service.client.unlike("post", "user-7").await;
    service.client.reserve("workshop", "request-1", 2).await;
    service.kill();
    assert!(files::sum(&setup.data_dir(), JOURNAL) > 0);
    assert_eq!((rows(&setup, "memberships"), rows(&setup, "attempts")), (0, 0), "nothing has settled yet");
    assert_eq!((rows(&setup, "memberships_now"), rows(&setup, "attempts_now")), (39, 1));
    setup.assert_verified();

    let service = setup.start();
    assert_eq!(service.client.exact("post").await, 39);
    assert!(!liked(&service.client, "user-7").await);
    let replay = service.client.reserve("workshop", "request-1", 2).await;
    assert_eq!((replay.status, &replay.json["replayed"]), (201, &true.into()));
    assert!(service.stop().success());
    assert_eq!(files::sum(&setup.data_dir(), JOURNAL), 0, "a clean stop leaves plain tables");
    assert_eq!((rows(&setup, "memberships"), rows(&setup, "attempts")), (39, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_stays_short_and_a_row_that_changes_while_it_settles_keeps_its_last_state() {
    let setup = Setup::new().with("sqlite.pending_rows", 8).with("storage.partitions", 1);
    let service = setup.start();
    for round in 0..40 {
        for user in ["ada", "bob", "eve"] {
            service.client.like("post", user).await;
            if round % 2 == 0 || user == "eve" {
                service.client.unlike("post", user).await;
            }
        }
    }
    service.kill();
    assert!(files::sum(&setup.data_dir(), JOURNAL) < 40, "of about 200 batches");
    assert_eq!(rows(&setup, "memberships_now"), 2);
    setup.assert_verified();
    let service = setup.start();
    for (user, likes) in [("ada", true), ("bob", true), ("eve", false)] {
        assert_eq!(liked(&service.client, user).await, likes, "{user}");
    }
    assert_eq!(service.client.exact("post").await, 2);
}

/// Whatever of a workshop is in the journal and whatever in the tables, a listing has all of it; and it brings no more into the
/// tables than the page that was asked for, for everybody would wait while it did.
#[tokio::test(flavor = "multi_thread")]
async fn a_listing_is_whole_and_settles_its_page_alone() {
    for pending_rows in [1, 9, 100_000] {
        let setup = Setup::new()
            .with("sqlite.pending_rows", pending_rows)
            .with("storage.partitions", 1)
            .with("reservations.default_capacity", 1_000);
        let service = setup.start();
        let mut all = Vec::new();
        for n in 0..60 {
            // In no order, and with a neighbour's requests between them.
            let id = format!("r-{:02}", n * 37 % 60);
            let mut body = json!({"requestId": id, "seats": 1});
            if n % 4 == 0 {
                body["holder"] = "ada".into();
            }
            assert_eq!(service.client.request("hall", body).await.status, 201);
            service.client.reserve("annex", &id, 1).await;
            all.push((id, n % 4 == 0));
            if n % 20 == 7 {
                all.sort();
                let hers = all.iter().filter(|(_, hers)| *hers).cloned().collect::<Vec<_>>();
                assert_eq!(listed(&service.client, "").await, ids(&all), "{pending_rows}");
                assert_eq!(listed(&service.client, "&holder=ada").await, ids(&hers), "{pending_rows}");
            }
        }
        service.kill();
        setup.assert_verified();

        let service = setup.start();
        all.sort();
        assert_eq!(listed(&service.client, "").await, ids(&all), "{pending_rows}, after a kill");
    }

    let setup = Setup::new().with("storage.partitions", 1).with("reservations.default_capacity", 1_000);
    let service = setup.start();
    for n in 0..60 {
        service.client.reserve("hall", &format!("request-{n}"), 1).await;
        service.client.like("post", &format!("user-{n}")).await;
    }
    let page = service.client.get("/workshops/hall/reservations?limit=5").await;
    assert_eq!(page.json["reservations"].as_array().unwrap().len(), 5);
    service.kill();
    assert_eq!((rows(&setup, "memberships"), rows(&setup, "attempts")), (0, 5));
}

/// The ids of all pages of seven.
async fn listed(client: &Client, query: &str) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/workshops/hall/reservations?limit=7{query}{cursor}")).await.json;
        let id = |one: &Value| one["requestId"].as_str().unwrap().to_owned();
        ids.extend(page["reservations"].as_array().unwrap().iter().map(id));
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

fn ids(all: &[(String, bool)]) -> Vec<String> {
    all.iter().map(|(id, _)| id.clone()).collect()
}
