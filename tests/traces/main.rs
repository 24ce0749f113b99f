//! Traces, as a collector of OpenTelemetry receives them. A test binary of its own, because only a service that was built with
//! the feature `otel` sends any, and building all of `tests/it` once more would take longer than all of this.

#[expect(dead_code, reason = "tests/it uses the rest")]
#[path = "../it/client.rs"]
mod client;
mod collector;
#[expect(dead_code, reason = "tests/it uses the rest")]
#[path = "../it/service.rs"]
mod service;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use self::client::{Answer, Client};
use self::collector::{Collector, Span};
use self::service::{Service, Setup};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
const LIKE: &str = "PUT /likes/{item}/users/{user}";

fn setup(collector: &Collector) -> Setup {
    Setup::new()
        .with("telemetry.otlp_endpoint", collector.endpoint())
        .with("telemetry.sample_ratio", 0)
        .with_env("OTEL_BSP_SCHEDULE_DELAY", 50)
}

fn traced(client: &Client, trace: &str, flags: &str) -> Client {
    let mut client = client.clone();
    client.set_header("traceparent", &format!("00-{trace}-{CALLER}-{flags}"));
    client
}

/// The spans of a trace by name, each once.
fn by_name<'a>(spans: &'a [Span], trace: &str) -> BTreeMap<&'a str, &'a Span> {
    let mut named = BTreeMap::new();
    for span in spans.iter().filter(|span| span.trace == trace) {
        assert!(named.insert(span.name.as_str(), span).is_none(), "{} comes twice", span.name);
    }
    named
}

#[tokio::test(flavor = "multi_thread")]
async fn one_like_is_one_trace_from_its_caller_to_the_disk() {
    let collector = Collector::start();
    let service = setup(&collector).start();
    let answer = traced(&service.client, TRACE, "01").like("some-item", "ada-herself").await;
    assert_eq!(answer.status, 200);
    let spans = collector.spans_of(TRACE, 5);
    let named = by_name(&spans, TRACE);
    assert_eq!(named.keys().copied().collect::<Vec<_>>(), [LIKE, "batch", "commit", "mailbox", "sync"]);

    let request = named[LIKE];
    assert_eq!((request.parent.as_str(), request.kind), (CALLER, Span::SERVER));
    assert_eq!(request.about["http.request.method"], "PUT");
    assert_eq!(request.about["http.route"], "/likes/{item}/users/{user}");
    assert_eq!(request.about["http.response.status_code"], "200");
    for (name, parent) in [("mailbox", LIKE), ("batch", LIKE), ("commit", "batch"), ("sync", "batch")] {
        let (span, parent) = (named[name], named[parent]);
        assert_eq!(span.parent, parent.id, "{name} is below {}", parent.name);
        assert!(
            parent.from <= span.from && span.from <= span.to && span.to <= parent.to,
            "{name}: {spans:?}"
        );
        assert_eq!(span.error, None, "{name}");
    }
    // One after another.
    let in_turn = ["mailbox", "batch", "commit", "sync"].map(|name| named[name].from);
    assert!(in_turn.is_sorted(), "{in_turn:?}");
    assert_eq!(named["mailbox"].to, named["batch"].from);
    assert_eq!(named["batch"].about["headcount.partition"], named["mailbox"].about["headcount.partition"]);

    // A batch holds what the service asks itself now and then, too, most of all when it has just started.
    for n in 1.. {
        assert!(n < 100, "no like is alone in its batch");
        let trace = format!("{n:032x}");
        assert_eq!(traced(&service.client, &trace, "01").like("some-item", "ada-herself").await.status, 200);
        if by_name(&collector.spans_of(&trace, 5), &trace)["batch"].about["headcount.batch.commands"] == "1" {
            break;
        }
    }

    let resource = collector.resource();
    assert_eq!(resource["service.name"], "headcount");
    assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
    let told = collector.text();
    assert!(!told.contains("ada-herself") && !told.contains("some-item"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_has_a_trace_of_its_own_whatever_batch_it_is_in() {
    let collector = Collector::start();
    let service = setup(&collector).start();
    let trace = |n: u32| format!("{:032x}", 0xabcd_0000 + n);
    let like = |n: u32| {
        let client = traced(&service.client, &trace(n), "01");
        async move { client.like("item", &format!("user-{n}")).await.status }
    };
    assert!(join_all((0..100).map(like)).await.into_iter().all(|status| status == 200));
    assert!(service.stop().success());
    let spans = collector.spans();
    for n in 0..100 {
        let named = by_name(&spans, &trace(n));
        assert_eq!(named.len(), 5, "{n}: {named:?}");
        let commands: u32 = named["batch"].about["headcount.batch.commands"].parse().unwrap();
        assert!((1..=100).contains(&commands));
    }
    assert_eq!(spans.len(), 500);
}

/// What the caller says counts, and where it says nothing chance does.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_to_be_traced_is_not() {
    let collector = Collector::start();
    let never = setup(&collector).start();
    for n in 0..20 {
        never.client.like("item", &format!("user-{n}")).await;
    }
    traced(&never.client, TRACE, "00").like("item", "ada").await;
    traced(&never.admin, TRACE, "01").get("/metrics").await;
    assert!(never.stop().success());
    assert_eq!(collector.spans(), []);

    let always = setup(&collector).with("telemetry.sample_ratio", 1).start();
    traced(&always.client, TRACE, "00").like("item", "ada").await;
    let mut nonsense = always.client.clone();
    nonsense.set_header("traceparent", "00-nonsense");
    assert_eq!(nonsense.like("item", "ada").await.status, 200);
    assert!(always.stop().success(), "and what is left is sent at the end");
    let spans = collector.spans();
    assert_eq!(spans.len(), 5);
    assert!(spans.iter().all(|span| span.trace == spans[0].trace && span.trace != TRACE));
    let request = spans.iter().find(|span| span.name == LIKE).unwrap();
    assert_eq!(request.parent, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_fails_says_so() {
    let collector = Collector::start();
    let service = setup(&collector).with("faults.fail_commit_every", 2).start();
    // Others commit too, and what comes while a partition reopens is in no batch.
    let mut trace = String::new();
    for n in 1_u32.. {
        trace = format!("{n:032x}");
        let answer = traced(&service.client, &trace, "01").like("item", &format!("user-{n}")).await;
        if answer.error() == "outcome_unknown" {
            break;
        }
    }
    let spans = collector.spans_of(&trace, 4);
    let named = by_name(&spans, &trace);
    assert_eq!(named.keys().copied().collect::<Vec<_>>(), [LIKE, "batch", "commit", "mailbox"]);
    assert_eq!(named["batch"].error.as_deref(), Some("the outcome is not known"));
    assert_eq!(named[LIKE].error.as_deref(), Some(""));
    assert_eq!(named[LIKE].about["http.response.status_code"], "503");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_without_a_route_is_not_told() {
    let collector = Collector::start();
    let service = setup(&collector).start();
    let client = traced(&service.client, TRACE, "01");
    let refused: Vec<Answer> = vec![
        client.get("/secret-path").await,
        client
            .post("/workshops/secret-workshop/reservations", json!({"requestId": "secret-id"}).to_string())
            .await,
    ];
    assert_eq!(refused.iter().map(|answer| answer.status).collect::<Vec<_>>(), [404, 400]);
    let spans = collector.spans_of(TRACE, 2);
    let mut names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["GET", "POST /workshops/{workshop}/reservations"]);
    assert!(!collector.text().contains("secret"), "{}", collector.text());
}

/// Nobody waits for a collector, not even the end of the service for long.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_not_there_holds_nobody_up() {
    let collector = Collector::start();
    let setup = setup(&collector).with("telemetry.sample_ratio", 1);
    drop(collector);
    let service: Service = setup.start();
    for n in 0..50 {
        assert_eq!(service.client.like("item", &format!("user-{n}")).await.status, 200);
    }
    let stopping = Instant::now();
    assert!(service.stop().success());
    assert!(stopping.elapsed() < Duration::from_secs(30), "{:?}", stopping.elapsed());
    setup.assert_verified();
}
