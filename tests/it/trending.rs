//! What gains most: exact, in a stated order, in windows that move on.

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use crate::client::Client;
use crate::files;
use crate::likes_history::a_new;
use crate::rooms::{later, timed};
use crate::service::{Setup, eventually};

const HOUR_MS: u32 = 3_600_000;

async fn trending(client: &Client, query: &str) -> Value {
    let answer = client.get(&format!("/trending?{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json
}

/// Item, gained, total.
async fn top(client: &Client, window: &str) -> Vec<(String, i64, i64)> {
    let answer = trending(client, &format!("window={window}")).await;
    assert_eq!(answer["window"], window);
    let ranked = |ranked: &Value| {
        let total = ranked["total"].as_i64().unwrap();
        (ranked["item"].as_str().unwrap().to_owned(), ranked["gained"].as_i64().unwrap_or(total), total)
    };
    answer["items"].as_array().unwrap().iter().map(ranked).collect()
}

fn ranked(expected: &[(&str, i64, i64)]) -> Vec<(String, i64, i64)> {
    expected.iter().map(|(item, gained, total)| ((*item).to_owned(), *gained, *total)).collect()
}

async fn like(client: &Client, item: &str, users: std::ops::Range<u32>) {
    for user in users {
        assert_eq!(client.like(item, &format!("user-{user}")).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_gains_come_first_and_equal_ones_by_name() {
    let service = Setup::new().with("likes.max_trending", 5).start();
    let client = &service.client;
    for (item, likes) in [("c", 2), ("a", 2), ("b", 5), ("d", 1), ("日本", 2), ("e", 1)] {
        like(client, item, 0..likes).await;
    }
    client.unlike("e", "user-0").await;
    client.rolled_up("any").await;
    let expected = ranked(&[("b", 5, 5), ("a", 2, 2), ("c", 2, 2), ("日本", 2, 2), ("d", 1, 1)]);
    for window in ["1h", "24h", "7d", "all"] {
        assert_eq!(top(client, window).await, expected, "{window}: an item without a gain is not in it");
    }
    let three = trending(client, "limit=3").await;
    assert_eq!((&three["window"], three["items"].as_array().unwrap().len()), (&json!("24h"), 3));
    let (as_of, from) = (three["asOf"].as_i64().unwrap(), three["from"].as_i64().unwrap());
    assert_eq!((from % 3_600_000, (as_of - from) / 3_600_000), (0, 24));
    assert!(three["ageMs"].as_i64().unwrap() >= 0);
    let all = trending(client, "window=all").await;
    assert_eq!((all.get("from"), all["items"][0].get("gained")), (None, None));

    like(client, "d", 1..9).await;
    client.rolled_up("any").await;
    assert_eq!(top(client, "1h").await[0], ("d".to_owned(), 9, 9));
    assert_eq!(top(client, "all").await[0], ("d".to_owned(), 9, 9));
    for user in 0..9 {
        client.unlike("d", &format!("user-{user}")).await;
    }
    client.rolled_up("any").await;
    assert_eq!(top(client, "7d").await, expected[..4]);
    assert_eq!(top(client, "all").await, expected[..4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_moves_on() {
    let setup = timed();
    let service = setup.start();
    let client = &service.client;
    a_new(i64::from(HOUR_MS), &service).await;
    like(client, "old", 0..5).await;
    client.rolled_up("any").await;
    later(&service, 30 * 60_000).await;
    like(client, "old", 5..6).await;
    like(client, "new", 0..2).await;
    client.rolled_up("any").await;
    assert_eq!(top(client, "1h").await, ranked(&[("old", 6, 6), ("new", 2, 2)]));
    // The first five are an hour old, the sixth is not.
    later(&service, 40 * 60_000).await;
    client.rolled_up("any").await;
    let moved_on = ranked(&[("new", 2, 2), ("old", 1, 6)]);
    eventually_top(client, "1h", &moved_on).await;
    assert_eq!(top(client, "24h").await, ranked(&[("old", 6, 6), ("new", 2, 2)]));
    // Likes taken back count against what came in the window, and no further.
    client.unlike("old", "user-0").await;
    client.unlike("old", "user-1").await;
    client.rolled_up("any").await;
    assert_eq!(top(client, "1h").await, ranked(&[("new", 2, 2)]));
    assert_eq!(top(client, "24h").await, ranked(&[("old", 4, 4), ("new", 2, 2)]));
    later(&service, HOUR_MS + 1).await;
    client.rolled_up("any").await;
    eventually_top(client, "1h", &[]).await;
    let service = {
        assert!(service.stop().success());
        setup.assert_verified();
        // The time that a test makes is gone with the process. What is stored lies ahead, and time goes on from there.
        setup.clone().with("clock.allow_step_back", true).start()
    };
    let client = &service.client;
    assert_eq!(top(client, "24h").await, ranked(&[("old", 4, 4), ("new", 2, 2)]));
    later(&service, 26 * HOUR_MS).await;
    client.rolled_up("any").await;
    eventually_top(client, "24h", &[]).await;
    assert_eq!(top(client, "7d").await, ranked(&[("old", 4, 4), ("new", 2, 2)]));
    later(&service, 7 * 24 * HOUR_MS).await;
    client.rolled_up("any").await;
    eventually_top(client, "7d", &[]).await;
    assert_eq!(top(client, "all").await, ranked(&[("old", 4, 4), ("new", 2, 2)]));
    eventually("nothing is kept of what no window counts", || {
        files::number(&setup.data_dir(), "summary.db", "SELECT count(*) FROM trending") == 0
    });
}

/// Windows move on just after a run.
async fn eventually_top(client: &Client, window: &str, expected: &[(String, i64, i64)]) {
    let wait = async {
        while top(client, window).await != expected {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(crate::rooms::PATIENCE, wait).await.is_err() {
        panic!("{window} is {:?}, not {expected:?}", top(client, window).await);
    }
}

/// A share of a run at a time: more items than that leave the window at once.
#[tokio::test(flavor = "multi_thread")]
async fn many_items_leave_a_window_in_shares() {
    const ITEMS: usize = 1_500;
    let service = timed().with("likes.max_trending", 10_000).start();
    let client = &service.client;
    let like = |item| async move { client.like(&format!("item-{item:04}"), "ada").await.status };
    let statuses: Vec<u16> = stream::iter(0..ITEMS).map(like).buffer_unordered(100).collect().await;
    assert!(statuses.iter().all(|status| *status == 200));
    client.rolled_up("any").await;
    assert_eq!(top(client, "1h").await.len(), ITEMS);
    later(&service, 2 * HOUR_MS).await;
    client.like("item-0007", "bob").await;
    client.rolled_up("any").await;
    eventually_top(client, "1h", &ranked(&[("item-0007", 1, 2)])).await;
    assert_eq!(top(client, "24h").await.len(), ITEMS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_item_is_in_no_ranking() {
    let service = Setup::new().start();
    let client = &service.client;
    like(client, "gone", 0..3).await;
    like(client, "stays", 0..1).await;
    client.rolled_up("any").await;
    client.delete("/likes/gone").await;
    for window in ["1h", "24h", "7d", "all"] {
        assert_eq!(top(client, window).await, ranked(&[("stays", 1, 1)]), "{window}");
    }
    like(client, "gone", 0..2).await;
    client.rolled_up("any").await;
    assert_eq!(top(client, "7d").await, ranked(&[("gone", 2, 2), ("stays", 1, 1)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_none_is_refused() {
    let service = Setup::new().start();
    for (query, field) in [
        ("window=2h", "window"),
        ("window=", "window"),
        ("window=1h&window=1h", "window"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=ten", "limit"),
    ] {
        let answer = service.client.get(&format!("/trending?{query}")).await;
        assert_eq!(
            (answer.status, answer.error(), &answer.json["field"]),
            (400, "invalid_query", &json!(field)),
            "{query}"
        );
    }
    let nothing = trending(&service.client, "window=all").await;
    assert_eq!(nothing["items"], json!([]));
}
