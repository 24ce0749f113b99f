//! A partition that fails: its batch is answered with an error, the partition comes back from what is
//! stored, and the others notice nothing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use headcount::data_dir::{DEFAULT_PARTITIONS, DEFAULT_SHARDS};
use headcount::likes::types::{partition_of_shard, shard_of};

use crate::client::{Answer, Client};
use crate::files;
use crate::history::{History, Replay, Rng, setup};
use crate::service::Service;

/// A user id and a request id that panics whoever decides on it.
const BOMB: &str = "bomb";

fn partition_of(user: &str) -> u32 {
    partition_of_shard(shard_of(user, DEFAULT_SHARDS), DEFAULT_PARTITIONS)
}

/// A user of the other partition.
fn neighbour_of(user: &str) -> String {
    let mut users = (0..).map(|n| format!("neighbour-{n}"));
    users.find(|other| partition_of(other) != partition_of(user)).unwrap()
}

/// A partition's value of a metric.
async fn metric(service: &Service, name: &str, partition: u32) -> f64 {
    let text = service.admin.get("/metrics").await.text;
    let series = format!("{name}{{partition=\"{partition}\"}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&series));
    value.map_or(0.0, |value| value.parse().unwrap())
}

async fn until_ready(client: &Client, status: u16) -> Answer {
    for _ in 0..6000 {
        let answer = client.get("/ready").await;
        if answer.status == status {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("/ready never said {status}");
}

fn assert_problem(answer: &Answer, status: u16, word: &str) {
    assert_eq!((answer.status, answer.error()), (status, word), "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert_eq!(answer.header("retry-after").is_empty(), status != 503, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_its_own_batch_and_nothing_that_was_answered() {
    let setup = setup().with("faults.panic_on", BOMB);
    let service = setup.start();
    let mut history = History::new(Rng::seed());
    history.load(&service.client, 30).await;

    // Alone, so that the bomb is its own batch.
    assert_problem(&service.client.like("post", BOMB).await, 503, "unavailable");
    until_ready(&service.client, 200).await;
    let (hit, spared) = (partition_of(BOMB), 1 - partition_of(BOMB));
    assert_eq!(metric(&service, "headcount_partition_failures_total", hit).await, 1.0);
    assert_eq!(metric(&service, "headcount_partition_failures_total", spared).await, 0.0);
    assert_eq!(metric(&service, "headcount_partition_up", hit).await, 1.0);
    history.assert_kept(&service.client, Replay::All).await;

    // Among others, which may share a batch with it: what is refused as "surely not done" must be so.
    let throw = async {
        for n in 0..25 {
            let like = service.client.like("post", BOMB).await;
            let reservation = service.client.reserve(&format!("target-{n}"), BOMB, 1).await;
            for answer in [like, reservation] {
                assert_problem(&answer, 503, "unavailable");
            }
        }
    };
    tokio::join!(throw, history.load(&service.client, 200));
    until_ready(&service.client, 200).await;
    history.assert_kept(&service.client, Replay::All).await;
    assert!(service.log().iter().any(|line| line.contains("faults.panic_on")));

    assert!(service.stop().success());
    setup.assert_verified();
    history.assert_kept(&setup.start().client, Replay::All).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_leaves_the_outcome_open_and_repeated_requests_converge() {
    let setup = setup();
    // No number of commits that somebody repeats over and over, such as 3 or 5.
    let failing = setup.clone().with("faults.fail_commit_every", 7);
    let service = failing.start();
    let mut history = History::new(Rng::seed());
    let refusals = history.load(&service.client, 200).await;
    // A batch that fails, and what waits while its partition reopens.
    assert!(refusals["outcome_unknown"] > 0, "{refusals:?}");
    assert!(
        refusals.keys().all(|word| ["outcome_unknown", "unavailable"].contains(&&**word)),
        "{refusals:?}"
    );
    history.assert_kept(&service.client, Replay::All).await;
    let failures = metric(&service, "headcount_partition_failures_total", 0).await;
    assert!(failures > 0.0);
    service.kill();

    let service = setup.start();
    history.assert_kept(&service.client, Replay::All).await;
    for (item, total) in history.totals() {
        assert_eq!(service.client.rolled_up(item).await, total, "{item}, {}", history.rng);
    }
    setup.assert_verified();
}

/// Takes a partition's file away, so that it cannot be opened, and puts it back.
struct FileAway<'a>(&'a Path);

impl<'a> FileAway<'a> {
    fn take(file: &'a Path) -> Self {
        fs::rename(file, file.with_extension("away")).unwrap();
        // Where a file is missing one would be made; not so where a directory is.
        fs::create_dir(file).unwrap();
        Self(file)
    }

    fn put_back(self) {
        fs::remove_dir(self.0).unwrap();
        fs::rename(self.0.with_extension("away"), self.0).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_partition_is_down_ready_says_so_and_the_others_serve() {
    let setup = setup().with("faults.panic_on", BOMB);
    let service = setup.start();
    let client = &service.client;
    let mut history = History::new(Rng::seed());
    history.load(client, 50).await;
    let (hit, neighbour) = (partition_of(BOMB), neighbour_of(BOMB));

    let file = files::partition_file(&setup.data_dir(), hit);
    let away = FileAway::take(&file);
    assert_problem(&client.like("post", BOMB).await, 503, "unavailable");
    let ready = until_ready(client, 503).await;
    assert_problem(&ready, 503, "not_ready");
    assert_eq!(ready.json["detail"], format!("partitions down: {hit}"));
    assert_eq!(client.get("/health").await.status, 200);
    assert_eq!(metric(&service, "headcount_partition_up", hit).await, 0.0);
    assert_eq!(metric(&service, "headcount_partition_up", 1 - hit).await, 1.0);

    // Its own commands are refused at once, and so is a total that would lack its part.
    let neighbour_of_neighbour = neighbour_of(&neighbour);
    assert_problem(&client.like("elsewhere", &neighbour_of_neighbour).await, 503, "unavailable");
    assert_problem(&client.get("/likes/elsewhere?exact=true").await, 503, "unavailable");
    assert_eq!(client.get("/likes/elsewhere").await.status, 200);
    for _ in 0..20 {
        let (liked, unliked) =
            (client.like("elsewhere", &neighbour).await, client.unlike("elsewhere", &neighbour).await);
        assert_eq!((liked.status, unliked.status), (200, 200));
        assert_eq!((&liked.json["changed"], &unliked.json["changed"]), (&true.into(), &true.into()));
    }
    history.load(client, 50).await;
    assert_eq!(client.get("/ready").await.status, 503);

    away.put_back();
    until_ready(client, 200).await;
    assert_eq!(metric(&service, "headcount_partition_up", hit).await, 1.0);
    assert_eq!(client.like("elsewhere", &neighbour_of_neighbour).await.status, 200);
    assert_eq!(client.exact("elsewhere").await, 1);
    history.assert_kept(client, Replay::All).await;
    // The roll-up, which failed meanwhile, catches up.
    for (item, total) in history.totals() {
        assert_eq!(client.rolled_up(item).await, total, "{item}");
    }
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_with_a_partition_down_still_stops() {
    let setup = setup().with("faults.panic_on", BOMB);
    let service = setup.start();
    let mut history = History::new(Rng::seed());
    history.load(&service.client, 20).await;
    let file = files::partition_file(&setup.data_dir(), partition_of(BOMB));
    let away = FileAway::take(&file);
    assert_problem(&service.client.like("post", BOMB).await, 503, "unavailable");
    until_ready(&service.client, 503).await;
    assert!(service.stop().success());
    away.put_back();
    history.assert_kept(&setup.start().client, Replay::All).await;
}
