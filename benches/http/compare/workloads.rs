//! The workloads, and who does each.

use super::settings::Settings;
use crate::response::Expect;
use crate::sides::{CHANGED, Check, Peer, SEAT, Seats, Server, Side, Spread, USER};

/// A side of a workload.
#[derive(Clone)]
pub struct Entrant {
    pub workload: &'static Workload,
    pub name: &'static str,
    pub side: Side,
}

/// One kind of load.
pub struct Workload {
    pub name: &'static str,
    pub title: &'static str,
    /// What headcount is asked.
    side: Side,
    /// The lines of the request, and of the read beside it, that parse and answer the same and decide nothing.
    noop: Option<(&'static str, Option<&'static str>)>,
    /// Latency at a pace is measured too.
    pub is_paced: bool,
}

pub const HEADCOUNT: &str = "headcount";
pub const NOOP: &str = "no-op";
pub const BARE: &str = "bare";
pub const ECHO: &str = "echo";
pub const REDIS: &str = "redis";
pub const POSTGRES: &str = "postgres";
pub const POSTGRES_SLOTS: &str = "postgres-16";
pub const WORKERD: &str = "workerd";

/// The item that is read; it has one like.
pub const READ_LIKES: &str = "/likes/read";

const LIKE: Side = Side {
    name: "",
    server: Server::Roomy,
    line: "POST /likes/hot",
    body: USER,
    then: None,
    reads: None,
    spread: Spread::Zipf,
    expect: CHANGED,
    ceiling: None,
    check: Check::Totals,
};
const RESERVE: Side = Side {
    line: "POST /workshops/hot-<run>/reservations",
    body: SEAT,
    expect: Expect::Status(201),
    check: Check::Seats,
    ..LIKE
};
const NOOP_RESERVE: &str = "POST /noop/workshops/hot/reservations";

/// By family.
static WORKLOADS: [&[Workload]; 3] = [
    &[
        Workload {
            name: "likes-hot",
            title: "likes, one hot item",
            side: LIKE,
            noop: Some(("POST /noop/likes/hot", None)),
            is_paced: true,
        },
        Workload {
            name: "likes-zipf",
            title: "likes, 10,000 items by Zipf",
            side: Side { line: "POST /likes/i<item>", ..LIKE },
            noop: None,
            is_paced: false,
        },
    ],
    &[
        Workload {
            name: "reservations-hot",
            title: "reservations, one hot workshop",
            side: RESERVE,
            noop: Some((NOOP_RESERVE, None)),
            is_paced: true,
        },
        Workload {
            name: "reservations-full",
            title: "the same, full (409, stored)",
            side: Side { server: Server::Full, expect: Expect::Status(409), ..RESERVE },
            noop: None,
            is_paced: false,
        },
        Workload {
            name: "reservations-many",
            title: "reservations, 10,000 workshops",
            side: Side {
                line: "POST /workshops/w<item>/reservations",
                spread: Spread::Evenly,
                check: Check::ManySeats,
                ..RESERVE
            },
            noop: None,
            is_paced: false,
        },
    ],
    &[
        Workload {
            name: "reads",
            title: "cached reads of a total",
            side: Side {
                line: "GET /likes/read",
                body: "",
                expect: Expect::Body(br#""total":1,"#),
                check: Check::Nothing,
                ..LIKE
            },
            noop: Some(("GET /noop/likes/read", None)),
            is_paced: false,
        },
        Workload {
            name: "mixed",
            title: "90 % reads, 10 % likes of one item",
            side: Side { line: "POST /likes/mixed", reads: Some("GET /likes/mixed"), ..LIKE },
            noop: Some(("POST /noop/likes/mixed", Some("GET /noop/likes/mixed"))),
            is_paced: true,
        },
    ],
];

/// The chosen sides, by family.
pub fn families(settings: &Settings) -> Vec<Vec<Entrant>> {
    let chosen = |entrant: &Entrant| settings.chooses(entrant.workload.name, entrant.name);
    let of = |family: &&'static [Workload]| family.iter().flat_map(entrants).filter(chosen).collect();
    WORKLOADS.iter().map(of).filter(|family: &Vec<_>| !family.is_empty()).collect()
}

/// Every workload.
pub fn all() -> impl Iterator<Item = &'static Workload> {
    WORKLOADS.iter().copied().flatten()
}

/// The side whose throughput bounds that of `workload` from above: a no-op, perhaps of another workload of the same requests.
pub fn ceiling(workload: &str) -> &'static str {
    match workload {
        "likes-hot" | "likes-zipf" => "likes-hot",
        "reads" => "reads",
        "mixed" => "mixed",
        _ => "reservations-hot",
    }
}

fn entrants(workload: &'static Workload) -> Vec<Entrant> {
    let entrant = |name, side: Side| Entrant { workload, name, side: Side { name, ..side } };
    let mut entrants = Vec::new();
    if workload.name == "likes-hot" {
        let checked_by_nobody = Side { check: Check::Nothing, ..workload.side };
        entrants.push(entrant(ECHO, Side { server: Server::Echo, ..checked_by_nobody }));
        entrants.push(entrant(BARE, Side { server: Server::Bare, ..checked_by_nobody }));
    }
    if let Some((line, reads)) = workload.noop {
        // A no-op read has no total of its own.
        let expect =
            if workload.name == "reads" { Expect::Body(br#""total":"#) } else { workload.side.expect };
        entrants.push(entrant(NOOP, Side { line, reads, expect, check: Check::Nothing, ..workload.side }));
    }
    entrants.push(entrant(HEADCOUNT, workload.side));
    let is_full = workload.side.server == Server::Full;
    let seats = if is_full { Seats::Four } else { Seats::ForAll };
    let mut peer = |name, peer| {
        entrants.push(entrant(name, Side { server: Server::Peer(peer, seats), ..workload.side }));
    };
    peer(REDIS, Peer::Redis);
    peer(POSTGRES, Peer::Postgres);
    if workload.name == "likes-hot" {
        peer(POSTGRES_SLOTS, Peer::PostgresSlots);
    }
    peer(WORKERD, Peer::Workerd);
    entrants
}
