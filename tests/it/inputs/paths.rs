//! Paths, methods, and which check comes first.

use super::{assert_answer, check};
use crate::raw;
use crate::service::Setup;

#[test]
fn checks_keep_the_order_of_the_seed() {
    let service = Setup::new().start();
    let (no_path, bad_name) = ((404, "not_found", ""), (400, "invalid_workshop_name", ""));
    let no_method = (405, "method_not_allowed", "");
    // A path that is none, then the name, then the method, then the body.
    check(&service, "PATCH", "/workshops/BAD/nothing", b"{", no_path);
    check(&service, "PATCH", "/workshops/BAD/reservations", b"{", bad_name);
    check(&service, "GET", "/workshops/BAD/reservations", b"", bad_name);
    check(&service, "POST", "/workshops/BAD/status", b"{", bad_name);
    check(&service, "PATCH", "/workshops/good/reservations", b"{", no_method);
    check(&service, "POST", "/workshops/BAD/reservations", b"{", bad_name);
    check(&service, "POST", "/workshops/BAD/reservations", &[b' '; 100_000], bad_name);
    check(&service, "POST", "/likes/%00", &[b' '; 100_000], (400, "invalid_item", ""));
    check(&service, "POST", "/workshops/good/reservations", b"{", (400, "invalid_json", ""));
    let half = br#"{"requestId":"?"}"#;
    check(&service, "POST", "/workshops/good/reservations", half, (400, "invalid_reservation", "requestId"));
}

#[test]
fn paths_that_are_none_and_methods_that_do_not_apply() {
    let service = Setup::new().start();
    for path in [
        "/",
        "//",
        "/healthz",
        "/health/",
        "/Health",
        "/%68ealth",
        "/likes/",
        "/likes/a/",
        "/likes//users/u",
        "/likes//users",
        "/likes/a/users/",
        "/likes/a/users/u/",
        "/likes/a/b/u",
        "/users",
        "/users/",
        "/users/a/",
        "/users//likes",
        "/users/a/likes/",
        "/workshops/",
        "/workshops//status",
        "/workshops/a/",
        "/workshops/a/reservations/",
        "/workshops/a/reservations/abc/",
        "/workshops/a/reservations/abc/confirm/",
        "/workshops/a/reservations/abc/nothing",
        "/workshops/a/status/",
        "/workshops/a/b/status",
        "/metrics",
        "/noop/likes/a",
        "/../health",
        "/openapi.json/",
    ] {
        check(&service, "GET", path, b"", (404, "not_found", ""));
        check(&service, "POST", path, b"{}", (404, "not_found", ""));
    }
    let all = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"];
    for (path, allowed) in [
        ("/health", &["GET", "HEAD"][..]),
        ("/ready", &["GET", "HEAD"]),
        ("/openapi.json", &["GET", "HEAD"]),
        ("/likes", &["GET", "HEAD"]),
        ("/likes/a", &["DELETE", "GET", "HEAD", "POST"]),
        ("/likes/a/users", &["GET", "HEAD"]),
        ("/likes/a/users/u", &["DELETE", "GET", "HEAD", "PUT"]),
        ("/users/a", &["DELETE"]),
        ("/users/a/likes", &["GET", "HEAD"]),
        ("/workshops", &["GET", "HEAD"]),
        ("/workshops/a", &["DELETE", "GET", "HEAD", "PUT"]),
        ("/workshops/a/events", &["GET", "HEAD"]),
        ("/workshops/a/reservations", &["GET", "HEAD", "POST"]),
        ("/workshops/a/reservations/abc", &["GET", "HEAD"]),
        ("/workshops/a/reservations/abc/confirm", &["POST"]),
        ("/workshops/a/reservations/abc/cancel", &["POST"]),
        ("/workshops/a/reservations/abc/extend", &["POST"]),
        ("/workshops/a/status", &["GET", "HEAD"]),
    ] {
        for method in all.iter().filter(|method| !allowed.contains(method)) {
            let answer = check(&service, method, path, b"", (405, "method_not_allowed", ""));
            let mut allow: Vec<&str> = answer.header("allow").split(',').collect();
            allow.sort_unstable();
            assert_eq!(allow, allowed, "{path}");
        }
    }
    for path in ["/health", "/likes/a", "/workshops/a/status"] {
        let head = raw::send(&service.public, "HEAD", path, "");
        assert_eq!((head.status, head.text.as_str()), (200, ""), "{path}");
        assert_ne!(head.header("content-length"), "0", "{path}");
    }
}

/// Answered by the HTTP library, before any route: a bare status without a problem document.
#[test]
fn what_is_no_http_is_a_4xx_too() {
    let service = Setup::new().start();
    let long_path = format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "a".repeat(70_000));
    let many_headers = format!("GET /health HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(1_000));
    let cases: [(&[u8], u16); 9] = [
        (b"hello\r\n\r\n", 400),
        (b"GET /health\r\n\r\n", 400),
        (b"GET /likes/\xFF HTTP/1.1\r\nhost: a\r\n\r\n", 400),
        (b"GET /likes/a b HTTP/1.1\r\nhost: a\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nhost a\r\n\r\n", 400),
        (b"POST /likes/a HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400),
        (b"POST /likes/a HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        (long_path.as_bytes(), 414),
        (many_headers.as_bytes(), 431),
    ];
    for (request, status) in cases {
        let sent = String::from_utf8_lossy(&request[..request.len().min(80)]).into_owned();
        assert_eq!(raw::exchange(&service.public, request).status, status, "{sent}");
    }
    let broken_chunk = b"POST /likes/a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n";
    let answer = raw::exchange(&service.public, broken_chunk);
    assert_answer(&answer, (400, "incomplete_body", ""), "a broken chunk");
}

#[test]
fn what_is_looked_for_in_the_wrong_place_is_told_where_it_is() {
    let service = Setup::new().start();
    for (method, path, body, word) in [
        ("GET", "/", "", "/openapi.json"),
        ("GET", "/nothing", "", "/openapi.json"),
        ("GET", "/metrics", "", "admin listener"),
        ("POST", "/backup", "{}", "admin listener"),
        ("GET", "/demo", "", "server.demo = true"),
        ("PATCH", "/likes/a", "", "allowed here: GET, POST, DELETE"),
        ("POST", "/workshops/w/status", "", "allowed here: GET"),
        ("POST", "/widget.js", "", "see the Allow header"),
        ("POST", "/workshops/w/reservations", "", "the body is empty"),
        ("POST", "/workshops/w/reservations", r#"{"requestId":"-"}"#, "3 to 48 of a-z, 0-9 and -"),
        (
            "POST",
            "/workshops/w/reservations",
            r#"{"requestId":"one","seats":5}"#,
            "from 1 to 4 (reservations.max_seats_per_request)",
        ),
        ("POST", "/likes/a", r#"{"user":"ada"}"#, "`userId` is missing"),
    ] {
        let answer = raw::send(&service.public, method, path, body);
        let detail = answer.json["detail"].as_str().unwrap();
        assert!(detail.contains(word), "{method} {path} {body}: {detail}");
    }
}
