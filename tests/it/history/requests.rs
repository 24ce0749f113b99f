//! Reservations as their caller knows them, and what a workshop must be because of them.

use serde_json::Value;

use super::CAPACITY;
use crate::client::Answer;

/// A reservation that was asked for.
pub struct Request {
    pub workshop: String,
    pub id: String,
    pub seats: i64,
    pub known: Known<Decision>,
}

/// What its caller knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known<D> {
    /// Never asked, or refused with a word that means "surely not done".
    NotDone,
    /// Asked, and no answer came, or one that means "perhaps done".
    PerhapsDone,
    Decided(D),
}

/// What the first answer said, and every later one must repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    pub accepted: bool,
    pub seats: i64,
    pub reserved: i64,
}

impl Request {
    /// Notes a decision; what is wrong with it, if anything.
    pub fn heard(&mut self, answer: &Answer) -> Vec<String> {
        let Some((decision, replayed)) = Decision::read(answer) else {
            return vec![format!("{self}: no decision: {answer:?}")];
        };
        let mut wrong = Vec::new();
        match self.known {
            Known::Decided(first) if first != decision => {
                wrong.push(format!("{self}: was {first:?}, is {decision:?}"));
            }
            Known::Decided(_) if !replayed => wrong.push(format!("{self}: was forgotten and decided again")),
            Known::NotDone if replayed => {
                wrong.push(format!("{self}: surely not done, and yet {decision:?}"))
            }
            _ => {}
        }
        if decision.seats != self.seats || decision.reserved > CAPACITY {
            wrong.push(format!("{self}: {decision:?}"));
        }
        self.known = Known::Decided(decision);
        wrong
    }
}

impl Decision {
    fn read(answer: &Answer) -> Option<(Self, bool)> {
        let accepted = match (answer.status, answer.json["status"].as_str()?) {
            (201, "accepted") => true,
            (409, "rejected") => false,
            _ => return None,
        };
        let [seats, reserved] = ["seats", "reserved"].map(|field| answer.json[field].as_i64());
        Some((Self { accepted, seats: seats?, reserved: reserved? }, answer.json["replayed"].as_bool()?))
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {} for {}", self.id, self.workshop, self.seats)
    }
}

/// A workshop's status against all its requests, each of them decided.
pub fn check_workshop(workshop: &str, requests: &[&Request], told: &Value) -> Vec<String> {
    let mut decisions = Vec::new();
    for request in requests {
        match request.known {
            Known::Decided(decision) => decisions.push(decision),
            Known::NotDone | Known::PerhapsDone => return vec![format!("{request}: not decided")],
        }
    }
    let (mut accepted, rejected): (Vec<_>, Vec<_>) = decisions.into_iter().partition(|d| d.accepted);
    let mut wrong = Vec::new();
    // One after another: each took its seats on top of those before it, and no two the same.
    accepted.sort_by_key(|decision| decision.reserved);
    let mut reserved = 0;
    for decision in &accepted {
        reserved += decision.seats;
        if decision.reserved != reserved {
            wrong.push(format!("{workshop}: {reserved} seats are taken after {decision:?}"));
        }
    }
    for decision in rejected.iter().filter(|d| d.reserved + d.seats <= CAPACITY) {
        wrong.push(format!("{workshop}: there was room for {decision:?}"));
    }
    let sums = [
        ("capacity", CAPACITY),
        ("reserved", reserved),
        ("acceptedRequests", accepted.len() as i64),
        ("rejectedRequests", rejected.len() as i64),
        ("acceptedSeats", reserved),
    ];
    for (field, sum) in sums.into_iter().filter(|(field, sum)| told[field] != *sum) {
        wrong.push(format!("{workshop}: {field} adds up to {sum}: {told}"));
    }
    if reserved > CAPACITY {
        wrong.push(format!("{workshop}: oversold, {reserved} of {CAPACITY}"));
    }
    wrong
}
