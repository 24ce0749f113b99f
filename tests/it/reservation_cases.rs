//! Reservations that went wrong elsewhere, each case under its own name, and the promises beside them.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::files;
use crate::service::Setup;

fn count(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_fifty_requests_for_ten_seats() {
    let setup = Setup::new().with("reservations.default_capacity", 10);
    let service = setup.start();
    let ids: Vec<String> = (0..50).map(|n| format!("request-{n}")).collect();
    let answers = join_all(ids.iter().map(|id| service.client.reserve("workshop", id, 1))).await;
    assert_eq!((count(&answers, 201), count(&answers, 409)), (10, 40));
    let status = json!({"workshop": "workshop", "capacity": 10, "reserved": 10, "acceptedRequests": 10,
        "rejectedRequests": 40, "acceptedSeats": 10});
    assert_eq!(service.client.status("workshop").await, status);
    assert!(service.stop().success());
    setup.assert_verified();
}

fn assert_reused(answer: &Answer, first_seats: u32) {
    assert_eq!((answer.status, answer.error()), (422, "request_id_reused"));
    assert_eq!(answer.json["field"], "seats");
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert!(answer.json["detail"].as_str().unwrap().contains(&first_seats.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_one_id_with_two_numbers_of_seats() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    assert_eq!(client.reserve("workshop", "request-1", 1).await.status, 201);
    let before = client.status("workshop").await;
    assert_reused(&client.reserve("workshop", "request-1", 2).await, 1);
    assert_eq!(client.status("workshop").await, before, "nothing changes");
    let replay = client.reserve("workshop", "request-1", 1).await;
    assert_eq!((replay.status, &replay.json["replayed"]), (201, &json!(true)));

    // Of a rejected request, too.
    client.reserve("workshop", "request-2", 3).await;
    assert_eq!(client.reserve("workshop", "request-3", 2).await.status, 409);
    assert_reused(&client.reserve("workshop", "request-3", 1).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_one_id_with_two_numbers_of_seats_in_parallel() {
    let setup = Setup::new();
    let service = setup.start();
    for round in 0..20 {
        let workshop = format!("workshop-{round}");
        let requests = (0..30).map(|n| service.client.reserve(&workshop, "request-1", 1 + n % 2));
        let answers = join_all(requests).await;
        let first = answers.iter().find(|answer| answer.json["replayed"] == false).unwrap();
        let seats = first.json["seats"].as_u64().unwrap() as u32;
        assert_eq!((count(&answers, 201), count(&answers, 422)), (15, 15));
        assert_eq!(answers.iter().filter(|answer| answer.json["replayed"] == false).count(), 1);
        for answer in answers.iter().filter(|answer| answer.status == 422) {
            assert_reused(answer, seats);
        }
        let status = service.client.status(&workshop).await;
        assert_eq!((&status["reserved"], &status["acceptedRequests"]), (&json!(seats), &json!(1)));
        assert_eq!(status["rejectedRequests"], 0);
    }
}

/// Everything of the first answer but `replayed` and what is current.
fn first_words(answer: &Answer) -> (u16, Value) {
    let fields = ["workshop", "requestId", "seats", "status", "reserved", "reason"];
    (answer.status, fields.iter().map(|field| answer.json[*field].clone()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_repeats_its_first_decision_whatever_came_later() {
    let setup = Setup::new();
    let service = setup.start();
    let client = &service.client;
    let accepted = client.reserve("workshop", "accepted", 1).await;
    let rejected = client.reserve("workshop", "rejected", 4).await;
    assert_eq!((accepted.status, rejected.status), (201, 409));
    assert_eq!(rejected.json["reason"], "not_enough_seats");
    // Full now: a new request for one seat is refused, the old one is repeated.
    assert_eq!(client.reserve("workshop", "the-rest", 3).await.status, 201);
    assert_eq!(client.reserve("workshop", "too-late", 1).await.status, 409);
    let status = client.status("workshop").await;
    for first in [&accepted, &rejected] {
        let request = first.json["requestId"].as_str().unwrap();
        let seats = first.json["seats"].as_u64().unwrap() as u32;
        let replay = client.reserve("workshop", request, seats).await;
        assert_eq!(first_words(&replay), first_words(first));
        assert_eq!((&first.json["replayed"], &replay.json["replayed"]), (&json!(false), &json!(true)));
    }
    assert_eq!(client.status("workshop").await, status, "a replay counts nowhere");
    assert!(service.stop().success());

    // Room enough for the rejected one: its replay is rejected all the same, and shows the new capacity.
    for file in files::partitions(&setup.data_dir()) {
        files::execute(&setup.data_dir(), &file, "UPDATE workshops SET capacity = 20");
    }
    let service = setup.start();
    let replay = service.client.reserve("workshop", "rejected", 4).await;
    assert_eq!(first_words(&replay), first_words(&rejected));
    assert_eq!((&replay.json["replayed"], &replay.json["capacity"]), (&json!(true), &json!(20)));
    assert_eq!(service.client.reserve("workshop", "with-room", 4).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_in_the_same_instant_takes_one_seat() {
    let setup = Setup::new();
    let service = setup.start();
    let answers = join_all((0..40).map(|_| service.client.reserve("workshop", "request-1", 3))).await;
    assert_eq!(count(&answers, 201), 40);
    assert_eq!(answers.iter().filter(|answer| answer.json["replayed"] == false).count(), 1);
    assert_eq!(service.client.status("workshop").await["reserved"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_an_unknown_workshop_stores_nothing() {
    let setup = Setup::new().with("reservations.default_capacity", 7);
    let service = setup.start();
    let unknown = json!({"workshop": "unknown", "capacity": 7, "reserved": 0, "acceptedRequests": 0,
        "rejectedRequests": 0, "acceptedSeats": 0});
    assert_eq!(service.client.status("unknown").await, unknown);
    let bad =
        service.client.post("/workshops/unknown/reservations", r#"{"requestId":"abc","seats":0}"#).await;
    assert_eq!((bad.status, bad.error()), (400, "invalid_reservation"));
    assert!(service.stop().success());
    for table in ["workshops", "attempts"] {
        assert_eq!(files::sum(&setup.data_dir(), &format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ids_of_different_workshops_are_independent() {
    let setup = Setup::new();
    let service = setup.start();
    let workshops: Vec<String> = (0..20).map(|n| format!("workshop-{n}")).collect();
    let reserve = async |(n, workshop): (usize, &String)| {
        let seats = 1 + (n % 4) as u32;
        let answer = service.client.reserve(workshop, "request-1", seats).await;
        assert_eq!((answer.status, &answer.json["replayed"]), (201, &json!(false)), "{workshop}");
        assert_eq!(service.client.status(workshop).await["reserved"], seats);
    };
    join_all(workshops.iter().enumerate().map(reserve)).await;
}

async fn totals(client: &Client) -> [i64; 3] {
    let status = client.status("workshop").await;
    ["acceptedRequests", "rejectedRequests", "acceptedSeats"].map(|field| status[field].as_i64().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_never_fall() {
    let setup = Setup::new().with("reservations.default_capacity", 30);
    let mut service = setup.start();
    let mut last = [0; 3];
    for life in 0..4 {
        for n in 0..10 {
            let requests = [
                service.client.reserve("workshop", &format!("request-{life}-{n}"), 1 + n % 4).await,
                service.client.reserve("workshop", &format!("request-{life}-{}", n / 2), 1 + n / 2 % 4).await,
                service.client.reserve("workshop", &format!("request-{life}-{n}"), 1 + (n + 1) % 4).await,
            ];
            assert!(requests.iter().all(|answer| [201, 409, 422].contains(&answer.status)), "{requests:?}");
            let now = totals(&service.client).await;
            assert!(now.iter().zip(&last).all(|(now, last)| now >= last), "{now:?} after {last:?}");
            assert_eq!(now[0] + now[1], i64::from(life * 10 + n + 1), "each first decision counts once");
            last = now;
        }
        if life % 2 == 0 {
            service.kill();
        } else {
            assert!(service.stop().success());
        }
        service = setup.start();
        assert_eq!(totals(&service.client).await, last);
    }
}
