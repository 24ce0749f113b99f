//! What breaks, fills up or stops in the middle of a stream.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{Stream, like, send, unlike};
use crate::history::Rng;
use crate::service::{Service, Setup};

/// A like of each user's, all of one item.
fn likes(users: std::ops::Range<usize>) -> Vec<String> {
    users.map(|user| like("post", &format!("user-{user}"))).collect()
}

/// Writes lines beside, until all are written or nobody takes them any more, and reads so many outcomes.
async fn pour(stream: Stream, lines: Vec<String>, enough: usize) -> (Vec<Value>, JoinHandle<()>) {
    let Stream { mut lines_in, mut outcomes } = stream;
    let writing = tokio::spawn(async move {
        for line in lines {
            if lines_in.send(&format!("{line}\n")).await.is_err() {
                return;
            }
        }
        let _broken = lines_in.end().await;
    });
    let mut told = Vec::new();
    while told.len() < enough
        && let Some(outcome) = outcomes.next().await
    {
        told.push(outcome);
    }
    (told, writing)
}

/// The client goes away, again and again, without having read what it sent; what it sends again then is what has no
/// outcome.
#[tokio::test(flavor = "multi_thread")]
async fn no_line_is_lost_or_doubled_when_the_connection_breaks() {
    let setup = Setup::new();
    let service = setup.start();
    let mut rng = Rng::new(Rng::seed());
    println!("{rng}");
    let lines = likes(0..3_000);
    let mut answered = 0;
    let mut changed = 0;
    while answered < lines.len() {
        let enough = 1 + usize::try_from(rng.below(700)).unwrap();
        let stream = Stream::open(&service).await;
        let (told, writing) = pour(stream, lines[answered..].to_vec(), enough).await;
        writing.abort();
        for (n, outcome) in (1..).zip(&told) {
            assert_eq!((&outcome["line"], &outcome["status"]), (&json!(n), &json!(200)), "{rng}");
            assert_eq!(outcome["user"], format!("user-{}", answered + n - 1), "{rng}");
            changed += usize::from(outcome["changed"] == true);
        }
        answered += told.len();
    }
    assert!(changed <= lines.len(), "{rng}");
    assert_eq!(service.client.exact("post").await, 3_000, "{rng}");
    let again = send(&service.client, &lines).await;
    assert!(again.iter().all(|outcome| outcome["changed"] == false), "{rng}");
    assert!(service.stop().success());
    setup.assert_verified();
}

/// One pair is one stream's, so that its last answered state is known.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_answered_outlives_a_kill_nine() {
    const STREAMS: usize = 3;
    let setup = Setup::new().with("sqlite.pending_rows", 40).with("sqlite.wal_autocheckpoint_pages", 100);
    let mut rng = Rng::new(Rng::seed());
    println!("{rng}");
    // What each pair was last known to be, and what it may be instead since no answer came.
    let mut known: BTreeMap<(usize, usize), (bool, Option<bool>)> = BTreeMap::new();
    for round in 0..12 {
        let service = setup.start();
        for stream in 0..STREAMS {
            check(&service, stream, &mut known, &format!("round {round}, {rng}")).await;
        }
        let plans: Vec<Vec<(usize, bool)>> = (0..STREAMS)
            .map(|_| {
                (0..20_000).map(|_| (usize::try_from(rng.below(50)).unwrap(), rng.below(2) == 0)).collect()
            })
            .collect();
        let enough = 50 + usize::try_from(rng.below(1_500)).unwrap();
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            streams.push(Stream::open(&service).await);
        }
        let pouring = streams.into_iter().zip(&plans).enumerate().map(|(number, (stream, plan))| {
            let item = format!("post-{number}");
            let line = |(user, liked): &(usize, bool)| {
                let user = format!("user-{user}");
                if *liked { like(&item, &user) } else { unlike(&item, &user) }
            };
            pour(stream, plan.iter().map(line).collect(), enough)
        });
        // The kill falls while what nobody has read yet is on its way.
        let told: Vec<usize> = join_all(pouring).await.into_iter().map(|(told, _)| told.len()).collect();
        service.kill();
        for (stream, (plan, told)) in plans.iter().zip(told).enumerate() {
            for (n, (user, liked)) in plan.iter().enumerate() {
                let state = known.entry((stream, *user)).or_insert((false, None));
                match n < told {
                    true => *state = (*liked, None),
                    // Perhaps decided, and if so, in order: any of what was wanted may be the last.
                    false if *liked != state.0 => state.1 = Some(*liked),
                    false => {}
                }
            }
        }
    }
    let service = setup.start();
    for stream in 0..STREAMS {
        check(&service, stream, &mut known, &rng.to_string()).await;
    }
    assert!(service.stop().success());
    setup.assert_verified();
}

/// Looks every pair up; what the service says is what is known from now on.
async fn check(
    service: &Service,
    stream: usize,
    known: &mut BTreeMap<(usize, usize), (bool, Option<bool>)>,
    context: &str,
) {
    let mut members = 0;
    for user in 0..50 {
        let answer = service.client.get(&format!("/likes/post-{stream}/users/user-{user}")).await;
        let liked = answer.json["liked"].as_bool().unwrap();
        let state = known.entry((stream, user)).or_insert((false, None));
        assert!(
            liked == state.0 || state.1 == Some(liked),
            "stream {stream}, user {user}: {state:?}, {liked}, {context}"
        );
        *state = (liked, None);
        members += i64::from(liked);
    }
    assert_eq!(service.client.exact(&format!("post-{stream}")).await, members, "{context}");
}

/// There is room for one command, and eight streams bring theirs.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_waited_for() {
    let setup = Setup::new()
        .with("mailbox.capacity", 1)
        .with("mailbox.actor_capacity", 1)
        .with("bulk.window_lines", 2)
        .with("storage.partitions", 1)
        .with("faults.commit_delay_ms", 2);
    let service = setup.start();
    let streams = (0..8).map(|stream| {
        let lines: Vec<String> = (0..40).map(|n| like("post", &format!("user-{stream}-{n}"))).collect();
        let client = service.client.clone();
        async move { send(&client, &lines).await }
    });
    for outcomes in join_all(streams).await {
        assert_eq!(outcomes.len(), 40);
        assert!(outcomes.iter().all(|outcome| outcome["status"] == 200), "{outcomes:?}");
    }
    let metrics = service.admin.get("/metrics").await.text;
    assert!(!metrics.contains("headcount_overloads_total{partition=\"0\"} 0\n"), "the queue was never full");
    let total = loop {
        // The roll-up and this read want the one place, too.
        let answer = service.client.get("/likes/post?exact=true").await;
        if answer.status == 200 {
            break answer.json["total"].as_i64().unwrap();
        }
    };
    assert_eq!(total, 320);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_fails_is_a_problem_of_its_lines_alone() {
    let setup = Setup::new().with("faults.fail_commit_every", 4).with("bulk.window_lines", 8);
    let service = setup.start();
    let mut left = likes(0..400);
    let mut failed = 0;
    for _ in 0..200 {
        let outcomes = send(&service.client, &left).await;
        assert_eq!(outcomes.len(), left.len(), "the stream goes on");
        let words: Vec<&str> =
            outcomes.iter().map(|outcome| outcome["error"].as_str().unwrap_or_default()).collect();
        assert!(words.iter().all(|word| ["", "unavailable", "outcome_unknown"].contains(word)), "{words:?}");
        let not_done = left.into_iter().zip(&words).filter(|(_, word)| !word.is_empty());
        left = not_done.map(|(line, _)| line).collect();
        failed += left.len();
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(left.is_empty() && failed > 0, "{left:?}, {failed}");
    drop(service);
    let setup = setup.with("faults.fail_commit_every", 0);
    let service = setup.start();
    assert_eq!(service.client.exact("post").await, 400);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stops_says_so_and_what_it_answered_is_there() {
    let setup = Setup::new();
    let mut service = setup.start();
    let mut stream = Stream::open(&service).await;
    assert_eq!(stream.ask(&like("post", "ada")).await["changed"], true);
    service.send_sigterm();
    let rest = stream.outcomes.rest().await;
    assert_eq!(
        (rest.len(), &rest[0]["line"], &rest[0]["error"]),
        (1, &json!(2), &json!("unavailable")),
        "{rest:?}"
    );
    assert!(service.wait().success());
    let service = setup.start();
    assert_eq!(service.client.exact("post").await, 1);
}

/// The sockets on the way take some megabytes; what is above them waits with the client.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_reads_no_outcomes_is_read_no_lines() {
    const MANY: usize = 64 << 20;
    let service = Setup::new().with("bulk.window_lines", 64).start();
    let Stream { mut lines_in, mut outcomes } = Stream::open(&service).await;
    let (mut sent, mut bytes) = (0, 0);
    let mut lines = String::new();
    let mut unsent = String::new();
    while bytes < MANY {
        lines.clear();
        for n in 0..500 {
            lines += &format!("{}\n", like("post", &format!("user-{}", (sent + n) % 1_000)));
        }
        // As long as somebody takes it, it is taken sooner; on a slow machine it is found out later.
        match tokio::time::timeout(Duration::from_secs(3), lines_in.send(&lines)).await {
            Ok(written) => written.unwrap(),
            Err(_) => {
                unsent = lines.clone();
                break;
            }
        }
        sent += 500;
        bytes += lines.len();
    }
    assert!(!unsent.is_empty(), "{sent} lines were taken and not one outcome was read");
    // Everything that was sent whole has its outcome once somebody reads.
    let mut expected = 1;
    while expected <= sent {
        let outcome = outcomes.next().await.unwrap();
        assert_eq!((&outcome["line"], &outcome["status"]), (&json!(expected), &json!(200)));
        expected += 1;
    }
    assert_eq!(service.client.exact("post").await, 1_000);
}
