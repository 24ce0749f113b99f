//! A disk without room, one that turned read-only, and one whose syncs fail: what is refused is surely not
//! done or said to be unknown, what was answered stays, reads go on, and once the disk works again so does the service, without a restart.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::client::Client;
use crate::history::{History, Replay, Rng, setup};
use crate::service::{Service, Setup};
use crate::shim;

trait Disk {
    fn setup(&self) -> &Setup;
    fn fill(&self);
    fn make_room(&self);
}

/// A file system in memory, small, and unmounted when dropped.
struct SmallDisk(Setup);

impl SmallDisk {
    /// `None` if this process may not mount anything.
    fn mount() -> Option<Self> {
        // A log that starts over finds its old room again; here every commit must need new room.
        let setup = setup().with("sqlite.wal_autocheckpoint_pages", 1_000_000);
        fs::create_dir(setup.data_dir()).unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=32M", "headcount-test"];
        let mounted = Command::new("mount").args(mount).arg(setup.data_dir()).output().ok()?;
        if !mounted.status.success() {
            println!("{}", String::from_utf8_lossy(&mounted.stderr));
            return None;
        }
        Some(Self(setup))
    }

    fn filler(&self) -> PathBuf {
        self.0.data_dir().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: after a failed test a service may still be there.
        let _best_effort = Command::new("umount").arg("-l").arg(self.0.data_dir()).status();
    }
}

impl Disk for SmallDisk {
    fn setup(&self) -> &Setup {
        &self.0
    }

    fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        let full = std::iter::repeat_with(|| filler.write_all(&[0; 4096])).find_map(Result::err).unwrap();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }

    fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

/// A disk that fails by a switch.
struct FailingDisk {
    setup: Setup,
    switch: PathBuf,
}

const EROFS: u32 = 30;
const ENOSPC: u32 = 28;
const EIO: u32 = 5;

impl FailingDisk {
    fn new() -> Self {
        let setup = setup();
        let switch = setup.scratch().join("switch");
        let setup = setup
            .clone()
            .with_env("LD_PRELOAD", shim::build("failing_disk", include_str!("failing_disk.c")).display())
            .with_env("FAILING_DISK_DIR", setup.data_dir().display())
            .with_env("FAILING_DISK_SWITCH", switch.display());
        Self { setup, switch }
    }

    fn fail(&self, errno: u32) {
        fs::write(&self.switch, errno.to_string()).unwrap();
    }

    fn work(&self) {
        fs::remove_file(&self.switch).unwrap();
    }
}

impl Disk for FailingDisk {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn fill(&self) {
        self.fail(ENOSPC);
    }

    fn make_room(&self) {
        self.work();
    }
}

async fn rollup_failures(service: &Service) -> u64 {
    let text = service.admin.get("/metrics").await.text;
    let value = text.lines().find_map(|line| line.strip_prefix("headcount_rollup_failures_total "));
    value.map_or(0, |value| value.parse().unwrap())
}

/// Fills the disk before the roll-up has carried the last likes.
async fn fill_before_a_roll_up(disk: &impl Disk, service: &Service, history: &mut History) {
    for _ in 0..20 {
        let refusals = history.load(&service.client, 10).await;
        assert!(refusals.is_empty(), "{refusals:?}");
        let before = rollup_failures(service).await;
        disk.fill();
        let filled = Instant::now();
        while filled.elapsed() < Duration::from_secs(3) {
            if rollup_failures(service).await > before {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // It was quicker and has nothing to carry.
        disk.make_room();
    }
    panic!("the roll-up never meets the full disk");
}

async fn until_liked(client: &Client) {
    for _ in 0..6000 {
        let answer = client.like("room-again", "somebody").await;
        if answer.status == 200 {
            return;
        }
        assert!([503, 507].contains(&answer.status), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("there is room, and nothing is written");
}

async fn a_full_disk_loses_nothing(disk: &impl Disk) {
    let mut history = History::new(Rng::seed());
    println!("{}", history.rng);
    let setup = disk.setup();
    let service = setup.start();
    let client = &service.client;
    history.load(client, 50).await;
    fill_before_a_roll_up(disk, &service, &mut history).await;

    let refusals = history.load(client, 50).await;
    assert!(refusals.keys().eq(["disk_full"]), "{refusals:?}");
    let refused = client.like("post", "nobody").await;
    assert_eq!((refused.status, refused.error()), (507, "disk_full"));
    // Memberships, exact totals, replays; and rolled-up totals.
    history.assert_kept(client, Replay::DecidedOnly).await;
    assert_eq!(client.get("/likes/post").await.status, 200);
    assert_eq!(client.get("/ready").await.status, 200);

    disk.make_room();
    until_liked(client).await;
    assert!(history.load(client, 50).await.is_empty());
    history.assert_kept(client, Replay::All).await;
    for (item, total) in history.totals() {
        assert_eq!(client.rolled_up(item).await, total, "{item}, {}", history.rng);
    }
    setup.assert_verified();

    // And with kill -9 in between.
    disk.fill();
    history.load(client, 5).await;
    service.kill();
    if let Err(refusal) = setup.try_start().map(Service::kill) {
        assert!(refusal.contains("full"), "{refusal}");
    }
    disk.make_room();
    let service = setup.start();
    history.assert_kept(&service.client, Replay::All).await;
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_file_system_loses_nothing_and_needs_no_restart() {
    match SmallDisk::mount() {
        Some(disk) => a_full_disk_loses_nothing(&disk).await,
        None => println!("nothing can be mounted here; the test with the failing disk says the same"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_any_room_loses_nothing_and_needs_no_restart() {
    a_full_disk_loses_nothing(&FailingDisk::new()).await;
}

/// Commands that meet in a batch on a full disk: those that need no room are answered.
#[tokio::test(flavor = "multi_thread")]
async fn what_needs_no_room_is_answered_whoever_it_shares_its_batch_with() {
    let disk = FailingDisk::new();
    // While one batch is held up, the next one gathers.
    let setup = disk.setup.clone().with("faults.commit_delay_ms", 200).with("storage.partitions", 1);
    let service = setup.start();
    let client = &service.client;
    assert_eq!(client.reserve("alpha", "known", 1).await.status, 201);
    assert_eq!(client.like("post", "ada").await.status, 200);
    disk.fill();
    let held_up = client.like("post", "bob");
    let write = async |n: usize| client.reserve("alpha", &format!("new-{n}"), 1).await.status;
    let replay = async |_: usize| client.reserve("alpha", "known", 1).await.status;
    let read = async |_: usize| client.get("/likes/post/users/ada").await.status;
    let status = async |_: usize| client.get("/workshops/alpha/status").await.status;
    let (_, writes, replays, reads, looks) = tokio::join!(
        held_up,
        join_all((0..5).map(write)),
        join_all((0..5).map(replay)),
        join_all((0..5).map(read)),
        join_all((0..5).map(status)),
    );
    assert_eq!(writes, [507; 5]);
    assert_eq!((replays, reads, looks), (vec![201; 5], vec![200; 5], vec![200; 5]));
    disk.make_room();
    assert_eq!(client.reserve("alpha", "new-0", 1).await.status, 201, "surely not done, so done now");
    assert!(service.stop().success());
    setup.assert_verified();
}

/// While changes fail with `errno` nobody is told that something is done; after that the service goes on.
async fn a_failing_disk_loses_nothing(errno: u32) {
    let disk = FailingDisk::new();
    let mut history = History::new(Rng::seed());
    println!("{}", history.rng);
    let service = disk.setup.start();
    let client = &service.client;
    history.load(client, 50).await;
    disk.fail(errno);
    let refusals = history.load(client, 20).await;
    assert!(
        refusals.keys().all(|word| ["outcome_unknown", "unavailable"].contains(&&**word))
            && !refusals.is_empty(),
        "{refusals:?}"
    );
    assert_eq!(client.get("/ready").await.status, 503);
    disk.work();
    until_liked(client).await;
    history.assert_kept(client, Replay::All).await;
    for (item, total) in history.totals() {
        assert_eq!(client.rolled_up(item).await, total, "{item}, {}", history.rng);
    }
    assert!(service.stop().success());
    disk.setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_turns_read_only_loses_nothing_and_needs_no_restart() {
    a_failing_disk_loses_nothing(EROFS).await;
}

/// What was written and not synced is not answered as done, and nothing more is decided on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_whose_syncs_fail_loses_nothing_and_needs_no_restart() {
    a_failing_disk_loses_nothing(EIO).await;
}

/// Checkpoints alone fail, for the logs can be synced: what they had moved is moved again, from logs that stay whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_whose_checkpoints_fail_loses_nothing_and_needs_no_restart() {
    let mut disk = FailingDisk::new();
    disk.setup =
        disk.setup.with("sqlite.wal_autocheckpoint_pages", 30).with_env("FAILING_DISK_SPARED", "-wal");
    let mut history = History::new(Rng::seed());
    println!("{}", history.rng);
    let service = disk.setup.start();
    let client = &service.client;
    history.load(client, 100).await;
    disk.fail(EIO);
    let refusals = history.load(client, 300).await;
    assert!(refusals.contains_key("outcome_unknown"), "no checkpoint has failed: {refusals:?}");
    assert!(
        refusals.keys().all(|word| ["outcome_unknown", "unavailable"].contains(&&**word)),
        "{refusals:?}"
    );
    disk.work();
    until_liked(client).await;
    history.load(client, 100).await;
    history.assert_kept(client, Replay::All).await;
    service.kill();
    let service = disk.setup.start();
    history.assert_kept(&service.client, Replay::All).await;
    assert!(service.stop().success());
    disk.setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_on_a_read_only_disk_is_refused_and_changes_nothing() {
    let disk = FailingDisk::new();
    let mut history = History::new(Rng::seed());
    let service = disk.setup.start();
    history.load(&service.client, 20).await;
    service.kill();
    disk.fail(EROFS);
    let refusal = disk.setup.try_start().map(Service::kill).unwrap_err();
    assert!(refusal.contains("Read-only file system"), "{refusal}");
    assert!(refusal.contains(disk.setup.data_dir().to_str().unwrap()), "{refusal}");
    disk.work();
    history.assert_kept(&disk.setup.start().client, Replay::All).await;
}
