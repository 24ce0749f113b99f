//! Sets, as their caller knows them, and what each line of one must be because of it.

use std::collections::BTreeMap;
use std::fmt;

use headcount::store::bookings::State;
use serde_json::{Value, json};

use super::Rng;
use super::bookings::{LONG_MS, Listed, SHORT_MS};
use super::requests::Known;
use super::whereabouts::{Asked, Whereabouts};
use crate::client::Answer;

/// Seats of several workshops, and where they may be by now.
pub struct SeatSet {
    pub id: String,
    /// By workshop.
    pub lines: BTreeMap<String, i64>,
    hold_ms: Option<i64>,
    /// What the first answer said, and every later one must repeat.
    pub first: Known<State>,
    /// As of a booking.
    states: Vec<State>,
}

/// What is asked of a set that has had its first answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetChange {
    Confirm,
    /// Also after its end.
    Reacquire,
    Cancel,
}

impl SetChange {
    pub fn word(self) -> &'static str {
        match self {
            Self::Confirm | Self::Reacquire => "confirm",
            Self::Cancel => "cancel",
        }
    }

    pub fn body(self) -> &'static str {
        match self {
            Self::Reacquire => r#"{"reacquire":true}"#,
            Self::Confirm | Self::Cancel => "",
        }
    }
}

impl Asked for SetChange {
    fn of(self, state: State) -> State {
        match (self, state) {
            (Self::Confirm | Self::Reacquire, State::Held) | (Self::Reacquire, State::Expired) => {
                State::Confirmed
            }
            (Self::Cancel, state) if state.takes_seats() => State::Cancelled,
            (_, state) => state,
        }
    }

    fn told(self, answer: &Answer) -> Option<(&'static [State], Option<State>)> {
        use State::{Accepted, Cancelled, Confirmed, Expired, Held, Rejected};
        Some(match (self, answer.status, answer.error(), answer.json["state"].as_str()) {
            (Self::Confirm, 200, "", Some("confirmed")) => (&[Held, Confirmed], Some(Confirmed)),
            (Self::Reacquire, 200, "", Some("confirmed")) => (&[Held, Expired, Confirmed], Some(Confirmed)),
            (Self::Cancel, 200, "", Some("cancelled")) => {
                (&[Accepted, Held, Confirmed, Cancelled], Some(Cancelled))
            }
            (Self::Confirm | Self::Reacquire, 409, "already_confirmed", _) => (&[Accepted], None),
            (Self::Confirm | Self::Reacquire, 409, "already_cancelled", _) => (&[Cancelled], None),
            (_, 409, "hold_expired", _) => (&[Expired], None),
            (_, 409, "already_rejected", _) => (&[Rejected], None),
            _ => return None,
        })
    }
}

impl SeatSet {
    /// Seats of two or three of some workshops.
    pub fn any(workshops: &[String], id: String, rng: &mut Rng) -> Self {
        let mut lines = BTreeMap::new();
        for _ in 0..6 {
            if lines.len() < 2 + usize::from(rng.below(2) == 0) {
                lines.insert(rng.pick(workshops).clone(), 1 + i64::from(rng.below(3) == 0));
            }
        }
        let hold_ms = match rng.below(5) {
            0 | 1 => None,
            2 => Some(SHORT_MS),
            _ => Some(LONG_MS),
        };
        Self { id, lines, hold_ms, first: Known::NotDone, states: Vec::new() }
    }

    pub fn path(&self) -> String {
        format!("/reservations/{}", self.id)
    }

    pub fn body(&self) -> String {
        let line = |(workshop, seats): (&String, &i64)| json!({"workshop": workshop, "seats": seats});
        let lines: Value = self.lines.iter().map(line).collect();
        let mut body = json!({"requestId": self.id, "lines": lines});
        if let Some(ttl_ms) = self.hold_ms {
            body["hold"] = json!(true);
            body["ttlMs"] = json!(ttl_ms);
        }
        body.to_string()
    }

    pub fn is_decided(&self) -> bool {
        matches!(self.first, Known::Decided(_))
    }

    /// Notes an answer to the request itself; what is wrong with it, if anything.
    pub fn heard(&mut self, answer: &Answer) -> Vec<String> {
        let Some((first, replayed, state)) = self.read(answer) else {
            return vec![format!("{self}: no decision: {answer:?}")];
        };
        let mut wrong = Vec::new();
        match self.first {
            Known::Decided(known) if known != first => {
                wrong.push(format!("{self}: was {known:?}, is {first:?}"));
            }
            Known::Decided(_) if !replayed => wrong.push(format!("{self}: was forgotten and decided again")),
            Known::NotDone if replayed => wrong.push(format!("{self}: surely not done, and yet {first:?}")),
            _ => {}
        }
        if self.is_decided() {
            wrong.extend(self.found(state));
        }
        (self.first, self.states) = (Known::Decided(first), vec![state]);
        wrong
    }

    fn read(&self, answer: &Answer) -> Option<(State, bool, State)> {
        let json = &answer.json;
        let [status, state] = ["status", "state"].map(|field| json[field].as_str().and_then(State::parse));
        let fits = match answer.status {
            201 if self.hold_ms.is_some() => status? == State::Held,
            201 => status? == State::Accepted,
            409 => status? == State::Rejected && self.lines.contains_key(json["rejectedBy"].as_str()?),
            _ => false,
        };
        fits.then_some((status?, json["replayed"].as_bool()?, state?))
    }

    /// What is wrong with a line, as its workshop lists it: all of them have what the set has, or none has anything.
    pub fn check_line(&self, workshop: &str, listed: Option<&Listed>) -> Option<String> {
        let state = self.state()?;
        let line = listed.map(|listed| listed.state);
        let fits = match state {
            State::Accepted | State::Confirmed => line == Some(State::Confirmed),
            State::Rejected => matches!(line, None | Some(State::Cancelled | State::Rejected)),
            state => line == Some(state),
        };
        let whole = listed.is_none_or(|listed| listed.part_of_set && listed.seats == self.lines[workshop]);
        (!fits || !whole).then(|| format!("{self}: it is {state:?}, its line in {workshop} {listed:?}"))
    }
}

impl Whereabouts for SeatSet {
    type Change = SetChange;

    fn states(&self) -> &[State] {
        &self.states
    }

    fn is_in(&mut self, states: Vec<State>) {
        self.states = states;
    }

    fn may_be(&self) -> Vec<State> {
        let mut states = self.states.clone();
        if states.contains(&State::Held) && self.hold_ms == Some(SHORT_MS) {
            states.push(State::Expired);
        }
        states
    }
}

impl fmt::Display for SeatSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set {}: {}", self.id, self.body())
    }
}
