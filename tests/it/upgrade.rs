//! Files that an older headcount has written: brought up to date at the start, and by nobody who only looks.

use std::fs;
use std::path::Path;

use headcount::store::sqlite::PARTITION_SCHEMA;
use rusqlite::Connection;
use serde_json::json;

use crate::client::Client;
use crate::files;
use crate::service::{Service, Setup, eventually};
use crate::time;

/// Writes the rows of a partition's file into one of an older schema, which takes its place.
fn downgrade(file: &Path, version: usize) {
    let older = file.with_extension("older");
    let connection = Connection::open(&older).unwrap();
    for step in &PARTITION_SCHEMA.steps[..version] {
        connection.execute_batch(step).unwrap();
    }
    connection.pragma_update(None, "application_id", PARTITION_SCHEMA.application_id).unwrap();
    connection.pragma_update(None, "user_version", i64::try_from(version).unwrap()).unwrap();
    connection.execute("ATTACH ?1 AS newer", [file.to_str().unwrap()]).unwrap();
    let list = |sql: &str| -> Vec<String> {
        let mut select = connection.prepare(sql).unwrap();
        let rows = select.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    for table in list("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    {
        let columns = list(&format!(
            "SELECT name FROM pragma_table_info('{table}', 'main')
             INTERSECT SELECT name FROM pragma_table_info('{table}', 'newer')"
        ));
        let columns = columns.join(", ");
        let copy = format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table}");
        connection.execute_batch(&copy).unwrap();
    }
    connection.execute_batch("DETACH newer").unwrap();
    drop(connection);
    for suffix in ["db-wal", "db-shm"] {
        let _perhaps_missing = fs::remove_file(file.with_extension(suffix));
    }
    fs::rename(older, file).unwrap();
}

async fn look(client: &Client) -> Vec<String> {
    let mut looked = Vec::new();
    for path in [
        "/workshops/alpha/reservations/confirmed",
        "/workshops/alpha/reservations/held",
        "/workshops/alpha/reservations/waiter",
        "/workshops/alpha/reservations/plain",
        "/workshops/alpha/reservations?holder=ada",
        "/workshops/alpha/reservations",
        "/workshops/alpha/status",
        "/workshops/beta/reservations/set",
        "/reservations/set",
    ] {
        looked.push(client.get(path).await.text);
    }
    looked
}

async fn used(client: &Client) {
    let waitlist = json!({"policy": "strict", "offerTtlMs": 600_000, "maxLength": 10});
    client.configure("alpha", json!({"capacity": 8, "waitlist": waitlist})).await;
    assert_eq!(client.reserve("alpha", "plain", 1).await.status, 201);
    let hold = |id: &str, seats: u32| json!({"requestId": id, "seats": seats, "hold": true, "holder": "ada", "ttlMs": 60_000});
    assert_eq!(client.request("alpha", hold("confirmed", 3)).await.status, 201);
    assert_eq!(client.request("alpha", hold("held", 3)).await.status, 201);
    assert_eq!(client.change("alpha", "confirmed", "confirm", json!({"seats": 2})).await.status, 200);
    assert_eq!(client.change("alpha", "held", "extend", json!({"ttlMs": 120_000})).await.status, 200);
    let waiter = json!({"requestId": "waiter", "seats": 3, "waitlist": true, "holder": "bob"});
    assert_eq!(client.request("alpha", waiter).await.status, 202);
    let lines = json!([{"workshop": "beta", "seats": 2}, {"workshop": "launch-day", "seats": 1}]);
    let set = json!({"requestId": "set", "lines": lines, "hold": true, "ttlMs": 600_000, "holder": "ada"});
    assert_eq!(client.post("/reservations", set.to_string()).await.status, 201);
}

fn downgraded(setup: &Setup, service: Service, version: usize) {
    assert!(service.stop().success());
    for file in files::partitions(&setup.data_dir()) {
        downgrade(&setup.data_dir().join(file), version);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bookings_and_sets_of_an_older_file_are_what_they_were_and_live_on() {
    const OLDER: usize = 5;
    let setup = Setup::new();
    let service = setup.start();
    used(&service.client).await;
    let before = look(&service.client).await;
    downgraded(&setup, service, OLDER);
    setup.assert_verified();
    let version = files::number(&setup.data_dir(), "partition-000.db", "PRAGMA user_version");
    assert_eq!(version, OLDER as i64, "an audit changes nothing");

    let service = setup.start();
    assert_eq!(look(&service.client).await, before);
    setup.assert_verified();
    let service = time::passes(&setup, service, 120_000);
    let client = &service.client;
    // What was held has ended, and the waiter has its offer.
    eventually("the offer", || {
        let offered = "SELECT count(*) FROM bookings WHERE request_id = 'waiter' AND state = 'offered'";
        files::sum(&setup.data_dir(), offered) == 1
    });
    assert_eq!(client.show("alpha", "held").await["history"].as_array().unwrap().len(), 3);
    assert_eq!(client.change("alpha", "waiter", "confirm", json!(null)).await.status, 200);
    assert_eq!(client.post("/reservations/set/confirm", "").await.status, 200);
    assert_eq!(client.status("beta").await["reserved"], 2);
    assert_eq!(client.show("alpha", "confirmed").await["history"].as_array().unwrap().len(), 2);
    assert!(service.stop().success());
    setup.assert_verified();
}
