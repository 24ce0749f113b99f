//! The journal of a partition's file: what stands in it counts, whoever looks, and it ends in the tables.

use crate::client::Client;
use crate::files;
use crate::service::Setup;

const JOURNAL: &str = "SELECT count(*) FROM journal";

fn rows(setup: &Setup, table: &str) -> i64 {
    files::sum(&setup.data_dir(), &format!("SELECT count(*) FROM {table}"))
}

async fn liked(client: &Client, user: &str) -> bool {
    client.get(&format!("/likes/post/users/{user}")).await.json["liked"].as_bool().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_journaled_alone_survives_a_kill_and_counts_for_an_audit() {
    let setup = Setup::new();
    let service = setup.start();
    for user in 0..40 {
        service.client.like("post", &format!("user-{user}")).await;
    }
    service.client.unlike("post", "user-7").await;
    service.client.reserve("workshop", "request-1", 2).await;
    service.kill();
    assert!(files::sum(&setup.data_dir(), JOURNAL) > 0);
    assert_eq!((rows(&setup, "memberships"), rows(&setup, "attempts")), (0, 0), "nothing has settled yet");
    assert_eq!((rows(&setup, "memberships_now"), rows(&setup, "attempts_now")), (39, 1));
    setup.assert_verified();

    let service = setup.start();
    assert_eq!(service.client.exact("post").await, 39);
    assert!(!liked(&service.client, "user-7").await);
    let replay = service.client.reserve("workshop", "request-1", 2).await;
    assert_eq!((replay.status, &replay.json["replayed"]), (201, &true.into()));
    assert!(service.stop().success());
    assert_eq!(files::sum(&setup.data_dir(), JOURNAL), 0, "a clean stop leaves plain tables");
    assert_eq!((rows(&setup, "memberships"), rows(&setup, "attempts")), (39, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_stays_short_and_a_row_that_changes_while_it_settles_keeps_its_last_state() {
    let setup = Setup::new().with("sqlite.pending_rows", 8).with("storage.partitions", 1);
    let service = setup.start();
    for round in 0..40 {
        for user in ["ada", "bob", "eve"] {
            service.client.like("post", user).await;
            if round % 2 == 0 || user == "eve" {
                service.client.unlike("post", user).await;
            }
        }
    }
    service.kill();
    assert!(files::sum(&setup.data_dir(), JOURNAL) < 40, "of about 200 batches");
    assert_eq!(rows(&setup, "memberships_now"), 2);
    setup.assert_verified();
    let service = setup.start();
    for (user, likes) in [("ada", true), ("bob", true), ("eve", false)] {
        assert_eq!(liked(&service.client, user).await, likes, "{user}");
    }
    assert_eq!(service.client.exact("post").await, 2);
}
