//! Adds to counters as their caller knows them, and what a counter must be because of them.

use std::fmt;

use serde_json::json;

use super::Rng;
use super::requests::Known;
use crate::client::Answer;

pub const COUNTERS: [&str; 3] = ["views", "plays", "post"];

/// An add with an id: without one nobody could say whether it was done.
pub struct Add {
    pub counter: &'static str,
    pub id: String,
    pub amount: i64,
    pub known: Known<()>,
}

impl Add {
    pub fn any(id: String, rng: &mut Rng) -> Self {
        let amount = i64::try_from(rng.below(20)).unwrap() - 5;
        Self { counter: rng.pick::<&'static str>(&COUNTERS), id, amount, known: Known::NotDone }
    }

    pub fn path(&self) -> String {
        format!("/counters/{}", self.counter)
    }

    pub fn body(&self) -> String {
        json!({"amount": self.amount, "requestId": self.id}).to_string()
    }

    pub fn is_done(&self) -> bool {
        self.known == Known::Decided(())
    }

    /// Notes an answer; what is wrong with it, if anything.
    pub fn heard(&mut self, answer: &Answer) -> Option<String> {
        let replayed = answer.json["replayed"].as_bool();
        let wrong = match (self.known, replayed) {
            _ if answer.status != 200 || answer.json["amount"] != self.amount => Some("no such answer"),
            (Known::Decided(()), Some(false)) => Some("was forgotten and added again"),
            (Known::NotDone, Some(true)) => Some("was surely not done"),
            _ => None,
        };
        self.known = Known::Decided(());
        wrong.map(|wrong| format!("{self}: {wrong}: {}", answer.text))
    }
}

impl fmt::Display for Add {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} to {}", self.id, self.amount, self.counter)
    }
}
