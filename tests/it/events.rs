//! A workshop's log as it grows: every event once, in order, after its commit, and from where a reader was.

use std::time::Duration;

use futures_util::future::join_all;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::service::{Service, Setup};

const PATIENCE: Duration = Duration::from_secs(60);
const W: &str = "workshop";

/// An open stream.
struct Stream {
    response: Response<Incoming>,
    text: String,
}

#[derive(Debug)]
struct Event {
    id: String,
    event: String,
    data: Value,
}

impl Stream {
    async fn open(service: &Service, query: &str, last_event_id: Option<&str>) -> Self {
        let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http();
        let mut request = Request::get(format!("http://{}/workshops/{W}/events{query}", service.public));
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = client.request(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await.unwrap();
        Self { response, text: String::new() }
    }

    /// The next block of the stream; `None` at its end.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let frame = tokio::time::timeout(PATIENCE, self.response.body_mut().frame()).await.unwrap()?;
            self.text += std::str::from_utf8(frame.unwrap().data_ref().unwrap()).unwrap();
        }
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            let block = self.block().await?;
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            if let Some(data) = field("data:") {
                return Some(Event {
                    id: field("id:").unwrap_or_default().to_owned(),
                    event: field("event:").unwrap().to_owned(),
                    data: serde_json::from_str(data).unwrap(),
                });
            }
        }
    }

    async fn take(&mut self, number: usize) -> Vec<Event> {
        let mut events = Vec::new();
        while events.len() < number {
            events.push(self.next().await.expect("the stream ended"));
        }
        events
    }
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.event.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_is_told_in_order_and_a_reader_goes_on_where_it_was() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let mut live = Stream::open(&service, "", None).await;
    assert_eq!(live.response.headers()["content-type"], "text/event-stream");
    let waitlist = json!({"policy": "strict", "offerTtlMs": 1, "maxLength": 9});
    client.configure(W, json!({"capacity": 2, "waitlist": waitlist})).await;
    client.request(W, json!({"requestId": "held", "seats": 2, "hold": true, "holder": "secret"})).await;
    client.reserve(W, "refused", 1).await;
    client.request(W, json!({"requestId": "waiting", "seats": 1, "waitlist": true})).await;
    client.change(W, "held", "extend", json!({"ttlMs": 3_000_000})).await;
    client.change(W, "held", "confirm", json!({"seats": 1})).await;
    client.change(W, "held", "cancel", Value::Null).await;
    let expected = [
        "configured",
        "held",
        "rejected",
        "waiting",
        "extended",
        "confirmed",
        "offered",
        "cancelled",
        "expired",
    ];
    let events = live.take(expected.len()).await;
    // An offer that ends at once may end before or after the cancellation.
    let sorted = |kinds: Vec<&str>| {
        let mut kinds: Vec<String> = kinds.into_iter().map(str::to_owned).collect();
        kinds.sort_unstable();
        kinds
    };
    assert_eq!(sorted(kinds(&events)), sorted(expected.to_vec()));
    assert_eq!(kinds(&events)[..7], expected[..7]);
    let seqs: Vec<i64> = events.iter().map(|event| event.data["seq"].as_i64().unwrap()).collect();
    assert_eq!(seqs, (1..=9).collect::<Vec<_>>());
    assert_eq!(
        (&events[2].data["reason"], &events[2].data["requestId"]),
        (&json!("not_enough_seats"), &json!("refused"))
    );
    assert!(events.iter().all(|event| !event.data.to_string().contains("secret")));

    for seen in 0..events.len() {
        let mut resumed = Stream::open(&service, "", Some(&events[seen].id)).await;
        let rest = resumed.take(events.len() - seen - 1).await;
        let ids = |events: &[Event]| events.iter().map(|event| event.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&rest), ids(&events[seen + 1..]));
    }
    // Of this log, and not written yet: whoever saw it saw another one.
    let (key, _) = events[8].id.split_once('-').unwrap();
    let beyond = Stream::open(&service, "", Some(&format!("{key}-10"))).await;
    assert_eq!(beyond.response.status(), 400);
    let mut from_now = Stream::open(&service, "?from=now", None).await;
    let mut again = Stream::open(&service, "", None).await;
    client.reserve(W, "newest", 1).await;
    assert_eq!(from_now.next().await.unwrap().data["requestId"], "newest");
    assert_eq!(again.take(10).await.last().unwrap().data["requestId"], "newest");

    // After a restart, too.
    let last = live.next().await.unwrap().id;
    service.kill();
    let service = setup.start();
    let mut resumed = Stream::open(&service, "", Some(&last)).await;
    service.client.reserve(W, "after-the-restart", 1).await;
    assert_eq!(resumed.next().await.unwrap().data["requestId"], "after-the-restart");
    for bad in ["x", "1", "1-x", "-1-1", "1--1"] {
        let refused = Stream::open(&service, "", Some(bad)).await.response;
        assert_eq!(refused.status(), 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn under_load_nothing_is_left_out_and_nothing_comes_twice() {
    const REQUESTS: usize = 600;
    let setup = Setup::new().with("reservations.default_capacity", 300);
    let service = setup.start();
    let listen = async |late: bool| {
        if late {
            service.client.reserve(W, "first-of-all", 1).await;
        }
        let mut stream = Stream::open(&service, "", None).await;
        let events = stream.take(REQUESTS + 1).await;
        let seqs: Vec<i64> = events.iter().map(|event| event.data["seq"].as_i64().unwrap()).collect();
        assert_eq!(seqs, (1..=REQUESTS as i64 + 1).collect::<Vec<_>>());
        let mut reserved = 0;
        for event in &events {
            reserved += i64::from(event.event == "accepted");
            assert_eq!(event.data["reserved"], reserved);
        }
        assert_eq!(reserved, 300);
    };
    let ids: Vec<String> = (0..REQUESTS).map(|n| format!("request-{n}")).collect();
    let load = join_all(ids.iter().map(|id| service.client.reserve(W, id, 1)));
    tokio::join!(listen(false), listen(true), listen(false), load);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_workshop_and_with_the_service() {
    let setup =
        Setup::new().with("reservations.max_event_streams", 2).with("reservations.event_keepalive_ms", 10);
    let service = setup.start();
    service.client.reserve(W, "request-1", 1).await;
    let mut stream = Stream::open(&service, "", None).await;
    let key = stream.next().await.unwrap().id;
    assert!(stream.block().await.unwrap().starts_with(':'), "a comment while nothing happens");
    let other = Stream::open(&service, "", None).await;
    let one_too_many = Stream::open(&service, "", None).await;
    assert_eq!(one_too_many.response.status(), 503);
    assert!(one_too_many.response.headers().contains_key("retry-after"));
    drop(other);
    service.client.delete(&format!("/workshops/{W}")).await;
    let end = stream.next().await.unwrap();
    assert_eq!((end.event.as_str(), end.id.as_str()), ("deleted", ""));
    assert_eq!((&end.data["seats"], &end.data["reserved"]), (&json!(0), &json!(0)));
    assert!(stream.next().await.is_none());
    assert_eq!(Stream::open(&service, "", None).await.response.status(), 410);

    // Another workshop of the same name has a log of its own, and an old id is none of its.
    service.client.configure(W, json!({"capacity": 1})).await;
    let mut anew = Stream::open(&service, "", Some(&key)).await;
    let first = anew.next().await.unwrap();
    assert_eq!((first.event.as_str(), &first.data["seq"]), ("configured", &json!(1)));
    assert_ne!(first.id, key);
    service.send_sigterm();
    assert!(anew.next().await.is_none());
    let mut service = service;
    assert!(service.wait().success());
}
