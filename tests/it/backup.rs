//! Backups of a running service: one moment of all partitions, whole or not there, and a service again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use hyper::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::files;
use crate::service::{HEADCOUNT, Service, Setup, eventually};

/// Two on each partition.
const WORKSHOPS: [&str; 4] = ["alpha", "beta", "gamma", "launch-day"];

fn setup() -> Setup {
    Setup::new().with("rooms.history", "durable").with("reservations.default_capacity", 1_000_000)
}

fn root(setup: &Setup) -> PathBuf {
    setup.scratch().join("backups")
}

async fn backup(service: &Service, dir: &str) -> Answer {
    service.admin.post("/backup", json!({"dir": dir}).to_string()).await
}

/// `headcount restore` into a directory: whether it succeeded, and what it said.
fn restore(setup: &Setup, backup: &Path, target: &Path) -> (bool, String) {
    let output = setup.run(&["restore", backup.to_str().unwrap(), "--data-dir", target.to_str().unwrap()]);
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// `headcount verify` of any directory.
fn assert_sound(directory: &Path) {
    let output =
        std::process::Command::new(HEADCOUNT).args(["verify", "--data-dir"]).arg(directory).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{}: {text}", directory.display());
}

/// Another service over a restored backup.
fn restored(setup: &Setup, backup: &Path) -> Setup {
    let other = self::setup();
    let (done, text) = restore(setup, backup, &other.data_dir());
    assert!(done && text.contains("restored"), "{text}");
    assert_sound(&other.data_dir());
    other
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_becomes_a_service_again() {
    let setup = setup();
    let service = setup.start();
    let client = &service.client;
    for user in 0..50 {
        client.like("post", &format!("user-{user}")).await;
    }
    client.reserve("launch-day", "before", 3).await;
    client.post("/rooms/lobby/send", r#"{"user":"ada","text":"before"}"#).await;
    let taken = backup(&service, "nightly-1").await;
    assert_eq!(taken.status, 201, "{taken:?}");
    let path = root(&setup).join("nightly-1");
    assert_eq!(taken.json["dir"].as_str().map(PathBuf::from), Some(path.canonicalize().unwrap()));
    assert!(
        taken.json["bytes"].as_u64() > Some(10_000) && taken.json["takenAt"].as_i64() > Some(0),
        "{taken:?}"
    );
    // What comes later is not in it.
    client.like("post", "late").await;
    client.reserve("launch-day", "after", 4).await;
    client.post("/rooms/lobby/send", r#"{"user":"ada","text":"after"}"#).await;
    assert_eq!(
        names(&path),
        ["backup.json", "manifest.json", "partition-000.db", "partition-001.db", "summary.db"]
    );
    assert_sound(&path);

    let other = restored(&setup, &path);
    let again = other.start();
    assert_eq!((again.client.exact("post").await, again.client.rolled_up("post").await), (50, 50));
    assert_eq!(again.client.status("launch-day").await["reserved"], json!(3));
    let replay = again.client.reserve("launch-day", "before", 3).await;
    assert_eq!((replay.status, &replay.json["replayed"]), (201, &json!(true)));
    assert_eq!(again.client.reserve("launch-day", "after", 4).await.json["replayed"], json!(false));
    // The room gives out a number that the original gave out, too: in another epoch.
    let epochs = join_all([&service, &again].map(|service| async move {
        let said = service.client.post("/rooms/lobby/send", r#"{"user":"ada","text":"now"}"#).await.json;
        (said["epoch"].as_str().unwrap().to_owned(), said["offset"].as_u64().unwrap())
    }))
    .await;
    assert_ne!(epochs[0].0, epochs[1].0);
    assert_eq!((epochs[0].1, epochs[1].1), (3, 2));
    assert!(again.stop().success());
    assert_sound(&other.data_dir());
    assert_sound(&path);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_takes_a_backup_of_a_running_service() {
    let setup = setup();
    let service = setup.start();
    service.client.like("post", "ada").await;
    let path = root(&setup).join("by-hand");
    let by = |dir: &str| {
        let output = setup.run(&["backup", dir, "--admin", &service.admin_address]);
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (done, text) = by("by-name");
    assert!(done && text.contains("by-name"), "{text}");
    let (done, text) = by(path.to_str().unwrap());
    assert!(done && text.contains("by-hand"), "{text}");
    let (done, text) = by(path.to_str().unwrap());
    assert!(!done && text.contains("is there already"), "{text}");
    let (done, text) = by("/tmp/elsewhere");
    assert!(!done && text.contains("backup.dir"), "{text}");
    assert_eq!(names(&root(&setup)), ["by-hand", "by-name"]);
    assert_eq!(restored(&setup, &path).start().client.exact("post").await, 1);
    assert!(service.stop().success());
    let output = setup.run(&["backup", "late", "--admin", "127.0.0.1:1"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("nobody answers"), "{output:?}");
}

/// Whoever may ask for a backup may not choose where on the machine it is written.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_writes_outside_the_directory_for_backups() {
    let setup = setup();
    let service = setup.start();
    let outside = setup.scratch().join("outside");
    fs::create_dir_all(root(&setup)).unwrap();
    fs::create_dir_all(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, root(&setup).join("link")).unwrap();
    let in_link = root(&setup).join("link/inner");
    let data = setup.data_dir().join("inner");
    for (dir, word) in [
        ("../outside/x", "invalid_backup"),
        ("..", "invalid_backup"),
        (".", "invalid_backup"),
        (".hidden", "invalid_backup"),
        ("", "invalid_backup"),
        ("a/b", "invalid_backup"),
        ("a\u{0}b", "invalid_backup"),
        ("é", "invalid_backup"),
        (&"a".repeat(129), "invalid_backup"),
        ("/tmp/x", "outside_backup_dir"),
        ("/", "outside_backup_dir"),
        (in_link.to_str().unwrap(), "outside_backup_dir"),
        (data.to_str().unwrap(), "outside_backup_dir"),
        ("link", "backup_exists"),
    ] {
        let refused = backup(&service, dir).await;
        assert_eq!(refused.error(), word, "{dir}: {refused:?}");
    }
    for body in ["[]", "{\"dir\":7}", "7"] {
        assert_eq!(service.admin.post("/backup", body).await.error(), "invalid_backup", "{body}");
    }
    assert_eq!(service.admin.post("/backup", "{").await.error(), "invalid_json");
    assert_eq!(service.client.post("/backup", "").await.status, 404, "not on the public listener");
    assert_eq!(names(&outside), Vec::<String>::new());
    assert_eq!(names(&root(&setup)), ["link"]);
    // Without a name it gets one.
    let named = service.admin.post("/backup", "").await;
    assert_eq!(named.status, 201, "{named:?}");
    assert!(named.json["dir"].as_str().unwrap().contains("/backups/backup-"), "{named:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_needs_the_scope_admin() {
    // SHA-256 of "reader" and of "operator".
    let settings = r#"
        [[auth.keys]]
        name = "reader"
        sha256 = "3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30"
        scopes = ["read", "write"]
        [[auth.keys]]
        name = "operator"
        sha256 = "06e55b633481f7bb072957eabcf110c972e86691c3cfedabe088024bffe42f23"
        scopes = ["admin"]
    "#;
    let setup = setup();
    fs::create_dir_all(setup.scratch().join("config")).unwrap();
    fs::write(setup.scratch().join("config/headcount.toml"), settings).unwrap();
    let service = setup.start();
    assert_eq!(backup(&service, "a").await.status, 401);
    let reader = service.admin.with_key("reader").post("/backup", r#"{"dir":"a"}"#).await;
    assert_eq!((reader.status, reader.error()), (403, "forbidden"));
    assert_eq!(names(&root(&setup)), Vec::<String>::new());
    let operator = service.admin.with_key("operator").post("/backup", r#"{"dir":"a"}"#).await;
    assert_eq!(operator.status, 201, "{operator:?}");
    // The command line has it from its environment.
    let keyed = setup.clone().with_env("HEADCOUNT_API_KEY", "operator");
    assert!(keyed.run(&["backup", "b", "--admin", &service.admin_address]).status.success());
    let refused = setup.run(&["backup", "c", "--admin", &service.admin_address]);
    assert!(!refused.status.success());
    assert_eq!(names(&root(&setup)), ["a", "b"]);
}

/// Takes sets of several workshops, likes and messages until told to stop.
async fn carry_on(client: &Client, caller: usize, stop: &AtomicBool) -> usize {
    for n in 0.. {
        if stop.load(Ordering::Acquire) {
            return n;
        }
        let id = format!("set-{caller}-{n}");
        let lines: Value = WORKSHOPS.iter().map(|name| json!({"workshop": name, "seats": 1})).collect();
        let body = json!({"requestId": id, "lines": lines, "hold": n % 2 == 0}).to_string();
        let set = client.post("/reservations", body).await;
        assert_eq!(set.status, 201, "{set:?}");
        if n % 4 == 0 {
            client.post(&format!("/reservations/{id}/cancel"), "").await;
        }
        client.like(&format!("item-{}", n % 5), &format!("user-{caller}-{n}")).await;
        client.reserve(WORKSHOPS[n % 4], &format!("plain-{caller}-{n}"), 1).await;
        let said = json!({"user": "ada", "text": "hello"}).to_string();
        client.post(&format!("/rooms/room-{}/send", n % 3), said).await;
    }
    0
}

/// Every backup that is taken under load adds up, and the sets in it come to their ends: all lines or none.
#[tokio::test(flavor = "multi_thread")]
async fn backups_under_load_show_one_moment() {
    let setup = setup().with("storage.partitions", 4).with("likes.shards", 8);
    let service = setup.start();
    let stop = AtomicBool::new(false);
    let clients: Vec<Client> = (0..8).map(|_| service.client.clone()).collect();
    let loading =
        join_all(clients.iter().enumerate().map(|(caller, client)| carry_on(client, caller, &stop)));
    let taking = async {
        let mut paths = Vec::new();
        while paths.len() < 6 {
            let taken = backup(&service, &format!("backup-{}", paths.len())).await;
            assert_eq!(taken.status, 201, "{taken:?}");
            paths.push(PathBuf::from(taken.json["dir"].as_str().unwrap()));
        }
        stop.store(true, Ordering::Release);
        paths
    };
    let (rounds, paths) = tokio::join!(loading, taking);
    assert!(rounds.iter().all(|rounds| *rounds > 0), "{rounds:?}");
    let mut on_their_way = 0;
    for path in paths {
        assert_sound(&path);
        on_their_way += files::sum(&path, "SELECT count(*) FROM sets WHERE NOT finished");
        let other = restored(&setup, &path);
        let again = other.clone().with("storage.partitions", 4).start();
        let unfinished = "SELECT count(*) FROM sets WHERE NOT finished";
        eventually("all are finished", || files::sum(&other.data_dir(), unfinished) == 0);
        let total = "SELECT count(*) FROM sets WHERE state IN ('held', 'confirmed')";
        let lines = "SELECT count(*) FROM bookings WHERE of_set AND state IN ('held', 'confirmed')";
        let (sets, lines) = (files::sum(&other.data_dir(), total), files::sum(&other.data_dir(), lines));
        assert_eq!(lines, 4 * sets, "half a set");
        assert!(again.stop().success());
        assert_sound(&other.data_dir());
    }
    println!("sets on their way in the backups: {on_their_way}");
}

/// Where a backup can be killed.
const STEPS: [&str; 5] =
    ["backup_held", "backup_copied_one", "backup_copied", "backup_checked", "backup_written"];

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_killed_anywhere_looks_like_none() {
    for step in STEPS {
        let setup = setup();
        let service = setup.clone().with("faults.stop_work_at", step).start();
        service.client.like("post", "ada").await;
        let admin = service.admin.clone();
        let asked = tokio::spawn(async move {
            let _killed_meanwhile = admin.try_send(Method::POST, "/backup", r#"{"dir":"a"}"#).await;
        });
        eventually(step, || {
            service.log().iter().any(|line| line.contains(&format!("stop_work_at = {step}")))
        });
        service.kill();
        asked.await.unwrap();
        assert_eq!(names(&root(&setup)), [".partial-a"], "{step}");
        let rest = root(&setup).join(".partial-a");
        let (done, text) = restore(&setup, &rest, &setup.scratch().join("target"));
        assert!(!done && text.contains("no backup"), "{text}");
        // The next one takes the rest away.
        let service = setup.start();
        let taken = backup(&service, "a").await;
        assert_eq!(taken.status, 201, "{taken:?}");
        assert_eq!(names(&root(&setup)), ["a"]);
        assert_eq!(restored(&setup, &root(&setup).join("a")).start().client.exact("post").await, 1);
    }
}

/// Partitions wait for nobody longer than they are told to.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_holds_too_long_lets_go_and_is_none() {
    let setup = setup().with("backup.max_hold_ms", 50);
    let service = setup.clone().with("faults.stop_work_at", "backup_held").start();
    let admin = service.admin.clone();
    let asked = tokio::spawn(async move { admin.try_send(Method::POST, "/backup", r#"{"dir":"a"}"#).await });
    eventually("held", || service.log().iter().any(|line| line.contains("backup_held")));
    for user in ["ada", "bob", "eve"] {
        assert_eq!(service.client.like("post", user).await.status, 200, "served again");
    }
    assert_eq!(backup(&service, "b").await.error(), "backup_running");
    service.kill();
    assert!(asked.await.unwrap().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_without_room_is_refused_with_both_numbers() {
    let setup = setup();
    let service = setup.clone().with("faults.free_bytes", 4_321).start();
    let refused = backup(&service, "a").await;
    assert_eq!((refused.status, refused.error()), (507, "disk_full"), "{refused:?}");
    assert!(refused.json["detail"].as_str().unwrap().contains("4321"), "{refused:?}");
    assert_eq!(names(&root(&setup)), Vec::<String>::new());
    assert!(service.stop().success());
    let service = setup.start();
    assert_eq!(backup(&service, "a").await.status, 201);
    let short = setup.clone().with("faults.free_bytes", 4_321);
    let (done, text) = restore(&short, &root(&setup).join("a"), &setup.scratch().join("target"));
    assert!(!done && text.contains("4321"), "{text}");
}

/// A copy that does not add up is no backup: the original does not either.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_data_is_no_backup() {
    let setup = setup();
    let service = setup.start();
    service.client.like("post", "ada").await;
    service.client.rolled_up("post").await;
    files::execute(&setup.data_dir(), "summary.db", "UPDATE summary SET total = 7");
    let refused = backup(&service, "a").await;
    assert_eq!((refused.status, refused.error()), (500, "backup_unsound"), "{refused:?}");
    assert_eq!(names(&root(&setup)), Vec::<String>::new());
    let failures = service.admin.get("/metrics").await.text;
    assert!(failures.contains("headcount_backup_failures_total 1"), "{failures}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_measured() {
    let setup = setup();
    let service = setup.start();
    let value = async |name: &str| -> f64 {
        let text = service.admin.get("/metrics").await.text;
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap().to_owned();
        line.parse().unwrap()
    };
    assert_eq!(value("headcount_backup_last_time_seconds").await, 0.0);
    let taken = backup(&service, "a").await.json;
    let time = value("headcount_backup_last_time_seconds").await;
    assert_eq!((time * 1000.0).round() as i64, taken["takenAt"].as_i64().unwrap());
    assert_eq!(value("headcount_backup_last_bytes").await as u64, taken["bytes"].as_u64().unwrap());
    assert!(value("headcount_backup_last_seconds").await > 0.0);
    assert!(value("headcount_backup_last_held_seconds").await > 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restoration_writes_over_nothing_and_knows_damage() {
    let setup = setup();
    let service = setup.start();
    service.client.like("post", "ada").await;
    backup(&service, "a").await;
    let path = root(&setup).join("a");
    let (done, text) = restore(&setup, &path, &setup.data_dir());
    assert!(!done && text.contains("is not empty"), "{text}");
    let target = setup.scratch().join("target");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("notes.txt"), "mine").unwrap();
    let (done, text) = restore(&setup, &path, &target);
    assert!(!done && text.contains("is not empty"), "{text}");
    assert_eq!(names(&target), ["notes.txt"]);
    fs::remove_file(target.join("notes.txt")).unwrap();

    // A backup is no data directory: serving it would change it.
    let Err(said) = setup.try_start_with(&[
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--data-dir",
        path.to_str().unwrap(),
    ]) else {
        panic!("started")
    };
    assert!(said.contains("headcount restore"), "{said}");
    for damage in ["partition-001.db", "summary.db", "manifest.json"] {
        let broken = setup.scratch().join(format!("broken-{damage}"));
        files::copy_directory(&path, &broken);
        let mut bytes = fs::read(broken.join(damage)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        // Still JSON.
        if damage == "manifest.json" {
            *bytes.last_mut().unwrap() = b' ';
        }
        fs::write(broken.join(damage), bytes).unwrap();
        let (done, text) = restore(&setup, &broken, &target);
        assert!(!done && text.contains(damage) && text.contains("damaged"), "{text}");
        assert!(!target.join("manifest.json").exists());
        // What is left of it is not served, and the next attempt begins again.
        let arguments = [
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
            target.to_str().unwrap(),
        ];
        let Err(said) = setup.try_start_with(&arguments) else { panic!("started") };
        assert!(said.contains("manifest"), "{said}");
    }
    let (done, text) = restore(&setup, &path, &target);
    assert!(done, "{text}");
    assert_sound(&target);
    // Without backup.json it is none, and one of a newer headcount is told so.
    let newer = setup.scratch().join("newer");
    files::copy_directory(&path, &newer);
    let contents = fs::read_to_string(path.join("backup.json")).unwrap();
    fs::write(newer.join("backup.json"), contents.replace("\"format\": 1", "\"format\": 2")).unwrap();
    let (done, text) = restore(&setup, &newer, &setup.scratch().join("other"));
    assert!(!done && text.contains("newer headcount"), "{text}");
    let escaping = contents.replace("\"summary.db\"", "\"../summary.db\"");
    fs::write(newer.join("backup.json"), escaping).unwrap();
    let (done, text) = restore(&setup, &newer, &setup.scratch().join("other"));
    assert!(!done && text.contains("damaged"), "{text}");
}

/// A backup of a directory that was moved is one of the files that hold.
#[tokio::test(flavor = "multi_thread")]
async fn a_moved_directory_is_backed_up_and_restored() {
    let setup = setup();
    setup.clone().with("likes.shards", 4).start().client.like("post", "ada").await;
    let service = setup.clone().with("likes.shards", 8).with("storage.move_on_start", true).start();
    service.client.like("post", "bob").await;
    assert_eq!(backup(&service, "a").await.status, 201);
    let other = restored(&setup, &root(&setup).join("a"));
    assert_eq!(other.clone().with("likes.shards", 8).start().client.exact("post").await, 2);
}

/// SIGTERM ends a backup; it is not waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_a_backup() {
    let setup = setup();
    let mut service = setup.start();
    service.client.like("post", "ada").await;
    let admin = service.admin.clone();
    let asked = tokio::spawn(async move { admin.try_send(Method::POST, "/backup", r#"{"dir":"a"}"#).await });
    tokio::time::sleep(Duration::from_millis(5)).await;
    service.send_sigterm();
    let ended = tokio::task::spawn_blocking(move || service.wait()).await.unwrap();
    assert!(ended.success());
    let _either_way = asked.await.unwrap();
    let left = names(&root(&setup));
    assert!(left.is_empty() || left == ["a"], "{left:?}");
    if left == ["a"] {
        assert_sound(&root(&setup).join("a"));
    }
}
