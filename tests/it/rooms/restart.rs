//! The end of the process: orderly, and not.

use serde_json::json;

use super::reader::Reader;
use super::socket::Socket;
use super::{census, post};
use crate::service::Setup;

/// Presence is in memory alone: who does not come back is not there.
#[tokio::test(flavor = "multi_thread")]
async fn after_kill_nine_nobody_is_a_ghost() {
    for history in ["memory", "durable"] {
        let setup = Setup::new().with("rooms.history", history);
        let service = setup.start();
        let _socket = Socket::open(&service, "lobby/socket?user=ada").await;
        post(&service, "/join", json!({"user": "bob"})).await;
        post(&service, "/send", json!({"user": "bob", "text": "hi"})).await;
        assert_eq!(census(&service, "lobby").await, (2, 1));
        service.kill();
        let service = setup.start();
        assert_eq!(census(&service, "lobby").await, (0, 0));
        let _back = Socket::open(&service, "lobby/socket?user=ada").await;
        assert_eq!(census(&service, "lobby").await, (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_readers_with_an_event_and_takes_nobody_more() {
    let service = Setup::new().start();
    let mut reader = Reader::open(&service, "lobby/events", "").await;
    reader.event().await;
    service.send_sigterm();
    let close = reader.event().await;
    assert_eq!((&*close.name, &close.json()["code"]), ("close", &json!(1012)));
    let mut service = service;
    assert!(service.wait().success());
}

/// A socket that answers no goodbye holds the stop up no longer than its own deadline.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_no_socket_beyond_its_deadline() {
    let setup = Setup::new().with("rooms.close_timeout_ms", 50).with("server.drain_timeout_ms", 3_600_000);
    let mut service = setup.start();
    let _silent = Socket::open(&service, "lobby/socket?user=ada").await;
    service.send_sigterm();
    assert!(service.wait().success());
}
