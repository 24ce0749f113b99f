//! Live totals: the present one at once, then one event a run that changed it, the same bytes for everybody.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::Value;

use crate::rollup::runs;
use crate::rooms::reader::{Event, Reader};
use crate::rooms::{PATIENCE, metric};
use crate::service::{Service, Setup};

async fn listen(service: &Service, item: &str) -> Reader {
    Reader::open_at(service, &format!("/likes/{item}/events"), "").await
}

fn number(event: &Event, field: &str) -> i64 {
    event.json()[field].as_i64().unwrap_or_else(|| panic!("no {field} in {event:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_the_present_total_and_tells_what_changes() {
    let service = Setup::new().start();
    let client = &service.client;
    let path = "a%20%22post%22%2F%E6%97%A5%E6%9C%AC";
    client.like(path, "ada").await;
    assert_eq!(client.rolled_up(path).await, 1);
    let mut stream = listen(&service, path).await;
    let hint = stream.block().await;
    assert!(hint.contains("retry: "), "when to come back if it breaks: {hint}");
    let first = stream.event().await;
    let rolled_up = client.get(&format!("/likes/{path}")).await.json;
    assert_eq!((first.name.as_str(), number(&first, "total")), ("total", 1));
    assert_eq!(first.json()["item"], "a \"post\"/日本");
    assert_eq!(
        (first.id.clone(), &first.json()["version"]),
        (rolled_up["version"].to_string(), &rolled_up["version"])
    );
    let fields: Vec<String> = first.json().as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["asOf", "item", "total", "version"]);

    // What does not change the total is not told: other items' likes, and a like that is taken back and given again.
    client.like("other", "ada").await;
    runs(client, 2).await;
    client.like(path, "bob").await;
    let second = stream.event().await;
    assert_eq!((second.name.as_str(), number(&second, "total")), ("total", 2));
    assert!(number(&second, "version") > number(&first, "version"));
    assert!(number(&second, "asOf") > number(&first, "asOf"));
    let nobody_yet = listen(&service, "never-liked").await.event().await;
    assert_eq!((nobody_yet.name.as_str(), number(&nobody_yet, "total")), ("total", 0));
}

/// However many likes and pages a run has, an item's listener hears of it once, when it is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_one_event_however_many_likes_it_carries() {
    const LIKES: i64 = 400;
    let service = Setup::new()
        .with("rollup.page_items", 1)
        .with("rollup.gathered_items", 1)
        .with("likes.shards", 5)
        .start();
    let client = &service.client;
    let users: Vec<String> = (0..LIKES).map(|user| format!("user-{user}")).collect();
    // An item that is older and comes before the other one, where it changes, too: on a page of its own.
    join_all(users.iter().take(20).map(|user| client.like("other", user))).await;
    let mut stream = listen(&service, "post").await;
    let liking = async {
        for some in users.chunks(20) {
            join_all(some.iter().map(|user| client.like("post", user))).await;
            join_all(some.iter().take(2).map(|user| client.like("other", user))).await;
        }
    };
    let listening = async {
        let mut events = vec![stream.event().await];
        while number(events.last().unwrap(), "total") < LIKES {
            events.push(stream.event().await);
        }
        events
    };
    let (events, ()) = tokio::join!(listening, liking);
    for pair in events.windows(2) {
        assert!(number(&pair[0], "asOf") < number(&pair[1], "asOf"), "a run told twice: {pair:?}");
        assert!(number(&pair[0], "version") < number(&pair[1], "version"), "{pair:?}");
        assert!(number(&pair[0], "total") < number(&pair[1], "total"), "{pair:?}");
    }
}

/// Subscribe, one like, and the connection breaks in the middle of the event.
#[tokio::test(flavor = "multi_thread")]
async fn l23_a_client_that_comes_back_in_the_middle_of_an_event_ends_at_the_right_total() {
    let service = Setup::new().start();
    let client = &service.client;
    for cut in ["id: ", "event: total", "data: {\"item\":", "\"total\":"] {
        let item = format!("post-{}", cut.len());
        let mut stream = listen(&service, &item).await;
        let first = stream.event().await;
        assert_eq!(number(&first, "total"), 0);
        client.like(&item, "ada").await;
        stream.breaks_off_at(cut).await;
        let header = format!("last-event-id: {}\r\n", first.id);
        let mut again = Reader::open_at(&service, &format!("/likes/{item}/events"), &header).await;
        let begun = again.event().await;
        assert_eq!(number(&begun, "total"), 1, "absolute, and the newest: nothing is to be made up for");
        assert!(number(&begun, "version") > number(&first, "version"));
        client.like(&item, "ada").await;
        client.unlike(&item, "ada").await;
        let last = again.event().await;
        assert_eq!(number(&last, "total"), 0);
        assert!(number(&last, "version") > number(&begun, "version"));
    }
}

/// Commits are held up, so that no shard would answer, not even what it counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_listener_asks_no_shard() {
    let setup = Setup::new();
    let service = setup.start();
    service.client.like("post", "ada").await;
    assert_eq!(service.client.rolled_up("post").await, 1);
    assert!(service.stop().success());
    let held_up = setup.clone().with("faults.commit_delay_ms", 600_000);
    let held_up = held_up.with("server.request_timeout_ms", 300).with("mailbox.deadline_ms", 200);
    let service = held_up.start();
    // From here on a partition is busy with its first commit.
    let _refused = service.client.like("post", "bob").await;
    assert_eq!(service.client.get("/likes/post?exact=true").await.status, 503);
    for item in ["post", "post", "other"] {
        let first = listen(&service, item).await.event().await;
        assert_eq!(number(&first, "total"), i64::from(item == "post"));
    }
}

/// One event is made for all of them, by the run that changed the total; and one at most a run for those who come.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_listeners_are_served_from_one_encoding() {
    const LISTENERS: usize = 3_000;
    rlimit::increase_nofile_limit(u64::MAX).unwrap();
    let service = Setup::new()
        .with("server.max_connections", 1_000_000)
        .with("likes.max_event_streams", 1_000_000)
        .start();
    let client = &service.client;
    let encoded = async || metric(&service, "headcount_likes_events_encoded_total").await;
    let finished = async || metric(&service, "headcount_rollup_seconds_count").await;
    let runs_before = finished().await;
    let mut streams = Vec::with_capacity(LISTENERS);
    while streams.len() < LISTENERS {
        streams.extend(join_all((0..50).map(|_| listen(&service, "post"))).await);
    }
    let firsts = join_all(streams.iter_mut().map(Reader::event)).await;
    assert!(firsts.iter().all(|first| number(first, "total") == 0));
    let (made, runs) = (encoded().await, finished().await - runs_before);
    // A run is over a moment before it is counted.
    assert!((1.0..=runs + 2.0).contains(&made), "{made} events were made in {runs} runs");
    assert_eq!(metric(&service, "headcount_likes_listeners").await, LISTENERS as f64);
    assert_eq!(metric(&service, "headcount_likes_events_total").await, LISTENERS as f64);

    client.like("post", "ada").await;
    let events = join_all(streams.iter_mut().map(Reader::event)).await;
    let different: BTreeSet<(&str, &str)> = events.iter().map(|e| (e.id.as_str(), e.data.as_str())).collect();
    assert_eq!(different.len(), 1, "{different:?}");
    assert_eq!(number(&events[0], "total"), 1);
    assert_eq!(encoded().await, made + 1.0);
    assert_eq!(metric(&service, "headcount_likes_events_total").await, 2.0 * LISTENERS as f64);

    // Half of them stop reading, and nobody else notices.
    let mut reading = streams.split_off(LISTENERS / 2);
    for n in 0..3 {
        client.like("post", &format!("user-{n}")).await;
        for event in join_all(reading.iter_mut().map(Reader::event)).await {
            assert_eq!(number(&event, "total"), 2 + n);
        }
    }
    drop((streams, reading));
    listeners_are(&service, 0.0).await;
}

async fn listeners_are(service: &Service, expected: f64) {
    let wait = async {
        while metric(service, "headcount_likes_listeners").await != expected {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("they are still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_told_and_the_stream_goes_on() {
    let service = Setup::new().start();
    let client = &service.client;
    for user in ["ada", "bob"] {
        client.like("post", user).await;
    }
    assert_eq!(client.rolled_up("post").await, 2);
    let mut stream = listen(&service, "post").await;
    let first = stream.event().await;
    assert_eq!(number(&first, "total"), 2);
    assert_eq!(client.delete("/likes/post").await.json["deleted"], true);
    let deleted = stream.event().await;
    assert_eq!((deleted.name.as_str(), number(&deleted, "total")), ("deleted", 0));
    assert!(number(&deleted, "version") > number(&first, "version"));
    let newcomer = listen(&service, "post").await.event().await;
    assert_eq!((newcomer.name.as_str(), number(&newcomer, "total")), ("total", 0));
    // What was never there is not deleted.
    assert_eq!(client.delete("/likes/post").await.json["deleted"], false);
    client.like("post", "eve").await;
    let again = stream.event().await;
    assert_eq!((again.name.as_str(), number(&again, "total")), ("total", 1));
    assert!(number(&again, "version") > number(&deleted, "version"));
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_have_a_limit_a_keep_alive_and_an_orderly_end() {
    let setup = Setup::new()
        .with("likes.max_event_streams", 2)
        .with("likes.event_keepalive_ms", 10)
        .with("rooms.retry_min_ms", 7_000)
        .with("rooms.retry_max_ms", 9_000);
    let mut service = setup.start();
    let mut one = listen(&service, "post").await;
    let two = listen(&service, "other").await;
    let refused = service.client.get("/likes/post/events").await;
    assert_eq!((refused.status, refused.error()), (503, "overloaded"));
    assert!(!refused.header("retry-after").is_empty());
    assert!(refused.text.contains("likes.max_event_streams"));
    assert_eq!(service.client.get("/likes/%2E%2E/events").await.error(), "invalid_item");
    two.ended_early();
    listeners_are(&service, 1.0).await;
    assert_eq!(listen(&service, "other").await.event().await.name, "total");

    assert_eq!(one.event().await.name, "total");
    let silence = one.block().await;
    assert!(silence.trim_end().ends_with(':'), "a comment while nothing happens: {silence:?}");
    service.send_sigterm();
    let end = one.event_of("restart").await;
    let retry_ms = number(&end, "retryMs");
    assert!((7_000..=9_000).contains(&retry_ms), "{end:?}");
    one.ends().await;
    assert!(service.wait().success());
}

/// What a listener is told last is what a reader reads, whatever happened on the way.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_told_last_is_what_is_read() {
    const ITEMS: usize = 6;
    let service = Setup::new().with("rollup.page_items", 1).with("rollup.gathered_items", 1).start();
    let client = &service.client;
    let open = async |item| listen(&service, &format!("post-{item}")).await;
    let mut streams = join_all((0..ITEMS).map(open)).await;
    for n in 0..60 {
        let item = format!("post-{}", n % ITEMS);
        match n % 5 {
            4 => client.unlike(&item, &format!("user-{}", n.saturating_sub(12))).await,
            3 if n % 15 == 3 => client.delete(&format!("/likes/{item}")).await,
            _ => client.like(&item, &format!("user-{n}")).await,
        };
    }
    for (item, stream) in streams.iter_mut().enumerate() {
        let item = format!("post-{item}");
        // A run of its own, so that there is something to end with.
        client.rolled_up(&item).await;
        client.like(&item, "last").await;
        let total = client.rolled_up(&item).await;
        let version = &client.get(&format!("/likes/{item}")).await.json["version"];
        let mut last = stream.event().await.json();
        while &last["version"] != version {
            let event = stream.event().await.json();
            assert!(event["version"].as_i64() >= last["version"].as_i64(), "{event} after {last}");
            last = event;
        }
        assert_eq!((&last["total"], client.exact(&item).await), (&Value::from(total), total));
    }
}
