//! Power loss: nothing is answered before it is synced.
//!
//! kill -9 leaves the page cache, so it says nothing about syncs. Here the service runs under a shim
//! that lets every unsynced write be taken back after the kill; see [`crate::unsynced`]. That the proof
//! can fail is shown by the same loop without syncs, and with answers sent too early.

use std::fs;
use std::path::PathBuf;

use crate::history::{self, History, Replay, Rng};
use crate::service::{Service, Setup};
use crate::unsynced::{Lost, build_shim, lose_unsynced_writes};

/// In which a fault that is there must have shown.
const ROUNDS_TO_SEE_A_FAULT: u32 = 20;

/// A data directory on a disk that forgets.
struct Place {
    /// Without the shim, for audits beside the service: two processes cannot keep one undo record.
    bare: Setup,
    shimmed: Setup,
    undo_dir: PathBuf,
}

impl Place {
    fn new(setting: Option<(&str, &str)>) -> Self {
        let mut bare = history::setup();
        if let Some((key, value)) = setting {
            bare = bare.with(key, value);
        }
        let undo_dir = bare.scratch().join("undo");
        fs::create_dir(&undo_dir).unwrap();
        let shim = build_shim();
        let shimmed = bare
            .clone()
            .with_env("LD_PRELOAD", shim.display())
            .with_env("UNSYNCED_DIR", bare.data_dir().display())
            .with_env("UNSYNCED_UNDO_DIR", undo_dir.display());
        Self { bare, shimmed, undo_dir }
    }

    fn start(&self) -> Service {
        self.shimmed.start()
    }

    /// After a kill.
    fn lose_power(&self) -> Lost {
        lose_unsynced_writes(&self.undo_dir)
    }
}

fn a_few_hundred(rng: &mut Rng) -> u64 {
    20 + rng.below(800)
}

/// One round: load, power loss, and what was lost of what was answered.
async fn lose_a_round(place: &Place, history: &mut History) -> (Lost, Vec<String>) {
    let answers = a_few_hundred(&mut history.rng);
    history.kill_under_load(place.start(), answers).await;
    let lost = place.lose_power();
    let service = place.start();
    let contradictions = history.contradictions(&service.client, Replay::All).await;
    if contradictions.is_empty() {
        place.bare.assert_verified();
    }
    service.kill();
    (lost, contradictions)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_outlives_a_power_loss() {
    let place = Place::new(None);
    let mut history = History::new(Rng::seed());
    println!("{}", history.rng);
    let mut records = 0;
    for _ in 0..10 {
        let (lost, contradictions) = lose_a_round(&place, &mut history).await;
        assert!(contradictions.is_empty(), "{}:\n{}", history.rng, contradictions.join("\n"));
        records += lost.records;
    }
    // If nothing was ever unsynced, nothing was tried.
    assert!(records > 0, "{}", history.rng);
}

/// A service that was killed between a write and its sync finds that write again. Once it has told
/// somebody of it, a power loss must not take it back.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_restarted_service_answers_from_an_unsynced_log_outlives_a_power_loss() {
    let place = Place::new(None);
    let mut history = History::new(Rng::seed());
    println!("{}", history.rng);
    for _ in 0..10 {
        let answers = a_few_hundred(&mut history.rng);
        history.kill_under_load(place.start(), answers).await;
        let service = place.start();
        // Nothing that writes: that would sync the log on its own account.
        history.assert_kept(&service.client, Replay::DecidedOnly).await;
        service.kill();
        place.lose_power();
        let service = place.start();
        history.assert_kept(&service.client, Replay::Recent).await;
        service.kill();
    }
}

async fn assert_losses_are_seen(setting: (&str, &str)) {
    let place = Place::new(Some(setting));
    let mut history = History::new(Rng::seed());
    for _ in 0..ROUNDS_TO_SEE_A_FAULT {
        let (_, contradictions) = lose_a_round(&place, &mut history).await;
        if !contradictions.is_empty() {
            return;
        }
    }
    panic!("with {setting:?} nothing was lost, {}", history.rng);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proof_fails_without_syncs() {
    assert_losses_are_seen(("sqlite.synchronous", "OFF")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proof_fails_when_answers_leave_before_their_commit() {
    assert_losses_are_seen(("faults.reply_before_commit", "true")).await;
}
