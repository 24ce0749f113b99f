//! The sides that are compared: what is sent, to whom, which answer counts, and what must be true afterwards.

use crate::response::Expect;

/// The items that `zipf-likes` falls on.
pub const ZIPF_ITEMS: usize = 10_000;

#[derive(Clone, Copy)]
pub struct Side {
    pub name: &'static str,
    pub server: Server,
    pub line: &'static str,
    pub body: &'static str,
    /// A second request, after each that succeeded.
    pub then: Option<&'static str>,
    /// What nine of ten requests are instead: the line of a read of a total.
    pub reads: Option<&'static str>,
    /// How it falls on its items, where it has many.
    pub spread: Spread,
    pub expect: Expect,
    /// The side that bounds this one from above: the table shows the ratio.
    pub ceiling: Option<&'static str>,
    pub check: Check,
}

/// The process that a side is sent to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// This executable, as the canned responder.
    Echo,
    /// This executable, as the bare axum program.
    Bare,
    /// headcount, with room in its workshops for everybody.
    Roomy,
    /// headcount, with four seats a workshop.
    Full,
    /// Another store that does the same jobs.
    Peer(Peer, Seats),
}

/// What headcount is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// PostgreSQL, a row an item.
    Postgres,
    /// PostgreSQL, 16 rows an item.
    PostgresSlots,
    Redis,
    /// Durable Objects.
    Workerd,
}

/// Seats of a workshop of a peer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Seats {
    ForAll,
    Four,
}

/// How requests fall on many items.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    Zipf,
    Evenly,
}

/// What is compared after each run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Check {
    Nothing,
    /// The exact total of every item is the number of likes that were answered `"changed":true` for it, in all rounds.
    Totals,
    /// `reserved` is the number of 201s of this run, `rejectedRequests` that of its 409s.
    Seats,
    /// `reserved` of every workshop is the number of 201s for it, in all rounds.
    ManySeats,
    /// `reserved` is the number of 200s of this run, each of them confirmed, and nothing is held.
    Confirmed,
}

pub const USER: &str = r#"{"userId":"u<id>"}"#;
const LINE: &str = r#"{"item":"bulk","user":"u<id>","liked":true}"#;
pub const SEAT: &str = r#"{"requestId":"r-<id>","seats":1}"#;
const HOLD: &str = r#"{"requestId":"r-<id>","seats":1,"hold":true}"#;
pub const CHANGED: Expect = Expect::Body(br#""changed":true"#);

pub const READ_LIKES: &str = "/likes/read";
/// A stream of lines, each of which is a like of this item.
const BULK: &str = "POST /batch/likes";
const BULK_LIKES: &str = "/likes/bulk";
/// Each run has a hot workshop of its own: the largest `default_capacity` is a million seats, which rounds would use up.
pub const HOT_WORKSHOP: &str = "/workshops/hot-<run>";
const RUN_MARK: &str = "<run>";

pub static SIDES: [Side; 11] = [
    Side {
        name: "echo",
        server: Server::Echo,
        line: "POST /likes/hot",
        body: USER,
        then: None,
        reads: None,
        spread: Spread::Zipf,
        expect: CHANGED,
        ceiling: None,
        check: Check::Nothing,
    },
    Side {
        name: "bare",
        server: Server::Bare,
        line: "POST /likes/hot",
        body: USER,
        then: None,
        reads: None,
        spread: Spread::Zipf,
        expect: CHANGED,
        ceiling: None,
        check: Check::Nothing,
    },
    Side {
        name: "noop-likes",
        server: Server::Roomy,
        line: "POST /noop/likes/hot",
        body: USER,
        then: None,
        reads: None,
        spread: Spread::Zipf,
        expect: Expect::Success,
        ceiling: Some("bare"),
        check: Check::Nothing,
    },
    Side {
        name: "likes",
        server: Server::Roomy,
        line: "POST /likes/hot",
        body: USER,
        then: None,
        reads: None,
        spread: Spread::Zipf,
        expect: CHANGED,
        ceiling: Some("noop-likes"),
        check: Check::Totals,
    },
    Side {
        name: "bulk-likes",
        server: Server::Roomy,
        line: BULK,
        body: LINE,
        then: None,
        reads: None,
        spread: Spread::Zipf,
        expect: CHANGED,
        ceiling: Some("likes"),
        check: Check::Totals,
    },
    Side {
        name: "noop-reservations",
        server: Server::Roomy,
        line: "POST /noop/workshops/hot/reservations",
        body: SEAT,
        then: None,
        reads: None,
        spread: Spread::Zipf,
        expect: Expect::Success,
        ceiling: Some("bare"),
        check: Check::Nothing,
    },
    Side {
        name: "reservations",
        server: Server::Roomy,
        line: "POST /workshops/hot-<run>/reservations",
        body: SEAT,
        then: None,
        reads: None,
        spread: Spread::Zipf,
        expect: Expect::Status(201),
        ceiling: Some("noop-reservations"),
        check: Check::Seats,
    },
    Side {
        name: "hold-confirm",
        server: Server::Roomy,
        line: "POST /workshops/hot-<run>/reservations",
        body: HOLD,
        then: Some("POST /workshops/hot-<run>/reservations/r-<id>/confirm"),
        reads: None,
        spread: Spread::Zipf,
        expect: Expect::Body(br#""state":"confirmed""#),
        ceiling: Some("reservations"),
        check: Check::Confirmed,
    },
    Side {
        name: "full-reservations",
        server: Server::Full,
        line: "POST /workshops/hot-<run>/reservations",
        body: SEAT,
        then: None,
        reads: None,
        spread: Spread::Zipf,
        expect: Expect::Status(409),
        ceiling: Some("noop-reservations"),
        check: Check::Seats,
    },
    Side {
        name: "reads",
        server: Server::Roomy,
        line: "GET /likes/read",
        body: "",
        then: None,
        reads: None,
        spread: Spread::Zipf,
        expect: Expect::Body(br#""total":"#),
        ceiling: Some("bare"),
        check: Check::Nothing,
    },
    Side {
        name: "zipf-likes",
        server: Server::Roomy,
        line: "POST /likes/i<item>",
        body: USER,
        then: None,
        reads: None,
        spread: Spread::Zipf,
        expect: CHANGED,
        ceiling: Some("noop-likes"),
        check: Check::Totals,
    },
];

impl Side {
    /// The number of distinct items, or workshops, that its requests fall on.
    pub fn items(&self) -> usize {
        if self.line.contains("<item>") { ZIPF_ITEMS } else { 1 }
    }

    /// Whether its body is a line, of which one request has many.
    pub fn is_stream(&self) -> bool {
        self.line == BULK
    }

    /// Where its one item is.
    pub fn item_path(&self) -> &'static str {
        let path = self.line.split_once(' ').map_or(self.line, |(_, path)| path);
        if self.is_stream() { BULK_LIKES } else { path }
    }
}

/// `path` in the run number `run`.
pub fn in_run(path: &str, run: u64) -> String {
    path.replace(RUN_MARK, &run.to_string())
}
