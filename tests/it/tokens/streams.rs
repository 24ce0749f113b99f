//! Tokens where a browser cannot set a header, streams that end with them, and pages of foreign sites.

use std::time::{Duration, Instant};

use super::*;
use crate::rooms::PATIENCE;
use crate::rooms::reader::Reader;
use crate::rooms::socket::Socket;

#[test]
fn a_token_in_the_query_opens_streams_and_nothing_else() {
    let service = start();
    let ada = token("ada");
    for (path, headers, status) in [
        ("/likes/a/events?", "", 200),
        ("/batch/likes/events?item=a&", "", 200),
        ("/rooms/r/events?", "", 200),
        ("/rooms/r/socket?", UPGRADE, 101),
        ("/rooms/r/socket?user=ada&", UPGRADE, 101),
        ("/rooms/r/socket?user=eve&", UPGRADE, 403),
        ("/workshops/w/events?", "", 401),
        ("/likes/a?", "", 401),
        ("/likes?item=a&", "", 401),
        ("/trending?window=1h&", "", 401),
        ("/users/ada/likes?", "", 401),
        ("/rooms/r?", "", 401),
        ("/workshops/w/status?", "", 401),
    ] {
        let with = |credential: &str, headers: &str| {
            open(&service.public, headers, &format!("{path}access_token={credential}")).0
        };
        assert_eq!(with(&ada, headers), status, "{path}");
        assert_eq!(with(KEY, headers), 401, "{path}: a key is never taken from an address");
        assert_eq!(with("", headers), 401, "{path}");
        assert_eq!(with(&format!("{ada}&access_token={ada}"), headers), 401, "{path}: twice");
        // A header counts before it, whatever it says.
        assert_eq!(with(&ada, &format!("{headers}{}", bearer("hc_unknown"))), 401, "{path}");
    }
    for (method, path) in [("PUT", "/likes/a/users/ada"), ("POST", "/join?room=r")] {
        let join = if path.contains('?') { '&' } else { '?' };
        let answer = send(&service.public, "", method, &format!("{path}{join}access_token={ada}"), "");
        assert_eq!((answer.status, answer.error()), (401, "unauthorized"), "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_totals_come_in_one_stream() {
    let service = setup(&[("site", 1)]).with("likes.max_items_per_read", 3).start();
    let client = service.client.with_key(KEY);
    client.like("a", "eve").await;
    assert_eq!(client.rolled_up("a").await, 1);
    let path = format!("/batch/likes/events?item=a&item=b%2F1&access_token={}", token("ada"));
    let mut stream = Reader::open_at(&service, &path, "").await;
    let mut total = async || {
        let event = stream.event_of("total").await.json();
        (event["item"].as_str().unwrap().to_owned(), event["total"].as_i64().unwrap())
    };
    let mut first = [total().await, total().await];
    first.sort();
    assert_eq!(first, [("a".to_owned(), 1), ("b/1".to_owned(), 0)]);
    client.like("b%2F1", "eve").await;
    assert_eq!(total().await, ("b/1".to_owned(), 1));
    for bad in ["", "?item=a&item=b&item=c&item=d", "?item="] {
        let answer = client.get(&format!("/batch/likes/events{bad}")).await;
        assert_eq!(answer.status, 400, "{bad}: {answer:?}");
    }
}

/// So that who is locked out is out: the next token is the site's to give or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_lives_no_longer_than_its_token() {
    let service = start();
    // With the leeway, it ends in one to two seconds.
    let short = sign(&json!({"sub": "ada", "exp": now_s() - 3}));
    let started = Instant::now();
    let path = |path: &str| format!("{path}access_token={short}");
    let close = "connection: close\r\n";
    let totals = Reader::open_at(&service, &path("/likes/a/events?"), close).await;
    let many = Reader::open_at(&service, &path("/batch/likes/events?item=a&"), close).await;
    let room = Reader::open_at(&service, &path("/rooms/r/events?"), close).await;
    let mut socket = Socket::open(&service, &path("r/socket?")).await;
    assert_eq!(socket.frame_of("presence").await["members"][0]["user"], "ada", "it is who its token says");
    totals.ends().await;
    many.ends().await;
    room.ends().await;
    let mut rest = Vec::new();
    let end = tokio::io::AsyncReadExt::read_to_end(socket.stream(), &mut rest);
    tokio::time::timeout(PATIENCE, end).await.expect("it stays open").unwrap();
    assert!(started.elapsed() >= Duration::from_millis(900), "it was good until then");
    let (status, _) = open(&service.public, "", &path("/likes/a/events?"));
    assert_eq!(status, 401);
}

/// A socket says what it says in its token's name, whatever it claims.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_speaks_as_its_tokens_user() {
    let service = start();
    let mut ada = Socket::open(&service, &format!("r/socket?access_token={}", token("ada"))).await;
    let mut eve = Socket::open(&service, &format!("r/socket?access_token={}", token("eve"))).await;
    ada.send(r#"{"type":"message","user":"eve","text":"hi"}"#).await;
    let heard = eve.frame_of("message").await;
    assert_eq!((&heard["user"], &heard["text"]), (&json!("ada"), &json!("hi")));
}

#[test]
fn a_page_of_a_foreign_site_opens_no_socket() {
    let keyed = setup(&[("site", 1)]).with("server.cors_origins", "['https://www.example.com']").start();
    let open_service = Setup::new().start();
    let listed = Setup::new().with("server.cors_origins", "['https://www.example.com']").start();
    let every = setup(&[("site", 1)]).with("server.cors_origins", "['*']").start();
    let token = token("ada");
    for (service, query) in
        [(&keyed, format!("?access_token={token}")), (&open_service, String::new()), (&listed, String::new())]
    {
        let path = format!("/rooms/r/socket{query}");
        let status = |origin: &str| open(&service.public, &format!("{UPGRADE}{origin}"), &path).0;
        let is_listed = !std::ptr::eq(service, &open_service);
        assert_eq!(status(""), 101, "no browser");
        assert_eq!(status(&format!("origin: http://{}\r\n", service.public)), 101, "its own page");
        assert_eq!(status("origin: https://www.example.com\r\n"), if is_listed { 101 } else { 403 });
        for foreign in
            ["https://evil.example", "http://www.example.com", "https://www.example.com.evil.example", "null"]
        {
            assert_eq!(status(&format!("origin: {foreign}\r\n")), 403, "{foreign}");
        }
    }
    let path = format!("/rooms/r/socket?access_token={token}");
    assert_eq!(open(&every.public, &format!("{UPGRADE}origin: https://evil.example\r\n"), &path).0, 101);
    let headers =
        format!("{}origin: https://evil.example\r\n", UPGRADE.replace("upgrade\r\n", "upgrade, close\r\n"));
    let refused = send(&open_service.public, &headers, "GET", "/rooms/r/socket", "");
    assert_eq!((refused.status, refused.error()), (403, "foreign_origin"));
}
