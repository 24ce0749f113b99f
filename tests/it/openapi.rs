//! The service and its OpenAPI document tell the same story: the document is the one that was reviewed,
//! and a fuzzer that believes it finds nothing that it does not say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::raw;
use crate::rooms::post;
use crate::rooms::reader::Reader;
use crate::service::{Service, Setup};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// schemathesis and a validator, every package of theirs with its version.
const REQUIREMENTS: &str = include_str!("../schemathesis/requirements.txt");

const ROUTES: [(&str, &[&str]); 38] = [
    (BULK, &["post"]),
    (ITEMS_EVENTS, &["get"]),
    ("/batch/likes/query", &["post"]),
    ("/counters/{counter}", &["get", "post"]),
    ("/health", &["get"]),
    ("/join", &["post"]),
    ("/leave", &["post"]),
    ("/likes", &["get"]),
    ("/likes/{item}", &["delete", "get", "post"]),
    (ITEM_EVENTS, &["get"]),
    ("/likes/{item}/history", &["get"]),
    ("/likes/{item}/users", &["get"]),
    ("/likes/{item}/users/{user}", &["delete", "get", "put"]),
    ("/ready", &["get"]),
    ("/reservations", &["post"]),
    ("/reservations/{requestId}", &["get"]),
    ("/reservations/{requestId}/cancel", &["post"]),
    ("/reservations/{requestId}/confirm", &["post"]),
    ("/reservations/{requestId}/extend", &["post"]),
    ("/rooms/{room}", &["get"]),
    (ROOM_EVENTS, &["get"]),
    ("/rooms/{room}/join", &["post"]),
    ("/rooms/{room}/leave", &["post"]),
    ("/rooms/{room}/send", &["post"]),
    (SOCKET, &["get"]),
    ("/send", &["post"]),
    ("/trending", &["get"]),
    ("/users/{user}", &["delete"]),
    ("/users/{user}/likes", &["get"]),
    ("/workshops", &["get"]),
    ("/workshops/{workshop}", &["delete", "get", "put"]),
    (EVENTS, &["get"]),
    ("/workshops/{workshop}/reservations", &["get", "post"]),
    ("/workshops/{workshop}/reservations/{requestId}", &["get"]),
    ("/workshops/{workshop}/reservations/{requestId}/cancel", &["post"]),
    ("/workshops/{workshop}/reservations/{requestId}/confirm", &["post"]),
    ("/workshops/{workshop}/reservations/{requestId}/extend", &["post"]),
    ("/workshops/{workshop}/status", &["get"]),
];

/// Streams without an end, which the fuzzer would wait for.
const EVENTS: &str = "/workshops/{workshop}/events";
const ITEM_EVENTS: &str = "/likes/{item}/events";
const ITEMS_EVENTS: &str = "/batch/likes/events";
const ROOM_EVENTS: &str = "/rooms/{room}/events";
/// A stream of lines, in and out: no schema of a body fits it.
const BULK: &str = "/batch/likes";
/// No fuzzer of HTTP speaks what comes after the switch, and without asking for it all it gets is 426.
const SOCKET: &str = "/rooms/{room}/socket";

fn document(service: &Service) -> String {
    let answer = raw::send(&service.public, "GET", "/openapi.json", "");
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    answer.text
}

/// A virtual environment with the packages that the tests need, made at the first use and kept under
/// `target/`.
pub fn python() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemathesis");
        let installed = venv.join("installed.txt");
        // Written last: an installation that was interrupted is made again.
        if std::fs::read_to_string(&installed).ok().as_deref() != Some(REQUIREMENTS) {
            let requirements = Path::new(ROOT).join("tests/schemathesis/requirements.txt");
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
            run(Command::new(venv.join("bin/pip")).args(["install", "--quiet", "-r"]).arg(requirements));
            std::fs::write(installed, REQUIREMENTS).unwrap();
        }
        venv.join("bin")
    })
}

/// Runs a program to its end, which has to be a good one; what it printed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

/// Requests made from the document, good and bad, in phases: its examples, each bound of each schema,
/// random ones, and chains in which one answer feeds the next request.
fn fuzz(setup: &Setup, service: &Service, requests: u32, arguments: &[&str]) {
    let report = run(Command::new(python().join("schemathesis"))
        .current_dir(setup.scratch())
        .arg("--config-file")
        .arg(Path::new(ROOT).join("tests/schemathesis/schemathesis.toml"))
        .args(["run", &format!("http://{}/openapi.json", service.public)])
        .args(["--checks=all", "--mode=all", "--phases=examples,coverage,fuzzing,stateful"])
        .args(["--seed=20", "--generation-database=none", "--continue-on-failure", "--no-color"])
        // This one expects 404 for what was deleted. An item or a user needs no making and so is never missing:
        // a DELETE takes a like back (or an item's likes), and reading it afterwards is 200 with `liked: false`
        // or a total of 0.
        .arg("--exclude-checks=use_after_free")
        .arg(format!("--exclude-path={EVENTS}"))
        .arg(format!("--exclude-path={ITEM_EVENTS}"))
        .arg(format!("--exclude-path={ITEMS_EVENTS}"))
        .arg(format!("--exclude-path={ROOM_EVENTS}"))
        .arg(format!("--exclude-path={SOCKET}"))
        .arg(format!("--exclude-path={BULK}"))
        // A slow machine is no finding.
        .args(["--suppress-health-check=all", "--request-timeout=60"])
        .arg(format!("--max-examples={requests}"))
        .args(arguments));
    let operations: usize = ROUTES.iter().map(|(_, methods)| methods.len()).sum::<usize>() - 6;
    assert!(report.contains(&format!("Tested: {operations}")), "{report}");
    // Warnings are about cases that tell little, such as bookings which were never there; no finding is allowed.
    let counts = report.lines().find(|line| line.contains(" generated, ")).unwrap_or_default();
    let numbers = |word: &str| counts.split(", ").find_map(|part| part.trim().strip_suffix(word));
    let (generated, passed, skipped) = (numbers(" generated"), numbers(" passed"), numbers(" skipped"));
    let number = |text: Option<&str>| text.map_or(0, |text| text.parse::<usize>().unwrap());
    assert!(passed.is_some() && !counts.contains("failed") && !counts.contains("error"), "{report}");
    assert!(number(passed) <= number(generated) && number(skipped) < number(passed), "{report}");
    println!("{report}");
}

#[test]
fn the_document_is_the_one_that_was_reviewed() {
    let golden = Path::new(ROOT).join("tests/openapi.json");
    let served = document(&Setup::new().start());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &served).unwrap();
    }
    let reviewed = std::fs::read_to_string(golden).unwrap();
    assert!(served == reviewed, "if the change is meant: UPDATE_GOLDEN=1 cargo test --test it openapi");
}

#[test]
fn the_document_is_valid_and_whole() {
    let setup = Setup::new();
    let text = document(&setup.start());
    let file = setup.scratch().join("openapi.json");
    std::fs::write(&file, &text).unwrap();
    run(Command::new(python().join("openapi-spec-validator")).args(["--schema", "3.1"]).arg(&file));

    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["components"]["securitySchemes"]["key"]["scheme"], "bearer");
    assert_eq!(document["security"], serde_json::json!([{}, {"key": []}]), "open without keys");
    let paths = document["paths"].as_object().unwrap();
    let methods = |path: &Value| path.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let routes: Vec<_> = paths.iter().map(|(path, of)| (path.as_str(), methods(of))).collect();
    assert_eq!(
        routes,
        ROUTES.map(|(path, methods)| (path, methods.iter().map(|m| (*m).to_owned()).collect()))
    );
    for (path, methods) in ROUTES {
        for method in methods {
            let expected: BTreeSet<&str> = statuses(path, method).iter().copied().collect();
            let responses = paths[path][method]["responses"].as_object().unwrap();
            assert_eq!(
                responses.keys().map(String::as_str).collect::<BTreeSet<_>>(),
                expected,
                "{method} {path}"
            );
            for (status, response) in responses.iter().filter(|(status, _)| status.as_str() >= "400") {
                let decisions = ["/reservations", "/workshops/{workshop}/reservations"];
                let decision = status == "409" && decisions.contains(&path);
                let kind = match status.as_str() {
                    // The seed's words.
                    "426" => "text/plain",
                    _ if decision => "application/json",
                    _ => "application/problem+json",
                };
                assert!(response["content"][kind].is_object(), "{method} {path} {status}");
            }
        }
    }
}

/// What comes has every field that its schema asks for, and none that it does not name.
fn fits(document: &Value, name: &str, value: &Value) {
    let schema = &document["components"]["schemas"][name];
    let parts: Vec<&Value> = match schema["allOf"].as_array() {
        Some(parts) => parts.iter().collect(),
        None => vec![schema],
    };
    let (mut known, mut asked) = (BTreeSet::new(), BTreeSet::new());
    for part in parts {
        let part = match part["$ref"].as_str() {
            Some(of) => &document["components"]["schemas"][of.rsplit_once('/').unwrap().1],
            None => part,
        };
        known.extend(part["properties"].as_object().unwrap().keys().map(String::as_str));
        asked.extend(part["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()));
        let words = part["properties"]["type"]["enum"].as_array();
        assert!(words.is_none_or(|words| words.contains(&value["type"])), "{name}: {value}");
    }
    let has: BTreeSet<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(has.is_subset(&known) && has.is_superset(&asked), "{value} is no {name}: {known:?}, {asked:?}");
}

fn names(schema: &Value) -> Vec<&str> {
    let refs = schema["oneOf"].as_array().unwrap().iter();
    refs.map(|of| of["$ref"].as_str().unwrap().rsplit_once('/').unwrap().1).collect()
}

/// What no fuzzer reads: the lines of bulk answers, and what a room tells.
#[tokio::test(flavor = "multi_thread")]
async fn what_streams_carry_is_what_the_document_names() {
    let service = Setup::new().start();
    let document: Value = serde_json::from_str(&document(&service)).unwrap();
    let schemas = &document["components"]["schemas"];

    assert_eq!(names(&schemas["BulkOutcome"]), ["BulkLike", "BulkProblem"]);
    let lines = "{\"item\":\"post-1\",\"user\":\"ada\"}\n{\"item\":\"\"}\n";
    let answer = service.client.post("/batch/likes", lines).await;
    let outcomes: Vec<Value> = answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [done, problem] = outcomes.as_slice() else { panic!("{}", answer.text) };
    fits(&document, "BulkLike", done);
    fits(&document, "BulkProblem", problem);

    assert_eq!(names(&schemas["MessageBody"]), ["TextMessage", "DataMessage"]);
    assert_eq!(names(&schemas["RoomEvent"]), ["RoomPresence", "RoomMessage", "RoomMember", "RoomUpdate"]);
    let mut reader = Reader::open(&service, "lobby/events", "").await;
    let said = async |what: &str, body: Value| post(&service, &format!("/rooms/lobby/{what}"), body).await;
    let ada = json!({"user": "ada", "meta": {"colour": "red"}});
    fits(&document, "RoomPresence", &reader.event().await.json());
    said("join", ada).await;
    fits(&document, "RoomMember", &reader.event().await.json());
    for message in [
        json!({"user": "ada", "text": "hello", "id": "one"}),
        json!({"user": "ada", "data": {"dice": [1, 6]}}),
    ] {
        let name = if message["text"].is_string() { "TextMessage" } else { "DataMessage" };
        fits(&document, name, &message);
        said("send", message.clone()).await;
        let heard = reader.event().await.json();
        fits(&document, "RoomMessage", &heard);
        assert_eq!((&heard["text"], &heard["data"]), (&message["text"], &message["data"]));
    }
    said("join", json!({"user": "ada", "meta": {"colour": "blue"}})).await;
    fits(&document, "RoomUpdate", &reader.event().await.json());
    said("leave", json!({"user": "ada"})).await;
    fits(&document, "RoomMember", &reader.event().await.json());
    let members = Reader::open(&service, "lobby/events?since=e:0", "").await.event().await.json();
    fits(&document, "RoomPresence", &members);
    assert_eq!(members["recovered"], false, "a place in another stream");
}

/// Every status that an operation may answer with.
fn statuses(path: &str, method: &str) -> &'static [&'static str] {
    match (path, method) {
        ("/health", _) => &["200"],
        ("/ready", _) => &["200", "503"],
        ("/workshops/{workshop}/reservations", "post") => {
            &["201", "202", "400", "401", "403", "404", "408", "409", "410", "413", "422", "503", "507"]
        }
        ("/reservations", _) => {
            &["201", "400", "401", "403", "404", "408", "409", "410", "413", "422", "503", "507"]
        }
        ("/reservations/{requestId}/cancel", _) => &["200", "400", "401", "403", "404", "409", "503", "507"],
        ("/reservations/{requestId}/confirm" | "/reservations/{requestId}/extend", _) => {
            &["200", "400", "401", "403", "404", "408", "409", "413", "503", "507"]
        }
        ("/workshops/{workshop}", "put") => {
            &["200", "201", "400", "401", "403", "404", "408", "409", "412", "413", "503", "507"]
        }
        ("/workshops/{workshop}/reservations/{requestId}/cancel", _) => {
            &["200", "400", "401", "403", "404", "409", "410", "503", "507"]
        }
        (path, "post") if path.starts_with("/workshops/") => {
            &["200", "400", "401", "403", "404", "408", "409", "410", "413", "503", "507"]
        }
        (path, _) if path.starts_with("/workshops/") => {
            &["200", "400", "401", "403", "404", "410", "503", "507"]
        }
        ("/join" | "/send" | "/rooms/{room}/join" | "/rooms/{room}/send", _) => {
            &["200", "400", "401", "403", "404", "408", "413", "429", "503", "507"]
        }
        (SOCKET, _) => &["101", "400", "401", "403", "404", "426", "429", "503", "507"],
        // A user's token holds so many streams and no more.
        (ROOM_EVENTS | BULK | "/batch/likes/events" | "/likes/{item}/events", _) => {
            &["200", "400", "401", "403", "404", "429", "503", "507"]
        }
        ("/counters/{counter}", "post") => {
            &["200", "400", "401", "403", "404", "408", "409", "413", "422", "503", "507"]
        }
        ("/likes/{item}/users" | "/users/{user}", _) => {
            &["200", "400", "401", "403", "404", "409", "503", "507"]
        }
        (_, "post") => &["200", "400", "401", "403", "404", "408", "413", "503", "507"],
        _ => &["200", "400", "401", "403", "404", "503", "507"],
    }
}

#[test]
fn the_document_tells_the_limits_that_are_set() {
    let setup = Setup::new()
        .with("likes.max_item_bytes", 7)
        .with("likes.max_user_bytes", 8)
        .with("likes.max_items_per_read", 9)
        .with("likes.max_items_per_query", 11)
        .with("reservations.max_seats_per_request", 10);
    let document: Value = serde_json::from_str(&document(&setup.start())).unwrap();
    let schemas = &document["components"]["schemas"];
    let of = |name: &str, bound: &str| schemas[name][bound].as_u64().unwrap();
    assert_eq!((of("Item", "maxLength"), of("User", "maxLength")), (7, 8));
    assert_eq!((of("Items", "maxItems"), of("Seats", "maximum")), (9, 10));
    assert_eq!((of("QueryItems", "maxItems"), of("Counter", "maxLength")), (11, 7));
}

#[test]
fn a_fuzzer_finds_no_answer_that_the_document_does_not_give() {
    let setup = Setup::new();
    let service = setup.start();
    fuzz(&setup, &service, 150, &[]);
    assert!(service.stop().success());
    setup.assert_verified();
}

/// The same with a key, which the fuzzer leaves out or spoils now and then.
#[test]
fn a_fuzzer_finds_no_way_around_the_keys() {
    let setup = Setup::new();
    let output = setup.run(&["new-key"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let (first, settings) = text.split_once("\n\n").unwrap();
    let key = first.strip_prefix("key (shown once): ").unwrap();
    std::fs::create_dir_all(setup.scratch().join("config")).unwrap();
    let settings = settings.replace(r#"["read", "write"]"#, r#"["read", "write", "admin"]"#);
    std::fs::write(setup.scratch().join("config/headcount.toml"), settings).unwrap();
    let service = setup.start();
    fuzz(&setup, &service, 25, &["--header", &format!("Authorization: Bearer {key}")]);
}
