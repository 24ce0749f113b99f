//! Tokens where a browser cannot set a header, streams that end with them, and pages of foreign sites.

use std::time::{Duration, Instant};

use super::*;
use crate::rooms::reader::Reader;
use crate::rooms::socket::Socket;
use crate::service::eventually;

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
    let mut readers = Vec::new();
    for stream in ["/likes/a/events?", "/batch/likes/events?item=a&", "/rooms/r/events?"] {
        readers.push(Reader::open_at(&service, &path(stream), close).await);
    }
    let mut socket = Socket::open(&service, &path("r/socket?")).await;
    assert_eq!(socket.frame_of("presence").await["members"][0]["user"], "ada", "it is who its token says");
    for mut reader in readers {
        let last = reader.event_of("close").await.json();
        assert_eq!(last, json!({"code": 4401, "reason": "token_expired"}));
        reader.ends().await;
    }
    assert_eq!(socket.goodbye().await, (4401, "token_expired".to_owned()));
    assert!(started.elapsed() >= Duration::from_millis(900), "it was good until then");
    let (status, _) = open(&service.public, "", &path("/likes/a/events?"));
    assert_eq!(status, 401);
}

/// One whose bytes nobody takes is not told, and ends all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_takes_nothing_ends_with_its_token() {
    let service = setup(&[("site", 1)]).with("rooms.close_timeout_ms", 100).start();
    let short = sign(&json!({"sub": "ada", "exp": now_s() - 3}));
    let deaf = Socket::open(&service, &format!("r/socket?access_token={short}")).await;
    let ended = r#"headcount_room_connections_ended_total{cause="token_expired"} 1"#;
    eventually("it is let go of", || {
        send(&service.admin_address, &bearer(KEY), "GET", "/metrics", "").text.contains(ended)
    });
    deaf.cut();
}

/// Whichever of its tokens they came with, and nobody else notices.
#[tokio::test(flavor = "multi_thread")]
async fn one_user_does_not_hold_all_streams() {
    let service = setup(&[("site", 1)]).with("auth.token_max_streams", 2).start();
    let of =
        |user: &str, path: &str| format!("{path}access_token={}", token_with(user, json!({"jti": path})));
    let totals = Reader::open_at(&service, &of("ada", "/likes/a/events?"), "").await;
    let socket = Socket::open(&service, &of("ada", "r/socket?")).await;
    for path in ["/likes/a/events?", "/batch/likes/events?item=a&item=b&", "/rooms/r/events?"] {
        let refused = send(&service.public, "", "GET", &of("ada", path), "");
        assert_eq!((refused.status, refused.error()), (429, "too_many_connections"), "{path}");
        assert!(refused.text.contains("auth.token_max_streams"), "{refused:?}");
        assert_eq!(refused.header("retry-after"), "1");
    }
    assert_eq!(open(&service.public, UPGRADE, &of("ada", "/rooms/r/socket?")).0, 429);
    let bulk = send(&service.public, &bearer(&token("ada")), "POST", "/batch/likes", "");
    assert_eq!((bulk.status, bulk.error()), (429, "too_many_connections"));
    assert_eq!(open(&service.public, "", &of("eve", "/likes/a/events?")).0, 200, "another user");
    let keyed = bearer(KEY);
    for _ in 0..3 {
        assert_eq!(open(&service.public, &keyed, "/likes/a/events").0, 200, "keys are not counted");
    }
    // Each that ends makes room for another one.
    totals.ended_early();
    let again = of("ada", "/likes/b/events?");
    eventually("there is room again", || open(&service.public, "", &again).0 == 200);
    socket.close().await;
    let again = of("ada", "/rooms/r/events?");
    eventually("there is room again", || open(&service.public, "", &again).0 == 200);
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
