//! The drift check: beside the roll-up, some counters are counted again. It stays 0, and would not if something were wrong.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;

use crate::files;
use crate::service::{Service, Setup};

async fn metric(service: &Service, name: &str) -> u64 {
    let text = service.admin.get("/metrics").await.text;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

const CHECKED: &str = "headcount_rollup_checked_counters_total";
const DRIFT: &str = "headcount_rollup_drift_total";

async fn until_checked(service: &Service, counters: u64) {
    while metric(service, CHECKED).await < counters {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Few rows a step, so that a walk takes many of them, with likes, unlikes, deletions and people forgotten in between.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_drifts_whatever_happens() {
    let setup =
        Setup::new().with("likes.shards", 4).with("rollup.check_rows", 12).with("sqlite.pending_rows", 40);
    let service = setup.start();
    let stop = AtomicBool::new(false);
    let load = async |writer: usize| {
        let client = &service.client;
        for n in 0..1_500 {
            if stop.load(Ordering::Acquire) {
                break;
            }
            let (item, user) = (format!("post-{}", n % 3), format!("user-{writer}-{}", n % 11));
            match n % 5 {
                0 => client.unlike(&item, &user).await,
                1 => client.post(&format!("/likes/{item}"), format!(r#"{{"userId":"{user}"}}"#)).await,
                _ => client.like(&item, &user).await,
            };
            if n % 97 == 96 {
                let policy = if n % 2 == 0 { "anonymise" } else { "remove" };
                assert_eq!(client.delete(&format!("/users/{user}?policy={policy}")).await.status, 200);
            }
            if n % 401 == 400 {
                assert_eq!(client.delete(&format!("/likes/{item}")).await.status, 200);
            }
        }
    };
    let watching = async {
        until_checked(&service, 40).await;
        stop.store(true, Ordering::Release);
    };
    tokio::join!(watching, join_all((0..3).map(load)));
    assert_eq!(metric(&service, DRIFT).await, 0);
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_drifted_is_told() {
    for damage in [
        "UPDATE shard_counters SET members = members + 1 WHERE members > 0",
        "UPDATE shard_counters SET base = base + 1 WHERE members > 0",
        "DELETE FROM memberships WHERE user = (SELECT max(user) FROM memberships)",
    ] {
        let setup = Setup::new().with("likes.shards", 4);
        let service = setup.start();
        for user in 0..30 {
            service.client.like("post", &format!("user-{user}")).await;
        }
        until_checked(&service, 8).await;
        assert_eq!(metric(&service, DRIFT).await, 0);
        assert!(service.stop().success());
        files::execute(&setup.data_dir(), "partition-001.db", damage);
        let service = setup.start();
        until_checked(&service, 8).await;
        assert!(metric(&service, DRIFT).await > 0, "{damage}");
        assert!(
            service.log().iter().any(|line| line.contains("a counter is not what it counts")),
            "{damage}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_switched_off() {
    let setup = Setup::new().with("rollup.check_rows", 0);
    let service = setup.start();
    service.client.like("post", "ada").await;
    crate::rollup::runs(&service.client, 3).await;
    assert_eq!(metric(&service, CHECKED).await, 0);
}
