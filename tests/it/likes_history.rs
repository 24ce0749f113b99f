//! What became of totals: buckets of time that add up, whatever happens to the service on the way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;

use crate::client::Client;
use crate::files;
use crate::rooms::{later, timed};
use crate::service::{Service, Setup, eventually};
use crate::time;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Goes on to the first minute of the next hour, or day, so that the rest of a test lies in one.
pub async fn a_new(step_ms: i64, service: &Service) -> i64 {
    let now = time::now_ms(&service.client).await;
    let wait = step_ms - now % step_ms + MINUTE_MS;
    later(service, u32::try_from(wait).unwrap()).await;
    now + wait
}

async fn history(client: &Client, item: &str, query: &str) -> Value {
    let answer = client.get(&format!("/likes/{item}/history?{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json
}

/// When, gained, total.
fn buckets(history: &Value) -> Vec<(i64, i64, i64)> {
    let number = |bucket: &Value, field: &str| bucket[field].as_i64().unwrap();
    let of = |bucket: &Value| (number(bucket, "at"), number(bucket, "gained"), number(bucket, "total"));
    history["buckets"].as_array().unwrap().iter().map(of).collect()
}

/// Every bucket is there, each begins where the last one ends, and totals carry what is gained.
fn assert_whole(history: &Value, step_ms: i64) {
    let (from, to) = (history["from"].as_i64().unwrap(), history["to"].as_i64().unwrap());
    let buckets = buckets(history);
    assert_eq!((from % step_ms, to - from), (0, buckets.len() as i64 * step_ms), "{history}");
    for (n, (at, _, _)) in (0..).zip(&buckets) {
        assert_eq!(*at, from + n * step_ms);
    }
    for pair in buckets.windows(2) {
        assert_eq!(pair[0].2 + pair[1].1, pair[1].2, "{pair:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bucket_is_shown_and_totals_are_carried() {
    let service = timed().start();
    let client = &service.client;
    let at = a_new(HOUR_MS, &service).await;
    let hour = at - at % HOUR_MS;
    for user in ["ada", "bob", "eve"] {
        client.like("post", user).await;
    }
    assert_eq!(client.rolled_up("post").await, 3);
    later(&service, 2 * HOUR_MS as u32).await;
    client.like("post", "joe").await;
    assert_eq!(client.rolled_up("post").await, 4);
    later(&service, HOUR_MS as u32).await;
    client.unlike("post", "ada").await;
    client.unlike("post", "bob").await;
    assert_eq!(client.rolled_up("post").await, 2);
    later(&service, HOUR_MS as u32).await;
    client.rolled_up("post").await;

    let answer = history(client, "post", "step=hour").await;
    assert_eq!((&answer["item"], &answer["step"]), (&Value::from("post"), &Value::from("hour")));
    assert!(answer["ageMs"].as_i64().unwrap() >= 0 && answer["asOf"].as_i64().unwrap() >= hour + 4 * HOUR_MS);
    assert_whole(&answer, HOUR_MS);
    let shown = buckets(&answer);
    assert_eq!(shown.len(), 24);
    assert!(
        shown[..19].iter().all(|(_, gained, total)| (*gained, *total) == (0, 0)),
        "before its first like"
    );
    let expected = [(3, 3), (0, 3), (1, 4), (-2, 2), (0, 2)];
    assert_eq!(shown[19..].iter().map(|(_, gained, total)| (*gained, *total)).collect::<Vec<_>>(), expected);
    assert_eq!(shown[19].0, hour);

    // Some of it: the total that it begins with is carried into it.
    let some =
        history(client, "post", &format!("step=hour&from={}&to={}", hour + HOUR_MS + 1, hour + 3 * HOUR_MS))
            .await;
    assert_eq!(buckets(&some), [(hour + HOUR_MS, 0, 3), (hour + 2 * HOUR_MS, 1, 4)]);
    // Nothing that has not begun.
    let rest = history(client, "post", &format!("step=hour&from={}", hour + 4 * HOUR_MS)).await;
    assert_eq!(buckets(&rest), [(hour + 4 * HOUR_MS, 0, 2)]);
    let future = history(client, "post", &format!("step=day&from={}", at + 30 * DAY_MS)).await;
    assert_eq!(buckets(&future), []);

    for (step, step_ms, usual) in [("minute", MINUTE_MS, 60), ("hour", HOUR_MS, 24), ("day", DAY_MS, 30)] {
        let answer = history(client, "post", &format!("step={step}")).await;
        assert_whole(&answer, step_ms);
        assert_eq!(buckets(&answer).len(), usual);
        let all = history(client, "post", &format!("step={step}&from={hour}")).await;
        assert_whole(&all, step_ms);
        assert_eq!(buckets(&all).iter().map(|(_, gained, _)| gained).sum::<i64>(), 2, "{step}");
        assert_eq!(buckets(&all).last().unwrap().2, 2, "{step}");
    }
    let never = history(client, "never-liked", "step=hour").await;
    assert!(buckets(&never).iter().all(|(_, gained, total)| (*gained, *total) == (0, 0)));
    assert!(service.stop().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_none_is_refused() {
    let service = Setup::new().with("likes.max_history_buckets", 30).start();
    let client = &service.client;
    client.rolled_up("post").await;
    let now = time::now_ms(client).await;
    let (hours, days) = (now - 30 * HOUR_MS, now - 28 * DAY_MS);
    for (query, error, field) in [
        ("".to_owned(), "invalid_query", "step"),
        ("step=week".to_owned(), "invalid_query", "step"),
        ("step=hour&step=hour".to_owned(), "invalid_query", "step"),
        ("step=hour&from=yesterday".to_owned(), "invalid_query", "from"),
        ("step=hour&from=-1".to_owned(), "invalid_query", "from"),
        ("step=hour&from=%2B1".to_owned(), "invalid_query", "from"),
        ("step=hour&to=99999999999999999999".to_owned(), "invalid_query", "to"),
        ("step=hour&from=7&to=7".to_owned(), "invalid_query", "from"),
        ("step=minute".to_owned(), "too_many_buckets", "from"),
        (format!("step=hour&from={hours}"), "too_many_buckets", "from"),
    ] {
        let answer = client.get(&format!("/likes/post/history?{query}")).await;
        let refused = (answer.status, answer.error(), answer.json["field"].as_str().unwrap());
        assert_eq!(refused, (400, error, field), "{query}: {answer:?}");
    }
    assert_eq!(client.get("/likes/%2E/history?step=hour").await.error(), "invalid_item");
    assert_eq!(client.get(&format!("/likes/post/history?step=day&from={days}")).await.status, 200);
    assert_eq!(
        client.get(&format!("/likes/post/history?step=hour&from={}", hours + 2 * HOUR_MS)).await.status,
        200
    );
}

/// Hours that are known to the minute, hours, and days.
fn kept(setup: &Setup, detail: i64) -> i64 {
    let sql = format!("SELECT count(*) FROM history WHERE item = 'post' AND detail = {detail}");
    files::number(&setup.data_dir(), "summary.db", &sql)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_old_goes_and_the_rest_says_the_same() {
    let setup = timed().with("rollup.history_minutes", 120).with("rollup.history_hours", 192);
    let setup = setup.with("rollup.history_days", 3);
    let service = setup.start();
    let client = &service.client;
    a_new(DAY_MS, &service).await;
    let mut total = 0;
    for _ in 0..3 {
        // Minutes apart, so that there is something to prune.
        for _ in 0..5 {
            total += 1;
            client.like("post", &format!("user-{total}")).await;
            assert_eq!(client.rolled_up("post").await, total);
            later(&service, 61_000).await;
        }
        later(&service, 3 * HOUR_MS as u32).await;
    }
    total += 1;
    client.like("post", "last").await;
    assert_eq!(client.rolled_up("post").await, total);
    eventually("minutes go", || [1, 2, 3].map(|detail| kept(&setup, detail)) == [1, 3, 0]);
    let minutes = history(client, "post", "step=minute&from=0").await;
    assert_eq!(buckets(&minutes).len(), 120, "no more than is kept, however far back it is asked for");
    assert_eq!(buckets(&minutes)[0].2, total - 1, "what went before is in the total that it begins with");
    assert_whole(&minutes, MINUTE_MS);
    let hours = history(client, "post", "step=hour").await;
    assert_eq!(buckets(&hours).iter().map(|(_, gained, _)| gained).sum::<i64>(), total);
    setup.assert_verified();

    later(&service, 9 * DAY_MS as u32).await;
    client.rolled_up("post").await;
    eventually("all of it goes", || [1, 2, 3].map(|detail| kept(&setup, detail)) == [0, 0, 0]);
    assert_eq!(files::number(&setup.data_dir(), "summary.db", "SELECT count(*) FROM trending"), 0);
    let days = history(client, "post", "step=day&from=0").await;
    assert_eq!(
        buckets(&days).iter().map(|(_, gained, total)| (*gained, *total)).collect::<Vec<_>>(),
        [(0, total); 3]
    );
    client.unlike("post", "last").await;
    assert_eq!(client.rolled_up("post").await, total - 1);
    let days = history(client, "post", "step=day").await;
    assert_eq!(buckets(&days).last().map(|(_, gained, total)| (*gained, *total)), Some((-1, total - 1)));
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_item_has_no_past() {
    let service = timed().start();
    let client = &service.client;
    a_new(HOUR_MS, &service).await;
    for user in 0..9 {
        client.like("post", &format!("user-{user}")).await;
    }
    assert_eq!(client.rolled_up("post").await, 9);
    later(&service, HOUR_MS as u32).await;
    client.like("post", "ada").await;
    assert_eq!(client.rolled_up("post").await, 10);
    later(&service, HOUR_MS as u32).await;
    client.delete("/likes/post").await;
    let nothing = history(client, "post", "step=hour").await;
    assert!(buckets(&nothing).iter().all(|(_, gained, total)| (*gained, *total) == (0, 0)), "{nothing}");
    client.like("post", "ada").await;
    assert_eq!(client.rolled_up("post").await, 1);
    let anew = history(client, "post", "step=hour").await;
    let told: Vec<_> = buckets(&anew).into_iter().filter(|(_, gained, _)| *gained != 0).collect();
    assert_eq!(told.len(), 1, "{anew}");
    assert_eq!((told[0].1, told[0].2), (1, 1));
    assert!(service.stop().success());
}

/// Killed again and again between two pages of a run, which is then repeated: what was gained adds up to what there
/// is, item by item and step by step.
#[tokio::test(flavor = "multi_thread")]
async fn l15_history_adds_up_after_kills_in_the_roll_up() {
    const ITEMS: usize = 20;
    let setup = Setup::new()
        .with("rollup.page_items", 1)
        .with("rollup.gathered_items", 1)
        .with("likes.shards", 4)
        .with("log.level", "error");
    for life in 0..15_u64 {
        let service = setup.start();
        let (client, stop) = (service.client.clone(), AtomicBool::new(false));
        let writer = async |writer: usize| {
            for n in 0.. {
                let path = format!("/likes/post-{}/users/{life}-{writer}-{n}", (n * 7 + writer) % ITEMS);
                let method = if n % 9 == 8 { hyper::Method::DELETE } else { hyper::Method::PUT };
                if stop.load(Ordering::Acquire) || client.try_send(method, &path, "").await.is_err() {
                    return;
                }
            }
        };
        let killing = async {
            tokio::time::sleep(Duration::from_micros(life * 7919 % 60_000)).await;
            service.kill();
            stop.store(true, Ordering::Release);
        };
        tokio::join!(join_all((0..6).map(writer)), killing);
    }
    let service = setup.start();
    let client = &service.client;
    client.rolled_up("any").await;
    for item in 0..ITEMS {
        let item = format!("post-{item}");
        let exact = client.exact(&item).await;
        for step in ["minute", "hour", "day"] {
            let history = history(client, &item, &format!("step={step}")).await;
            let gained: i64 = buckets(&history).iter().map(|(_, gained, _)| gained).sum();
            assert_eq!((gained, buckets(&history).last().unwrap().2), (exact, exact), "{item} by {step}");
        }
    }
    let top = client.get("/trending?window=1h").await.json;
    for ranked in top["items"].as_array().unwrap() {
        assert_eq!(ranked["gained"], client.exact(ranked["item"].as_str().unwrap()).await, "{ranked}");
    }
    assert!(service.stop().success());
    setup.assert_verified();
}

/// The machine's clock lies hours behind what is stored: the history goes on from there, and so it does again after
/// the next start.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_set_back_turns_no_bucket_back() {
    let setup = timed();
    let service = setup.start();
    let begun = a_new(HOUR_MS, &service).await;
    service.client.like("post", "ada").await;
    assert_eq!(service.client.rolled_up("post").await, 1);
    let service = time::passes(&setup, service, 3 * HOUR_MS);
    service.client.like("post", "bob").await;
    assert_eq!(service.client.rolled_up("post").await, 2);
    let before = history(&service.client, "post", "step=hour").await;
    assert!(service.stop().success());

    let service = setup.clone().with("clock.allow_step_back", true).start();
    service.client.like("post", "eve").await;
    assert_eq!(service.client.rolled_up("post").await, 3);
    let after = history(&service.client, "post", "step=hour").await;
    assert!(after["asOf"].as_i64() >= before["asOf"].as_i64(), "{before} {after}");
    assert_whole(&after, HOUR_MS);
    let told: Vec<_> = buckets(&after).into_iter().filter(|(_, gained, _)| *gained != 0).collect();
    assert_eq!(told.iter().map(|(_, gained, _)| gained).sum::<i64>(), 3);
    assert!(told.first().unwrap().0 >= begun - HOUR_MS && told.len() >= 2, "{told:?}");
    assert!(service.stop().success());
    setup.assert_verified();
}
