//! After the load, the arithmetic: the server must have counted what it answered.

use std::net::SocketAddr;

use crate::Failure;
use crate::client::{Client, count};
use crate::request::ITEM_WIDTH;
use crate::sides::{Check, HOT_WORKSHOP, Side, in_run};
use crate::tally::Tally;

/// Compares what `side` has been answered, in its last run (number `run`) and in all of them, with what the server at
/// `address` says now. An error names the difference.
pub fn verify(side: &Side, address: SocketAddr, run: u64, last: &Tally, all: &Tally) -> Result<(), Failure> {
    match side.check {
        Check::Nothing => Ok(()),
        Check::Totals => totals(side, address, &all.met_by_item),
        Check::ManySeats => many_seats(side, address, &all.met_by_item),
        Check::Seats => seats(side, address, &in_run(HOT_WORKSHOP, run), last),
        Check::Confirmed => confirmed(side, address, &in_run(HOT_WORKSHOP, run), last),
    }
}

fn totals(side: &Side, address: SocketAddr, changed: &[u64]) -> Result<(), Failure> {
    let mut client = Client::connect(address)?;
    for (item, &changed) in changed.iter().enumerate() {
        let path = match changed {
            // Never liked: the server may not know it.
            0 => continue,
            _ if side.items() == 1 => side.item_path().to_owned(),
            _ => format!("/likes/i{item:0width$}", width = ITEM_WIDTH),
        };
        let total = count(&client.json(&format!("GET {path}?exact=true"))?, "total")?;
        same(side, &path, "total", total, "changed likes", changed)?;
    }
    Ok(())
}

fn many_seats(side: &Side, address: SocketAddr, accepted: &[u64]) -> Result<(), Failure> {
    let mut client = Client::connect(address)?;
    for (workshop, &accepted) in accepted.iter().enumerate().filter(|(_, accepted)| **accepted > 0) {
        let path = format!("/workshops/w{workshop:0width$}", width = ITEM_WIDTH);
        let reserved = count(&client.json(&format!("GET {path}/status"))?, "reserved")?;
        same(side, &path, "reserved", reserved, "201 answers", accepted)?;
    }
    Ok(())
}

fn seats(side: &Side, address: SocketAddr, workshop: &str, answered: &Tally) -> Result<(), Failure> {
    let status = Client::connect(address)?.json(&format!("GET {workshop}/status"))?;
    let reserved = count(&status, "reserved")?;
    let rejected = count(&status, "rejectedRequests")?;
    same(side, workshop, "reserved", reserved, "201 answers", answered.all.status(201))?;
    same(side, workshop, "rejectedRequests", rejected, "409 answers", answered.all.status(409))
}

fn confirmed(side: &Side, address: SocketAddr, workshop: &str, answered: &Tally) -> Result<(), Failure> {
    let status = Client::connect(address)?.json(&format!("GET {workshop}/status"))?;
    same(side, workshop, "reserved", count(&status, "reserved")?, "confirmations", answered.all.status(200))?;
    // Left out where there is none.
    same(side, workshop, "held", status["held"].as_u64().unwrap_or(0), "holds without one", 0)
}

fn same(side: &Side, path: &str, name: &str, stored: u64, what: &str, answered: u64) -> Result<(), Failure> {
    if stored == answered {
        return Ok(());
    }
    Err(format!("MISMATCH in {}: {path} says {name} {stored}, but there were {answered} {what}", side.name)
        .into())
}
