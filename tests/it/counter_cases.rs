//! Counters that went wrong elsewhere, each case under its own name.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::counters::{add, exact, rolled_up};
use crate::raw;
use crate::service::Setup;

/// A tenth of the callers hang up before they hear; they cannot know whether they were heard, and ask again.
#[tokio::test(flavor = "multi_thread")]
async fn l10_a_thousand_adds_with_lost_answers_are_exactly_a_thousand() {
    let setup = Setup::new();
    let service = setup.start();
    let (client, replays) = (&service.client, AtomicUsize::new(0));
    let one = async |n: usize| {
        let id = format!("request-{n}");
        if n.is_multiple_of(10) {
            let (address, body) = (service.public.clone(), json!({"amount": 1, "requestId": id}).to_string());
            tokio::task::spawn_blocking(move || {
                let mut connection = raw::connect(&address);
                let length = body.len();
                let head =
                    format!("POST /counters/views HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
                connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
            })
            .await
            .unwrap();
        }
        let answer = add(client, "views", 1, Some(&id)).await;
        assert_eq!((answer.status, &answer.json["amount"]), (200, &json!(1)), "{answer:?}");
        replays.fetch_add(usize::from(answer.json["replayed"] == true), Ordering::Relaxed);
    };
    stream::iter(0..1_000).map(one).buffer_unordered(100).collect::<Vec<()>>().await;
    println!("{} of 100 lost answers were of adds that were done", replays.load(Ordering::Relaxed));
    assert!(replays.load(Ordering::Relaxed) <= 100);
    assert_eq!((exact(client, "views").await, rolled_up(client, "views").await), (1_000, 1_000));

    // The same id with another amount, alone and among its repetitions.
    let others = (0..1_000).map(|n| (n, if n % 3 == 0 { 1 } else { 2 }));
    let again = stream::iter(others)
        .map(async |(n, amount)| (amount, add(client, "views", amount, Some(&format!("request-{n}"))).await));
    for (amount, answer) in again.buffer_unordered(100).collect::<Vec<_>>().await {
        match amount {
            1 => assert_eq!((answer.status, &answer.json["replayed"]), (200, &json!(true)), "{answer:?}"),
            _ => assert_eq!((answer.status, answer.error()), (422, "request_id_reused"), "{answer:?}"),
        }
    }
    assert_eq!((exact(client, "views").await, rolled_up(client, "views").await), (1_000, 1_000));
    service.kill();

    let service = setup.start();
    assert_eq!(exact(&service.client, "views").await, 1_000);
    assert_eq!(add(&service.client, "views", 1, Some("request-999")).await.json["replayed"], true);
    assert!(service.stop().success());
    setup.assert_verified();
}
