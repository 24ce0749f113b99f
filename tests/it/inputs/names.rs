//! Names in paths and queries.

use serde_json::json;

use super::{Expected, OK, check};
use crate::raw;
use crate::service::Setup;

#[test]
fn workshop_names() {
    let service = Setup::new().start();
    let longest = format!("a{}", "-".repeat(31));
    for name in ["a", "launch-day", "z9-", "a%2Db", "%61", &longest] {
        check(&service, "GET", format!("/workshops/{name}/status"), b"", OK);
    }
    let too_long = format!("{longest}-");
    let bad = [
        "A",
        "aB",
        "1a",
        "-a",
        "a_b",
        "a.b",
        ".",
        "..",
        "%2E",
        "%2e%2e",
        "a%20b",
        "a+b",
        "a%2Fb",
        "a%5Cb",
        "%C3%A9",
        "a%00",
        "a%0A",
        "%0Aa",
        "%7F",
        "%FF",
        "%C3",
        "%C3%28",
        "%C0%AF",
        "%ED%A0%80",
        "%",
        "%2",
        "a%zz",
        "%2561",
        "%25",
        "a;b",
        "a,b",
        "a@b",
        "~",
        &too_long,
    ];
    for name in bad {
        let invalid = (400, "invalid_workshop_name", "");
        check(&service, "GET", format!("/workshops/{name}/status"), b"", invalid);
        let body = br#"{"requestId":"request-1","seats":1}"#;
        check(&service, "POST", format!("/workshops/{name}/reservations"), body, invalid);
    }
    // Bytes beyond ASCII that come unencoded are what they would be encoded.
    check(&service, "GET", "/workshops/é/status", b"", (400, "invalid_workshop_name", ""));
}

#[test]
fn items_and_users() {
    let service = Setup::new().start();
    let (longest, of_two_bytes) = ("a".repeat(128), "%C3%A9".repeat(64));
    let good = [
        ("a", "a"),
        ("A", "A"),
        ("...", "..."),
        ("%C3%A9", "é"),
        ("ü", "ü"),
        ("a%2Fb", "a/b"),
        ("a+b", "a+b"),
        ("a%20b", "a b"),
        ("%2541", "%41"),
        ("%252e", "%2e"),
        ("%F0%9F%98%80", "😀"),
        ("%EF%BB%BF", "\u{feff}"),
        ("e%CC%81", "e\u{301}"),
        ("%E2%80%8B", "\u{200b}"),
        ("users", "users"),
        ("'\";--", "'\";--"),
        (longest.as_str(), longest.as_str()),
        (&of_two_bytes, &"é".repeat(64)),
    ];
    for (encoded, name) in good {
        let of_item = check(&service, "PUT", format!("/likes/{encoded}/users/ada"), b"", OK);
        assert_eq!((&of_item.json["item"], &of_item.json["changed"]), (&json!(name), &json!(true)));
        let of_user = check(&service, "PUT", format!("/likes/an-item/users/{encoded}"), b"", OK);
        assert_eq!((&of_user.json["user"], &of_user.json["changed"]), (&json!(name), &json!(true)));
        let body = json!({ "userId": name }).to_string();
        let posted = check(&service, "POST", format!("/likes/{encoded}?exact=true"), body.as_bytes(), OK);
        let total = if name == "ada" { 1 } else { 2 };
        let listed = check(&service, "GET", format!("/users/{encoded}/likes"), b"", OK);
        assert_eq!(listed.json["user"], name);
        let items: Vec<&str> = listed.json["likes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|like| like["item"].as_str().unwrap())
            .collect();
        assert!(items.contains(&"an-item") && items.contains(&name), "{items:?}");
        assert_eq!((&posted.json["user"], &posted.json["total"]), (&json!(name), &json!(total)));
    }
    let (too_long, too_long_in_bytes) = ("a".repeat(129), "%C3%A9".repeat(65));
    let bad = [
        ".",
        "..",
        "%2E",
        "%2e%2E",
        ".%2e",
        "%00",
        "a%0Ab",
        "%09",
        "%1F",
        "%7F",
        "%C2%80",
        "%C2%9F",
        "%FF",
        "%C3",
        "%C3%28",
        "%C0%AF",
        "%ED%A0%80",
        "%F4%90%80%80",
        "%",
        "%2",
        "%zz",
        "a%",
        &too_long,
        &too_long_in_bytes,
    ];
    let (bad_item, bad_user) = ((400, "invalid_item", ""), (400, "invalid_user", ""));
    for name in bad {
        for method in ["GET", "PUT", "DELETE"] {
            check(&service, method, format!("/likes/{name}/users/ada"), b"", bad_item);
            check(&service, method, format!("/likes/an-item/users/{name}"), b"", bad_user);
        }
        check(&service, "GET", format!("/likes/{name}"), b"", bad_item);
        check(&service, "DELETE", format!("/likes/{name}"), b"", bad_item);
        check(&service, "GET", format!("/likes/{name}/users"), b"", bad_item);
        check(&service, "GET", format!("/users/{name}/likes"), b"", bad_user);
        check(&service, "DELETE", format!("/users/{name}?policy=remove"), b"", bad_user);
        check(&service, "POST", format!("/likes/{name}"), br#"{"userId":"ada"}"#, bad_item);
        check(&service, "GET", format!("/likes?item={name}"), b"", of_query(name, "invalid_item"));
        check(&service, "GET", format!("/likes?item=a&user={name}"), b"", of_query(name, "invalid_user"));
    }
}

/// What cannot be decoded is the query's fault before it is a name's.
fn of_query(name: &str, error: &'static str) -> Expected {
    let undecodable = headcount::names::decode_segment(name).is_none();
    (400, if undecodable { "invalid_query" } else { error }, "")
}

#[test]
fn queries() {
    let service = Setup::new().start();
    let many = |count| format!("/likes?{}", vec!["item=a"; count].join("&"));
    for (path, expected) in [
        ("/likes/a?exact=true", OK),
        ("/likes/a?exact=false", OK),
        ("/likes/a?", OK),
        ("/likes/a?&&", OK),
        ("/likes/a?unknown=%20", OK),
        ("/likes/a?ex%61ct=tru%65", OK),
        ("/likes/a?exact", (400, "invalid_query", "exact")),
        ("/likes/a?exact=", (400, "invalid_query", "exact")),
        ("/likes/a?exact=1", (400, "invalid_query", "exact")),
        ("/likes/a?exact=True", (400, "invalid_query", "exact")),
        ("/likes/a?exact=%2574rue", (400, "invalid_query", "exact")),
        ("/likes/a?exact=true&exact=true", (400, "invalid_query", "exact")),
        ("/likes/a?x=%", (400, "invalid_query", "")),
        ("/likes/a?%FF=x", (400, "invalid_query", "")),
        ("/likes?item=a", OK),
        ("/likes?item=a&item=a&user=u&exact=true", OK),
        ("/likes?item=a+b%2Bc", OK),
        ("/likes", (400, "invalid_query", "item")),
        ("/likes?user=u", (400, "invalid_query", "item")),
        ("/likes?item", (400, "invalid_item", "")),
        ("/likes?item=", (400, "invalid_item", "")),
        ("/likes?item=a&item=", (400, "invalid_item", "")),
        ("/likes?item=a&user=", (400, "invalid_user", "")),
        ("/likes?item=a&user=u&user=v", (400, "invalid_query", "user")),
        (&many(200), OK),
        (&many(201), (400, "invalid_query", "item")),
        (&many(9_000), (400, "invalid_query", "item")),
    ] {
        check(&service, "GET", path, b"", expected);
    }
    let spaced = raw::send(&service.public, "GET", "/likes?item=a+b%2Bc", "");
    assert_eq!(spaced.json["items"][0]["item"], "a b+c");

    // A bad query stops a write before it is done.
    for method in ["PUT", "DELETE"] {
        let path = "/likes/a/users/u?exact=maybe";
        check(&service, method, path, b"", (400, "invalid_query", "exact"));
    }
    check(&service, "POST", "/likes/a?exact=maybe", br#"{"userId":"u"}"#, (400, "invalid_query", "exact"));
    assert_eq!(raw::send(&service.public, "GET", "/likes/a/users/u", "").json["liked"], false);
}
