//! kill -9 under load (likes, adds to counters, plain reservations, holds, confirmations, cancellations, waiters), round after round over
//! one data directory, so that damage would add up.
//!
//! `HEADCOUNT_KILL_ROUNDS=300` asks for more rounds, `HEADCOUNT_SEED` for the ones of a failed test.

use crate::counters::{exact, rolled_up};
use crate::history::{self, History, Replay, Rng};

const ROUNDS: &str = "HEADCOUNT_KILL_ROUNDS";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_outlives_every_kill_nine() {
    let rounds: u64 = std::env::var(ROUNDS).map_or(30, |rounds| rounds.parse().unwrap());
    let mut history = History::new(Rng::seed());
    println!("{}", history.rng);
    let setup = history::setup();
    for round in 0..rounds {
        let service = setup.start();
        history.assert_kept(&service.client, Replay::Recent).await;
        setup.assert_verified();
        let answers = 20 + history.rng.below(1500);
        history.kill_under_load(service, answers).await;
        // An audit of files that nobody has open brings their log in; the service must do it alone, too.
        if round % 2 == 0 {
            setup.assert_verified();
        }
    }
    let service = setup.start();
    history.assert_kept(&service.client, Replay::All).await;
    // Chance has led requests everywhere.
    let states = history.states();
    println!("bookings: {states:?}");
    for state in ["held", "confirmed", "cancelled", "expired", "waiting", "offered", "rejected", "accepted"] {
        assert!(rounds < 10 || states.contains_key(state), "{state}: {states:?}, {}", history.rng);
    }
    let audits = async {
        for _ in 0..3 {
            let setup = setup.clone();
            tokio::task::spawn_blocking(move || setup.assert_verified()).await.unwrap();
        }
    };
    tokio::join!(audits, history.load(&service.client, 500));
    history.assert_kept(&service.client, Replay::Recent).await;
    for (item, total) in history.totals() {
        assert_eq!(service.client.rolled_up(item).await, total, "{item}, {}", history.rng);
    }
    for counter in history::COUNTERS {
        let (exact, cached) =
            (exact(&service.client, counter).await, rolled_up(&service.client, counter).await);
        assert_eq!(cached, exact, "{counter}, {}", history.rng);
    }
    assert!(service.stop().success());
    setup.assert_verified();
}
