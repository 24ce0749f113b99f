//! The rules of bookings: what may be repeated, what each wrong word means, the sale's window, configuration,
//! listings and history.

use hyper::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::service::{Setup, eventually};
use crate::{files, time};

const W: &str = "workshop";

async fn hold(client: &Client, id: &str, seats: u32, ttl_ms: i64) -> Answer {
    client.request(W, json!({"requestId": id, "seats": seats, "hold": true, "ttlMs": ttl_ms})).await
}

fn assert_word(answer: &Answer, status: u16, word: &str) {
    assert_eq!((answer.status, answer.error()), (status, word), "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/problem+json");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_confirmed_in_part_and_the_rest_gets_free() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let held = hold(client, "held", 3, 60_000).await;
    assert_eq!(
        (held.status, &held.json["status"], &held.json["state"]),
        (201, &json!("held"), &json!("held"))
    );
    let status = client.status(W).await;
    assert_eq!(
        (&status["reserved"], &status["held"], &status["acceptedSeats"]),
        (&json!(3), &json!(3), &json!(3))
    );
    let more = client.change(W, "held", "confirm", json!({"seats": 4})).await;
    assert_word(&more, 409, "more_than_held");
    let confirmed = client.change(W, "held", "confirm", json!({"seats": 2})).await;
    let expected = json!({"workshop": W, "requestId": "held", "seats": 2, "state": "confirmed"});
    assert_eq!((confirmed.status, &confirmed.json), (200, &expected));
    for body in [json!({"seats": 2}), Value::Null, json!({})] {
        assert_eq!(client.change(W, "held", "confirm", body).await.text, confirmed.text, "repeated");
    }
    assert_word(&client.change(W, "held", "confirm", json!({"seats": 1})).await, 409, "already_confirmed");
    assert_word(&client.change(W, "held", "extend", json!({"ttlMs": 9})).await, 409, "already_confirmed");
    let status = client.status(W).await;
    assert_eq!((&status["reserved"], &status["held"]), (&json!(2), &Value::Null));
    // The replay: first words, and where it is now.
    let replay = hold(client, "held", 3, 60_000).await;
    assert_eq!(
        (replay.status, &replay.json["status"], &replay.json["seats"]),
        (201, &json!("held"), &json!(3))
    );
    assert_eq!((&replay.json["state"], &replay.json["expiresAt"]), (&json!("confirmed"), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_change_has_its_word_and_changes_nothing() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    client
        .configure(
            W,
            json!({"capacity": 4, "waitlist": {"policy": "strict", "offerTtlMs": 9_000, "maxLength": 1}}),
        )
        .await;
    assert_eq!(client.reserve(W, "accepted", 4).await.status, 201);
    assert_eq!(client.reserve(W, "rejected", 1).await.status, 409);
    let wait = json!({"requestId": "waiting", "seats": 1, "waitlist": true});
    assert_eq!(client.request(W, wait.clone()).await.status, 202);
    let full = client.request(W, json!({"requestId": "full", "seats": 1, "waitlist": true})).await;
    assert_eq!((full.status, &full.json["reason"]), (409, &json!("waitlist_full")));
    let before = client.status(W).await;
    for (id, change, word) in [
        ("accepted", "confirm", "already_confirmed"),
        ("accepted", "extend", "already_confirmed"),
        ("rejected", "confirm", "already_rejected"),
        ("rejected", "cancel", "already_rejected"),
        ("rejected", "extend", "already_rejected"),
        ("waiting", "confirm", "still_waiting"),
        ("waiting", "extend", "still_waiting"),
    ] {
        assert_word(&client.change(W, id, change, json!({"ttlMs": 5})).await, 409, word);
    }
    assert_eq!(client.status(W).await, before);
    for (workshop, id) in [(W, "unknown"), ("no-workshop", "unknown")] {
        for change in ["confirm", "cancel", "extend"] {
            assert_word(&client.change(workshop, id, change, json!({"ttlMs": 5})).await, 404, "not_found");
        }
        assert_eq!(client.get(&format!("/workshops/{workshop}/reservations/{id}")).await.status, 404);
    }
    assert_word(&client.change(W, "BAD", "cancel", Value::Null).await, 400, "invalid_request_id");
    // Who waits may leave, and then the next may come.
    let left = client.change(W, "waiting", "cancel", Value::Null).await;
    assert_eq!((left.status, &left.json["state"]), (200, &json!("cancelled")));
    assert_eq!(client.status(W).await["waiting"], Value::Null);
    assert_word(&client.change(W, "waiting", "confirm", Value::Null).await, 409, "already_cancelled");
    let again = client.request(W, json!({"requestId": "next", "seats": 1, "waitlist": true})).await;
    assert_eq!((again.status, &again.json["position"]), (202, &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_counts_from_the_beginning_and_has_an_end() {
    let setup =
        Setup::new().with("reservations.max_hold_ms", 900_000).with("reservations.hold_ttl_ms", 1_000);
    let service = setup.start();
    let client = &service.client;
    let at = |answer: &Answer| answer.json["expiresAt"].as_i64().unwrap();
    let began = at(&hold(client, "held", 1, 60_000).await) - 60_000;
    for (ttl_ms, lives_ms) in [(120_000, 120_000), (120_000, 120_000), (5, 120_000), (900_000, 900_000)] {
        let extended = client.change(W, "held", "extend", json!({"ttlMs": ttl_ms})).await;
        assert_eq!((extended.status, at(&extended)), (200, began + lives_ms), "{extended:?}");
    }
    let invalid = client.change(W, "held", "extend", json!({"ttlMs": 900_001})).await;
    assert_word(&invalid, 400, "invalid_extension");
    assert_word(&client.change(W, "held", "extend", json!({})).await, 400, "invalid_extension");
    let shown = client.show(W, "held").await;
    let kinds: Vec<&str> =
        shown["history"].as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["held", "extended", "extended"], "only what changed something");
    // What is not said is the setting's.
    let unsaid = client.request(W, json!({"requestId": "unsaid", "seats": 1, "hold": true})).await;
    let decided = client.show(W, "unsaid").await["decidedAt"].as_i64().unwrap();
    assert_eq!(at(&unsaid), decided + 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_goes_on_to_the_next_and_downtime_consumes_none_of_it() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let waitlist = json!({"policy": "strict", "offerTtlMs": 30_000, "maxLength": 9});
    client.configure(W, json!({"capacity": 1, "waitlist": waitlist})).await;
    client.reserve(W, "first", 1).await;
    for id in ["waiter-1", "waiter-2"] {
        assert_eq!(
            client.request(W, json!({"requestId": id, "seats": 1, "waitlist": true})).await.status,
            202
        );
    }
    client.change(W, "first", "cancel", Value::Null).await;
    assert_eq!(client.show(W, "waiter-1").await["state"], "offered");
    // An hour in which nobody could answer: the first offer is over, the second begins now.
    let service = time::passes(&setup, service, 3_600_000);
    let offered = "SELECT count(*) FROM bookings WHERE request_id = 'waiter-2' AND state = 'offered'";
    eventually("the offer", || files::sum(&setup.data_dir(), offered) == 1);
    let client = &service.client;
    let (shown, now) = (client.show(W, "waiter-2").await, time::now_ms(client).await);
    assert!(shown["expiresAt"].as_i64().unwrap() > now, "{shown}, now {now}");
    assert_eq!(client.show(W, "waiter-1").await["state"], "expired");
    assert_eq!(client.change(W, "waiter-2", "confirm", Value::Null).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_told_to_be_over_stays_so_when_the_clock_is_set_back() {
    let setup = Setup::new();
    // Nothing is swept, so that nothing else stores the time.
    let mut service = setup.start();
    for round in 0..5 {
        let id = format!("held-{round}");
        let held = hold(&service.client, &id, 4, 5).await;
        let ends = held.json["expiresAt"].as_i64().unwrap();
        time::comes(&service.client, ends).await;
        assert_eq!(service.client.status(W).await["reserved"], 0);
        service.kill();
        let mark = "SELECT clock_mark_ms FROM identity";
        let marks = files::partitions(&setup.data_dir());
        let latest = marks.iter().map(|file| files::number(&setup.data_dir(), file, mark)).max().unwrap();
        assert!(latest >= ends, "{latest} is stored, and at {ends} it was told to be over");
        service = setup.start();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_has_a_window() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let now = time::now_ms(client).await;
    client
        .configure(W, json!({"capacity": 4, "opensAt": now + 3_600_000, "closesAt": now + 7_200_000}))
        .await;
    let early = client.reserve(W, "early", 1).await;
    assert_eq!((early.status, &early.json["reason"]), (409, &json!("sale_not_open")));
    let service = time::passes(&setup, service, 3_600_000);
    let client = &service.client;
    let replay = client.reserve(W, "early", 1).await;
    assert_eq!(
        (replay.status, &replay.json["reason"], &replay.json["replayed"]),
        (409, &json!("sale_not_open"), &json!(true))
    );
    assert_eq!(hold(client, "in-time", 4, 3_600_000).await.status, 201);
    let wait = json!({"requestId": "waiting", "seats": 1, "waitlist": true});
    let mut rules = client.get(&format!("/workshops/{W}")).await.json;
    rules["waitlist"] = json!({"policy": "strict", "offerTtlMs": 1_000, "maxLength": 9});
    assert_eq!(client.configure(W, rules).await.status, 200);
    assert_eq!(client.request(W, wait).await.status, 202);
    let service = time::passes(&setup, service, 3_600_000);
    let client = &service.client;
    let late = client.reserve(W, "late", 1).await;
    assert_eq!((late.status, &late.json["reason"]), (409, &json!("sale_closed")));
    // Seats that come back are offered to nobody any more: who waits is passed over.
    let passed_over = "SELECT count(*) FROM events WHERE kind = 'skipped' AND reason = 'sale_closed'";
    eventually("the sweep", || files::sum(&setup.data_dir(), passed_over) == 1);
    let shown = client.show(W, "waiting").await;
    assert_eq!((&shown["state"], &shown["status"]), (&json!("rejected"), &json!("waiting")));
    // Whoever asks is told why.
    let listed = client.get(&format!("/workshops/{W}/reservations?state=rejected")).await.json;
    let listed = listed["reservations"].as_array().unwrap();
    let listed = listed.iter().find(|listed| listed["requestId"] == "waiting").unwrap();
    let replay = client.request(W, json!({"requestId": "waiting", "seats": 1, "waitlist": true})).await;
    assert_eq!((replay.status, &replay.json["state"]), (202, &json!("rejected")));
    for told in [&shown, listed, &replay.json] {
        assert_eq!(told["reason"], "sale_closed", "{told}");
    }
    assert!(service.stop().success());
    setup.assert_verified();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_changed_by_whoever_has_read_it() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let path = format!("/workshops/{W}");
    assert_word(&client.get(&path).await, 404, "not_found");
    let whole = json!({"capacity": 9, "maxSeatsPerRequest": 2, "maxSeatsPerHolder": 3, "holdTtlMs": 4_000,
        "waitlist": {"policy": "fit_first", "offerTtlMs": 5_000, "maxLength": 6},
        "opensAt": 7, "closesAt": 4_000_000_000_000_000_i64});
    let put = async |tag: &str, body: &Value| {
        let mut with_tag = client.clone();
        with_tag.set_header("if-match", tag);
        with_tag.send(Method::PUT, &path, body.to_string()).await
    };
    assert_word(&put("*", &whole).await, 412, "version_mismatch");
    let put_unless = async |tag: &str, body: &Value| {
        let mut with_tag = client.clone();
        with_tag.set_header("if-none-match", tag);
        with_tag.send(Method::PUT, &path, body.to_string()).await
    };
    let created = put_unless("*", &whole).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_word(&put_unless("*", &whole).await, 412, "version_mismatch");
    assert_word(&put_unless(created.header("etag"), &whole).await, 412, "version_mismatch");
    assert_eq!(put_unless("\"1-9\"", &whole).await.status, 200);
    for (field, value) in whole.as_object().unwrap() {
        assert_eq!(created.json[field], *value, "{field}");
    }
    let tag = created.header("etag").to_owned();
    let read = client.get(&path).await;
    assert_eq!((read.status, &read.json, read.header("etag")), (200, &created.json, &*tag));
    // The same again is no change.
    assert_eq!(client.configure(W, whole.clone()).await.header("etag"), tag);
    let changed = put(&tag, &json!({"capacity": 10})).await;
    assert_eq!((changed.status, &changed.json["maxSeatsPerHolder"]), (200, &Value::Null), "whole");
    assert_ne!(changed.header("etag"), tag);
    for stale in [&*tag, "W/\"1-2\"", "\"other\"", "\"1\""] {
        assert_word(&put(stale, &whole).await, 412, "version_mismatch");
    }
    let either = format!("{tag}, {}", changed.header("etag"));
    assert_eq!(put(&either, &whole).await.status, 200);
    assert_eq!(put("*", &json!({"capacity": 11})).await.status, 200);
    // A reservation is no change of the configuration.
    let tag = client.get(&path).await.header("etag").to_owned();
    client.reserve(W, "request", 1).await;
    assert_eq!(client.get(&path).await.header("etag"), tag);
    for (field, body) in [
        ("capacity", json!({})),
        ("capacity", json!({"capacity": -1})),
        ("capacity", json!({"capacity": 1_000_001})),
        ("maxSeatsPerRequest", json!({"capacity": 1, "maxSeatsPerRequest": 5})),
        ("maxSeatsPerHolder", json!({"capacity": 1, "maxSeatsPerHolder": 0})),
        ("holdTtlMs", json!({"capacity": 1, "holdTtlMs": "1"})),
        ("waitlist", json!({"capacity": 1, "waitlist": {"policy": "lifo", "offerTtlMs": 1, "maxLength": 1}})),
        ("waitlist", json!({"capacity": 1, "waitlist": {"policy": "strict", "maxLength": 1}})),
        ("closesAt", json!({"capacity": 1, "opensAt": 5, "closesAt": 5})),
        ("force", json!({"capacity": 1, "force": 1})),
    ] {
        let answer = client.configure(W, body).await;
        assert_word(&answer, 400, "invalid_workshop");
        assert_eq!(answer.json["field"], field);
    }
    let limited = client.configure(W, json!({"capacity": 11, "maxSeatsPerRequest": 2})).await;
    assert_eq!(limited.status, 200);
    let three = client.reserve(W, "three", 3).await;
    assert_word(&three, 400, "invalid_reservation");
    assert_eq!(client.reserve(W, "three", 2).await.status, 201, "the id was not used up");
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_have_stable_pages() {
    let setup = Setup::new().with("reservations.default_capacity", 1_000);
    let service = setup.start();
    let client = &service.client;
    for n in 0..30 {
        let mut body = json!({"requestId": format!("request-{n:02}"), "seats": 1});
        if n % 3 == 0 {
            body["hold"] = true.into();
        }
        if n % 5 == 0 {
            body["holder"] = "Ada Lovelace".into();
        }
        assert_eq!(client.request(W, body).await.status, 201);
    }
    client.change(W, "request-00", "cancel", Value::Null).await;
    client.change(W, "request-01", "cancel", Value::Null).await;
    client.change(W, "request-03", "confirm", Value::Null).await;
    let pages = async |query: &str| {
        let (mut ids, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/workshops/{W}/reservations?limit=7{query}{cursor}");
            let page = client.get(&path).await;
            assert_eq!(page.status, 200, "{page:?}");
            ids.extend(page.json["reservations"].as_array().unwrap().clone());
            // Whoever comes in between moves nobody.
            client.reserve(W, "a-newcomer", 1).await;
            match page.json["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return ids,
            }
        }
    };
    let all = pages("").await;
    let ids: Vec<&str> = all.iter().map(|one| one["requestId"].as_str().unwrap()).collect();
    assert_eq!(ids, (0..30).map(|n| format!("request-{n:02}")).collect::<Vec<_>>());
    let of_state = async |state: &str| pages(&format!("&state={state}")).await.len();
    assert_eq!(of_state("cancelled").await, 2);
    assert_eq!(of_state("confirmed").await, 1);
    assert_eq!(of_state("held").await, 8);
    assert_eq!(of_state("accepted").await, 20, "19 of the first, and the newcomer");
    assert_eq!(of_state("rejected").await, 0);
    let ada = pages("&holder=Ada%20Lovelace").await;
    assert_eq!(ada.len(), 6);
    assert!(ada.iter().all(|one| one["holder"] == "Ada Lovelace"));
    assert_eq!(pages("&holder=Ada+Lovelace&state=cancelled").await.len(), 1);
    assert_eq!(pages("&holder=nobody").await.len(), 0);
    for bad in ["state=lost", "limit=0", "limit=201", "limit=x", "cursor=-", "holder="] {
        assert_word(&client.get(&format!("/workshops/{W}/reservations?{bad}")).await, 400, "invalid_query");
    }

    for name in ["b", "a", "zebra", "c"] {
        client.reserve(name, "request", 1).await;
    }
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/workshops?limit=2{cursor}")).await.json;
        names.extend(page["workshops"].as_array().unwrap().iter().map(|one| one["workshop"].clone()));
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c", W, "zebra"], "of both partitions, by name");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_very_long_history_is_told_from_its_end_and_says_so() {
    const MOST: usize = 1_000;
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    assert_eq!(hold(client, "held", 1, 100_000).await.status, 201);
    for n in 1..MOST as i64 {
        let extended = client.change(W, "held", "extend", json!({"ttlMs": 100_000 + n})).await;
        assert_eq!(extended.status, 200, "{extended:?}");
    }
    let shown = client.show(W, "held").await;
    assert_eq!((shown["history"].as_array().unwrap().len(), &shown["truncated"]), (MOST, &Value::Null));
    assert_eq!(shown["history"][0]["event"], "held");
    assert_eq!(client.change(W, "held", "confirm", Value::Null).await.status, 200);
    let shown = client.show(W, "held").await;
    let history = shown["history"].as_array().unwrap();
    assert_eq!((history.len(), &shown["truncated"]), (MOST, &json!(true)));
    assert_eq!(
        (&history[0]["event"], &history[MOST - 1]["event"]),
        (&json!("extended"), &json!("confirmed"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_may_live_longer_than_holds_do_and_no_extension_makes_it_longer() {
    let setup = Setup::new().with("reservations.max_hold_ms", 60_000).with("reservations.hold_ttl_ms", 1_000);
    let service = setup.start();
    let client = &service.client;
    let waitlist =
        |offer_ttl_ms: i64| json!({"policy": "strict", "offerTtlMs": offer_ttl_ms, "maxLength": 9});
    let week_ms = 604_800_000;
    let too_long = client.configure(W, json!({"capacity": 1, "waitlist": waitlist(week_ms + 1)})).await;
    assert_word(&too_long, 400, "invalid_workshop");
    let configured = client.configure(W, json!({"capacity": 1, "waitlist": waitlist(week_ms)})).await;
    assert_eq!(configured.status, 201, "{configured:?}");
    client.configure(W, json!({"capacity": 1, "waitlist": waitlist(30_000)})).await;
    client.reserve(W, "first", 1).await;
    assert_eq!(
        client.request(W, json!({"requestId": "waiter", "seats": 1, "waitlist": true})).await.status,
        202
    );
    client.change(W, "first", "cancel", Value::Null).await;
    let ends_at = client.show(W, "waiter").await["expiresAt"].clone();
    let extended = client.change(W, "waiter", "extend", json!({"ttlMs": 60_000})).await;
    assert_eq!((extended.status, &extended.json["expiresAt"]), (200, &ends_at));
    assert_eq!(extended.json["state"], "offered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_tells_everything_and_no_name() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let body = json!({"requestId": "booked", "seats": 3, "hold": true, "holder": "secret-ada"});
    client.request(W, body).await;
    client.change(W, "booked", "confirm", json!({"seats": 2})).await;
    client.change(W, "booked", "cancel", Value::Null).await;
    client.reserve(W, "plain", 1).await;
    client.reserve(W, "refused", 4).await;
    client.change(W, "plain", "cancel", Value::Null).await;
    let history = async |id: &str| {
        let shown = client.show(W, id).await;
        let events = shown["history"].as_array().unwrap().clone();
        assert!(events.iter().all(|event| event["at"].as_i64().unwrap() > 0));
        events
            .iter()
            .map(|event| (event["event"].clone(), event["seats"].clone(), event["reserved"].clone()))
            .collect::<Vec<_>>()
    };
    let row = |event: &str, seats: i64, reserved: i64| (json!(event), json!(seats), json!(reserved));
    assert_eq!(history("booked").await, [row("held", 3, 3), row("confirmed", 2, 2), row("cancelled", 2, 0)]);
    assert_eq!(history("plain").await, [row("accepted", 1, 1), row("cancelled", 1, 0)]);
    assert_eq!(history("refused").await, [row("rejected", 4, 1)]);
    assert_eq!(client.show(W, "booked").await["holder"], "secret-ada");
    // One row holds the name; it stands in no log.
    assert_eq!(files::sum(&setup.data_dir(), "SELECT count(*) FROM holders WHERE name = 'secret-ada'"), 1);
    assert!(service.log().iter().all(|line| !line.contains("secret-ada")));
    for table in ["events", "attempts_now", "bookings"] {
        let sql = format!("SELECT count(*) FROM {table} WHERE instr(request_id, 'secret') > 0");
        assert_eq!(files::sum(&setup.data_dir(), &sql), 0);
    }
    // Without the row, the history stays.
    assert!(service.stop().success());
    for file in files::partitions(&setup.data_dir()) {
        files::execute(&setup.data_dir(), &file, "DELETE FROM holders");
    }
    let service = setup.start();
    let shown = service.client.show(W, "booked").await;
    assert_eq!((&shown["holder"], shown["history"].as_array().unwrap().len()), (&Value::Null, 3));
    assert!(service.stop().success());
    setup.assert_verified();
}

/// Everything has ended while the service was down. What one workshop has to be written down does not keep another one's
/// waiter from its offer.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_in_one_workshop_does_not_wait_for_all_that_ended_in_another_one() {
    const MASS: usize = 120;
    let setup = Setup::new()
        .with("reservations.default_capacity", 1_000)
        .with("storage.partitions", 1)
        .with("reservations.sweep_chunk", 4);
    let service = setup.start();
    let client = &service.client;
    for n in 0..MASS {
        let body = json!({"requestId": format!("held-{n}"), "seats": 1, "hold": true, "ttlMs": 10_000});
        assert_eq!(client.request("a-mass", body).await.status, 201);
    }
    let waitlist = json!({"policy": "strict", "offerTtlMs": 600_000, "maxLength": 9});
    client.configure(W, json!({"capacity": 1, "waitlist": waitlist})).await;
    assert_eq!(hold(client, "held", 1, 20_000).await.status, 201);
    let wait = json!({"requestId": "waiter", "seats": 1, "waitlist": true});
    assert_eq!(client.request(W, wait).await.status, 202);
    let service = time::passes(&setup, service, 20_000);
    let expired = "SELECT count(*) FROM events WHERE kind = 'expired'";
    eventually("the sweep", || files::sum(&setup.data_dir(), expired) == MASS as i64 + 1);
    let offered_at = files::sum(&setup.data_dir(), "SELECT at_ms FROM events WHERE kind = 'offered'");
    let ended_later = format!(
        "SELECT count(*) FROM events JOIN workshops USING (workshop_id)
         WHERE name = 'a-mass' AND kind = 'expired' AND at_ms >= {offered_at}"
    );
    let later = files::sum(&setup.data_dir(), &ended_later);
    assert!(later >= MASS as i64 - 8, "{later} of {MASS} ended with the offer or after it");
    assert!(service.stop().success());
    setup.assert_verified();
}
