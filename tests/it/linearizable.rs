//! Concurrent histories of one workshop are linearizable: there is an order of the requests, true to who
//! answered before whom was asked, in which a workshop that serves one request at a time answers the same.
//!
//! The workshop below is written from the contract and shares nothing with the service.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::future::join_all;
use serde_json::{Value, json};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

use crate::client::Client;
use crate::service::Setup;

const CAPACITY: i64 = 4;
const HISTORIES: u64 = 200;
const CLIENTS: usize = 5;
const REQUESTS_PER_CLIENT: usize = 4;

/// Requests of these ids hold their seats, and the last of them not for long.
const HOLDS: std::ops::Range<u64> = 4..8;
const SHORT_HOLDS: std::ops::Range<u64> = 6..8;

#[derive(Clone, Debug)]
enum Request {
    Reserve {
        id: u64,
        seats: i64,
    },
    Confirm {
        id: u64,
    },
    Cancel {
        id: u64,
    },
    /// What the clock asks for, of a short hold, some time after it was made.
    Expire {
        id: u64,
    },
    Status,
}

#[derive(Clone, Debug, PartialEq)]
enum Response {
    Decided { accepted: bool, reserved: i64, replayed: bool },
    Reused,
    Changed(&'static str),
    Wrong(String),
    Expired,
    Status { reserved: i64, accepted: i64, rejected: i64, accepted_seats: i64 },
}

/// Remembers who asked for what and how it went; counts by looking.
#[derive(Clone, Debug, Default)]
struct Workshop {
    attempts: BTreeMap<u64, Attempt>,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    seats: i64,
    accepted: bool,
    reserved_after: i64,
    /// Where its seats are now.
    state: &'static str,
}

impl Attempt {
    fn is_taking(&self) -> bool {
        ["accepted", "held", "confirmed"].contains(&self.state)
    }
}

fn wrong(word: &str) -> Response {
    Response::Wrong(word.to_owned())
}

impl Workshop {
    fn taken(&self) -> i64 {
        self.attempts.values().filter(|attempt| attempt.is_taking()).map(|attempt| attempt.seats).sum()
    }

    fn accepted_seats(&self) -> i64 {
        self.attempts.values().filter(|attempt| attempt.accepted).map(|attempt| attempt.seats).sum()
    }

    fn confirm(&mut self, id: u64) -> Response {
        let Some(attempt) = self.attempts.get_mut(&id) else { return wrong("not_found") };
        match attempt.state {
            "held" | "confirmed" => {
                attempt.state = "confirmed";
                Response::Changed("confirmed")
            }
            "accepted" => wrong("already_confirmed"),
            "cancelled" => wrong("already_cancelled"),
            "expired" => wrong("hold_expired"),
            _ => wrong("already_rejected"),
        }
    }

    fn cancel(&mut self, id: u64) -> Response {
        let Some(attempt) = self.attempts.get_mut(&id) else { return wrong("not_found") };
        match attempt.state {
            "expired" => wrong("hold_expired"),
            "rejected" => wrong("already_rejected"),
            _ => {
                attempt.state = "cancelled";
                Response::Changed("cancelled")
            }
        }
    }

    fn count(&self, accepted: bool) -> i64 {
        self.attempts.values().filter(|attempt| attempt.accepted == accepted).count() as i64
    }
}

impl SequentialSpec for Workshop {
    type Op = Request;
    type Ret = Response;

    fn invoke(&mut self, request: &Request) -> Response {
        match *request {
            Request::Status => Response::Status {
                reserved: self.taken(),
                accepted: self.count(true),
                rejected: self.count(false),
                accepted_seats: self.accepted_seats(),
            },
            Request::Confirm { id } => self.confirm(id),
            Request::Cancel { id } => self.cancel(id),
            Request::Expire { id } => {
                if let Some(held) = self.attempts.get_mut(&id).filter(|attempt| attempt.state == "held") {
                    held.state = "expired";
                }
                Response::Expired
            }
            Request::Reserve { id, seats } => match self.attempts.get(&id) {
                Some(first) if first.seats != seats => Response::Reused,
                Some(first) => Response::Decided {
                    accepted: first.accepted,
                    reserved: first.reserved_after,
                    replayed: true,
                },
                None => {
                    let accepted = self.taken() + seats <= CAPACITY;
                    let reserved = self.taken() + if accepted { seats } else { 0 };
                    let state = match accepted {
                        true if HOLDS.contains(&id) => "held",
                        true => "accepted",
                        false => "rejected",
                    };
                    self.attempts.insert(id, Attempt { seats, accepted, reserved_after: reserved, state });
                    Response::Decided { accepted, reserved, replayed: false }
                }
            },
        }
    }
}

type History = LinearizabilityTester<usize, Workshop>;

async fn ask(client: &Client, workshop: &str, request: &Request) -> Response {
    match *request {
        Request::Status => {
            let status = client.status(workshop).await;
            let field = |name: &str| status[name].as_i64().unwrap();
            Response::Status {
                reserved: field("reserved"),
                accepted: field("acceptedRequests"),
                rejected: field("rejectedRequests"),
                accepted_seats: field("acceptedSeats"),
            }
        }
        Request::Reserve { id, seats } => {
            let mut body = json!({"requestId": format!("request-{id}"), "seats": seats});
            if HOLDS.contains(&id) {
                body["hold"] = true.into();
                body["ttlMs"] = json!(if SHORT_HOLDS.contains(&id) { 1 } else { 600_000 });
            }
            let answer = client.request(workshop, body).await;
            match answer.status {
                422 => Response::Reused,
                status @ (201 | 409) => Response::Decided {
                    accepted: status == 201,
                    reserved: answer.json["reserved"].as_i64().unwrap(),
                    replayed: answer.json["replayed"].as_bool().unwrap(),
                },
                _ => panic!("{answer:?}"),
            }
        }
        Request::Confirm { id } => changed(client, workshop, id, "confirm", "confirmed").await,
        Request::Cancel { id } => changed(client, workshop, id, "cancel", "cancelled").await,
        Request::Expire { .. } => unreachable!("nobody sends it"),
    }
}

async fn changed(client: &Client, workshop: &str, id: u64, change: &str, state: &'static str) -> Response {
    let answer = client.change(workshop, &format!("request-{id}"), change, Value::Null).await;
    match answer.status {
        200 => {
            assert_eq!(answer.json["state"], state);
            Response::Changed(state)
        }
        404 | 409 => wrong(answer.error()),
        _ => panic!("{answer:?}"),
    }
}

/// Few ids, so that many are repeated, some with other seats; a status now and then.
fn requests(history: u64, client: usize) -> Vec<Request> {
    let mut state = (history * 31 + client as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) % below
    };
    let request = |_| match next(8) {
        0 => Request::Status,
        1 => Request::Confirm { id: next(8) },
        2 => Request::Cancel { id: next(8) },
        _ => {
            let id = next(8);
            // Mostly the same number of seats for the same id.
            let seats = if next(8) == 0 { 1 + next(4) } else { 1 + id % 3 };
            Request::Reserve { id, seats: seats as i64 }
        }
    };
    (0..REQUESTS_PER_CLIENT).map(request).collect()
}

/// The recorded history, and how many requests were sent while others were open.
async fn record(client: &Client, history: u64) -> (History, usize) {
    let workshop = format!("workshop-{history}");
    let mut begun = History::new(Workshop::default());
    // Open all the time: it may happen at any moment after the hold, or too late for anybody to notice.
    for id in SHORT_HOLDS {
        begun.on_invoke(CLIENTS + id as usize, Request::Expire { id }).unwrap();
    }
    let recorded = Mutex::new((begun, 0, 0));
    let run = async |thread: usize| {
        for request in requests(history, thread) {
            {
                let (tester, open, overlapping) = &mut *recorded.lock().unwrap();
                tester.on_invoke(thread, request.clone()).unwrap();
                *overlapping += usize::from(*open > 0);
                *open += 1;
            }
            let response = ask(client, &workshop, &request).await;
            let (tester, open, _) = &mut *recorded.lock().unwrap();
            tester.on_return(thread, response).unwrap();
            *open -= 1;
        }
    };
    join_all((0..CLIENTS).map(run)).await;
    let (tester, _, overlapping) = recorded.into_inner().unwrap();
    (tester, overlapping)
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_histories_of_a_workshop_are_linearizable() {
    let setup = Setup::new();
    let service = setup.start();
    let mut overlapping = 0;
    for history in 0..HISTORIES {
        let (recorded, overlaps) = record(&service.client, history).await;
        let clocks = SHORT_HOLDS.count();
        assert_eq!(recorded.len(), CLIENTS * REQUESTS_PER_CLIENT + clocks);
        assert!(recorded.is_consistent(), "history {history} has no order: {recorded:#?}");
        overlapping += overlaps;
    }
    assert!(overlapping > 0, "histories without concurrency prove nothing");
}

fn decided(accepted: bool, reserved: i64, replayed: bool) -> Response {
    Response::Decided { accepted, reserved, replayed }
}

/// A history of requests that were all open at once.
fn at_once(answers: &[(Request, Response)]) -> bool {
    let mut history = History::new(Workshop::default());
    for (thread, (request, _)) in answers.iter().enumerate() {
        history.on_invoke(thread, request.clone()).unwrap();
    }
    for (thread, (_, response)) in answers.iter().enumerate() {
        history.on_return(thread, response.clone()).unwrap();
    }
    history.is_consistent()
}

#[test]
fn the_checker_sees_two_requests_take_the_same_seats() {
    let three = |id| Request::Reserve { id, seats: 3 };
    assert!(at_once(&[(three(1), decided(true, 3, false)), (three(2), decided(false, 3, false))]));
    assert!(
        !at_once(&[(three(1), decided(true, 3, false)), (three(2), decided(true, 3, false))]),
        "lost update"
    );
    assert!(
        !at_once(&[(three(1), decided(true, 3, false)), (three(2), decided(true, 6, false))]),
        "oversold"
    );
    assert!(
        !at_once(&[(three(1), decided(false, 0, false)), (three(2), decided(false, 0, false))]),
        "a lost seat"
    );
    assert!(
        !at_once(&[(three(1), decided(true, 3, false)), (three(1), decided(true, 3, false))]),
        "decided twice"
    );
}

#[test]
fn the_checker_sees_seats_that_come_back_twice_and_holds_that_come_back_to_life() {
    let four = |id| Request::Reserve { id, seats: 4 };
    let held = decided(true, 4, false);
    let history = |steps: &[(Request, Response)]| {
        let mut history = History::new(Workshop::default());
        for (request, response) in steps {
            history.on_invret(0, request.clone(), response.clone()).unwrap();
        }
        history.is_consistent()
    };
    let expire = (Request::Expire { id: 6 }, Response::Expired);
    let confirm = |id| Request::Confirm { id };
    assert!(history(&[(four(6), held.clone()), expire.clone(), (confirm(6), wrong("hold_expired"))]));
    assert!(!history(&[
        (four(6), held.clone()),
        expire.clone(),
        (confirm(6), Response::Changed("confirmed"))
    ]));
    assert!(history(&[(four(6), held.clone()), expire.clone(), (four(7), decided(true, 4, false))]));
    assert!(!history(&[(four(6), held.clone()), (four(7), decided(true, 4, false))]), "while it is held");
    let cancel = (Request::Cancel { id: 4 }, Response::Changed("cancelled"));
    let status = |reserved| Response::Status { reserved, accepted: 1, rejected: 0, accepted_seats: 4 };
    assert!(history(&[
        (four(4), held.clone()),
        cancel.clone(),
        cancel.clone(),
        (Request::Status, status(0))
    ]));
    assert!(!history(&[(four(4), held), cancel.clone(), cancel, (Request::Status, status(-4))]));
}

#[test]
fn the_checker_sees_an_answer_from_the_past() {
    let reserve = Request::Reserve { id: 1, seats: 1 };
    let empty = Response::Status { reserved: 0, accepted: 0, rejected: 0, accepted_seats: 0 };
    let mut history = History::new(Workshop::default());
    history.on_invret(1, reserve.clone(), decided(true, 1, false)).unwrap();
    history.on_invret(2, Request::Status, empty.clone()).unwrap();
    assert!(!history.is_consistent(), "read after the answer, from before it");
    // Asked while the request is open, the same status is right.
    assert!(at_once(&[(reserve, decided(true, 1, false)), (Request::Status, empty)]));
}
