//! What is new is known without a look at its table, and what is not new is never taken for it: just after a start, when the
//! tables are still being read, later, and with a filter that is far too small or none at all.

use crate::client::Client;
use crate::service::Setup;

const USERS: usize = 300;

/// Likes and requests as they were: each once.
async fn are_known(client: &Client, what: &str) {
    for user in 0..USERS {
        let again = client.like("post", &format!("user-{user}")).await;
        assert_eq!(again.json["changed"], user % 10 == 0, "{what}, user {user}");
    }
    assert_eq!(client.exact("post").await, i64::try_from(USERS).unwrap(), "{what}");
    for request in 0..USERS / 10 {
        let replay = client.reserve("hall", &format!("request-{request}"), 1).await;
        assert_eq!(
            (replay.status, &replay.json["replayed"]),
            (201, &true.into()),
            "{what}, request {request}"
        );
    }
    let new = client.like("another", "user-1").await;
    assert_eq!(new.json["changed"], true, "{what}");
    client.unlike("another", "user-1").await;
    for user in (0..USERS).step_by(10) {
        client.unlike("post", &format!("user-{user}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stored_is_taken_for_new() {
    for (filter_kib, pending_rows) in [(8_192, 100_000), (8_192, 8), (1, 8), (0, 8)] {
        let setup = Setup::new()
            .with("sqlite.filter_kib", filter_kib)
            .with("sqlite.pending_rows", pending_rows)
            .with("reservations.default_capacity", 1_000);
        let service = setup.start();
        for user in 0..USERS {
            service.client.like("post", &format!("user-{user}")).await;
        }
        for request in 0..USERS / 10 {
            service.client.reserve("hall", &format!("request-{request}"), 1).await;
        }
        for user in (0..USERS).step_by(10) {
            service.client.unlike("post", &format!("user-{user}")).await;
        }
        let what = format!("{filter_kib} KiB, {pending_rows} pending");
        are_known(&service.client, &what).await;
        service.kill();

        let service = setup.start();
        are_known(&service.client, &format!("{what}, after a kill")).await;
        are_known(&service.client, &format!("{what}, a while after a kill")).await;
        assert!(service.stop().success());
        let service = setup.start();
        are_known(&service.client, &format!("{what}, after a stop")).await;
        service.kill();
        setup.assert_verified();
    }
}
