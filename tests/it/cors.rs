//! Pages of other sites: which may call, and what their browsers are told about it.

use crate::client::Answer;
use crate::raw;
use crate::service::{Service, Setup};
use crate::tokens;

const SITE: &str = "https://www.example.com";

fn ask(service: &Service, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", service.public);
    raw::exchange(&service.public, format!("{head}content-length: 0\r\n{lines}\r\n").as_bytes())
}

fn preflight(service: &Service, origin: &str, method: &str, path: &str) -> Answer {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", method),
        ("access-control-request-headers", "authorization,content-type"),
    ];
    ask(service, "OPTIONS", path, &headers)
}

#[test]
fn without_a_list_browsers_keep_foreign_pages_out() {
    let service = Setup::new().start();
    let answer = ask(&service, "GET", "/likes/a", &[("origin", SITE)]);
    assert_eq!(answer.status, 200);
    let told = |answer: &Answer| {
        answer.headers.keys().any(|name| name.as_str().starts_with("access-control") || name == "vary")
    };
    assert!(!told(&answer), "{answer:?}");
    let asked = preflight(&service, SITE, "PUT", "/likes/a/users/ada");
    assert_eq!((asked.status, told(&asked)), (405, false));
}

#[test]
fn a_listed_site_may_call_with_a_token() {
    let sites = format!("['{SITE}', 'http://localhost:3000']");
    let service = tokens::setup(&[("site", 1)]).with("server.cors_origins", sites).start();
    for origin in [SITE, "http://localhost:3000"] {
        for (method, path) in [
            ("PUT", "/likes/a/users/ada"),
            ("DELETE", "/likes/a/users/ada"),
            ("POST", "/workshops/w/reservations"),
            ("GET", "/batch/likes/events?item=a"),
        ] {
            let asked = preflight(&service, origin, method, path);
            assert_eq!(
                (asked.status, asked.header("access-control-allow-origin")),
                (200, origin),
                "{asked:?}"
            );
            let lists = |header: &str, value: &str| {
                asked.header(header).split(',').any(|one| one.trim().eq_ignore_ascii_case(value))
            };
            assert!(lists("access-control-allow-methods", method), "{asked:?}");
            for header in ["authorization", "content-type", "last-event-id"] {
                assert!(lists("access-control-allow-headers", header), "{header}: {asked:?}");
            }
            assert_eq!(asked.header("access-control-max-age"), "7200");
            assert!(lists("vary", "origin"), "{asked:?}");
            assert_eq!(asked.header("access-control-allow-credentials"), "", "there are no cookies");
        }
        // An answer, a refusal and what no handler answers: the page may read each.
        let token = tokens::token("ada");
        let bearer = format!("Bearer {token}");
        for (headers, path, status) in [
            (vec![("origin", origin), ("authorization", bearer.as_str())], "/likes/a", 200),
            (vec![("origin", origin)], "/likes/a", 401),
            (vec![("origin", origin)], "/nothing", 404),
            (vec![("origin", origin)], "/widget.js", 200),
        ] {
            let answer = ask(&service, "GET", path, &headers);
            let allowed = answer.header("access-control-allow-origin");
            assert_eq!((answer.status, allowed), (status, origin), "{path}: {answer:?}");
            let exposed = answer.header("access-control-expose-headers");
            assert!(exposed.contains("retry-after") && exposed.contains("etag"), "{answer:?}");
        }
    }
    for foreign in ["https://evil.example", "http://www.example.com", "https://www.example.com:8443", "null"]
    {
        let asked = preflight(&service, foreign, "PUT", "/likes/a/users/ada");
        assert_eq!(asked.header("access-control-allow-origin"), "", "{asked:?}");
        let answer = ask(&service, "GET", "/widget.js", &[("origin", foreign)]);
        assert_eq!(answer.header("access-control-allow-origin"), "", "{answer:?}");
        assert!(
            answer.headers.get_all("vary").iter().any(|on| on.to_str().unwrap().contains("origin")),
            "a cache must not give this to a listed one: {answer:?}"
        );
    }
}

#[test]
fn every_site_only_where_somebody_is_asked() {
    let refused =
        Setup::new().with("server.cors_origins", "['*']").try_start().err().expect("open to every page");
    assert!(refused.contains("server.cors_origins") && refused.contains("auth.token_secrets"), "{refused}");
    let service = tokens::setup(&[("site", 1)]).with("server.cors_origins", "['*']").start();
    let asked = preflight(&service, "https://anything.example", "PUT", "/likes/a/users/ada");
    assert_eq!((asked.status, asked.header("access-control-allow-origin")), (200, "*"));
    let answer = ask(&service, "GET", "/likes/a", &[("origin", "https://anything.example")]);
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (401, "*"));
}

/// The admin listener is nobody's page's.
#[test]
fn the_admin_listener_allows_no_site() {
    let service = Setup::new().with("server.cors_origins", format!("['{SITE}']")).start();
    let head = format!("GET /usage HTTP/1.1\r\nhost: a\r\nconnection: close\r\norigin: {SITE}\r\n\r\n");
    let answer = raw::exchange(&service.admin_address, head.as_bytes());
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, ""));
}
