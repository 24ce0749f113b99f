//! The operator's page, on the admin listener: what it is made of, what it is told, and what it may do. How it looks and
//! works in a browser is in [`browser`].

mod browser;
mod live;

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::raw;
use crate::service::{Service, Setup, eventually};
use live::Live;

const W: &str = "workshop";

/// A request as a browser, or something that poses as one, would send it.
fn send(service: &Service, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: 0\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    raw::exchange(&service.admin_address, format!("{head}\r\n").as_bytes())
}

/// A service that knows a key of each of these scopes; the keys' texts are `reader` and `operator`.
fn keyed(setup: &Setup) -> Service {
    std::fs::create_dir_all(setup.scratch().join("config")).unwrap();
    let key = |name: &str, scopes: &str| {
        use sha2::{Digest, Sha256};
        let digest: String = Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("[[auth.keys]]\nname = \"{name}\"\nsha256 = \"{digest}\"\nscopes = [{scopes}]\n")
    };
    let settings = key("reader", r#""read""#) + &key("operator", r#""read", "admin""#);
    std::fs::write(setup.scratch().join("config/headcount.toml"), settings).unwrap();
    setup.start()
}

async fn snapshot(client: &Client) -> Value {
    let answer = client.get("/console/snapshot").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json
}

#[tokio::test]
async fn the_page_is_in_the_binary_and_takes_nothing_from_elsewhere() {
    let service = Setup::new().start();
    let index = service.admin.get("/").await;
    assert_eq!((index.status, index.header("content-type")), (200, "text/html; charset=utf-8"));
    let linked: Vec<&str> =
        index.text.split('"').filter(|text| text.starts_with("/console/assets/")).collect();
    assert!(linked.len() >= 4, "{linked:?}");
    let imported = |text: &str| -> Vec<String> {
        let names = text.split("from './").skip(1).map(|rest| rest.split('\'').next().unwrap().to_owned());
        names.map(|name| format!("/console/assets/{name}")).collect()
    };
    let mut all: Vec<String> = linked.into_iter().map(str::to_owned).collect();
    let mut next = 0;
    while let Some(path) = all.get(next).cloned() {
        next += 1;
        let file = service.admin.get(&path).await;
        let kind = if path.ends_with(".css") { "text/css" } else { "text/javascript" };
        assert_eq!(
            (file.status, file.header("content-type")),
            (200, &*format!("{kind}; charset=utf-8")),
            "{path}"
        );
        for more in imported(&file.text) {
            if !all.contains(&more) {
                all.push(more);
            }
        }
        // In its own words nothing becomes markup or code, and no other host is named but the namespace of SVG.
        for word in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
        {
            assert!(!file.text.contains(word), "{word} in {path}");
        }
        assert!(!file.text.replace("http://www.w3.org/2000/svg", "").contains("://"), "{path}");
    }
    assert_eq!(all.len(), 12, "every file is used: {all:?}");
    for path in ["/", "/console/assets/main.js"] {
        let answer = service.admin.get(path).await;
        let policy = answer.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{part} in {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
    assert_eq!(service.admin.get("/console/assets/../main.rs").await.status, 404);
    assert_eq!(service.client.get("/").await.status, 404, "not on the public listener");
    assert_eq!(service.client.get("/console/snapshot").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_has_every_part() {
    let setup = Setup::new().with("likes.shards", 8).with("storage.partitions", 2);
    let service = setup.start();
    let client = &service.client;
    client.like("%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "ada").await;
    client.like("post", "ada").await;
    client.like("post", "bob").await;
    client.configure(W, json!({"capacity": 4})).await;
    client.reserve(W, "request-1", 2).await;
    client.request(W, json!({"requestId": "held-1", "seats": 1, "hold": true})).await;
    client.post("/rooms/lobby/join", r#"{"user":"ada"}"#).await;
    client.rolled_up("post").await;
    let told = snapshot(&service.admin).await;
    assert_eq!(told["instance"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&told["instance"]["shards"], &told["instance"]["partitions"]), (&json!(8), &json!(2)));
    assert_eq!(told["instance"]["public"], service.public);
    assert_eq!(told["viewers"], 1);
    assert_eq!(
        (told["shards"].as_array().unwrap().len(), told["partitions"].as_array().unwrap().len()),
        (8, 2)
    );
    assert!(told["partitions"].as_array().unwrap().iter().all(|partition| partition["up"] == true));
    let item = |name: &str| {
        told["top"]["items"].as_array().unwrap().iter().find(|item| item["item"] == name).cloned()
    };
    let post = item("post").unwrap();
    assert_eq!((&post["total"], &post["gained"]), (&json!(2), &json!(2)));
    assert_eq!(post["minutes"].as_array().unwrap().iter().filter_map(Value::as_i64).sum::<i64>(), 2);
    assert_eq!(item("<img src=x onerror=alert(1)>").unwrap()["total"], 1);
    let workshop = &told["workshops"]["workshops"][0];
    assert_eq!((&workshop["workshop"], &workshop["capacity"]), (&json!(W), &json!(4)));
    assert_eq!((&workshop["reserved"], &workshop["held"]), (&json!(3), &json!(1)));
    let room = &told["rooms"]["rooms"][0];
    assert_eq!((&room["room"], &room["online"], &room["awake"]), (&json!("lobby"), &json!(1), &json!(true)));
    let namespaces = told["namespaces"].as_array().unwrap();
    let calls =
        |name: &str| namespaces.iter().find(|of| of["namespace"] == name).unwrap()["calls"].as_f64().unwrap();
    assert!(calls("likes") >= 3.0 && calls("workshops") == 3.0 && calls("rooms") == 1.0, "{namespaces:?}");
    assert_eq!(told["rollup"]["drifted"], 0.0);
    assert!(told["rollup"]["ageMs"].as_i64().unwrap() < 60_000);
    assert!(told["decisions"]["lines"].is_array() && told["backup"]["failures"] == 0.0);
}

/// What a shard could not do is on its own account.
#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_fails_is_told_of() {
    let service = Setup::new().with("faults.fail_commit_every", 2).start();
    let mut failed = 0;
    for item in 0..20 {
        failed += u64::from(service.client.like(&format!("item-{item}"), "ada").await.status != 200);
    }
    assert!(failed > 0);
    let told = snapshot(&service.admin).await;
    let by_shard: Vec<u64> =
        told["shards"].as_array().unwrap().iter().map(|of| of["failed"].as_u64().unwrap()).collect();
    let ones: Vec<&u64> = by_shard.iter().filter(|of| **of > 0).collect();
    assert_eq!(ones, [&failed], "all of them are of one user: {by_shard:?}");
}

/// How long answers take is measured only while somebody looks, and told as long as it is of the last seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_is_told_how_long_a_shard_takes() {
    let service = Setup::new().start();
    service.client.like("post", "ada").await;
    let slow = |told: &Value| {
        let shards = told["shards"].as_array().unwrap().clone();
        shards.into_iter().find(|shard| !shard["answerMs"].is_null()).map(|shard| shard["shard"].clone())
    };
    let mut live = Live::open(&service, &[]).await;
    live.next().await;
    assert_eq!(slow(&live.next().await), None, "nobody looked");
    let shard = service.client.like("post", "bob").await.json["shard"].clone();
    let told = live.until("the shard's answer", |told| slow(told).is_some()).await;
    assert_eq!(slow(&told), Some(shard));
    live.until("it is over", |told| slow(told).is_none()).await;
}

/// Rooms that are awake come first, and looking wakes none.
#[tokio::test(flavor = "multi_thread")]
async fn rooms_that_sleep_are_told_apart() {
    let service = Setup::new().with("rooms.sleep_after_ms", 300).start();
    for room in ["attic", "cellar"] {
        service.client.post(&format!("/rooms/{room}/join"), r#"{"user":"ada"}"#).await;
    }
    let mut live = Live::open(&service, &[]).await;
    live.until("both sleep", |told| told["rooms"]["asleep"] == 2).await;
    let told = live.next().await["rooms"].clone();
    assert_eq!((&told["awake"], &told["asleep"]), (&json!(0), &json!(2)), "looking wakes nobody");
    let listed: Vec<_> = told["rooms"].as_array().unwrap().iter().map(|room| room["room"].clone()).collect();
    assert_eq!(listed, ["attic", "cellar"]);
    assert_eq!(told["rooms"][0]["online"], 1, "who is here is told all the same");
    // Kept awake: by then it is above the one that sleeps.
    let client = service.client.clone();
    let talk = tokio::spawn(async move {
        loop {
            client.post("/rooms/cellar/send", r#"{"user":"ada","text":"hello"}"#).await;
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
    let told = live.until("one is awake", |told| told["rooms"]["awake"] == 1).await["rooms"].clone();
    assert_eq!((&told["rooms"][0]["room"], &told["rooms"][0]["awake"]), (&json!("cellar"), &json!(true)));
    assert_eq!((&told["rooms"][1]["room"], &told["rooms"][1]["awake"]), (&json!("attic"), &json!(false)));
    talk.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_is_told_of_a_like_and_of_a_decision_without_asking_again() {
    let service = Setup::new().start();
    let mut live = Live::open(&service, &[]).await;
    let first = live.next().await;
    assert_eq!((&first["now"]["likesPerS"], first["decisions"]["told"].as_u64()), (&Value::Null, Some(0)));
    service.client.like("post", "ada").await;
    service.client.reserve(W, "request-1", 1).await;
    let mut rates = 0.0;
    live.until("the total, the rate and the line", |told| {
        rates += told["now"]["likesPerS"].as_f64().unwrap_or(0.0);
        let line = &told["decisions"]["lines"][0];
        told["top"]["items"][0]["total"] == 1 && rates > 0.0 && line["requestId"] == "request-1"
    })
    .await;
    let asked: f64 =
        live.next().await["shards"].as_array().unwrap().iter().map(|of| of["perS"].as_f64().unwrap()).sum();
    assert_eq!(asked, 0.0, "a second later");
    // What it cost is not on the namespaces' bill.
    let before = service.admin.get("/usage").await.json;
    assert_eq!(service.admin.get("/console/api/workshops").await.status, 200);
    assert_eq!(
        service.admin.get("/usage").await.json["workshops"]["requests"],
        before["workshops"]["requests"]
    );
}

/// While nobody looks nothing is made, and the tail of the log holds nothing that somebody saw before.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_while_nobody_looks() {
    let service = Setup::new().start();
    let mut live = Live::open(&service, &[]).await;
    live.next().await;
    service.client.reserve(W, "request-1", 1).await;
    live.until("the line", |told| told["decisions"]["told"] == 1).await;
    drop(live);
    // A snapshot that is asked for alone begins anew once the last viewer is gone: it has no rates.
    for _ in 0..600 {
        let told = snapshot(&service.admin).await;
        if told["now"]["likesPerS"].is_null() {
            assert_eq!(told["decisions"]["told"], 0);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("snapshots are made for nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_are_bounded() {
    let service = Setup::new().with("server.max_console_viewers", 2).start();
    let mut first = Live::open(&service, &[]).await;
    let second = Live::open(&service, &[]).await;
    first.until("both are counted", |told| told["viewers"] == 2).await;
    for path in ["/console/live", "/console/snapshot"] {
        let third = service.admin.get(path).await;
        assert_eq!((third.status, third.error()), (503, "overloaded"), "{third:?}");
        assert!(third.json["detail"].as_str().unwrap().contains("server.max_console_viewers"));
    }
    drop(second);
    eventually("a place gets free", || {
        send(&service, "GET", "/console/snapshot", &[("host", "127.0.0.1")]).status == 200
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn with_keys_looking_takes_read_and_changing_takes_admin() {
    let setup = Setup::new();
    let service = keyed(&setup);
    let (reader, operator) = (service.admin.with_key("reader"), service.admin.with_key("operator"));
    assert_eq!(service.admin.get("/").await.status, 200, "the page itself holds nothing");
    assert_eq!(service.admin.get("/console/assets/main.js").await.status, 200);
    let reads = [
        "/console/snapshot",
        "/console/live",
        "/console/settings",
        "/console/api/workshops",
        "/console/api/rooms/lobby",
    ];
    for path in reads {
        for wrong in [&service.admin, &service.admin.with_key("wrong")] {
            let answer = wrong.get(path).await;
            assert_eq!((answer.status, answer.error()), (401, "unauthorized"), "{path}");
        }
        if path != "/console/live" {
            assert_eq!(reader.get(path).await.status, 200, "{path}");
        }
    }
    let workshop = format!("/console/api/workshops/{W}");
    let configure = |client: Client| {
        let path = workshop.clone();
        async move { client.send(hyper::Method::PUT, &path, r#"{"capacity":3}"#).await }
    };
    assert_eq!(configure(reader.clone()).await.status, 403);
    assert_eq!(configure(operator.clone()).await.status, 201);
    let reserved = service.client.with_key("operator").reserve(W, "request-1", 1).await;
    assert_eq!(reserved.status, 403, "admin is not write");
    for path in ["/verify", "/backup", &format!("{workshop}/reservations/request-1/cancel")] {
        assert_eq!(reader.post(path, "").await.status, 403, "{path}");
    }
    assert_eq!(reader.delete(&workshop).await.status, 403);
    assert_eq!(operator.post(&format!("{workshop}/reservations/request-1/cancel"), "").await.status, 404);
    assert_eq!(operator.post("/verify", "{}").await.json["passes"], true);
    assert_eq!(operator.delete(&workshop).await.status, 200);
    let mut live = Live::open(&service, &[("authorization", "Bearer reader")]).await;
    assert_eq!(live.next().await["instance"]["keys"], true);
}

#[test]
fn without_keys_no_foreign_page_reads_or_changes_anything() {
    let service = Setup::new().start();
    let host = ("host", &*service.admin_address);
    let own = format!("http://{}", service.admin_address);
    let from_the_page = ("x-headcount-console", "1");
    let status = |method: &str, path: &str, headers: &[(&str, &str)]| send(&service, method, path, headers);
    // The page itself, a script, and a tool.
    let browser = [host, ("origin", &*own), ("sec-fetch-site", "same-origin"), from_the_page];
    assert_eq!(status("POST", "/verify", &browser).status, 200);
    assert_eq!(status("GET", "/console/snapshot", &[host]).status, 200);
    assert_eq!(status("GET", "/console/snapshot", &[("host", "localhost:8788")]).status, 200);
    let json = ("content-type", "application/json");
    assert_eq!(status("POST", "/verify", &[host, json]).status, 200);
    // Others.
    let foreign_name = ("host", "evil.example:8788");
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let refused: [(&str, &str, Headers, &str); 8] = [
        ("POST", "/verify", &[host], "foreign_page"),
        ("POST", "/backup", &[host, ("content-type", "text/plain")], "foreign_page"),
        ("POST", "/verify", &[host, ("origin", "http://evil.example"), json], "foreign_page"),
        ("GET", "/console/live", &[host, ("sec-fetch-site", "cross-site")], "foreign_page"),
        ("GET", "/console/snapshot", &[foreign_name], "foreign_host"),
        ("GET", "/console/settings", &[], "foreign_host"),
        (
            "POST",
            "/verify",
            &[foreign_name, ("origin", "http://evil.example:8788"), from_the_page],
            "foreign_host",
        ),
        ("DELETE", "/console/api/workshops/workshop", &[host], "foreign_page"),
    ];
    for (method, path, headers, word) in refused {
        let answer = status(method, path, headers);
        assert_eq!((answer.status, answer.error()), (403, word), "{method} {path} {headers:?}");
    }
    // A preflight is not answered with yes.
    let preflight = status(
        "OPTIONS",
        "/verify",
        &[host, ("origin", "http://evil.example"), ("access-control-request-method", "POST")],
    );
    assert!(
        preflight.status >= 400 && preflight.header("access-control-allow-origin").is_empty(),
        "{preflight:?}"
    );
    // Prometheus calls the service by whatever name it has.
    assert_eq!(status("GET", "/metrics", &[("host", "headcount.internal:8788")]).status, 200);
}

#[tokio::test]
async fn the_settings_in_force_are_told_without_digests() {
    let setup = Setup::new().with("batch.max", 77);
    let service = keyed(&setup);
    let answer = service.admin.with_key("reader").get("/console/settings").await;
    let settings = answer.json["settings"].as_array().unwrap().clone();
    let of = |key: &str| settings.iter().find(|setting| setting["key"] == key).unwrap();
    assert_eq!((&of("batch.max")["value"], &of("batch.max")["isDefault"]), (&json!("77"), &json!(false)));
    assert_eq!(of("likes.shards")["value"], "16");
    assert_eq!(of("batch.linger_us")["isDefault"], true);
    assert_eq!((&of("auth.keys: operator")["value"], settings.len() > 80), (&json!("read, admin"), true));
    assert!(!answer.text.contains("sha256"), "{}", answer.text);
    let digests = std::fs::read_to_string(setup.scratch().join("config/headcount.toml")).unwrap();
    let digest = digests.split('"').find(|text| text.len() == 64).unwrap();
    assert!(!answer.text.contains(digest));
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_tells_what_it_saw_and_what_is_wrong() {
    let setup = Setup::new();
    let service = setup.start();
    service.client.like("post", "ada").await;
    service.client.reserve(W, "request-1", 1).await;
    let seen = service.admin.post("/verify", "{}").await;
    assert_eq!(seen.status, 200, "{seen:?}");
    assert_eq!((&seen.json["passes"], &seen.json["wrong"]), (&json!(true), &json!(0)));
    assert_eq!((&seen.json["memberships"], &seen.json["attempts"]), (&json!(1), &json!(1)));
    // Two at once: one of them waits for no audit.
    let (one, other) = tokio::join!(service.admin.post("/verify", "{}"), service.admin.post("/verify", "{}"));
    let statuses = [one.status, other.status];
    assert!(
        statuses.contains(&200) && statuses.iter().all(|status| [200, 409].contains(status)),
        "{statuses:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_long_log_is_shown_the_newest_first() {
    let service = Setup::new().start();
    service.client.configure(W, json!({"capacity": 4})).await;
    for number in 0..60 {
        let id = format!("held-{number}");
        service.client.request(W, json!({"requestId": id, "seats": 1, "hold": true})).await;
        service.client.change(W, &id, "cancel", Value::Null).await;
    }
    let recent = service.admin.get(&format!("/console/api/workshops/{W}/recent")).await.json;
    let events = recent["events"].as_array().unwrap();
    assert_eq!(events.len(), 50);
    assert_eq!((&events[0]["event"], &events[0]["requestId"]), (&json!("cancelled"), &json!("held-59")));
    let numbers: Vec<i64> = events.iter().map(|event| event["seq"].as_i64().unwrap()).collect();
    assert!(numbers.windows(2).all(|two| two[0] == two[1] + 1), "{numbers:?}");
    let unknown = service.admin.get("/console/api/workshops/nothing/recent").await;
    assert_eq!((unknown.status, &unknown.json["events"]), (200, &json!([])));
}
