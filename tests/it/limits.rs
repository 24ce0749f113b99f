//! Everything has a limit, and reaching it is answered, at once, with what is surely so.
//!
//! Commits are held up on purpose. No test depends on how long: each waits for what must come.

use std::collections::HashMap;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use crate::client::Answer;
use crate::raw;
use crate::service::Setup;

const PATIENCE: Duration = Duration::from_secs(60);

/// A setup whose requests wait longer than any test, with one partition and no roll-up in between.
fn patient() -> Setup {
    Setup::new()
        .with("server.request_timeout_ms", 600_000)
        .with("mailbox.deadline_ms", 599_999)
        .with("rollup.schedule", "0 0 0 1 1 *")
        .with("storage.partitions", 1)
}

fn assert_try_again(answer: &Answer, error: &str) {
    assert_eq!((answer.status, answer.error()), (503, error), "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert_eq!(answer.header("retry-after"), "7");
}

#[test]
fn a_body_has_a_largest_size() {
    let service = Setup::new().with("server.max_body_bytes", 1_000).start();
    let body = |bytes: usize| format!("{}{}", r#"{"userId":"u"}"#, " ".repeat(bytes - 14));
    assert_eq!(raw::send(&service.public, "POST", "/likes/a", body(1_000)).status, 200);
    let chunked = |bytes: usize| {
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let (first, second) = (body(500), " ".repeat(bytes - 500));
        let head = "POST /likes/a HTTP/1.1\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
        let request = format!("{head}{}{}0\r\n\r\n", chunk(&first), chunk(&second));
        raw::exchange(&service.public, request.as_bytes())
    };
    assert_eq!(chunked(1_000).status, 200);

    let too_large = raw::send(&service.public, "POST", "/likes/a", body(1_001));
    for answer in [too_large, chunked(1_001)] {
        assert_eq!((answer.status, answer.error()), (413, "body_too_large"), "{answer:?}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
    // Refused by its length alone: not a byte of it is sent, and none is asked for.
    for expect in ["", "expect: 100-continue\r\n"] {
        let head = format!(
            "POST /likes/a HTTP/1.1\r\ncontent-length: 99999999999\r\n{expect}connection: close\r\n\r\n"
        );
        let answer = raw::exchange(&service.public, head.as_bytes());
        assert_eq!((answer.status, answer.error()), (413, "body_too_large"), "{answer:?}");
    }
}

#[test]
fn a_half_sent_header_is_cut_off() {
    let service = Setup::new().with("server.header_timeout_ms", 200).start();
    for half in ["", "GET /hea", "GET /health HTTP/1.1\r\nhost: a\r\nx-slow: "] {
        let mut stream = raw::connect(&service.public);
        stream.write_all(half.as_bytes()).unwrap();
        let answer = raw::read(&mut stream);
        assert!(answer.is_none_or(|answer| answer.status == 408), "{half}");
    }
    assert_eq!(raw::send(&service.public, "GET", "/health", "").status, 200);
}

#[test]
fn a_body_that_does_not_come_is_waited_for_no_longer_than_its_time() {
    let setup = Setup::new().with("server.request_timeout_ms", 300).with("mailbox.deadline_ms", 200);
    let service = setup.start();
    for slow in [
        "POST /likes/a HTTP/1.1\r\ncontent-length: 14\r\n\r\n{\"userId\"",
        "POST /likes/a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{\"\r\n",
    ] {
        let answer = raw::exchange(&service.public, slow.as_bytes());
        assert_eq!((answer.status, answer.error()), (408, "request_timeout"), "{answer:?}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
}

#[test]
fn who_comes_while_the_service_stands_still_is_served_when_it_goes_on() {
    let service = Setup::new().with("server.header_timeout_ms", 600_000).start();
    // The system may hold the queue shorter than it is set. One that is full drops who comes, to try again a second later.
    let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let many = allowed.trim().parse::<usize>().unwrap().min(1_000);
    let address = service.public.parse().unwrap();
    service.send("STOP");
    // To the first one that is left out.
    let came = (0..many).map_while(|_| TcpStream::connect_timeout(&address, Duration::from_millis(900)).ok());
    let came: Vec<_> = came.collect();
    service.send("CONT");
    assert_eq!(came.len(), many);
    for mut stream in came {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n").unwrap();
        assert_eq!(raw::read(&mut stream).unwrap().status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_connections_are_told_to_come_back() {
    let setup = Setup::new()
        .with("server.max_connections", 2)
        .with("server.header_timeout_ms", 600_000)
        .with("server.retry_after_s", 7);
    let service = setup.start();
    let mut first = raw::connect(&service.public);
    let second = raw::connect(&service.public);
    assert_try_again(&raw::send(&service.public, "GET", "/health", ""), "overloaded");
    let scrape = service.admin.get("/metrics").await.text;
    assert!(scrape.contains("headcount_http_connections_refused_total{listener=\"public\"} 1\n"), "{scrape}");

    // Those inside are served, and whoever leaves makes room.
    first.write_all(b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n").unwrap();
    assert_eq!(raw::read(&mut first).unwrap().status, 200);
    drop(second);
    let started = Instant::now();
    while raw::send(&service.public, "GET", "/health", "").status != 200 {
        assert!(started.elapsed() < PATIENCE, "no room after everybody left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_mailbox_says_so_at_once_and_what_it_refused_is_not_done() {
    let setup = patient()
        .with("likes.shards", 1)
        .with("mailbox.capacity", 4)
        .with("mailbox.actor_capacity", 4)
        .with("batch.max", 1)
        .with("server.retry_after_s", 7);
    // A commit never ends here: an answer that comes does not come from a partition.
    let stuck = setup.clone().with("faults.commit_delay_ms", 600_000).start();
    let like = async |user: usize| (user, stuck.client.like("a", &user.to_string()).await);
    let mut answers: FuturesUnordered<_> = (0..50).map(like).collect();
    let mut refused = Vec::new();
    // One is being committed and four wait.
    while refused.len() < 45 {
        let (user, answer) = answers.next().await.unwrap();
        assert_try_again(&answer, "overloaded");
        refused.push(user);
    }
    assert_eq!(stuck.client.get("/health").await.status, 200);
    assert_try_again(&stuck.client.reserve("neighbour", "request-1", 1).await, "overloaded");
    let scrape = stuck.admin.get("/metrics").await.text;
    let overloads = sample(&scrape, "headcount_overloads_total{partition=\"0\"}");
    assert!(overloads >= 46.0, "{overloads}");
    drop(answers);
    stuck.kill();

    let service = setup.start();
    for user in refused {
        let liked = service.client.get(&format!("/likes/a/users/{user}")).await;
        assert_eq!(liked.json["liked"], false, "{user} was refused and is stored");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flooded_workshop_does_not_cost_its_neighbour_a_503() {
    let setup = patient()
        .with("mailbox.capacity", 64)
        .with("mailbox.actor_capacity", 4)
        .with("batch.max_per_actor", 2)
        .with("faults.commit_delay_ms", 5)
        .with("reservations.default_capacity", 1_000_000)
        .with("server.retry_after_s", 7);
    let service = setup.start();
    let (client, done) = (&service.client, std::cell::Cell::new(false));
    let (started, overloaded) = (Instant::now(), std::cell::Cell::new(0));
    let flood = async |caller: usize| {
        for request in 0.. {
            if done.get() {
                return;
            }
            let answer = client.reserve("flooded", &format!("request-{caller}-{request}"), 1).await;
            match answer.status {
                201 => {}
                _ => assert_try_again(&answer, "overloaded"),
            }
            overloaded.set(overloaded.get() + u32::from(answer.status == 503));
        }
    };
    let neighbour = async {
        let mut request = 0;
        while request < 30 || overloaded.get() < 100 {
            assert!(started.elapsed() < PATIENCE, "the flood was refused only {} times", overloaded.get());
            let answer = client.reserve("neighbour", &format!("request-{request}"), 1).await;
            assert_eq!(answer.status, 201, "{answer:?}");
            request += 1;
        }
        done.set(true);
    };
    // More callers than the mailbox holds: only the actor's own bound leaves room for its neighbour.
    futures_util::join!(join_all((0..100).map(flood)), neighbour);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_waited_past_its_deadline_is_dropped_undecided() {
    let setup = patient().with("server.retry_after_s", 7).with("reservations.default_capacity", 1_000_000);
    let slow = setup.clone().with("mailbox.deadline_ms", 20).with("batch.max", 1);
    let slow = slow.with("faults.commit_delay_ms", 50).start();
    let started = Instant::now();
    let mut answers = HashMap::new();
    let (mut round, mut dropped) = (0, 0);
    while dropped == 0 || dropped == answers.len() {
        assert!(started.elapsed() < PATIENCE, "{dropped} of {} were dropped", answers.len());
        let ids: Vec<_> = (0..8).map(|n| format!("request-{round}-{n}")).collect();
        let of_round = join_all(ids.iter().map(|id| slow.client.reserve("w", id, 1))).await;
        dropped += of_round.iter().filter(|answer| answer.status == 503).count();
        answers.extend(ids.into_iter().zip(of_round));
        round += 1;
    }
    let scrape = slow.admin.get("/metrics").await.text;
    let expired = sample(&scrape, "headcount_commands_expired_total{partition=\"0\"}");
    assert!(expired >= dropped as f64, "{expired} of {dropped}");
    slow.kill();

    let service = setup.start();
    for (id, answer) in answers {
        let decided = answer.status == 201;
        if !decided {
            assert_try_again(&answer, "overloaded");
        }
        let again = service.client.reserve("w", &id, 1).await;
        assert_eq!(again.json["replayed"], decided, "{id} was answered {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_come_in_time_is_an_outcome_unknown() {
    let setup = Setup::new().with("rollup.schedule", "0 0 0 1 1 *").with("storage.partitions", 1);
    let stuck = setup
        .clone()
        .with("faults.commit_delay_ms", 600_000)
        .with("server.request_timeout_ms", 200)
        .with("mailbox.deadline_ms", 100)
        .with("server.retry_after_s", 7)
        .start();
    assert_try_again(&stuck.client.reserve("w", "request-1", 1).await, "outcome_unknown");
    assert_try_again(&stuck.client.like("a", "u").await, "outcome_unknown");
    assert_try_again(&stuck.client.get("/likes/a?exact=true").await, "outcome_unknown");
    assert_eq!(stuck.client.get("/health").await.status, 200);
    stuck.kill();

    // Perhaps done: the same id again tells, and is done once.
    let service = setup.start();
    assert_eq!(service.client.reserve("w", "request-1", 1).await.status, 201);
    assert_eq!(service.client.status("w").await["acceptedSeats"], 1);
    assert_eq!(service.client.like("a", "u").await.status, 200);
    assert_eq!(service.client.exact("a").await, 1);
}

/// The value of one line of a scrape.
fn sample(scrape: &str, name: &str) -> f64 {
    let line = scrape.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{scrape}"));
    line.trim().parse().unwrap()
}
