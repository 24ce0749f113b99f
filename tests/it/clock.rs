//! Time never falls, also when the machine's clock was set back between two runs.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::Connection;

use crate::client::Client;
use crate::files;
use crate::service::Setup;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

fn wall_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A data directory that has seen use, without its service.
async fn used() -> Setup {
    let setup = Setup::new();
    let service = setup.start();
    for user in ["anna", "ben", "carla", "dirk"] {
        assert_eq!(service.client.like("post", user).await.status, 200);
    }
    assert!(service.stop().success());
    setup
}

/// The latest time that is stored, over both partitions.
fn mark_ms(setup: &Setup) -> i64 {
    let mark = |partition| -> i64 {
        let file = Connection::open(files::partition_file(&setup.data_dir(), partition)).unwrap();
        file.query_row("SELECT clock_mark_ms FROM identity", [], |row| row.get(0)).unwrap()
    };
    mark(0).max(mark(1))
}

/// What the data directory looks like after the clock was set back by the difference.
fn set_mark(setup: &Setup, partition: u32, mark_ms: i64) {
    let file = Connection::open(files::partition_file(&setup.data_dir(), partition)).unwrap();
    let changed = file.execute("UPDATE identity SET clock_mark_ms = ?1", [mark_ms]).unwrap();
    assert_eq!(changed, 1);
}

async fn now_ms(client: &Client) -> i64 {
    client.get("/likes/post?exact=true").await.json["asOf"].as_i64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_leave_the_mark_of_their_time() {
    let before = wall_ms();
    let setup = used().await;
    let mark = mark_ms(&setup);
    // The service counts on from its start, so the two may differ by what the clock was corrected meanwhile.
    assert!((before - 1000..=wall_ms() + 1000).contains(&mark), "{mark}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_far_behind_the_mark_is_refused_naming_both_times() {
    let setup = used().await;
    for partition in 0..2 {
        let (earliest, mark) = (wall_ms(), wall_ms() + HOUR_MS);
        set_mark(&setup, partition, mark);
        let refusal = setup.try_start().map(|_| "it started").unwrap_err();
        assert!(refusal.contains(&format!("stored at {mark} ms")), "{refusal}");
        let said = refusal.rsplit_once("the clock says ").unwrap().1.split(' ').next().unwrap();
        assert!((earliest..=wall_ms()).contains(&said.parse::<i64>().unwrap()), "{refusal}");
        assert!(refusal.contains("clock.allow_step_back"), "{refusal}");
        assert_eq!(mark_ms(&setup), mark);
        set_mark(&setup, partition, earliest);
    }
    assert_eq!(setup.start().client.exact("post").await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn how_far_is_too_far_is_a_setting() {
    let setup = used().await;
    set_mark(&setup, 0, wall_ms() + HOUR_MS);
    let patient = setup.clone().with("clock.max_step_ms", 2 * HOUR_MS);
    patient.start().kill();
    let strict = setup.with("clock.max_step_ms", HOUR_MS / 2);
    assert!(strict.try_start().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn time_never_falls_below_the_mark() {
    let setup = used().await;
    let small_step = wall_ms() + MINUTE_MS / 2;
    set_mark(&setup, 1, small_step);
    stays_above(&setup, small_step).await;

    let setup = used().await;
    let large_step = wall_ms() + HOUR_MS;
    set_mark(&setup, 1, large_step);
    stays_above(&setup.with("clock.allow_step_back", true), large_step).await;
}

async fn stays_above(setup: &Setup, mark: i64) {
    let mut last = mark;
    for start in 0..3 {
        let service = setup.start();
        for n in 0..20 {
            // A user of each partition, sooner or later.
            assert_eq!(service.client.like("post", &format!("user-{start}-{n}")).await.status, 200);
            let now = now_ms(&service.client).await;
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        service.kill();
        let stored = mark_ms(setup);
        assert!((mark..=last).contains(&stored), "{stored} is stored, and {last} was the time");
    }
    setup.assert_verified();
}

/// Durations stay true: what is due in a second is due in a second, whatever the clock says.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_step_back_time_goes_on_from_the_mark() {
    let setup = used().await.with("clock.allow_step_back", true);
    let mark = wall_ms() + HOUR_MS;
    set_mark(&setup, 0, mark);
    let service = setup.start();
    while now_ms(&service.client).await < mark + 200 {
        assert!(wall_ms() < mark, "time stands still");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
