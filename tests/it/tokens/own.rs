//! Reservations with a token: for oneself, and nothing to be learnt about anybody else's.

use super::*;

struct Site {
    service: Service,
    ada: String,
    eve: String,
}

impl Site {
    fn start() -> Self {
        let site = Self { service: start(), ada: bearer(&token("ada")), eve: bearer(&token("eve")) };
        let rules = r#"{"capacity":4,"maxSeatsPerHolder":2}"#;
        assert_eq!(site.send(&bearer(KEY), "PUT", "/workshops/w", rules).status, 201);
        site
    }

    fn send(&self, who: &str, method: &str, path: &str, body: &str) -> Answer {
        send(&self.service.public, who, method, path, body)
    }

    fn reserve(&self, who: &str, body: &Value) -> Answer {
        self.send(who, "POST", "/workshops/w/reservations", &body.to_string())
    }
}

#[test]
fn seats_are_for_the_tokens_user_whether_it_says_so_or_not() {
    let site = Site::start();
    assert_eq!(site.reserve(&site.ada, &json!({"requestId": "one", "seats": 1})).status, 201);
    assert_eq!(
        site.reserve(&site.ada, &json!({"requestId": "two", "seats": 1, "holder": "ada"})).status,
        201
    );
    let shown = site.send(&bearer(KEY), "GET", "/workshops/w/reservations/one", "").json;
    assert_eq!(shown["holder"], "ada");
    let third = site.reserve(&site.ada, &json!({"requestId": "three", "seats": 1}));
    assert_eq!(
        (third.status, &third.json["reason"]),
        (409, &json!("limit_exceeded")),
        "they count as its own"
    );
    for (id, own) in [("one", json!({"seats": 1})), ("one", json!({"seats": 1, "holder": "ada"}))] {
        let mut body = own.clone();
        body["requestId"] = json!(id);
        let again = site.reserve(&site.ada, &body);
        assert_eq!((again.status, &again.json["replayed"]), (201, &json!(true)));
    }
    let set = json!({"requestId": "set", "lines": [{"workshop": "v", "seats": 1}]}).to_string();
    assert_eq!(site.send(&site.ada, "POST", "/reservations", &set).json["holder"], "ada");
}

#[test]
fn an_id_that_another_has_used_is_taken_and_tells_no_more() {
    let site = Site::start();
    let first = json!({"requestId": "one", "seats": 2, "hold": true});
    assert_eq!(site.reserve(&site.ada, &first).status, 201);
    let theirs = site.reserve(&site.eve, &json!({"requestId": "one", "seats": 1}));
    assert_eq!(
        (theirs.status, theirs.error(), &theirs.json["field"]),
        (422, "request_id_reused", &json!("requestId"))
    );
    assert!(!theirs.text.contains('2') || !theirs.text.contains("2 seats"), "{theirs:?}");
    assert_eq!(site.reserve(&site.eve, &first).json, theirs.json, "the same, whatever is asked for");
    let own = site.reserve(&site.ada, &json!({"requestId": "one", "seats": 1, "hold": true}));
    assert_eq!((own.status, &own.json["field"]), (422, &json!("seats")), "one's own is told what differs");

    let set =
        |seats: u32| json!({"requestId": "set", "lines": [{"workshop": "v", "seats": seats}]}).to_string();
    assert_eq!(site.send(&site.ada, "POST", "/reservations", &set(1)).status, 201);
    let theirs = site.send(&site.eve, "POST", "/reservations", &set(2));
    assert_eq!((theirs.status, &theirs.json["field"]), (422, &json!("requestId")));
    assert_eq!(site.send(&site.ada, "POST", "/reservations", &set(2)).json["field"], "lines");
}

/// Otherwise anybody could give up anybody's seats.
#[test]
fn nobody_exchanges_what_is_anothers() {
    let site = Site::start();
    assert_eq!(site.reserve(&site.ada, &json!({"requestId": "adas", "seats": 2})).status, 201);
    let exchange = json!({"requestId": "eves", "seats": 1, "replaces": "adas"});
    let refused = site.reserve(&site.eve, &exchange);
    let missing = site.reserve(&site.eve, &json!({"requestId": "eves", "seats": 1, "replaces": "nobodys"}));
    assert_eq!((refused.status, refused.error()), (404, "not_found"));
    assert_eq!(refused.json, missing.json, "as if it were not there");
    let adas = site.send(&site.ada, "GET", "/workshops/w/reservations/adas", "").json;
    assert_eq!((&adas["state"], &adas["seats"]), (&json!("accepted"), &json!(2)));
    let own = json!({"requestId": "smaller", "seats": 1, "replaces": "adas"});
    assert_eq!(site.reserve(&site.ada, &own).status, 201);
}

/// The same name and the same id, and another one's all the same.
#[test]
fn a_workshop_that_is_made_again_has_nothing_of_those_before() {
    let site = Site::start();
    let hold = |seats: u32| json!({"requestId": "one", "seats": seats, "hold": true});
    assert_eq!(site.reserve(&site.ada, &hold(2)).status, 201);
    assert_eq!(site.send(&bearer(KEY), "DELETE", "/workshops/w", "").status, 200);
    let gone = site.send(&site.ada, "POST", "/workshops/w/reservations/one/cancel", "");
    assert_eq!((gone.status, gone.error()), (410, "gone"));
    assert_eq!(site.send(&bearer(KEY), "PUT", "/workshops/w", r#"{"capacity":4}"#).status, 201);
    assert_eq!(site.reserve(&site.eve, &hold(1)).status, 201);
    for change in ["confirm", "cancel"] {
        let path = format!("/workshops/w/reservations/one/{change}");
        assert_eq!(site.send(&site.ada, "POST", &path, "").status, 404);
    }
    assert_eq!(site.reserve(&site.ada, &hold(1)).json["field"], "requestId");
    let eves = site.send(&site.eve, "GET", "/workshops/w/reservations/one", "").json;
    assert_eq!((&eves["state"], &eves["seats"]), (&json!("held"), &json!(1)));
}

/// Which workshops a set reaches into counts, whoever's it is.
#[test]
fn a_narrowed_token_changes_no_set_beyond_it() {
    let site = Site::start();
    let set = json!({"requestId": "set", "hold": true, "lines": [{"workshop": "v", "seats": 1}, {"workshop": "w", "seats": 1}]});
    assert_eq!(site.send(&site.ada, "POST", "/reservations", &set.to_string()).status, 201);
    let narrow = |user, workshops| bearer(&token_with(user, json!({"workshop": workshops})));
    let cancel = |who: &str| site.send(who, "POST", "/reservations/set/cancel", "");
    assert_eq!(cancel(&narrow("ada", json!(["v"]))).error(), "beyond_token");
    assert_eq!(cancel(&narrow("eve", json!(["v", "w"]))).status, 404);
    assert_eq!(cancel(&site.eve).status, 404);
    assert_eq!(cancel(&narrow("ada", json!(["v", "w"]))).json["state"], "cancelled");
}

#[test]
fn what_is_anothers_looks_like_what_is_not_there() {
    let site = Site::start();
    assert_eq!(site.reserve(&site.ada, &json!({"requestId": "one", "seats": 1, "hold": true})).status, 201);
    let set = json!({"requestId": "set", "lines": [{"workshop": "v", "seats": 1}], "hold": true}).to_string();
    assert_eq!(site.send(&site.ada, "POST", "/reservations", &set).status, 201);
    for (method, taken, free, body) in [
        ("GET", "/workshops/w/reservations/one", "/workshops/w/reservations/two", ""),
        ("POST", "/workshops/w/reservations/one/confirm", "/workshops/w/reservations/two/confirm", ""),
        ("POST", "/workshops/w/reservations/one/cancel", "/workshops/w/reservations/two/cancel", ""),
        (
            "POST",
            "/workshops/w/reservations/one/extend",
            "/workshops/w/reservations/two/extend",
            r#"{"ttlMs":1}"#,
        ),
        ("GET", "/workshops/v/reservations/set", "/workshops/v/reservations/two", ""),
        ("GET", "/reservations/set", "/reservations/two", ""),
        ("POST", "/reservations/set/confirm", "/reservations/two/confirm", ""),
        ("POST", "/reservations/set/cancel", "/reservations/two/cancel", ""),
        ("POST", "/reservations/set/extend", "/reservations/two/extend", r#"{"ttlMs":1}"#),
    ] {
        let (taken, free) =
            (site.send(&site.eve, method, taken, body), site.send(&site.eve, method, free, body));
        assert_eq!((taken.status, &taken.text), (404, &free.text), "{method} {taken:?}");
    }
}
