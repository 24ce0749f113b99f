//! What a body may be, and what its fields may be.

use super::{Expected, OK, check};
use crate::raw;
use crate::service::Setup;

#[test]
fn seats_and_request_ids() {
    let setup = Setup::new().with("reservations.default_capacity", 1_000);
    let service = setup.start();
    let mut requests = 0;
    let mut reserve = |seats: &str, expected: Expected| {
        requests += 1;
        let body = format!(r#"{{"requestId":"request-{requests}","seats":{seats}}}"#);
        check(&service, "POST", "/workshops/seats/reservations", body.as_bytes(), expected)
    };
    // A JSON number is its value, however it is spelt: the seed's JavaScript cannot tell 1 from 1.0 either.
    for (seats, value) in
        [("1", 1), ("4", 4), ("1.0", 1), ("1e0", 1), ("1E+0", 1), ("20e-1", 2), ("0.3e1", 3)]
    {
        assert_eq!(reserve(seats, (201, "", "")).json["seats"], value, "{seats}");
    }
    for seats in [
        "0",
        "-0",
        "-0.0",
        "-1",
        "5",
        "1.5",
        "4.000001",
        "1e1",
        "1e400",
        "-1e400",
        "1e-400",
        "4294967297",
        "18446744073709551617",
        "99999999999999999999999999",
        "\"1\"",
        "\"\"",
        "true",
        "false",
        "null",
        "[]",
        "[1]",
        "{}",
        "{\"seats\":1}",
    ] {
        reserve(seats, (400, "invalid_reservation", "seats"));
    }
    // No JSON numbers.
    for seats in ["01", "+1", ".5", "1.", "0x1", "1_0", "NaN", "Infinity", "-", "1e", "１"] {
        reserve(seats, (400, "invalid_json", ""));
    }

    let longest = format!("\"{}\"", "a".repeat(48));
    for id in ["\"abc\"", "\"0ab\"", "\"a--\"", "\"\\u0061bc-escaped\"", &longest] {
        let body = format!(r#"{{"requestId":{id},"seats":1}}"#);
        check(&service, "POST", "/workshops/ids/reservations", body.as_bytes(), (201, "", ""));
    }
    let too_long = format!("\"{}\"", "a".repeat(49));
    for id in [
        "\"\"",
        "\"ab\"",
        "\"-ab\"",
        "\"ABC\"",
        "\"a_b\"",
        "\"a b\"",
        "\"abc\\n\"",
        "\"abc\\u0000\"",
        "\"äbc\"",
        "\"\\ud800abc\"",
        "123",
        "true",
        "null",
        "[\"abc\"]",
        "{}",
        &too_long,
    ] {
        let body = format!(r#"{{"requestId":{id},"seats":1}}"#);
        let invalid = (400, "invalid_reservation", "requestId");
        check(&service, "POST", "/workshops/ids/reservations", body.as_bytes(), invalid);
    }
    let status = raw::send(&service.public, "GET", "/workshops/ids/status", "");
    assert_eq!(status.json["acceptedRequests"], 5, "what is refused uses up no id and no seat");
    drop(service);
    setup.assert_verified();
}

#[test]
fn bodies() {
    let service = Setup::new().with("reservations.default_capacity", 1_000).start();
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let unending = deep(30_000);
    let nested = format!(r#"{{"requestId":"nested","seats":1,"note":{}}}"#, deep(20_000));
    let nested_seats = format!(r#"{{"requestId":"nested-seats","seats":{}}}"#, deep(20_000));
    let (created, not_json) = ((201, "", ""), (400, "invalid_json", ""));
    let shapeless = (400, "invalid_reservation", "");
    let cases: &[(&[u8], Expected)] = &[
        (br#"{"requestId":"plain","seats":1}"#, created),
        (b" \r\n\t{\"seats\" : 1 , \"requestId\":\"spaced\"}\n", created),
        (br#"{"requestId":"more","seats":1,"note":"x","note":{"seats":9},"":null}"#, created),
        (br#"{"request\u0049d":"escaped-name","seats":1}"#, created),
        (b"\xEF\xBB\xBF{\"requestId\":\"marked\",\"seats\":1}", created),
        (nested.as_bytes(), created),
        // Which of two would count is a matter of the reader: neither does.
        (br#"{"requestId":"twice-1","requestId":"twice-2","seats":1}"#, shapeless),
        (br#"{"requestId":"twice-3","seats":1,"seats":1}"#, shapeless),
        (br#"{}"#, (400, "invalid_reservation", "requestId")),
        (br#"{"seats":1}"#, (400, "invalid_reservation", "requestId")),
        (br#"{"requestId":"no-seats"}"#, (400, "invalid_reservation", "seats")),
        (br#"{"requestid":"abc","Seats":1}"#, (400, "invalid_reservation", "requestId")),
        (nested_seats.as_bytes(), (400, "invalid_reservation", "seats")),
        (br#"["requestId-1",1]"#, shapeless),
        (br#"[{"requestId":"listed","seats":1}]"#, shapeless),
        (b"[]", shapeless),
        (b"null", shapeless),
        (b"true", shapeless),
        (b"1", shapeless),
        (br#""{}""#, shapeless),
        (unending.as_bytes(), shapeless),
        (b"", not_json),
        (b" ", not_json),
        (b"{", not_json),
        (b"nul", not_json),
        (b"{'requestId':'abc','seats':1}", not_json),
        (b"requestId=abc&seats=1", not_json),
        (br#"{"requestId":"comma","seats":1,}"#, not_json),
        (br#"{"requestId":"twin","seats":1}{}"#, not_json),
        (br#"{"requestId":"comment","seats":1}//"#, not_json),
        (b"{\"requestId\":\"control\n\",\"seats\":1}", not_json),
        (b"{\"requestId\":\"zero\",\"seats\":1}\0", not_json),
        (b"{\"requestId\":\"broken-\xFF\",\"seats\":1}", not_json),
        (b"{\"requestId\":\"broken\",\"seats\":1,\"note\":\"\xC3\x28\"}", not_json),
        (b"\xEF\xBB\xBF\xEF\xBB\xBF{\"requestId\":\"marked-twice\",\"seats\":1}", not_json),
        (b"\xFF\xFE{\0}\0", not_json),
        (b"\xEF\xBB\xBF", not_json),
        (&unending.as_bytes()[..30_000], not_json),
    ];
    for (body, expected) in cases {
        check(&service, "POST", "/workshops/bodies/reservations", body, *expected);
    }
    for (body, expected) in [
        (r#"{"userId":"u"}"#, OK),
        (r#"{"userId":"u","seats":[[]]}"#, OK),
        (r#"{}"#, (400, "invalid_user", "userId")),
        (r#"{"userId":null}"#, (400, "invalid_user", "userId")),
        (r#"{"userId":1}"#, (400, "invalid_user", "userId")),
        (r#"{"userId":""}"#, (400, "invalid_user", "userId")),
        (r#"{"userId":".."}"#, (400, "invalid_user", "userId")),
        (r#"{"userId":"\u0000"}"#, (400, "invalid_user", "userId")),
        (r#"{"userId":"\ud800"}"#, (400, "invalid_user", "userId")),
        (r#"{"userId":"u","userId":"u"}"#, (400, "invalid_like", "userId")),
        (r#"["u"]"#, (400, "invalid_like", "userId")),
        ("null", (400, "invalid_like", "userId")),
        ("", not_json),
    ] {
        check(&service, "POST", "/likes/bodies", body.as_bytes(), expected);
    }
}
