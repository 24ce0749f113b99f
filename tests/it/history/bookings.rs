//! Requests with a life, as their caller knows it: held, confirmed, cancelled, waited for. And what a workshop must be
//! because of them.

use std::fmt;

use headcount::store::bookings::State;
use serde_json::{Value, json};

use super::Rng;
use super::requests::Known;
use super::whereabouts::{Asked, Whereabouts};
use crate::client::Answer;

/// Seats of every workshop that is booked: few, so that there is waiting and serving all the time.
pub const BOOKED_CAPACITY: i64 = 12;

/// Holds that end while a round lasts.
pub const SHORT_MS: i64 = 30;
/// And those that don't. So do offers.
pub const LONG_MS: i64 = 600_000;

/// A request as its workshop lists it.
#[derive(Debug, Clone, Copy)]
pub struct Listed {
    pub state: State,
    pub status: State,
    pub seats: i64,
    pub part_of_set: bool,
}

/// How a booked workshop is set up.
pub fn rules(workshop: &str) -> Value {
    let policy = if workshop.ends_with('0') { "strict" } else { "fit_first" };
    json!({
        "capacity": BOOKED_CAPACITY,
        "waitlist": {"policy": policy, "offerTtlMs": LONG_MS, "maxLength": 25},
    })
}

/// A request for seats, and where it may be by now.
pub struct Booking {
    pub workshop: String,
    pub id: String,
    pub seats: i64,
    hold_ms: Option<i64>,
    holder: Option<String>,
    waitlist: bool,
    pub first: Known<First>,
    /// One state if the last word on it was an answer; more if something was asked since that was not answered. What
    /// happens without its caller comes on top, see [`Booking::may_be`].
    states: Vec<State>,
}

/// What the first answer said, and every later one must repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct First {
    pub status: State,
    pub reserved: i64,
}

/// What is asked of a request that has had its first answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Confirm,
    Cancel,
}

impl Change {
    pub fn word(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Cancel => "cancel",
        }
    }
}

impl Asked for Change {
    fn of(self, state: State) -> State {
        match (self, state) {
            (Self::Confirm, State::Held | State::Offered) => State::Confirmed,
            (Self::Cancel, state) if state.takes_seats() || state == State::Waiting => State::Cancelled,
            (_, state) => state,
        }
    }

    fn told(self, answer: &Answer) -> Option<(&'static [State], Option<State>)> {
        use State::{Accepted, Cancelled, Confirmed, Expired, Held, Offered, Rejected, Waiting};
        Some(match (self, answer.status, answer.error(), answer.json["state"].as_str()) {
            (Self::Confirm, 200, "", Some("confirmed")) => (&[Held, Offered, Confirmed], Some(Confirmed)),
            (Self::Cancel, 200, "", Some("cancelled")) => {
                (&[Accepted, Held, Confirmed, Waiting, Offered, Cancelled], Some(Cancelled))
            }
            (Self::Confirm, 409, "already_confirmed", _) => (&[Accepted], None),
            (Self::Confirm, 409, "already_cancelled", _) => (&[Cancelled], None),
            (Self::Confirm, 409, "still_waiting", _) => (&[Waiting], None),
            (_, 409, "hold_expired", _) => (&[Expired], None),
            (_, 409, "already_rejected", _) => (&[Rejected], None),
            _ => return None,
        })
    }
}

impl Booking {
    /// Any kind of request, for a holder of a few.
    pub fn any(workshop: String, id: String, rng: &mut Rng) -> Self {
        let hold_ms = match rng.below(5) {
            0 => None,
            1 => Some(SHORT_MS),
            _ => Some(LONG_MS),
        };
        let holder = (rng.below(3) == 0).then(|| format!("holder-{}", rng.below(5)));
        let seats = 1 + i64::try_from(rng.below(4)).unwrap();
        let waitlist = rng.below(3) > 0;
        Self { workshop, id, seats, hold_ms, holder, waitlist, first: Known::NotDone, states: Vec::new() }
    }

    pub fn path(&self) -> String {
        format!("/workshops/{}/reservations", self.workshop)
    }

    pub fn body(&self) -> String {
        let mut body = json!({"requestId": self.id, "seats": self.seats});
        if let Some(ttl_ms) = self.hold_ms {
            body["hold"] = json!(true);
            body["ttlMs"] = json!(ttl_ms);
        }
        if let Some(holder) = &self.holder {
            body["holder"] = json!(holder);
        }
        if self.waitlist {
            body["waitlist"] = json!(true);
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
        if first.reserved > BOOKED_CAPACITY {
            wrong.push(format!("{self}: oversold: {first:?}"));
        }
        if self.is_decided() {
            wrong.extend(self.found(state));
        }
        (self.first, self.states) = (Known::Decided(first), vec![state]);
        wrong
    }

    fn read(&self, answer: &Answer) -> Option<(First, bool, State)> {
        let json = &answer.json;
        let status = State::parse(json["status"].as_str()?)?;
        let fits = match answer.status {
            201 if self.hold_ms.is_some() => status == State::Held,
            201 => status == State::Accepted,
            202 => status == State::Waiting && self.waitlist,
            409 => status == State::Rejected,
            _ => false,
        };
        if !fits || json["seats"] != self.seats {
            return None;
        }
        let state = json["state"].as_str().map_or(Some(status), State::parse)?;
        Some((First { status, reserved: json["reserved"].as_i64()? }, json["replayed"].as_bool()?, state))
    }
}

impl Whereabouts for Booking {
    type Change = Change;

    fn states(&self) -> &[State] {
        &self.states
    }

    fn is_in(&mut self, states: Vec<State>) {
        self.states = states;
    }

    /// Where it may be by now: seats get free for who waits, and short holds end.
    fn may_be(&self) -> Vec<State> {
        let mut states = self.states.clone();
        if states.contains(&State::Waiting) {
            states.push(State::Offered);
        }
        if states.contains(&State::Held) && self.hold_ms == Some(SHORT_MS) {
            states.push(State::Expired);
        }
        states
    }
}

impl fmt::Display for Booking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}: {}", self.id, self.workshop, self.body())
    }
}

/// A workshop's status against all its requests, each of them decided and looked up, and the lines of sets among them.
pub fn check_booked(workshop: &str, bookings: &[&Booking], lines: &[Listed], told: &Value) -> Vec<String> {
    let (mut accepted, mut rejected, mut accepted_seats) = (0, 0, 0);
    let (mut taken, mut held) = (0, 0);
    let mut waiting = Vec::new();
    let mut all: Vec<(State, State, i64)> =
        lines.iter().map(|line| (line.status, line.state, line.seats)).collect();
    for booking in bookings {
        let (Known::Decided(first), Some(state)) = (booking.first, booking.state()) else {
            return vec![format!("{booking}: not known")];
        };
        all.push((first.status, state, booking.seats));
    }
    for (first, state, seats) in all {
        match first {
            State::Accepted | State::Held => {
                accepted += 1;
                accepted_seats += seats;
            }
            _ => rejected += 1,
        }
        if state.takes_seats() {
            taken += seats;
        }
        match state {
            State::Held | State::Offered => held += seats,
            State::Waiting => waiting.push(seats),
            _ => {}
        }
    }
    let sums = [
        ("capacity", BOOKED_CAPACITY),
        ("reserved", taken),
        ("held", held),
        ("waiting", waiting.len() as i64),
        ("acceptedRequests", accepted),
        ("rejectedRequests", rejected),
        ("acceptedSeats", accepted_seats),
    ];
    let mut wrong: Vec<String> = sums
        .into_iter()
        .filter(|(field, sum)| told[field].as_i64().unwrap_or(0) != *sum)
        .map(|(field, sum)| format!("{workshop}: {field} adds up to {sum}: {told}"))
        .collect();
    let free = BOOKED_CAPACITY - taken;
    if free < 0 {
        wrong.push(format!("{workshop}: oversold, {taken} of {BOOKED_CAPACITY}"));
    }
    // By either policy, whoever waits longest, or who wants least, would have an offer.
    let fits = |seats: &i64| *seats <= free;
    let served = if workshop.ends_with('0') { waiting.iter().all(fits) } else { waiting.iter().any(fits) };
    if !waiting.is_empty() && served {
        wrong.push(format!("{workshop}: {free} seats are free, and {waiting:?} wait"));
    }
    wrong
}
