//! Who may do what: without keys everything, on loopback only; with keys what their scopes say.

use crate::client::Answer;
use crate::raw;
use crate::service::{Service, Setup};

const SHIPPED: &str = include_str!("../../config/headcount.toml");

/// Every route that asks for a scope.
const ROUTES: [(&str, &str, &str, &str); 15] = [
    ("read", "GET", "/likes?item=a", ""),
    ("read", "GET", "/likes/a", ""),
    ("read", "GET", "/likes/a/users/u", ""),
    ("read", "POST", "/batch/likes/query", r#"{"items":["a"],"user":"u"}"#),
    ("read", "GET", "/counters/c", ""),
    ("read", "GET", "/users/u/likes", ""),
    ("read", "GET", "/workshops/w/status", ""),
    ("write", "PUT", "/likes/a/users/u", ""),
    ("write", "DELETE", "/likes/a/users/u", ""),
    ("write", "POST", "/likes/a", r#"{"userId":"u"}"#),
    ("write", "POST", "/batch/likes", r#"{"item":"a","user":"u"}"#),
    ("write", "POST", "/counters/c", r#"{"amount":1}"#),
    ("write", "POST", "/workshops/w/reservations", r#"{"requestId":"request-1","seats":1}"#),
    ("admin", "DELETE", "/likes/a", ""),
    ("admin", "DELETE", "/users/u?policy=remove", ""),
];

/// `headcount new-key`: the key, and what the settings need to know it.
fn new_key(setup: &Setup, name: &str, scopes: &[&str]) -> (String, String) {
    let scopes = scopes.iter().flat_map(|scope| ["--scope", scope]);
    let output = setup.run(&["new-key", "--name", name].into_iter().chain(scopes).collect::<Vec<_>>());
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let (first, settings) = text.split_once("\n\n").unwrap();
    (first.strip_prefix("key (shown once): ").unwrap().to_owned(), settings.to_owned())
}

/// The settings file that the service finds by itself.
fn write_settings(setup: &Setup, text: &str) {
    std::fs::create_dir_all(setup.scratch().join("config")).unwrap();
    std::fs::write(setup.scratch().join("config/headcount.toml"), text).unwrap();
}

/// A service with a key for each scope, and the keys.
fn with_a_key_a_scope(setup: &Setup) -> (Service, [(&'static str, String); 3]) {
    let mut settings = String::new();
    let keys = ["read", "write", "admin"].map(|scope| {
        let (key, of_key) = new_key(setup, scope, &[scope]);
        settings += &of_key;
        (scope, key)
    });
    write_settings(setup, &settings);
    (setup.start(), keys)
}

fn send(address: &str, authorization: &str, method: &str, path: &str, body: &str) -> Answer {
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n");
    raw::exchange(address, format!("{head}{authorization}\r\n{body}").as_bytes())
}

#[test]
fn without_keys_everything_is_open_on_loopback() {
    let service = Setup::new().start();
    for authorization in ["", "authorization: Bearer whatever\r\n"] {
        for (_, method, path, body) in ROUTES {
            let answer = send(&service.public, authorization, method, path, body);
            assert!(answer.status < 300, "{method} {path}: {answer:?}");
        }
        assert_eq!(send(&service.admin_address, authorization, "GET", "/metrics", "").status, 200);
    }
}

#[test]
fn a_key_may_do_what_its_scopes_say() {
    let setup = Setup::new();
    let (service, keys) = with_a_key_a_scope(&setup);
    let routes = ROUTES.map(|(scope, method, path, body)| (&service.public, scope, method, path, body));
    let metrics = (&service.admin_address, "read", "GET", "/metrics", "");
    for (address, scope, method, path, body) in routes.into_iter().chain([metrics]) {
        for authorization in ["", "authorization: Bearer hc_unknown\r\n"] {
            let answer = send(address, authorization, method, path, body);
            assert_eq!((answer.status, answer.error()), (401, "unauthorized"), "{method} {path}: {answer:?}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
            assert_eq!(answer.header("content-type"), "application/problem+json");
        }
        for (of_key, key) in &keys {
            let answer = send(address, &format!("authorization: Bearer {key}\r\n"), method, path, body);
            if *of_key == scope {
                assert!(answer.status < 300, "{method} {path}: {answer:?}");
            } else {
                assert_eq!((answer.status, answer.error()), (403, "forbidden"), "{method} {path}");
                assert!(answer.json["detail"].as_str().unwrap().contains(scope));
            }
        }
    }
    let log = service.log().join("\n");
    assert!(keys.iter().all(|(_, key)| !log.contains(key.as_str())), "the log tells a key");
}

#[test]
fn without_its_key_a_request_learns_nothing_else() {
    let setup = Setup::new();
    let (service, keys) = with_a_key_a_scope(&setup);
    for (method, path, body) in [
        ("POST", "/workshops/BAD/reservations", "{"),
        ("PUT", "/likes/%00/users/%00", ""),
        ("GET", "/likes?exact=maybe", ""),
        ("POST", "/likes/a", &" ".repeat(100_000)),
    ] {
        for (authorization, status) in
            [(String::new(), 401), (format!("authorization: Bearer {}\r\n", keys[2].1), 403)]
        {
            let answer = send(&service.public, &authorization, method, path, body);
            assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        }
    }
    for (address, path, status) in [
        (&service.public, "/health", 200),
        (&service.public, "/ready", 200),
        (&service.public, "/openapi.json", 200),
        (&service.public, "/nothing", 404),
        (&service.admin_address, "/health", 200),
        (&service.admin_address, "/ready", 200),
    ] {
        assert_eq!(send(address, "", "GET", path, "").status, status, "{path} needs no key");
    }
    assert_eq!(send(&service.public, "", "POST", "/health", "").status, 405);
    let document = send(&service.public, "", "GET", "/openapi.json", "").json;
    assert_eq!(document["security"], serde_json::json!([{"key": []}]), "a key is not optional here");
}

#[test]
fn the_scheme_is_bearer_in_any_case_and_the_key_as_it_is() {
    let setup = Setup::new();
    let (service, [(_, key), ..]) = with_a_key_a_scope(&setup);
    let status = |authorization: &str| send(&service.public, authorization, "GET", "/likes/a", "").status;
    for good in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        assert_eq!(status(&format!("authorization: {good} {key}\r\n")), 200, "{good}");
        assert_eq!(status(&format!("AUTHORIZATION:{good} {key}  \r\n")), 200, "{good}");
    }
    let upper = key.to_uppercase();
    for bad in [
        "",
        "Bearer",
        "Bearer ",
        &key,
        &format!("Basic {key}"),
        &format!("Bearer{key}"),
        &format!("Bearer  {key}"),
        &format!("Bearer {key}x"),
        &format!("Bearer {}", &key[..key.len() - 1]),
        &format!("Bearer {upper}"),
        &format!("Bearer {key} {key}"),
        &format!("Bearer \"{key}\""),
        "Bearer é",
    ] {
        assert_eq!(status(&format!("authorization: {bad}\r\n")), 401, "{bad}");
    }
    let two = format!("authorization: Bearer nobody\r\nauthorization: Bearer {key}\r\n");
    assert_eq!(status(&two), 401, "the first one counts");
}

#[tokio::test]
async fn what_new_key_prints_works_in_a_settings_file() {
    let setup = Setup::new();
    let names = ["app", r#"o'brien "x" \ é"#, "e\u{301}\u{200b}"];
    let keys = names.map(|name| new_key(&setup, name, &[]));
    assert!(keys[0].0.starts_with("hc_") && keys[0].0.len() == 3 + 64, "256 bits in hex");
    assert_ne!(keys[0].0, keys[1].0);
    for (key, settings) in &keys {
        assert!(!settings.contains(key.as_str()), "the settings give nobody access");
    }
    // Pasted at the end of what ships.
    let settings: String = keys.iter().map(|(_, settings)| settings.as_str()).collect();
    write_settings(&setup, &format!("{SHIPPED}\n{settings}"));
    let service = setup.start();
    for (key, _) in &keys {
        let client = service.client.with_key(key);
        assert_eq!(client.like("a", "u").await.status, 200);
        assert_eq!(client.exact("a").await, 1);
        assert_eq!(client.delete("/likes/a").await.status, 403);
    }
}

#[tokio::test]
async fn other_machines_are_let_in_only_with_keys_or_on_purpose() {
    let setup = Setup::new().listening_on("0.0.0.0:0");
    let refusal = setup.try_start().err().expect("open to everyone");
    for part in ["server.listen", "server.admin_listen", "0.0.0.0:0", "auth.keys", "auth.open"] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    assert!(!setup.data_dir().exists(), "refused before anything is made");

    let open = Setup::new().listening_on("0.0.0.0:0").with("auth.open", true).start();
    assert_eq!(open.client.like("a", "u").await.status, 200);

    let (key, settings) = new_key(&setup, "app", &[]);
    write_settings(&setup, &settings);
    let keyed = setup.start();
    assert_eq!(keyed.client.like("a", "u").await.status, 401);
    assert_eq!(keyed.client.with_key(&key).like("a", "u").await.status, 200);
}
