//! How the process starts, what it says about its settings, and how it ends.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::files;
use crate::service::{Service, Setup, eventually};

const NEVER: &str = "0 0 0 1 1 *";

#[tokio::test(flavor = "multi_thread")]
async fn it_says_when_and_where_it_is_ready() {
    let setup = Setup::new();
    let service = setup.start();
    let (public, rest) = service.ready.split_once(", operator's page and admin on http://").unwrap();
    let (admin, directory) = rest.split_once(", data in ").unwrap();
    assert_eq!(public, format!("headcount is ready: public API on http://{}", service.public));
    assert_eq!(directory, setup.data_dir().to_str().unwrap());
    assert!(!service.public.ends_with(":0") && !admin.ends_with(":0"), "{}", service.ready);
    assert_eq!(service.client.get("/health").await.json, json!({"status": "ok"}));
    assert_eq!(service.client.get("/ready").await.status, 200);
    assert_eq!(service.admin.get("/metrics").await.status, 200);
}

/// Runs `check-config` on a file of this text: exit code, and what it said.
fn check(setup: &Setup, text: &str) -> (Option<i32>, String) {
    let file = setup.scratch().join("settings.toml");
    fs::write(&file, text).unwrap();
    let output = setup.run(&["check-config", "--config", file.to_str().unwrap()]);
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn check_config_passes_good_settings_and_serves_nothing() {
    let setup = Setup::new();
    let (code, said) = check(&setup, "[likes]\nshards = 4\n[rollup]\nschedule = \"*/2 * * * * *\"\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("good") && said.contains("settings.toml"), "{said}");
    assert!(!setup.data_dir().exists() && !setup.scratch().join("data").exists());
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/config/headcount.toml");
    assert!(setup.run(&["check-config", "--config", shipped]).status.success());
    assert!(setup.run(&["check-config"]).status.success(), "the defaults alone");
}

/// Each bad setting stops the check and the start alike, naming file, key, value and what is allowed.
#[test]
fn bad_settings_are_named_with_file_key_value_and_what_is_allowed() {
    let setup = Setup::new();
    let bad: [(&str, &[&str]); 7] = [
        ("[likes]\nshard = 4\n", &["likes.shard", "shards"]),
        ("[liks]\nshards = 4\n", &["liks"]),
        ("[likes]\nshards = 0\n", &["likes.shards = 0", "from 1 to 4096"]),
        ("[log]\nlevel = \"loud\"\n", &["log.level = \"loud\"", "error, warn, info, debug, trace"]),
        ("[rollup]\nschedule = \"every day\"\n", &["rollup.schedule = \"every day\"", "cron"]),
        ("[rollup]\nschedule = \"* * * * *\"\n", &["rollup.schedule = \"* * * * *\"", "cron"]),
        ("[likes\n", &["line 1"]),
    ];
    for (text, named) in bad {
        let (code, said) = check(&setup, text);
        assert_eq!(code, Some(1), "{text}: {said}");
        let file = setup.scratch().join("settings.toml");
        let started = setup.try_start_with(&["--config", file.to_str().unwrap()]).err().expect(text);
        for said in [said, started] {
            for word in [&["settings.toml"], named].concat() {
                assert!(said.contains(word), "{text}: {word:?} is not in: {said}");
            }
        }
    }
    assert!(!setup.scratch().join("data").exists(), "nothing was made");
    let (_, said) = check(&setup, "[likes]\nshards = 0\n[log]\nlevel = \"loud\"\n");
    assert!(said.contains("likes.shards") && said.contains("log.level"), "all at once: {said}");
    let missing = setup.run(&["check-config", "--config", "nowhere.toml"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("nowhere.toml"));
}

#[test]
fn a_bad_variable_is_named_as_it_is_set() {
    let setup = Setup::new().with("likes.shards", "many");
    let said = setup.try_start().err().unwrap();
    for word in ["HEADCOUNT__LIKES__SHARDS", "likes.shards", "many", "from 1 to 4096"] {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

/// Each setting at each layer, so that a layer which is never read would show.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_covers_defaults_a_variable_covers_the_file_and_a_flag_covers_both() {
    let setup = Setup::new();
    fs::create_dir(setup.scratch().join("config")).unwrap();
    let settings = "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n
        [storage]\ndata_dir = \"from-file\"\n
        [reservations]\ndefault_capacity = 7\nmax_seats_per_request = 3\n";
    // Where it is looked for by default, from the working directory.
    fs::write(setup.scratch().join("config/headcount.toml"), settings).unwrap();
    let seen = async |service: Service| {
        let capacity = service.client.status("workshop").await["capacity"].as_i64().unwrap();
        let three = service.client.reserve("workshop", "request-3", 3).await.status;
        let four = service.client.reserve("workshop", "request-4", 4).await.status;
        let directory = service.ready.rsplit_once("data in ").unwrap().1;
        // It says where that is.
        assert!(Path::new(directory).is_absolute(), "{directory}");
        let directory = Path::new(directory).file_name().unwrap().to_str().unwrap().to_owned();
        assert!(service.stop().success());
        (capacity, three, four, directory)
    };
    let from_file = seen(setup.try_start_with(&[]).unwrap()).await;
    assert_eq!(from_file, (7, 201, 400, "from-file".to_owned()));
    let setup = setup.with("reservations.default_capacity", 9).with("storage.data_dir", "from-env");
    let from_env = seen(setup.try_start_with(&[]).unwrap()).await;
    assert_eq!(from_env, (9, 201, 400, "from-env".to_owned()));
    let from_flag = seen(setup.try_start_with(&["--data-dir", "from-flag"]).unwrap()).await;
    assert_eq!(from_flag, (9, 201, 400, "from-flag".to_owned()));
    // Another file than the default one: the default one is not read.
    let other = setup.scratch().join("other.toml");
    fs::write(&other, settings.replace("max_seats_per_request = 3", "max_seats_per_request = 4")).unwrap();
    let flags = ["--config", other.to_str().unwrap(), "--data-dir", "from-other"];
    assert_eq!(seen(setup.try_start_with(&flags).unwrap()).await, (9, 201, 201, "from-other".to_owned()));
}

/// Waits until the roll-up of the start is over and nothing is in a transaction but what a test sends.
async fn quiet(setup: &Setup, service: &Service) {
    while service.client.get("/likes/any").await.json["asOf"] == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    eventually("rest", || !in_flight(setup));
}

fn in_flight(setup: &Setup) -> bool {
    files::partitions(&setup.data_dir()).iter().any(|file| files::is_being_written(&setup.data_dir(), file))
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_finishes_what_is_in_flight_rolls_up_and_checkpoints() {
    let setup = Setup::new().with("rollup.schedule", NEVER).with("faults.commit_delay_ms", 700);
    let mut service = setup.start();
    quiet(&setup, &service).await;
    // An idle kept-alive connection, and one that is still to send its request: neither is waited for.
    let mut idle = TcpStream::connect(&service.public).unwrap();
    let in_time = service.client.clone();
    let like = tokio::spawn(async move { in_time.like("post", "ada").await });
    eventually("the like in its commit", || in_flight(&setup));
    service.send_sigterm();
    eventually("a closed door", || TcpStream::connect(&service.public).is_err());
    let answer = like.await.unwrap();
    assert_eq!((answer.status, &answer.json["changed"]), (200, &json!(true)));
    assert_eq!(service.wait().code(), Some(0));
    assert_eq!(idle.read(&mut [0; 16]).unwrap(), 0, "closed, in order");

    // Only the last roll-up can have carried it: the schedule never knocked.
    let data_dir = setup.data_dir();
    assert_eq!(files::number(&data_dir, "summary.db", "SELECT total FROM summary WHERE item = 'post'"), 1);
    for entry in fs::read_dir(&data_dir).unwrap() {
        let entry = entry.unwrap();
        let is_log = entry.path().extension().is_some_and(|extension| extension == "db-wal");
        assert!(!is_log || entry.metadata().unwrap().len() == 0, "{:?} is not truncated", entry.path());
    }
    setup.assert_verified();
    assert!(service.log().last().unwrap().contains("stopped"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_exits_at_once() {
    // Ten minutes a commit: without the second signal it would not end within the test's patience.
    let setup = Setup::new().with("faults.commit_delay_ms", 600_000);
    let mut service = setup.start();
    let client = service.client.clone();
    let unanswered =
        tokio::spawn(async move { client.try_send(hyper::Method::PUT, "/likes/a/users/b", "").await });
    eventually("the like in its commit", || in_flight(&setup));
    service.send_sigterm();
    eventually("the first signal", || service.log().iter().any(|line| line.contains("stopping")));
    service.send_sigterm();
    assert_eq!(service.wait().code(), Some(1));
    assert!(unanswered.await.unwrap().map_or(true, |answer| answer.status == 503));
}

/// The decision log's lines so far.
fn decisions(service: &Service) -> Vec<String> {
    service.log().into_iter().filter(|line| line.contains("reservation_decided")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_decision_is_one_line_of_json() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    client.reserve("launch-day", "request-1", 3).await;
    client.reserve("launch-day", "request-2", 2).await;
    client.reserve("launch-day", "request-1", 3).await;
    client.reserve("launch-day", "request-1", 1).await;
    client.reserve("launch-day", "bad!", 1).await;
    client.status("launch-day").await;
    client.like("post", "ada").await;
    client.reserve("launch-day", "request-3", 1).await;
    eventually("the last line", || decisions(&service).iter().any(|line| line.contains("request-3")));
    let lines: Vec<Value> =
        decisions(&service).iter().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let expected = [
        ("request-1", 3, "accepted", 3, false),
        ("request-2", 2, "rejected", 3, false),
        ("request-1", 3, "accepted", 3, true),
        ("request-3", 1, "accepted", 4, false),
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, (request, seats, status, reserved, replayed)) in lines.iter().zip(expected) {
        let expected = json!({"timestamp": line["timestamp"], "level": "INFO", "target": "headcount::decisions",
            "event": "reservation_decided", "workshop": "launch-day", "requestId": request, "seats": seats,
            "status": status, "reserved": reserved, "replayed": replayed});
        assert_eq!(*line, expected);
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
    }
    assert!(
        service.log().iter().all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "all lines are JSON"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_for_humans_or_silent_by_configuration() {
    let human = Setup::new().with("log.format", "human");
    let service = human.start();
    service.client.reserve("launch-day", "request-1", 3).await;
    eventually("the line", || !decisions(&service).is_empty());
    let line = decisions(&service).remove(0);
    assert!(serde_json::from_str::<Value>(&line).is_err() && !line.contains('\u{1b}'), "{line}");
    for word in
        ["INFO", "workshop=\"launch-day\"", "requestId=\"request-1\"", "seats=3", "status=\"accepted\""]
    {
        assert!(line.contains(word), "{word} is not in: {line}");
    }

    let silent = Setup::new().with("log.decisions", false);
    let service = silent.start();
    service.client.reserve("launch-day", "request-1", 3).await;
    let mut service = service;
    service.send_sigterm();
    assert!(service.wait().success());
    assert_eq!(decisions(&service), Vec::<String>::new());
    assert!(service.log().iter().any(|line| line.contains("stopped")), "the rest of the log goes on");

    // The decisions alone.
    let alone = Setup::new().with("log.level", "error");
    let service = alone.start();
    service.client.reserve("launch-day", "request-1", 3).await;
    eventually("the line", || !decisions(&service).is_empty());
    assert_eq!(service.log().len(), 1, "{:?}", service.log());
}

/// The first line of the log of a start that goes no further, on a terminal; or into a pipe.
fn first_line(setup: &Setup, on_a_terminal: bool) -> String {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let serve = ["serve", "--listen", &address, "--admin-listen", "127.0.0.1:0"];
    let output = match on_a_terminal {
        true => setup.run_on_a_terminal(&serve),
        false => setup.run(&serve),
    };
    assert!(!output.status.success());
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    said.lines()
        .find(|line| line.contains("starting"))
        .unwrap_or_else(|| panic!("no start in {said}"))
        .to_owned()
}

#[test]
fn the_log_is_text_on_a_terminal_and_json_elsewhere_unless_it_is_told() {
    let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    for (format, on_a_terminal, json) in
        [(None, true, false), (None, false, true), (Some("json"), true, true), (Some("human"), false, false)]
    {
        let setup = Setup::new();
        let setup = match format {
            Some(format) => setup.with("log.format", format),
            None => setup,
        };
        let line = first_line(&setup, on_a_terminal);
        assert_eq!(is_json(&line), json, "{format:?}, on a terminal: {on_a_terminal}: {line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_still_gets_its_line() {
    let setup = Setup::new()
        .with("rollup.schedule", NEVER)
        .with("faults.commit_delay_ms", 500)
        .with("reservations.default_capacity", 1_000);
    let service = setup.start();
    quiet(&setup, &service).await;
    // What is in its commit may be the service's own, and the request not yet read: then nobody has decided it, and another one is
    // sent.
    for id in (1..=20).map(|number| format!("request-{number}")) {
        let body = format!(r#"{{"requestId":"{id}","seats":2}}"#);
        let mut connection = TcpStream::connect(&service.public).unwrap();
        let head = format!(
            "POST /workshops/launch-day/reservations HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(head.as_bytes()).unwrap();
        eventually("the request in its commit", || in_flight(&setup));
        drop(connection);
        let again = service.client.reserve("launch-day", &id, 2).await;
        assert_eq!(again.status, 201);
        if again.json["replayed"] == true {
            let of_it = || decisions(&service).into_iter().find(|line| line.contains(&format!("\"{id}\"")));
            eventually("its line", || of_it().is_some());
            let line: Value = serde_json::from_str(&of_it().unwrap()).unwrap();
            assert_eq!((&line["status"], &line["replayed"]), (&json!("accepted"), &json!(false)));
            return;
        }
    }
    panic!("of twenty requests none was decided after its client had gone");
}
