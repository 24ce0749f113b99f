//! Every route of the document, tried with a token: as oneself, as somebody else, and where no token gets.

use std::collections::BTreeSet;

use super::*;

/// What becomes of a request that is another user's.
#[derive(Debug, Clone, Copy)]
enum Other {
    /// It can be nobody's.
    Nobodys,
    /// `not_your_user`.
    Forbidden(&'static str, &'static str),
    /// As if it were not there.
    NotThere(&'static str),
}
use Other::{Forbidden, Nobodys, NotThere};

/// A method, a route, a request as ada with what answers it, and one as somebody else.
type Case = (&'static str, &'static str, &'static str, &'static str, u16, Other);

const EVE_LIKES: &str = r#"{"userId":"eve"}"#;
const EVE_JOINS: &str = r#"{"user":"eve"}"#;
const EVE_SAYS: &str = r#"{"user":"eve","text":"hi"}"#;
const EVE_RESERVES: &str = r#"{"requestId":"for-eve","seats":1,"holder":"eve"}"#;
const EVE_RESERVES_SETS: &str =
    r#"{"requestId":"set-for-eve","lines":[{"workshop":"w","seats":1}],"holder":"eve"}"#;
const ADA_RESERVES_A_SET: &str = r#"{"requestId":"set-new","lines":[{"workshop":"w","seats":1}]}"#;

/// In an order in which each finds what it needs; ada-1, ada-2, set-ada-1 and set-ada-2 are held, and likewise for eve.
#[rustfmt::skip]
const ALLOWED: &[Case] = &[
    ("put", "/likes/{item}/users/{user}", "/likes/a/users/ada", "", 200, Forbidden("/likes/a/users/eve", "")),
    ("get", "/likes/{item}/users/{user}", "/likes/a/users/ada", "", 200, Forbidden("/likes/a/users/eve", "")),
    ("post", "/likes/{item}", "/likes/a", r#"{"userId":"ada"}"#, 200, Forbidden("/likes/a", EVE_LIKES)),
    ("get", "/likes/{item}", "/likes/a?exact=true", "", 200, Nobodys),
    ("get", "/likes", "/likes?item=a&user=ada", "", 200, Forbidden("/likes?item=a&user=eve", "")),
    ("get", "/likes/{item}/events", "/likes/a/events", "", 200, Nobodys),
    ("get", "/batch/likes/events", "/batch/likes/events?item=a&item=b", "", 200, Nobodys),
    ("get", "/likes/{item}/history", "/likes/a/history?step=minute", "", 200, Nobodys),
    ("get", "/trending", "/trending?window=1h", "", 200, Nobodys),
    ("post", "/batch/likes", "/batch/likes", r#"{"item":"a","user":"ada"}"#, 200, Nobodys),
    ("post", "/batch/likes/query", "/batch/likes/query", r#"{"items":["a"],"user":"ada"}"#, 200,
        Forbidden("/batch/likes/query", r#"{"items":["a"],"user":"eve"}"#)),
    ("get", "/counters/{counter}", "/counters/views", "", 200, Nobodys),
    ("get", "/users/{user}/likes", "/users/ada/likes", "", 200, Forbidden("/users/eve/likes", "")),
    ("delete", "/likes/{item}/users/{user}", "/likes/a/users/ada", "", 200, Forbidden("/likes/a/users/eve", "")),

    ("get", "/workshops/{workshop}", "/workshops/w", "", 200, Nobodys),
    ("get", "/workshops/{workshop}/status", "/workshops/w/status", "", 200, Nobodys),
    ("post", "/workshops/{workshop}/reservations", "/workshops/w/reservations", r#"{"requestId":"new","seats":1}"#, 201,
        Forbidden("/workshops/w/reservations", EVE_RESERVES)),
    ("get", "/workshops/{workshop}/reservations/{requestId}", "/workshops/w/reservations/ada-1", "", 200,
        NotThere("/workshops/w/reservations/eve-1")),
    ("post", "/workshops/{workshop}/reservations/{requestId}/extend", "/workshops/w/reservations/ada-1/extend",
        r#"{"ttlMs":600000}"#, 200, NotThere("/workshops/w/reservations/eve-1/extend")),
    ("post", "/workshops/{workshop}/reservations/{requestId}/confirm", "/workshops/w/reservations/ada-1/confirm", "", 200,
        NotThere("/workshops/w/reservations/eve-1/confirm")),
    ("post", "/workshops/{workshop}/reservations/{requestId}/cancel", "/workshops/w/reservations/ada-2/cancel", "", 200,
        NotThere("/workshops/w/reservations/eve-1/cancel")),
    ("post", "/reservations", "/reservations", ADA_RESERVES_A_SET, 201, Forbidden("/reservations", EVE_RESERVES_SETS)),
    ("get", "/reservations/{requestId}", "/reservations/set-ada-1", "", 200, NotThere("/reservations/set-eve-1")),
    ("post", "/reservations/{requestId}/extend", "/reservations/set-ada-1/extend", r#"{"ttlMs":600000}"#, 200,
        NotThere("/reservations/set-eve-1/extend")),
    ("post", "/reservations/{requestId}/confirm", "/reservations/set-ada-1/confirm", "", 200,
        NotThere("/reservations/set-eve-1/confirm")),
    ("post", "/reservations/{requestId}/cancel", "/reservations/set-ada-2/cancel", "", 200,
        NotThere("/reservations/set-eve-1/cancel")),

    ("get", "/rooms/{room}", "/rooms/r?members=true", "", 200, Nobodys),
    ("post", "/rooms/{room}/join", "/rooms/r/join", r#"{"user":"ada"}"#, 200, Forbidden("/rooms/r/join", EVE_JOINS)),
    ("post", "/rooms/{room}/send", "/rooms/r/send", r#"{"user":"ada","text":"hi"}"#, 200, Forbidden("/rooms/r/send", EVE_SAYS)),
    ("post", "/rooms/{room}/leave", "/rooms/r/leave", r#"{"user":"ada"}"#, 200, Forbidden("/rooms/r/leave", EVE_JOINS)),
    ("get", "/rooms/{room}/events", "/rooms/r/events", "", 200, Nobodys),
    ("get", "/rooms/{room}/socket", "/rooms/r/socket?user=ada", "", 101, Forbidden("/rooms/r/socket?user=eve", "")),
    ("post", "/join", "/join?room=r", r#"{"user":"ada"}"#, 200, Forbidden("/join?room=r", EVE_JOINS)),
    ("post", "/send", "/send?room=r", r#"{"user":"ada","text":"hi"}"#, 200, Forbidden("/send?room=r", EVE_SAYS)),
    ("post", "/leave", "/leave?room=r", r#"{"user":"ada"}"#, 200, Forbidden("/leave?room=r", EVE_JOINS)),
];

/// Whoever it is asked for.
#[rustfmt::skip]
const REFUSED: &[(&str, &str, &str, &str)] = &[
    ("get", "/likes/{item}/users", "/likes/a/users", ""),
    ("delete", "/likes/{item}", "/likes/a", ""),
    ("post", "/counters/{counter}", "/counters/views", r#"{"amount":1}"#),
    ("delete", "/users/{user}", "/users/ada?policy=remove", ""),
    ("get", "/workshops", "/workshops", ""),
    ("put", "/workshops/{workshop}", "/workshops/w", r#"{"capacity":1}"#),
    ("delete", "/workshops/{workshop}", "/workshops/w", ""),
    ("get", "/workshops/{workshop}/events", "/workshops/w/events", ""),
    ("get", "/workshops/{workshop}/reservations", "/workshops/w/reservations?holder=ada", ""),
];

/// Without a key.
const OPEN: [(&str, &str); 2] = [("get", "/health"), ("get", "/ready")];

fn service_with_reservations() -> Service {
    let service = start();
    let post = |path: &str, body: String| {
        let answer = send(&service.public, &bearer(KEY), "POST", path, &body);
        assert_eq!(answer.status, 201, "{answer:?}");
    };
    let capacity = send(&service.public, &bearer(KEY), "PUT", "/workshops/w", r#"{"capacity":100}"#);
    assert_eq!(capacity.status, 201);
    for who in ["ada", "eve"] {
        for number in [1, 2] {
            let more = format!(r#""holder":"{who}","hold":true"#);
            post(
                "/workshops/w/reservations",
                format!(r#"{{"requestId":"{who}-{number}","seats":1,{more}}}"#),
            );
            let lines = r#""lines":[{"workshop":"w","seats":1}]"#;
            post("/reservations", format!(r#"{{"requestId":"set-{who}-{number}",{lines},{more}}}"#));
        }
    }
    service
}

fn is_endless(route: &str) -> bool {
    route.ends_with("/events") || route.ends_with("/socket")
}

fn ask(
    service: &Service,
    (method, route): (&str, &str),
    path: &str,
    body: &str,
    token: &str,
) -> (u16, String) {
    let upgrade = if route.ends_with("/socket") { UPGRADE } else { "" };
    let headers = format!("{upgrade}{}", bearer(token));
    if is_endless(route) {
        let (status, head) = open(&service.public, &headers, path);
        if status < 300 {
            return (status, head);
        }
    }
    let headers = if upgrade.is_empty() {
        headers
    } else {
        headers.replace("connection: upgrade", "connection: upgrade, close")
    };
    let answer = send(&service.public, &headers, &method.to_uppercase(), path, body);
    (answer.status, answer.error().to_owned())
}

#[test]
fn the_cases_are_all_routes_of_the_document() {
    let document = send(&start().public, "", "GET", "/openapi.json", "").json;
    let mut documented = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        documented.extend(methods.as_object().unwrap().keys().map(|method| (method.clone(), path.clone())));
    }
    let allowed = ALLOWED.iter().map(|case| (case.0, case.1));
    let refused = REFUSED.iter().map(|case| (case.0, case.1));
    let tried = allowed.chain(refused).chain(OPEN).map(|(method, path)| (method.to_owned(), path.to_owned()));
    assert_eq!(tried.collect::<BTreeSet<_>>(), documented, "each route is tried with a token");

    // And the document says the same.
    let ways = |method: &str, path: &str| document["paths"][path][method]["security"].clone();
    for (method, path, ..) in ALLOWED {
        let mut expected = vec![json!({"key": []}), json!({"token": []})];
        if is_endless(path) {
            expected.push(json!({"tokenInQuery": []}));
        }
        assert_eq!(ways(method, path), json!(expected), "{method} {path}");
    }
    assert!(REFUSED.iter().all(|(method, path, ..)| ways(method, path).is_null()), "as the document's own");
    assert_eq!(document["security"], json!([{"key": []}]));
    assert_eq!(document["components"]["securitySchemes"]["tokenInQuery"]["name"], "access_token");
}

#[test]
fn each_route_lets_one_act_as_oneself_alone() {
    let service = service_with_reservations();
    let ada = token("ada");
    for (method, route, path, body, expected, other) in ALLOWED {
        let refused = match other {
            Nobodys => None,
            Forbidden(path, body) => Some((*path, *body, (403, "not_your_user".to_owned()))),
            NotThere(path) => Some((*path, *body, (404, "not_found".to_owned()))),
        };
        if let Some((path, body, refusal)) = refused {
            assert_eq!(ask(&service, (method, route), path, body, &ada), refusal, "{method} {path}");
        }
        let answer = ask(&service, (method, route), path, body, &ada);
        assert_eq!(answer.0, *expected, "{method} {path}: {answer:?}");
    }
    // Eve's are as they were.
    for (path, state) in [("/workshops/w/reservations/eve-1", "held"), ("/reservations/set-eve-1", "held")] {
        let shown = send(&service.public, &bearer(KEY), "GET", path, "").json;
        assert_eq!(shown["state"], state, "{shown}");
    }
    assert_eq!(send(&service.public, &bearer(KEY), "GET", "/likes/a/users/eve", "").json["liked"], false);
}

#[test]
fn what_names_others_and_what_is_the_operators_takes_a_key() {
    let service = service_with_reservations();
    let ada = token("ada");
    for (method, route, path, body) in REFUSED {
        let answer = ask(&service, (method, route), path, body, &ada);
        assert_eq!(answer, (403, "forbidden".to_owned()), "{method} {path}");
    }
    for (method, path) in [("GET", "/metrics"), ("GET", "/usage"), ("POST", "/backup")] {
        let answer = send(&service.admin_address, &bearer(&ada), method, path, "");
        assert_eq!((answer.status, answer.error()), (403, "forbidden"), "{method} {path}");
    }
}

#[test]
fn a_scope_narrows_a_token_to_what_it_names() {
    let service = service_with_reservations();
    let feature = |route: &str| match route.split('/').nth(1).unwrap() {
        "workshops" | "reservations" => "reservations",
        "rooms" | "join" | "leave" | "send" => "rooms",
        _ => "likes",
    };
    let looks = |method: &str, route: &str| {
        (method == "get" && !route.ends_with("/socket")) || route == "/batch/likes/query"
    };
    for scope in ["likes", "reservations", "rooms", "read"] {
        let ada = token_with("ada", json!({"scope": [scope]}));
        for (method, route, path, body, ..) in ALLOWED {
            let allowed = scope == feature(route) || (scope == "read" && looks(method, route));
            let (status, word) = ask(&service, (method, route), path, body, &ada);
            assert_eq!(
                (status, word.as_str()) == (403, "forbidden"),
                !allowed,
                "{scope}: {method} {path} {status}"
            );
        }
    }
    let nothing = token_with("ada", json!({"scope": []}));
    assert_eq!(ask(&service, ("get", "/trending"), "/trending?window=1h", "", &nothing).0, 403);
}

#[test]
fn a_token_may_be_for_one_item_one_workshop_one_room() {
    let service = service_with_reservations();
    let narrowed = token_with("ada", json!({"item": "a b", "workshop": ["w"], "room": "r"}));
    let status = |method: &str, path: &str, body: &str| {
        let answer = send(&service.public, &bearer(&narrowed), method, path, body);
        (answer.status, answer.error().to_owned())
    };
    let beyond = (403, "beyond_token".to_owned());
    for (method, path, body) in [
        ("PUT", "/likes/a%20b/users/ada", ""),
        ("GET", "/likes/%61%20b", ""),
        ("GET", "/likes?item=a+b&user=ada", ""),
        ("POST", "/batch/likes/query", r#"{"items":["a b"]}"#),
        ("GET", "/workshops/w/status", ""),
        ("GET", "/reservations/set-ada-1", ""),
        ("POST", "/join?room=r", r#"{"user":"ada"}"#),
        ("GET", "/rooms/r", ""),
    ] {
        assert_eq!(status(method, path, body).0, 200, "{method} {path}");
    }
    for (method, path, body) in [
        ("PUT", "/likes/a/users/ada", ""),
        ("GET", "/likes/a", ""),
        ("GET", "/likes/a/events", ""),
        ("GET", "/likes?item=a+b&item=a", ""),
        ("GET", "/batch/likes/events?item=a+b&item=a", ""),
        ("POST", "/batch/likes/query", r#"{"items":["a b","a"]}"#),
        ("GET", "/trending?window=1h", ""),
        ("GET", "/users/ada/likes", ""),
        ("GET", "/counters/a%20b", ""),
        ("GET", "/workshops/v/status", ""),
        ("POST", "/workshops/v/reservations", r#"{"requestId":"new","seats":1}"#),
        (
            "POST",
            "/reservations",
            r#"{"requestId":"new","lines":[{"workshop":"w","seats":1},{"workshop":"v","seats":1}]}"#,
        ),
        ("POST", "/join", r#"{"user":"ada"}"#),
        ("POST", "/send?room=lobby", r#"{"user":"ada","text":"hi"}"#),
        ("GET", "/rooms/lobby", ""),
    ] {
        assert_eq!(status(method, path, body), beyond, "{method} {path}");
    }
    let lines = "{\"item\":\"a b\",\"user\":\"ada\"}\n{\"item\":\"a\",\"user\":\"ada\"}\n{\"item\":\"a b\",\"user\":\"eve\"}";
    let outcomes = send(&service.public, &bearer(&narrowed), "POST", "/batch/likes", lines).text;
    for part in [r#""line":1,"status":200"#, r#""error":"beyond_token""#, r#""error":"not_your_user""#] {
        assert!(outcomes.contains(part), "{outcomes}");
    }
}
