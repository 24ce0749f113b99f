//! From a side to the load on it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::generator::{Length, Plan};
use crate::items::Items;
use crate::request::Request;
use crate::sides::{Side, Spread, ZIPF_ITEMS, in_run};
use crate::stream;

/// What a run's load is like, whatever it asks for.
#[derive(Clone, Copy)]
pub struct Shape {
    pub connections: usize,
    pub threads: usize,
    pub warm_up: Duration,
    pub length: Length,
    /// See [`Plan::pace`].
    pub pace: Option<f64>,
}

/// The ways in which requests fall on many items, made once.
pub struct Spreads {
    zipf: Arc<Items>,
    evenly: Arc<Items>,
}

impl Spreads {
    pub fn new() -> Self {
        Self { zipf: Arc::new(Items::zipf(ZIPF_ITEMS)), evenly: Arc::new(Items::InTurn(ZIPF_ITEMS as u64)) }
    }

    fn of(&self, side: &Side) -> Arc<Items> {
        Arc::clone(match side.spread {
            Spread::Zipf => &self.zipf,
            Spread::Evenly => &self.evenly,
        })
    }
}

/// The run number `run` of `side` against the server at `address`.
pub fn plan(side: &Side, address: SocketAddr, shape: &Shape, spreads: &Spreads, run: u64) -> Plan {
    Plan {
        address,
        connections: if side.is_stream() { stream::STREAMS } else { shape.connections },
        threads: shape.threads,
        warm_up: shape.warm_up,
        length: shape.length,
        request: match side.is_stream() {
            true => Request::line(side.body),
            false => Request::new(&in_run(side.line, run), side.body, Some(spreads.of(side))),
        },
        is_stream: side.is_stream(),
        then: side.then.map(|line| Request::new(&in_run(line, run), "", None)),
        reads: side.reads.map(|line| Request::new(&in_run(line, run), "", None)),
        pace: shape.pace,
        expect: side.expect,
        items: side.items(),
        // A range of its own for each run, more than any run can use.
        first_number: run << 40,
    }
}
