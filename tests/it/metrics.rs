//! What Prometheus scrapes: the exposition format to the letter, every metric, the right numbers, and no
//! name of anybody's in a label.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hyper::Method;

use crate::raw;
use crate::service::{Service, Setup};

const PATIENCE: Duration = Duration::from_secs(60);

/// Every metric: its type and its labels.
const METRICS: [(&str, &str, &[&str]); 57] = [
    ("headcount_actors_resident", "gauge", &["feature", "partition"]),
    ("headcount_backup_failures_total", "counter", &[]),
    ("headcount_backup_last_bytes", "gauge", &[]),
    ("headcount_backup_last_held_seconds", "gauge", &[]),
    ("headcount_backup_last_seconds", "gauge", &[]),
    ("headcount_backup_last_time_seconds", "gauge", &[]),
    ("headcount_batch_commands", "histogram", &["partition"]),
    ("headcount_build_info", "gauge", &["version"]),
    ("headcount_bulk_lines_total", "counter", &["outcome"]),
    ("headcount_bulk_streams", "gauge", &[]),
    ("headcount_commands_expired_total", "counter", &["partition"]),
    ("headcount_commit_seconds", "histogram", &["partition"]),
    ("headcount_counter_adds_total", "counter", &["outcome"]),
    ("headcount_http_connections", "gauge", &["listener"]),
    ("headcount_http_connections_max", "gauge", &[]),
    ("headcount_http_connections_refused_total", "counter", &["listener"]),
    ("headcount_http_request_seconds", "histogram", &["route"]),
    ("headcount_http_requests_total", "counter", &["method", "route", "status"]),
    ("headcount_likes_events_encoded_total", "counter", &[]),
    ("headcount_likes_events_total", "counter", &[]),
    ("headcount_likes_listeners", "gauge", &[]),
    ("headcount_likes_total", "counter", &["outcome"]),
    ("headcount_log_lines_dropped_total", "counter", &[]),
    ("headcount_mailbox_capacity", "gauge", &[]),
    ("headcount_mailbox_depth", "gauge", &["partition"]),
    ("headcount_overloads_total", "counter", &["partition"]),
    ("headcount_partition_failures_total", "counter", &["partition"]),
    ("headcount_partition_up", "gauge", &["partition"]),
    ("headcount_reservations_total", "counter", &["outcome"]),
    ("headcount_rollup_changed_items_total", "counter", &[]),
    ("headcount_rollup_checked_counters_total", "counter", &[]),
    ("headcount_rollup_drift_total", "counter", &[]),
    ("headcount_rollup_failures_total", "counter", &[]),
    ("headcount_rollup_lag_seconds", "gauge", &[]),
    ("headcount_rollup_seconds", "histogram", &[]),
    ("headcount_room_broadcast_seconds", "histogram", &[]),
    ("headcount_room_connections", "gauge", &["kind"]),
    ("headcount_room_connections_ended_total", "counter", &["cause"]),
    ("headcount_room_frames_dropped_total", "counter", &[]),
    ("headcount_room_joins_total", "counter", &[]),
    ("headcount_room_leaves_total", "counter", &[]),
    ("headcount_room_messages_in_total", "counter", &[]),
    ("headcount_room_messages_out_total", "counter", &[]),
    ("headcount_room_messages_refused_total", "counter", &[]),
    ("headcount_room_wakes_total", "counter", &[]),
    ("headcount_rooms", "gauge", &["state"]),
    ("headcount_sets_open", "gauge", &[]),
    ("headcount_sets_total", "counter", &["outcome"]),
    ("headcount_summary_age_seconds", "gauge", &[]),
    ("headcount_usage_active_seconds_total", "counter", &["namespace"]),
    ("headcount_usage_asleep_seconds_total", "counter", &[]),
    ("headcount_usage_inbound_messages_total", "counter", &["namespace"]),
    ("headcount_usage_keepalives_total", "counter", &[]),
    ("headcount_usage_requests_total", "counter", &["namespace"]),
    ("headcount_usage_stored_bytes", "gauge", &["namespace"]),
    ("headcount_wal_bytes", "gauge", &["partition"]),
    ("process_start_time_seconds", "gauge", &[]),
];

type Labels = BTreeMap<String, String>;

/// One metric of a scrape.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    /// By name and labels.
    samples: BTreeMap<(String, Labels), f64>,
}

/// Parses the text format, and panics at whatever the format does not allow.
fn parse(text: &str) -> BTreeMap<String, Family> {
    assert!(text.ends_with('\n'), "the last line ends");
    let mut families = BTreeMap::<String, Family>::new();
    let (mut helped, mut current) = (None, String::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap_or_else(|| panic!("no help: {line}"));
            assert!(!help.trim().is_empty() && helped.is_none(), "{line}");
            helped = Some(name);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(helped.take(), Some(name), "the help comes just before the type");
            assert!(is_name(name), "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let family = Family { kind: kind.to_owned(), ..Default::default() };
            assert!(families.insert(name.to_owned(), family).is_none(), "{name} comes twice");
            current = name.to_owned();
        } else {
            let (name, labels, value) = sample(line);
            let family = families.get_mut(&current).unwrap_or_else(|| panic!("no type: {line}"));
            let suffixes: &[&str] =
                if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(suffixes.iter().any(|suffix| name == current.clone() + suffix), "{line} in {current}");
            assert!(family.samples.insert((name, labels), value).is_none(), "{line} comes twice");
        }
    }
    families
}

/// `name{label="value",...} value`
fn sample(line: &str) -> (String, Labels, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    assert!(is_name(name), "{line}");
    let labels = labels.strip_suffix('}').unwrap();
    let label = |label: &str| {
        let (name, value) = label.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
        assert!(is_name(name) && !name.contains(':'), "{line}");
        let value = value.strip_suffix('"').unwrap_or_else(|| panic!("no label: {line}"));
        // None of ours needs an escape, nor a comma, at which the labels are parted here.
        assert!(!value.contains(['"', '\\']), "{line}");
        (name.to_owned(), value.to_owned())
    };
    let labels: Vec<_> = labels.split(',').filter(|label| !label.is_empty()).map(label).collect();
    let count = labels.len();
    let labels: Labels = labels.into_iter().collect();
    assert_eq!(labels.len(), count, "a label comes twice: {line}");
    (name.to_owned(), labels, value)
}

fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit())
}

/// Scrapes until every partition has told its sizes, which it does twice a second.
async fn scrape(service: &Service) -> (String, BTreeMap<String, Family>) {
    let started = Instant::now();
    loop {
        let answer = service.admin.get("/metrics").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
        let families = parse(&answer.text);
        let told = |name: &str| families.get(name).is_some_and(|of| of.samples.values().any(|v| *v > 0.0));
        if told("headcount_wal_bytes")
            && told("headcount_actors_resident")
            && told("headcount_rollup_seconds")
            && told("headcount_usage_stored_bytes")
        {
            return (answer.text, families);
        }
        assert!(started.elapsed() < PATIENCE, "{}", answer.text);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn labels(labels: &[(&str, &str)]) -> Labels {
    labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn value(families: &BTreeMap<String, Family>, name: &str, of: &[(&str, &str)]) -> f64 {
    let family = &families[name];
    let found = family.samples.get(&(name.to_owned(), labels(of)));
    *found.unwrap_or_else(|| panic!("{name} {of:?} is not in {family:?}"))
}

/// Every kind of decision, under names that no label may tell.
async fn traffic(service: &Service) {
    let client = &service.client;
    for user in ["secret-ada", "secret-bob", "secret-eve", "secret-ada"] {
        assert_eq!(client.like("secret-item", user).await.status, 200);
    }
    assert_eq!(client.unlike("secret-item", "secret-bob").await.status, 200);
    assert_eq!(client.unlike("secret-item", "secret-bob").await.status, 200);
    assert_eq!(client.rolled_up("secret-item").await, 2);
    for (request, seats, status) in [
        ("secret-1", 3, 201),
        ("secret-2", 2, 409),
        ("secret-3", 1, 201),
        ("secret-1", 3, 201),
        ("secret-1", 1, 422),
    ] {
        assert_eq!(client.reserve("secret-workshop", request, seats).await.status, status);
    }
    assert_eq!(client.status("secret-workshop").await["reserved"], 4);
    for (amount, status) in [(3, 200), (3, 200), (4, 422)] {
        let add = format!(r#"{{"amount":{amount},"requestId":"secret-1"}}"#);
        assert_eq!(client.post("/counters/secret-counter", add).await.status, status);
    }
    let line = r#"{"item":"secret-item","user":"secret-bulk"}"#;
    assert_eq!(client.post("/batch/likes", format!("{line}\nsecret")).await.status, 200);
    let room = "/rooms/secret-room";
    for (step, body) in [
        ("join", r#"{"user":"secret-ada"}"#),
        ("send", r#"{"user":"secret-ada","text":"secret"}"#),
        ("leave", r#"{"user":"secret-ada"}"#),
    ] {
        assert_eq!(client.post(&format!("{room}/{step}"), body).await.status, 200);
    }
    assert_eq!(client.get("/secret-path").await.status, 404);
    assert_eq!(client.get("/workshops/SECRET/status").await.status, 400);
    assert_eq!(client.send(Method::PATCH, "/likes/secret-item", "").await.status, 405);
    assert_eq!(raw::send(&service.public, "SECRET", "/likes/secret-item", "").status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_is_scraped_and_tells_the_truth() {
    let service = Setup::new().with("storage.partitions", 2).start();
    traffic(&service).await;
    let (text, families) = scrape(&service).await;
    assert!(!text.to_lowercase().contains("secret"), "a label names somebody: {text}");

    let found: Vec<_> = families.iter().map(|(name, family)| (name.as_str(), family.kind.as_str())).collect();
    assert_eq!(found, METRICS.map(|(name, kind, _)| (name, kind)));
    for (name, kind, expected) in METRICS {
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        for (_, labels) in families[name].samples.keys() {
            let names: Vec<&str> = labels.keys().map(String::as_str).filter(|label| *label != "le").collect();
            assert_eq!(names, expected, "{name}");
        }
    }

    let likes = |outcome| value(&families, "headcount_likes_total", &[("outcome", outcome)]);
    assert_eq!((likes("liked"), likes("unliked"), likes("unchanged")), (4.0, 1.0, 2.0));
    let adds = |outcome| value(&families, "headcount_counter_adds_total", &[("outcome", outcome)]);
    assert_eq!(["added", "replayed", "reused", "refused"].map(adds), [1.0, 1.0, 1.0, 0.0]);
    let lines = |outcome| value(&families, "headcount_bulk_lines_total", &[("outcome", outcome)]);
    assert_eq!((lines("done"), lines("problem")), (1.0, 1.0));
    let reservations = |outcome| value(&families, "headcount_reservations_total", &[("outcome", outcome)]);
    assert_eq!(["accepted", "rejected", "replayed", "reused"].map(reservations), [2.0, 1.0, 1.0, 1.0]);
    for counted in ["joins", "leaves", "messages_in", "wakes"] {
        assert_eq!(value(&families, &format!("headcount_room_{counted}_total"), &[]), 1.0, "{counted}");
    }
    assert_eq!(value(&families, "headcount_rooms", &[("state", "awake")]), 1.0);
    let requests = |route, method, status| {
        let of = [("route", route), ("method", method), ("status", status)];
        value(&families, "headcount_http_requests_total", &of)
    };
    assert_eq!(requests("/likes/{item}/users/{user}", "PUT", "200"), 4.0);
    assert_eq!(requests("/likes/{item}/users/{user}", "DELETE", "200"), 2.0);
    assert_eq!(requests("/workshops/{workshop}/reservations", "POST", "201"), 3.0);
    assert_eq!(requests("/workshops/{workshop}/reservations", "POST", "409"), 1.0);
    assert_eq!(requests("/workshops/{workshop}/reservations", "POST", "422"), 1.0);
    assert_eq!(requests("/workshops/{workshop}/status", "GET", "400"), 1.0);
    assert_eq!(requests("/likes/{item}", "other", "405"), 2.0);
    assert_eq!(requests("unmatched", "GET", "404"), 1.0);
    for partition in ["0", "1"] {
        let of = |name: &str| value(&families, name, &[("partition", partition)]);
        assert_eq!(of("headcount_partition_up"), 1.0);
        for quiet in ["overloads_total", "commands_expired_total", "partition_failures_total"] {
            assert_eq!(of(&format!("headcount_{quiet}")), 0.0, "{quiet}");
        }
    }
    assert!(value(&families, "headcount_http_connections", &[("listener", "admin")]) >= 1.0);
    assert!(value(&families, "headcount_rollup_changed_items_total", &[]) >= 1.0);
    assert!((0.0..60.0).contains(&value(&families, "headcount_summary_age_seconds", &[])));
}

#[tokio::test(flavor = "multi_thread")]
async fn histograms_have_buckets_that_add_up() {
    let service = Setup::new().start();
    traffic(&service).await;
    let (_, families) = scrape(&service).await;
    for (name, _, _) in METRICS.iter().filter(|(_, kind, _)| *kind == "histogram") {
        let samples = &families[*name].samples;
        let part = |part: &str| format!("{name}_{part}");
        let mut series = BTreeMap::<Labels, Vec<(f64, f64)>>::new();
        for ((_, labels), value) in samples.iter().filter(|((sample, _), _)| *sample == part("bucket")) {
            let mut labels = labels.clone();
            let le = labels.remove("le").unwrap().parse().unwrap();
            series.entry(labels).or_default().push((le, *value));
        }
        assert!(!series.is_empty(), "{name} has no buckets");
        let mut recorded = 0.0;
        for (labels, mut buckets) in series {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.len() > 10 && buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name}");
            let (last, all) = *buckets.last().unwrap();
            assert_eq!((last, Some(&all)), (f64::INFINITY, samples.get(&(part("count"), labels.clone()))));
            recorded += all;
            assert_eq!(all > 0.0, samples[&(part("sum"), labels)] > 0.0, "{name}");
        }
        assert!(recorded > 0.0, "{name} is empty");
    }
}

/// A metric that is added and not tested here is found by its name.
#[test]
fn no_metric_of_the_source_is_forgotten() {
    let source = include_str!("../../src/metrics.rs");
    let named =
        source.split('"').filter(|text| ["headcount_", "process_"].iter().any(|mark| text.starts_with(mark)));
    assert_eq!(named.collect::<BTreeSet<_>>(), METRICS.iter().map(|(name, _, _)| *name).collect());
}
