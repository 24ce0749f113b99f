//! A hundred thousand holds that end in the same second: they are written down a chunk at a time, and nobody waits for it.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use headcount::data_dir::DEFAULT_PARTITIONS;
use headcount::reservations::WorkshopName;
use headcount::reservations::types::partition_of_workshop;
use serde_json::json;

use crate::client::{Answer, Client};
use crate::service::{Service, Setup};
use crate::time;

/// `HEADCOUNT_MASS` asks for another number.
const HOLDS: &str = "HEADCOUNT_MASS";
const CALLERS: usize = 128;
const NEIGHBOURS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(300);
const HOUR_MS: i64 = 3_600_000;
/// Everything ends at the same time, whenever it was asked for.
const MASS: &str = "mass";

fn partition_of(name: &str) -> u32 {
    partition_of_workshop(WorkshopName::parse(name).unwrap().hash(), DEFAULT_PARTITIONS)
}

/// Workshops of both partitions.
fn neighbours() -> Vec<String> {
    let names: Vec<String> = (0..NEIGHBOURS).map(|n| format!("neighbour-{n}")).collect();
    let beside = |partition: u32| names.iter().any(|name| partition_of(name) == partition);
    assert!((0..DEFAULT_PARTITIONS).all(beside), "another name is needed");
    names
}

async fn hold_all(client: &Client, holds: usize, end_ms: i64) {
    let each = |caller: usize| async move {
        for n in (caller..holds).step_by(CALLERS) {
            let ttl_ms = end_ms - time::wall_ms();
            let body = json!({"requestId": format!("hold-{n}"), "seats": 1, "hold": true, "ttlMs": ttl_ms});
            let answer = client.request(MASS, body).await;
            assert_eq!(answer.status, 201, "{answer:?}");
        }
    };
    join_all((0..CALLERS).map(each)).await;
}

async fn expired(service: &Service) -> usize {
    let text = service.admin.get("/metrics").await.text;
    let series = "headcount_reservations_total{outcome=\"expired\"} ";
    text.lines().find_map(|line| line.strip_prefix(series)).map_or(0, |count| count.parse().unwrap())
}

fn assert_served(answer: &Answer) {
    assert!([200, 201].contains(&answer.status), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_refused_and_nobody_waits_while_a_hundred_thousand_holds_end() {
    let holds: usize = std::env::var(HOLDS).map_or(100_000, |holds| holds.parse().unwrap());
    let setup = Setup::new()
        .with("reservations.default_capacity", holds)
        .with("reservations.sweep_chunk", 64)
        .with("log.decisions", false);
    let service = setup.start();
    let end_ms = time::wall_ms() + HOUR_MS - 60_000;
    hold_all(&service.client, holds, end_ms).await;
    assert_eq!(service.client.status(MASS).await["held"], holds);

    // From its start on, this one has all of them to write down.
    let service = time::passes(&setup, service, HOUR_MS);
    let client = &service.client;
    assert_eq!(client.status(MASS).await["reserved"], 0, "free by the clock, written down or not");
    let first = client.reserve(MASS, "first", 1).await;
    assert_served(&first);
    assert_eq!(first.json["reserved"], 1);
    let before = expired(&service).await;
    assert!(before < holds, "it was over before anybody could have waited for it");

    // Commands, one after another, on the workshop itself and on others of both partitions, until all is written down.
    let names = [neighbours(), vec![MASS.to_owned()]].concat();
    let started = Instant::now();
    let (mut rounds, mut so_far) = (0, before);
    while so_far < holds {
        assert!(started.elapsed() < PATIENCE, "{so_far} of {holds}");
        let each = |name: &String| {
            let (name, id) = (name.clone(), format!("request-{rounds}"));
            async move {
                assert_served(&client.reserve(&name, &id, 1).await);
                let held = json!({"requestId": format!("held-{id}"), "seats": 1, "hold": true});
                assert_served(&client.request(&name, held).await);
                assert_served(&client.change(&name, &format!("held-{id}"), "cancel", json!(null)).await);
                assert_served(&client.get(&format!("/workshops/{name}/status")).await);
            }
        };
        join_all(names.iter().map(each)).await;
        rounds += 1;
        so_far = expired(&service).await;
    }
    println!("{rounds} rounds of {} commands while {} holds were swept", 4 * names.len(), holds - before);
    assert!(rounds > 1, "commands waited for the sweep");
    assert_eq!(client.status(MASS).await["reserved"], rounds + 1);
    assert!(service.stop().success());
    setup.assert_verified();
}
