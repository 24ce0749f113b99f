//! Rooms through real sockets: [`socket`] and [`reader`] are the clients.

mod cases;
mod contract;
mod idle;
mod limits;
mod outside_rust;
mod presence;
pub mod reader;
mod recovery;
mod restart;
pub mod sleep;
pub mod socket;
mod stuck;

use std::time::Duration;

use serde_json::Value;

use crate::service::{Service, Setup};

/// How long something may take before a test gives up on it. Never how long it is expected to take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A service whose time the test makes.
pub fn timed() -> Setup {
    Setup::new().with("faults.clock_control", true)
}

/// It is so much later.
pub async fn later(service: &Service, ms: u32) {
    assert_eq!(service.admin.post(&format!("/faults/clock?ms={ms}"), "").await.status, 200);
}

/// Users online, and connections.
pub async fn census(service: &Service, room: &str) -> (u64, u64) {
    let answer = service.client.get(&format!("/rooms/{room}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    (answer.json["online"].as_u64().unwrap(), answer.json["connections"].as_u64().unwrap())
}

/// Waits until a room has so many online and so many connections.
pub async fn eventually(service: &Service, room: &str, expected: (u64, u64)) {
    let wait = async {
        while census(service, room).await != expected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, wait).await.is_err() {
        panic!("{room} is {:?}, not {expected:?}", census(service, room).await);
    }
}

pub async fn post(service: &Service, path: &str, body: Value) -> Value {
    let answer = service.client.post(path, body.to_string()).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json
}

/// A metric's value; 0 if it is not there.
pub async fn metric(service: &Service, series: &str) -> f64 {
    let text = service.admin.get("/metrics").await.text;
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}
