//! The lab of the first seed, step by step.

use std::collections::HashSet;

use futures_util::future::join_all;
use serde_json::json;

use crate::service::Setup;

#[tokio::test(flavor = "multi_thread")]
async fn ten_requests_for_four_seats_then_a_restart_and_a_replay() {
    let setup = Setup::new();
    let service = setup.start();
    let ids: Vec<String> = (1..=10).map(|n| format!("request-{n}")).collect();
    let answers = join_all(ids.iter().map(|id| service.client.reserve("launch-day", id, 1))).await;

    let accepted: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
    let rejected: Vec<_> = answers.iter().filter(|answer| answer.status == 409).collect();
    assert_eq!((accepted.len(), rejected.len()), (4, 6));
    let reserved: HashSet<_> = accepted.iter().map(|a| a.json["reserved"].as_i64().unwrap()).collect();
    assert_eq!(reserved, HashSet::from([1, 2, 3, 4]));
    assert_eq!(answers.iter().map(|a| a.json["reserved"].as_i64().unwrap()).max(), Some(4));
    for answer in rejected {
        assert_eq!(answer.json["status"], "rejected");
        assert_eq!(answer.json["reserved"], 4);
        assert_eq!(answer.header("content-type"), "application/json");
    }
    let full = json!({"workshop": "launch-day", "capacity": 4, "reserved": 4, "acceptedRequests": 4,
        "rejectedRequests": 6, "acceptedSeats": 4});
    assert_eq!(service.client.status("launch-day").await, full);

    assert!(service.stop().success());
    let service = setup.start();
    assert_eq!(service.client.status("launch-day").await, full);
    for (id, first) in ids.iter().zip(&answers) {
        let replay = service.client.reserve("launch-day", id, 1).await;
        assert_eq!(replay.status, first.status);
        assert_eq!(replay.json["replayed"], true);
        for field in ["status", "seats", "reserved"] {
            assert_eq!(replay.json[field], first.json[field]);
        }
    }
    let seventh = service.client.reserve("launch-day", "request-after-restart", 1).await;
    assert_eq!((seventh.status, &seventh.json["replayed"]), (409, &json!(false)));
    assert_eq!(service.client.status("launch-day").await["rejectedRequests"], 7);

    let ids: Vec<String> = (1..=12).map(|n| format!("other-{n}")).collect();
    let answers = join_all(ids.iter().map(|id| service.client.reserve("another-day", id, 1))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 4);
    assert_eq!(service.client.status("another-day").await["rejectedRequests"], 8);
    assert!(service.stop().success());
    setup.assert_verified();
}
